"""Settings of MkDocs beside docs/: README as the first page, the reference, the examples, the order of all, the
colours of code, and what a search finds first."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from pygments.formatters import HtmlFormatter

from opreg import reference

ROOT = Path(__file__).parent.parent

#: Pages of docs/ in the order of reading; those that are not there yet are left out, what is not named comes last.
SECTIONS = {
    "Learn": ["write_an_operator", "twelve_operators", "train_a_model", "pictures", "command", "interop"],
    "Come from elsewhere": ["from_torch_and_jax", "mxnet", "gluon", "gluon_data", "mindspore", "mindspore_names",
                            "onnx", "scripts", "tested_programs"],
    "How it works": ["architecture", "homes", "performance", "gpu", "distributed"],
}

#: Links into the repository, and where it lies in the site. Other links become plain text.
MOVED = [
    (r"docs/(\w+\.md[^)]*)", r"\1"),
    (r"(?:\.\./)?opreg/examples/data(?:/README\.md)?", "examples/data.md"),
    (r"(?:\.\./)?(?:opreg/)?examples/?", "examples/index.md"),
    (r"(?:\.\./)?examples/(\w+)\.(?:py|ipynb)", r"examples/\1.md"),
    (r"(?:\.\./)?CONTRIBUTING\.md", "contributing.md"),
    (r"(?:\.\./)?CHANGELOG\.md", "changelog.md"),
    (r"\.\./README\.md", "index.md"),
]


def _program(text: str) -> tuple[str, str]:
    """A program as a page, and what it is in a line."""
    return f"```python\n{text}```", (ast.get_docstring(ast.parse(text)) or "").splitlines()[0]


def _notebook(text: str) -> tuple[str, str]:
    """A notebook as a page: its text, its code, and what is kept of its output; and what it is in a line."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        parts += ["```text\n" + "".join(output.get("text", ())) + "```" for output in cell.get("outputs", ())]
    title, _, rest = "\n\n".join(parts).replace("](../docs/", "](../").partition("\n")
    return rest, f"{title.removeprefix('# ')}: a notebook."


def _pages() -> dict[str, str]:
    """Pages from outside docs/: their names on the site and their texts."""
    made = {"index": "README.md", "contributing": "CONTRIBUTING.md", "changelog": "CHANGELOG.md",
            "examples/data": "opreg/examples/data/README.md"}
    pages = {name: (ROOT / path).read_text() for name, path in made.items()}
    pages.update((f"reference/{name}", text) for name, text in reference.pages().items())
    contents = ["# Examples", ""]
    for ending, as_page in (("ipynb", _notebook), ("py", _program)):
        for path in sorted(ROOT.glob(f"examples/*.{ending}")):
            text, line = as_page(path.read_text())
            pages[f"examples/{path.stem}"] = f"# {path.name}\n\n{text}\n"
            contents.append(f"- [{path.name}]({path.stem}.md): {line}")
    return {**pages, "examples/index": "\n".join(contents)}


PAGES = _pages()


def _below(folder: str) -> list[str]:
    names = [f"{name}.md" for name in PAGES if name.startswith(folder)]
    return sorted(names, key=lambda name: not name.endswith("index.md"))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages in order."""
    there = sorted(path.stem for path in ROOT.glob("docs/*.md"))
    named = {"operators"}.union(*SECTIONS.values())
    sections = {**SECTIONS, "More": [page for page in there if page not in named]}
    config.nav = [{"opreg": "index.md"},
                  *({title: [f"{page}.md" for page in pages if page in there]} for title, pages in sections.items()
                    if set(pages) & set(there)),
                  {"Reference": ["operators.md", *_below("reference/")]}, {"Examples": _below("examples/")},
                  {"Project": ["contributing.md", "changelog.md"]}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are no files of docs/, and the colours of code."""
    for name, text in PAGES.items():
        files.append(File.generated(config, f"{name}.md", content=text))
    colours = HtmlFormatter(style="default").get_style_defs(".codehilite")
    files.append(File.generated(config, "colours.css", content=colours))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Let links lead to pages of the site."""
    for pattern, moved in MOVED:
        markdown = re.sub(rf"\]\({pattern}\)", f"]({moved})", markdown)
    return re.sub(r"\[([^\]]+)\]\(\.\./(?!\w+\.md)[^)]*\)", r"\1", markdown)


def _weight(location: str) -> int:
    """The weight of a search result: pages, which explain, come before entries of the reference."""
    page = location.partition("#")[0]
    if page == "operators.html":
        return 2
    if page in _INSIDES:
        return 2
    if page in _DIFFERENCES:
        return 3
    return 1 if page.startswith(("reference/", "examples/")) or page in _LISTS else 4


#: Pages that list differences from a framework, or the same lines in two, and explain less than others.
_DIFFERENCES = {"mxnet.html", "mindspore.html", "from_torch_and_jax.html"}
#: Pages about the engine's insides, which users of operators need not know.
_INSIDES = {"architecture.html", "homes.html"}
_LISTS = {"changelog.html", "contributing.html", "mindspore_names.html"}


def _replace(path: Path, *pairs: tuple[str, str]) -> None:
    text = path.read_text()
    for old, new in pairs:
        if old not in text:
            raise PluginError(f"{path.name} of this MkDocs has no {old!r}, which docs/hooks.py replaces")
        text = text.replace(old, new)
    path.write_text(text)


def on_post_build(config: MkDocsConfig) -> None:
    """Let a search find titles before text, pages before the reference, and what stands in several places once."""
    folder = Path(config.site_dir) / "search"
    index = json.loads((folder / "search_index.json").read_text())
    once = {(each["title"], each["text"]): each for each in reversed(index["docs"])}  # the first of several
    index["docs"] = [{**each, "boost": _weight(each["location"])} for each in reversed(once.values())]
    (folder / "search_index.json").write_text(json.dumps(index, separators=(",", ":")))
    _replace(folder / "worker.js", ("this.field('title');", "this.field('title', {boost: 6});"),
             ("this.add(doc);", "this.add(doc, {boost: doc.boost});"))
