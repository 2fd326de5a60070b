"""What MkDocs is told of the site beside docs/: README as its first page, the reference, the examples, the order."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from opreg import reference

ROOT = Path(__file__).parent.parent

#: Pages of docs/ in the order of reading. Those that are not named here come last in "More".
SECTIONS = {
    "Learn": ["write_an_operator", "twelve_operators", "train_a_model", "pictures", "command", "interop"],
    "Come from elsewhere": ["mxnet", "mindspore", "mindspore_names", "scripts"],
    "How it works": ["architecture", "performance", "gpu", "distributed", "glossary"],
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages in order."""
    there = sorted(path.stem for path in ROOT.glob("docs/*.md"))
    named = {page for pages in SECTIONS.values() for page in pages} | {"operators"}
    sections = {**SECTIONS, "More": [page for page in there if page not in named]}
    config.nav = [
        {"opreg": "index.md"},
        *({title: [f"{page}.md" for page in pages if page in there]} for title, pages in sections.items()),
        {"Reference": ["operators.md", "reference/index.md", *(f"reference/{name}.md" for name in _REFERENCE
                                                               if name != "index")]},
        {"Examples": ["examples/index.md", *(f"examples/{name}.md" for name in _EXAMPLES), "examples/data.md"]},
        {"Project": ["contributing.md", "changelog.md"]},
    ]
    config.nav = [each for each in config.nav if each != {"More": []}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are no files of docs/."""
    made = {"index": (ROOT / "README.md").read_text(), "contributing": (ROOT / "CONTRIBUTING.md").read_text(),
            "changelog": (ROOT / "CHANGELOG.md").read_text(),
            "examples/data": (ROOT / "examples/data/README.md").read_text(),
            **{f"reference/{name}": text for name, text in _REFERENCE.items()},
            **{f"examples/{name}": f"# {name}\n\n```python\n{text}```\n" for name, text in _EXAMPLES.items()},
            "examples/index": "\n".join(["# Examples", "", *(
                f"- [{name}]({name}.md): {(ast.get_docstring(ast.parse(text)) or '').splitlines()[0]}"
                for name, text in _EXAMPLES.items())])}
    for name, text in made.items():
        files.append(File.generated(config, f"{name}.md", content=text))
    return files


#: Where what pages link to in the repository lies in the site, for pages of its root.
MOVED = [(r"(?:\.\./)?examples/data(?:/README\.md)?", "examples/data.md"),
         (r"(?:\.\./)?examples/?", "examples/index.md"),
         (r"(?:\.\./)?examples/(\w+)\.(?:py|ipynb)", r"examples/\1.md"), (r"docs/(\w+\.md.*)", r"\1"),
         (r"(?:\.\./)?CONTRIBUTING\.md", "contributing.md"), (r"(?:\.\./)?CHANGELOG\.md", "changelog.md"),
         (r"\.\./README\.md", "index.md"), (r"\.\./benchmarks/?", "performance.md")]


def on_page_markdown(markdown: str, **_: object) -> str:
    """Let links lead to pages of the site."""
    for pattern, page in MOVED:
        markdown = re.sub(rf"\]\({pattern}\)", f"]({page})", markdown)
    return markdown


_REFERENCE = reference.pages()
_EXAMPLES = {path.stem: path.read_text() for path in sorted(ROOT.glob("examples/*.py"))}
