"""A plugin for pytest: ``pytest --opreg-check mymodule`` checks each operator that a module registers.

Without the option nothing is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

__all__ = ["pytest_addoption", "pytest_collection_modifyitems"]


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the options of the plugin."""
    # pytest rewrites asserts in packages with a plugin, which takes seconds without a cache; opreg has no tests to
    # rewrite.
    marked = getattr(getattr(pluginmanager, "rewrite_hook", None), "_must_rewrite", None)
    if isinstance(marked, set):
        marked.discard("opreg")
    parser.getgroup("opreg").addoption(
        "--opreg-check", action="append", default=[], metavar="MODULE",
        help="check each operator that a module, or a file.py, registers, as mx.operator.check does; its dict "
             "opreg_inputs says what on: {'gate': (x, y, {'beta': 2.0})}")


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for each operator of the modules that the option names."""
    modules = config.getoption("--opreg-check")
    if modules:
        from .command.pytest_items import collect_operators

        items += [item for module in modules for item in collect_operators(session, module)]


