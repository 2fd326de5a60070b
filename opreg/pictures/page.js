"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const {nodes, levels, pad, title, closed, many, groups} = data;
  const root = document.documentElement, graph = document.querySelector(".graph .opreg-graph");
  const around = document.querySelector(".graph .scroll");
  const index = {level: new Map(), item: new Map(), line: new Map(), tip: new Map(), node: new Map()};
  for (const element of graph.querySelectorAll("g, path")) {
    for (const name in element.dataset) if (index[name]) index[name].set(element.dataset[name], element);
  }
  const one = (name, value) => index[name].get(String(value));
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const shut = new Set();

  // ------------------------------------------------------------------ groups: rows move up where one is closed

  levels.forEach((level, number) => {
    level.number = number;
    level.element = number ? one("level", number) : graph;
    level.items = level.items.map(([row, x, height, inner], i) =>
      ({row, x, height, inner, y: 0, element: one("item", `${number}.${i}`)}));
    level.lines = level.lines.map(([first, xs, source, target], i) =>
      ({first, xs, source, target, element: one("line", `${number}.${i}`), tip: one("tip", `${number}.${i}`)}));
    level.items.forEach((item) => { if (item.inner >= 0) levels[item.inner].parent = level });
  });

  function stack(level) {
    const rows = new Array(level.gaps.length + 1).fill(0), tops = [];
    for (const item of level.items) {
      if (item.inner >= 0) item.height = shut.has(item.inner) ? closed : levels[item.inner].height;
      rows[item.row] = Math.max(rows[item.row], item.height);
    }
    let top = pad + (level.number ? title : 0);
    rows.forEach((height, i) => { tops.push(top); top += height + (level.gaps[i] || 0) });
    level.height = top + pad;
    for (const item of level.items) {
      item.y = tops[item.row] + (rows[item.row] - item.height) / 2;
      item.element.setAttribute("transform", `translate(${item.x} ${item.y.toFixed(1)})`);
      if (item.inner >= 0) item.element.firstElementChild.setAttribute("height", item.height);
    }
    for (const line of level.lines) draw(level, line, rows, tops);
    merge(level);
    if (!level.number) {
      graph.setAttribute("height", level.height);
      graph.setAttribute("viewBox", `0 0 ${level.width} ${level.height}`);
    }
  }

  function draw(level, {first, xs, source, target, element, tip}, rows, tops) {
    const from = source < 0 ? null : level.items[source];
    const end = target < 0 ? level.height : level.items[target].y;
    let path = `M${xs[0]} ${from ? from.y + from.height : 0}`;
    for (let i = 1; i < xs.length; i++) {
      const upper = tops[first + i - 1] + rows[first + i - 1], lower = tops[first + i], middle = (upper + lower) / 2;
      path += `V${upper}C${xs[i - 1]} ${middle} ${xs[i]} ${middle} ${xs[i]} ${lower}`;
    }
    element.setAttribute("d", `${path}V${end}`);
    if (tip) tip.setAttribute("d", `M${xs[xs.length - 1]} ${end}l-2.5 -5h5z`);
  }

  // Lines between a closed group and another thing are one line, with their count beside it.
  function merge(level) {
    const between = new Map();
    for (const line of level.lines) {
      const ends = [line.source, line.target].map((i) => i < 0 ? -1 : level.items[i].inner);
      const one = ends.some((inner) => shut.has(inner)) ? `${line.source} ${line.target}` : line;
      between.set(one, [...(between.get(one) || []), line]);
    }
    level.counts = (level.counts || []).filter((text) => text.remove());
    for (const lines of between.values()) {
      const kept = lines[lines.length >> 1];
      for (const line of lines) {
        for (const element of [line.element, line.tip]) if (element) element.classList.toggle("merged", line !== kept);
      }
      if (lines.length > 1) level.counts.push(count(kept, lines.length));
    }
  }

  function count(line, number) {
    const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
    const {x, y} = line.element.getPointAtLength(line.element.getTotalLength());
    text.setAttribute("class", "count");
    text.setAttribute("x", x + 5);
    text.setAttribute("y", y - 5);
    text.textContent = number;
    line.element.after(text);
    return text;
  }

  function close(number, yes) {
    if (yes) shut.add(number); else shut.delete(number);
    levels[number].element.classList.toggle("shut", yes);
  }

  function restack(level) {
    for (; level; level = level.parent) stack(level);
  }

  function every(yes) {
    for (let i = levels.length - 1; i > 0; i--) close(i, yes);
    for (let i = levels.length - 1; i >= 0; i--) stack(levels[i]);
    all(".outline details").forEach((part) => { part.open = !yes });
  }

  // --------------------------------------------------------------------------------------------------- choosing

  const details = document.querySelector(".details");

  function choose(number, scroll) {
    all(".chosen").forEach((element) => element.classList.remove("chosen"));
    all(`[data-node="${number}"]`).forEach((element) => element.classList.add("chosen"));
    const list = document.createElement("dl");
    for (const [name, text] of Object.entries(nodes[number])) {
      list.append(Object.assign(document.createElement("dt"), {textContent: name}),
                  Object.assign(document.createElement("dd"), {textContent: text}));
    }
    details.querySelector("dl, .hint").replaceWith(list);
    if (scroll) reveal(number);
  }

  function reveal(number) {
    const element = one("node", number);
    let level = levels[Number(element.dataset.item.split(".")[0])];
    const inside = level;
    let opened = false;
    for (; level.number; level = level.parent) {
      opened = opened || shut.has(level.number);
      close(level.number, false);
    }
    if (opened) restack(inside);
    center(element);
  }

  function open(number) {
    for (let level = levels[number]; level.number; level = level.parent) close(level.number, false);
    restack(levels[number]);
    center(levels[number].element.querySelector(".title"));
    around.scrollIntoView({block: "nearest"});
  }

  function center(element) {
    const box = element.getBoundingClientRect();
    const frame = around.getBoundingClientRect();
    around.scrollTop += box.top - frame.top - frame.height / 2;
    around.scrollLeft += box.left - frame.left - frame.width / 2 + box.width / 2;
  }

  document.addEventListener("click", (event) => {
    const chosen = event.target.closest("[data-node]");
    if (chosen) {
      if (groups[chosen.dataset.node]) open(Number(chosen.dataset.node.slice(1)));
      else if (nodes[chosen.dataset.node]) choose(chosen.dataset.node, !chosen.closest(".opreg-graph"));
      return;
    }
    const cluster = event.target.closest(".cluster");
    const moved = around.classList.contains("dragged");
    if (cluster && event.target.parentNode === cluster && !moved) toggle(Number(cluster.dataset.level));
  });

  function toggle(number) {
    close(number, !shut.has(number));
    restack(levels[number]);
  }

  document.addEventListener("keydown", (event) => {
    const focused = event.target.closest && event.target.closest(".node");
    if (focused && event.key === "Enter" && nodes[focused.dataset.node]) choose(focused.dataset.node, false);
  });
  if (nodes.length <= many) all(".opreg-graph .node").forEach((element) => element.setAttribute("tabindex", "0"));

  // -------------------------------------------------------------------------------------------------- searching

  const field = document.querySelector("input"), found = document.querySelector(".found");
  let hits = [], at = -1;

  field.addEventListener("input", () => {
    const words = field.value.trim().toLowerCase();
    hits = words ? nodes.map((_, i) => i).filter((i) => Object.entries(nodes[i]).some(
      ([name, text]) => name !== "inputs" && text.toLowerCase().includes(words))) : [];
    at = -1;
    const marked = new Set(hits);
    document.body.classList.toggle("searching", Boolean(words));
    all(".opreg-graph .node, .row").forEach((element) =>
      element.classList.toggle("hit", (groups[element.dataset.node] || [Number(element.dataset.node)]).some(
        (node) => marked.has(node))));
    if (words) all(".outline details").forEach((part) => { part.open = true });
    found.textContent = words ? `${hits.length} found` : "";
  });
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !hits.length) return;
    at = (at + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
    choose(hits[at], true);
    found.textContent = `${at + 1} of ${hits.length}`;
  });

  // ---------------------------------------------------------------------------------------------------- buttons

  const actions = {
    close: () => every(true),
    open: () => every(false),
    memory: () => document.body.classList.toggle("by-memory"),
    theme: () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
    },
    larger: () => zoom(1.25),
    smaller: () => zoom(0.8),
    fit: () => zoom(around.clientWidth / levels[0].width / scale),
  };
  const readable = 0.9;  // the scale at which the smallest labels have 8 pixels
  let scale = 1;

  function zoom(by) {
    scale *= by;
    graph.style.width = `${levels[0].width * scale}px`;
    graph.style.height = "auto";
  }
  all("button").forEach((button) => button.addEventListener("click", () => actions[button.name]()));
  if (nodes.length > many && levels.length > 1) every(true);

  // The graph moves with a pointer that drags its ground.
  around.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button || event.target.closest("[data-node], .title, .tag")) return;
    const from = {x: event.clientX + around.scrollLeft, y: event.clientY + around.scrollTop};
    const move = ({clientX, clientY}) => {
      around.classList.add("dragged");
      around.scrollTo(from.x - clientX, from.y - clientY);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", () => {
      removeEventListener("pointermove", move);
      setTimeout(() => around.classList.remove("dragged"));
    }, {once: true});
  });

  // A wide picture begins smaller, but its labels stay readable, and its first operator is in view.
  if (levels[0].width > around.clientWidth) zoom(Math.max(around.clientWidth / levels[0].width, readable));
  const above = document.querySelector(".overview .opreg-graph");
  if (above) above.style.minWidth = `${above.width.baseVal.value * readable}px`;
  for (const picture of all(".opreg-graph")) {
    const boxes = Array.from(picture.querySelectorAll(".node:not(.variable)"), (node) => node.getBoundingClientRect());
    if (!boxes.length) continue;
    const first = boxes.reduce((one, other) => other.top < one.top ? other : one);
    const pane = picture.parentNode;
    pane.scrollLeft += first.left + first.width / 2 - pane.getBoundingClientRect().left - pane.clientWidth / 2;
  }
})();
