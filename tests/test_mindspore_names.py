"""Public names of MindSpore 2.10 exist, or a page lists them, and the error for a missing one names this page."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path

import pytest

import opreg as ms
from tests.recorded.mindspore_names import ABSENT_MODULES, absent, page

PAGE = Path(__file__).parent.parent / "docs" / "mindspore_names.md"


@pytest.fixture(autouse=True)
def quiet() -> None:
    """Ignores warnings about deprecated names."""
    warnings.simplefilter("ignore")


def test_page_is_current() -> None:
    assert PAGE.read_text() == page(), "PYTHONPATH=. python tests/recorded/mindspore_names.py > docs/mindspore_names.md"


def test_modules_in_the_list_of_absent_ones_are_absent() -> None:
    assert set(ABSENT_MODULES) <= set(absent())


@pytest.mark.parametrize("name", ["rewrite", "load", "boost"])
def test_a_missing_name_points_to_the_page(name: str) -> None:
    with pytest.raises(AttributeError, match=f"'{name}' of MindSpore is no part of opreg: .*docs/mindspore_names.md"):
        getattr(ms, name)
    with pytest.raises(ImportError, match=r"docs/mindspore_names\.md"):
        __import__(f"opreg.{name}")


@pytest.mark.parametrize("module, name, instead", [
    ("", "_c_expression", "internal"), ("context", "set_ps_context", "docs/distributed.md"),
    ("dataset", "audio", "GeneratorDataset"),
    ("dataset.vision", "DecodeVideo", "dataset.GeneratorDataset takes frames"),
    ("dataset.vision.c_transforms", "VideoDecoder", "dataset.GeneratorDataset takes frames"),
    ("nn.optim", "thor", "nn.Momentum"),
])
def test_every_way_to_ask_for_a_missing_name_raises_the_same_message(module: str, name: str, instead: str) -> None:
    holder = f"opreg.{module}".rstrip(".")
    with pytest.raises(AttributeError, match=f"'.*{name}' of MindSpore is no part of opreg: .*{instead}"):
        getattr(importlib.import_module(holder), name)
    for text in (f"from {holder} import {name}", f"import {holder}.{name}"):
        with pytest.raises(ImportError, match=f"'.*{name}' of MindSpore is no part of opreg: .*{instead}"):
            exec(text, {})


@pytest.mark.parametrize("module, name", [("nn", "SampledSoftmaxLoss"), ("ops", "Coalesce")])
def test_a_missing_name_of_a_module_points_to_the_page(module: str, name: str) -> None:
    with pytest.raises(AttributeError, match=f"opreg.{module} has no '{name}'.*docs/mindspore_names.md"):
        getattr(getattr(ms, module), name)


@pytest.mark.parametrize("name", ["rfft", "irfftn", "FFTWithSize"])
def test_a_missing_spectrum_points_to_pairs(name: str) -> None:
    with pytest.raises(AttributeError, match=f"'{name}': there are no complex dtypes. nd.contrib.fft "):
        getattr(ms.ops, name)
