"""The page of homes: every name exists, and lists all counted places of its ideas."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import re
from pathlib import Path
from typing import Any

from benchmarks import counts
from tests import processes
from tests.questions import of_each

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "homes.md").read_text()
#: The names in a row, by its idea.
ROWS = {row.split("|")[1].strip(): re.findall(r"`([a-z]\w*(?:\.\w+)+)`", row)
        for row in PAGE.splitlines() if row.startswith("| ") and "| idea |" not in row}

#: Ideas without a second place.
NOWHERE = {"facts about operators"}


def _found(name: str) -> Any:
    """The module or attribute with a name below opreg."""
    parts = f"opreg.{name}".split(".")
    for count in range(len(parts), 1, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise AssertionError(f"no module is named {name}")


@of_each(ROWS)
def test_names_on_the_page_exist(idea: str) -> None:
    for name in ROWS[idea]:
        _found(name.removeprefix("opreg."))


def test_every_counted_idea_has_a_row() -> None:
    assert len(ROWS) == 21 and all(ROWS.values())
    assert counts.FAMILIES.keys() <= ROWS.keys()


@functools.cache
def _counted() -> tuple[dict[str, int], dict[str, list[str]]]:
    """The counts that ``python -m benchmarks.counts`` prints, and the places of each idea.

    A process of its own counts: operators that other tests register in this one do not.
    """
    done = processes.run("import json\nfrom benchmarks import counts\ncounts.main()\n"
                         "print(json.dumps(counts.places()))")
    assert done.returncode == 0, done.stderr
    *lines, places = done.stdout.splitlines()
    return {name.strip(): int(number.replace(",", ""))
            for number, _, name in [line.strip().partition("  ") for line in lines]}, json.loads(places)


def test_all_places_of_an_idea_are_named() -> None:
    """A place is in a module or package that its row names."""
    _, places = _counted()
    assert {idea for idea, modules in places.items() if not modules} == NOWHERE
    for idea, modules in places.items():
        named = [f"opreg.{name}" for name in ROWS[idea]]
        for module in modules:
            assert any(f"{name}.".startswith(f"{module}.") or module.startswith(f"{name}.") for name in named), \
                f"{module} has a place of '{idea}', which docs/homes.md does not name: unite it, or say why"


def test_reference_kernels_say_why_there_is_no_body() -> None:
    """Each kernel of the array module has its reason on its line, or on the line of its decorator."""
    silent = []
    for path in sorted((counts.ROOT / "opreg" / "builtin").rglob("*.py")):
        text = path.read_text()
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "kernel":
                reason = "# no body: "
                if not node.args and reason not in lines[node.lineno - 1] and reason not in lines[node.lineno - 2]:
                    silent.append(f"{path.name}:{node.lineno}")
        silent += [f"{path.name}:{number}" for number, line in enumerate(lines, 1)
                   if line.strip().startswith("@") and ".in_parts" in line and "# no body: " not in line]
    assert not silent, "say which fact asks for a kernel, or write a body"


#: Upper limits of hand-written functions and of attributes of the records; they may only be lowered.
MOST = {"functions that are a rule: infer": 112, "functions that are a rule: grad": 91,
        "functions that are a rule: kernel": 149, "functions that are a rule: fill": 41,
        "functions that are a rule: types": 39, "functions that are a rule: vmap": 27,
        "attributes of Op": 25, "attributes of Executor": 40}


def test_bodies_take_the_place_of_rules_by_hand() -> None:
    counted, _ = _counted()
    assert {name: counted[name] for name in MOST if counted[name] > MOST[name]} == {}
    assert {name for name, number in counted.items() if number == 0} == {
        f"places in the engine: {idea}" for idea in NOWHERE}
    assert counted["operators"] > counted["composed operators"]
