"""The table of ONNX's operators in docs/onnx.md agrees with the package's schemas and the rows of the importer.

``python -m tests.onnx.test_coverage`` prints it for the package that is installed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.test_architecture import ROOT

onnx = pytest.importorskip("onnx")

import opreg.onnx.importing.api  # noqa: E402, F401  which enters the rows
from opreg.onnx.importing import rows  # noqa: E402
from opreg.onnx.importing.graph import ordinary  # noqa: E402

#: The domain of ONNX Runtime, whose operators have no schemas in the package.
_RUNTIME = "com.microsoft"


def lines() -> Iterator[str]:
    """The lines of the table."""
    yield "| domain | operators | by a row | by ONNX's function | placeholders |"
    yield "|---|---|---|---|---|"
    newest = {(ordinary(each.domain), each.name): each for each in onnx.defs.get_all_schemas() if not each.deprecated}
    for domain in sorted({domain for domain, _ in newest}):
        own = {name: each for (place, name), each in newest.items() if place == domain}
        by_row = [name for name in own if rows.versions(domain, name)]
        functions = [name for name, each in own.items() if name not in by_row and (
            each.has_function or each.has_context_dependent_function)]
        left = sorted(own.keys() - {*by_row, *functions})
        yield (f"| {domain or 'ONNX'} | {len(own)} | {len(by_row)} | {len(functions)} | "
               f"{', '.join(f'`{name}`' for name in left) or '–'} |")
    yield f"| {_RUNTIME} | – | {len(rows.known_operators(_RUNTIME))} | – | all others |"


def test_the_table_is_current() -> None:
    if onnx.__version__ != "1.23.2":
        pytest.skip("the page has the table of onnx 1.23.2")
    assert "\n".join(lines()) in (ROOT / "docs" / "onnx.md").read_text()


if __name__ == "__main__":
    print("\n".join(lines()))
