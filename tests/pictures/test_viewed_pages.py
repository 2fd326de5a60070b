"""Pages in a real browser: no outside requests, groups that close, search results, no overflow."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from itertools import pairwise

import pytest

import opreg as mx
from opreg import nn
from opreg.errors import ArgumentError
from tests.pictures.browser import Browser, find

NODES = "Array.from(document.querySelectorAll('.opreg-graph .node'))"
NASTY = '</script><script>alert(1)</script><img src=x onerror="alert(2)">&\'"'


@pytest.fixture(scope="module")
def browser():
    if find() is None:
        pytest.skip("there is no Chromium here")
    browser = Browser()
    yield browser
    browser.close()


class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.relu = nn.Dense(4, 4), nn.Dense(4, 4), nn.ReLU()

    def construct(self, x):
        return self.relu(self.two(self.relu(self.one(x))) + x)


def of_cells():
    return mx.viz.page(nn.SequentialCell(Block(), Block()), (2, 4))


def of_a_plan():
    x = mx.sym.Variable("x")
    net = mx.sym.FullyConnected(mx.sym.exp(x * 2 + 1), num_hidden=64, name="fc")
    executor = mx.sym.sum(mx.sym.tanh(net) * net).simple_bind(mx.cpu(), x=(8, 32))
    return mx.viz.page(executor, profile=executor.profile(1), title="a plan")


def of_a_residual_network():
    """A network of seventy nodes: two stages of four units, whose sum and last relu the next unit reads."""
    x = skip = mx.sym.Variable("data")
    for stage in (1, 2):
        for unit in range(4):
            for i in range(4):
                x = mx.sym.FullyConnected(x, num_hidden=8, name=f"stage{stage}_unit{unit}_fc{i}")
                x = mx.sym.relu(x, name=f"stage{stage}_unit{unit}_relu{i}")
            x, skip = mx.sym.elemwise_add(x, skip, name=f"stage{stage}_unit{unit}_plus"), x
        x = x if stage == 2 else mx.sym.tanh(x, name="stage1_last")
    return mx.viz.page(x, shape={"data": (2, 8)})


def of_nasty_names():
    return mx.viz.page(mx.sym.relu(mx.sym.Variable(NASTY), name=NASTY, attr={"__note__": NASTY}), title=NASTY)


@pytest.fixture
def shown(browser, tmp_path):
    """Shows a page at a width, and returns the browser."""

    def show(page, width=1200, scheme="light"):
        browser.size(width, 900)
        browser.scheme(scheme)
        browser.open(page.save(tmp_path / "page.html"))
        assert browser.messages == []
        assert len(browser.requests) == 1
        return browser

    return show


@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("make", [of_cells, of_a_plan, of_a_residual_network, of_nasty_names])
def test_a_page_fits_and_asks_for_nothing(shown, make, width):
    browser = shown(make(), width)
    assert browser.eval("document.documentElement.scrollWidth") <= width
    assert browser.eval("document.querySelectorAll('script').length") == 2
    texts = browser.eval("""Array.from(document.querySelectorAll('.opreg-graph .node')).filter((node) => {
        const box = node.querySelector('.box').getBoundingClientRect();
        return Array.from(node.querySelectorAll('.name, .kind')).some((text) => {
            const own = text.getBoundingClientRect();
            return own.left < box.left || own.right > box.right || own.top < box.top || own.bottom > box.bottom})
        }).map((node) => node.textContent)""")
    assert texts == []


@pytest.mark.parametrize("make", [of_cells, of_a_plan, of_a_residual_network])
def test_labels_can_be_read_on_a_phone_and_the_first_node_is_in_view(shown, make):
    browser = shown(make(), 390)
    sizes = browser.eval("""Array.from(document.querySelectorAll('svg text')).map((text) =>
        parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)""")
    assert min(sizes) >= 8
    assert browser.eval("""Array.from(document.querySelectorAll('.overview, .graph')).every((section) => {
        const pane = section.querySelector('.scroll').getBoundingClientRect();
        const box = section.querySelector('.node .box').getBoundingClientRect();
        return pane.left <= box.left && box.right <= pane.right})""")


def test_names_are_text_and_nothing_else(shown):
    browser = shown(of_nasty_names())
    assert browser.eval("document.querySelectorAll('img').length") == 0
    assert browser.eval("document.querySelector('h1').textContent").startswith("</script>")
    browser.click(".opreg-graph .node.head")
    assert browser.eval("Array.from(document.querySelectorAll('dd')).map((each) => each.textContent)")[:3] == [
        NASTY, "relu", f"__note__={NASTY}"]


def test_a_click_shows_the_facts_of_a_node(shown):
    browser = shown(of_a_plan())
    browser.click(".opreg-graph .node.product")
    facts = dict(zip(browser.eval("Array.from(document.querySelectorAll('dt')).map((each) => each.textContent)"),
                     browser.eval("Array.from(document.querySelectorAll('dd')).map((each) => each.textContent)")))
    assert facts["name"] == "fc"
    assert facts["gives"] == "8×64 float32"
    assert facts["kernel"]
    assert "num_hidden=64" in facts["attributes"]
    assert "test_viewed_pages.py" in facts["made at"]
    assert facts["takes"].endswith("s")
    assert browser.eval("document.querySelectorAll('.opreg-graph .chosen').length") == 1
    browser.click(".opreg-graph .node.fused")
    texts = browser.eval("Array.from(document.querySelectorAll('dd')).map((each) => each.textContent)")
    assert "_fused of _mul_scalar, _plus_scalar, exp" in texts
    assert sum("test_viewed_pages.py" in text for text in texts) == 2


def test_groups_close_and_open(shown):
    browser = shown(of_cells())
    height = "document.querySelector('.opreg-graph').getBoundingClientRect().height"
    before = browser.eval(height)
    visible = f"{NODES}.filter((node) => node.getClientRects().length > 0).length"
    count = browser.eval(visible)
    browser.click(".cluster > .title")
    assert browser.eval(height) < before
    assert browser.eval(visible) < count
    frames = browser.eval("""Array.from(document.querySelectorAll('.cluster')).map((each) => {
        const box = each.querySelector('.frame').getBoundingClientRect(); return [box.top, box.bottom]})""")
    assert all(one[1] <= other[0] for one, other in pairwise(frames))
    browser.click(".shut > .frame")
    assert (browser.eval(height), browser.eval(visible)) == (before, count)
    browser.click("[name=close]")
    assert browser.eval("document.querySelectorAll('.shut').length") == 2
    browser.click("[name=open]")
    assert (browser.eval(height), browser.eval(visible)) == (before, count)


def test_lines_still_join_nodes_when_groups_have_closed(shown):
    browser = shown(of_cells())
    browser.click("[name=close]")
    browser.click("[name=open]")
    ends = browser.eval("""Array.from(document.querySelectorAll('.line[data-to]')).map((line) => {
        const node = document.querySelector(`.opreg-graph [data-node="${line.dataset.to.split(":")[0]}"] .box`);
        const end = line.getPointAtLength(line.getTotalLength()).matrixTransform(line.getScreenCTM());
        const box = node.getBoundingClientRect();
        return Math.abs(end.y - box.top) < 1.5 && box.left <= end.x && end.x <= box.right})""")
    assert ends
    assert all(ends)


def test_many_nodes_begin_with_an_overview_whose_boxes_lead_to_groups(shown):
    browser = shown(of_a_residual_network())
    boxes = browser.eval("""Array.from(document.querySelectorAll('.overview .node')).map((node) => [
        ...node.querySelectorAll('.name, .kind')].map((text) => text.textContent))""")
    units = [f"unit{unit}" for unit in range(4)]
    assert sorted(boxes) == sorted([["data"], ["last", "tanh"], *([[unit, "9 nodes"] for unit in units] * 2)])
    assert browser.eval("Array.from(document.querySelectorAll('.overview .count')).map((each) => each.textContent)"
                        ) == ["2"] * 7
    browser.click("[name=close]")
    browser.click(".overview .group .box")
    assert browser.eval("""(() => {
        const group = document.querySelector('.graph [data-level]:not(.shut) [data-level]:not(.shut)');
        const frame = document.querySelector('.graph .scroll').getBoundingClientRect();
        const title = group.querySelector('.title').getBoundingClientRect();
        return frame.top < title.top && title.bottom < frame.bottom})()""")
    browser.click("input")
    browser.type("stage2_unit3_fc")
    assert browser.eval("document.querySelectorAll('.overview .hit').length") == 1


def test_a_closed_group_has_one_line_for_each_neighbour_with_a_count(shown):
    browser = shown(of_a_residual_network())
    seen = """Array.from(document.querySelectorAll('.graph .line')).filter((line) =>
        line.getClientRects().length && getComputedStyle(line).display !== 'none').length"""
    before = browser.eval(seen)
    browser.click("[name=close]")
    assert browser.eval(seen) == 2  # from the data to the first stage, and from it to the second
    assert browser.eval("document.querySelectorAll('.graph > .scroll > svg > .count').length") == 1
    browser.click("[name=open]")
    assert (browser.eval(seen), browser.eval("document.querySelectorAll('.graph .count').length")) == (before, 0)


def test_the_graph_fits_the_page_and_moves_with_the_mouse(shown):
    browser = shown(of_a_residual_network())
    around, width = "document.querySelector('.graph .scroll')", "document.querySelector('.graph svg').clientWidth"
    browser.click("[name=larger]")
    browser.click("[name=fit]")
    assert abs(browser.eval(width) - browser.eval(f"{around}.clientWidth")) <= 1
    assert browser.eval(f"""(() => {{
        const around = {around}, at = {{bubbles: true, pointerType: "mouse", button: 0}};
        const drag = (type, y) => around.dispatchEvent(new PointerEvent(type, {{...at, clientX: 5, clientY: y}}));
        around.scrollTop = 0;
        drag("pointerdown", 300); drag("pointermove", 220); drag("pointerup", 220); drag("pointermove", 100);
        return around.scrollTop}})()""") == 80


def test_the_search_finds_and_opens(shown):
    browser = shown(of_cells())
    browser.click("[name=close]")
    browser.click("input")
    browser.type("1_two")
    assert browser.eval("document.querySelector('.found').textContent") == "1 found"
    assert browser.eval("Array.from(document.querySelectorAll('.row.hit .name')).map((row) => row.textContent)"
                        ) == ["1_two_fullyconnected0"]
    assert not browser.eval("document.querySelector('.opreg-graph .hit').getClientRects().length")
    browser.key("Enter")
    assert browser.eval("document.querySelector('.found').textContent") == "1 of 1"
    assert browser.eval("document.querySelector('.opreg-graph .hit.chosen').getClientRects().length > 0")
    assert browser.eval("document.querySelector('dd').textContent") == "1_two_fullyconnected0"
    assert browser.eval("""(() => {
        const node = document.querySelector('.opreg-graph .hit');
        const box = node.getBoundingClientRect();
        const frame = node.closest('.cluster').firstElementChild.getBoundingClientRect();
        return frame.top < box.top && box.bottom < frame.bottom})()""")


def test_memory_is_shown_over_time(shown):
    browser = shown(of_a_plan())
    assert browser.eval("document.querySelector('text.peak').textContent").startswith("peak ")
    assert browser.eval("document.querySelectorAll('.arena .stay').length") > 3
    browser.click(".arena .stay")
    assert browser.eval("document.querySelectorAll('.arena .stay.chosen').length") == 1
    assert browser.eval("document.querySelectorAll('.opreg-graph .node.chosen').length") == 1
    assert not browser.eval("document.querySelector('.opreg-graph .memory').getClientRects().length")
    browser.click("[name=memory]")
    assert browser.eval("document.querySelector('.opreg-graph .memory').getClientRects().length > 0")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_is_light_or_dark_as_the_browser_prefers_or_the_reader_chooses(shown, scheme):
    browser = shown(of_cells(), scheme=scheme)

    def colours():
        return [browser.eval(f"getComputedStyle(document.querySelector('{each}')).{what}") for each, what in
                (("body", "backgroundColor"), (".opreg-graph .back", "fill"))]

    light, dark = ["rgb(255, 255, 255)"] * 2, ["rgb(13, 17, 23)"] * 2
    assert colours() == (light if scheme == "light" else dark)
    browser.click("[name=theme]")
    assert colours() == (dark if scheme == "light" else light)


# ------------------------------------------------------------------------------------------- without a browser


class Elements(HTMLParser):
    """A parser that collects attributes of all elements, and checks that each is closed."""

    def __init__(self, text):
        super().__init__()
        self.attributes, self.data, self._open = [], None, []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in ("meta", "input"):
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, text):
        if self._open and self._open[-1] == "script" and self.data is None:
            self.data = json.loads(text)


@pytest.mark.parametrize("make", [of_cells, of_a_plan, of_nasty_names])
def test_a_page_needs_no_other_files(make):
    page = make()
    found = Elements(page.html)
    names = {name for name, _ in found.attributes}
    assert not names & {"src", "href", "style", "onclick", "onerror"}
    assert "http" not in page.html.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")
    assert len(found.data["nodes"]) == page.html.count('class="row"')
    assert "'unsafe" not in page.html
    assert page._repr_html_().startswith("<iframe srcdoc=\"&lt;!DOCTYPE html&gt;")


def test_a_page_shows_facts_about_a_plan():
    page = of_a_plan()
    assert "training plan" in page.html
    assert repr(page).startswith("<Page a plan, ")
    assert "backward" in page.html


def test_a_profile_is_of_the_plan_that_is_shown():
    x = mx.sym.Variable("x")
    executor = mx.sym.exp(x).simple_bind(mx.cpu(), x=(2,))
    with pytest.raises(ArgumentError, match="the profile is of the inference plan; give is_train=False"):
        mx.viz.page(executor, profile=executor.profile(1, is_train=False))
    with pytest.raises(ArgumentError, match="is of another executor"):
        mx.viz.page(x * 2, profile=executor.profile(1))
    assert "inference plan" in mx.viz.page(executor, profile=executor.profile(1, False), is_train=False).html
