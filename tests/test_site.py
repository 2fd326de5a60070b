"""The site: every link has a target, and pages made from docstrings exist."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from opreg import reference

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="builds the site: pip install 'opreg[docs]'")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)], cwd=ROOT,
                           capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def text(page: Path) -> str:
    return html.unescape(re.sub("<[^>]+>", "", page.read_text()))


def test_every_page_is_there(site: Path) -> None:
    for page in ROOT.glob("docs/*.md"):
        assert (site / page.name).with_suffix(".html").exists()
    for example in ROOT.glob("examples/*.py"):
        assert "import" in text((site / "examples" / example.name).with_suffix(".html"))


@pytest.mark.parametrize("page, said", [
    ("index", "Write your own neural-network operators in Python"),
    ("operators", "A convolution of the data with num_filter kernels, plus a bias."),
    ("reference/operator", "define(function=None"),
    ("reference/nd", "attach_grad(grad_req='write'"),
    ("reference/nn", "Dense(in_channels, out_channels"),
    ("reference/index", "value_and_grad"),
])
def test_pages_have_the_expected_text(site: Path, page: str, said: str) -> None:
    assert said in text(site / f"{page}.html")


def test_a_search_finds_pages_before_entries_and_each_text_once(site: Path) -> None:
    """Titles count most, and an explanation counts more than a list."""
    found = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    boosts = {each["location"]: each["boost"] for each in found}
    assert len({(each["title"], each["text"]) for each in found}) == len(found)
    assert boosts["write_an_operator.html#second-order-gradients"] > boosts["operators.html#fullyconnected"] > 1
    assert min(boosts.values()) == boosts["reference/operator.html#customopprop"] == 1
    worker = (site / "search" / "worker.js").read_text()
    assert "{boost: doc.boost}" in worker and "'title', {boost: " in worker


#: Words that people search for, and the section that explains them.
SEARCHES = {
    "speed": "performance.html#performance-speed-and-memory",
    "custom operator": "write_an_operator.html#write-an-operator-custom-operators-in-python",
    "hook": "mindspore.html#hooks",
    "bprop": "mindspore.html#bprop",
    "save model": "train_a_model.html#save-and-load-a-model",
    "gpu": "gpu.html#on-a-gpu",
    "numpy version": "index.html#versions-of-python-numpy-and-cupy",
    "jit": "from_torch_and_jax.html#compiled-functions-jit",
    "error": "write_an_operator.html#debug-it-errors",
    "profile": "performance.html#profile-find-your-slow-step",
}


def test_searched_words_are_in_the_title_of_the_section_that_explains_them(site: Path) -> None:
    """No section of an entry that counts more has all words in its title."""
    found = json.loads((site / "search" / "search_index.json").read_text())["docs"]
    for words, wanted in SEARCHES.items():
        titled = {each["location"]: each["boost"] for each in found
                  if all(re.search(rf"\b{word}s?\b", each["title"].lower()) for word in words.split())}
        assert titled.get(wanted, 0) == max(titled.values(), default=0), (words, titled)


def test_code_has_colours(site: Path) -> None:
    """Keywords have their own class, and so have prompts."""
    assert '<span class="k">def</span>' in (site / "index.html").read_text()
    assert '<span class="gp">&gt;&gt;&gt; </span>' in (site / "operators.html").read_text()
    assert ".codehilite .k" in (site / "colours.css").read_text()


def test_no_markup_of_docstrings_is_left() -> None:
    """Headings and prompts are converted to Markdown."""
    for name, page in reference.pages().items():
        prose = re.sub(r"^```pycon\n.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"^(-{4,}$|>>> |```)", prose, re.MULTILINE), name


def test_bases_that_have_an_entry_are_not_repeated() -> None:
    page = reference.pages()["nn"]
    assert page.count("### register_forward_hook") == 1 and "### set_data" in page
