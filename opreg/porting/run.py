"""Run a script that was written for another library, and perhaps for another Python, without changing its file.

When the script and its modules are loaded, the rules of ``port`` rewrite their text in memory.
"""

from __future__ import annotations

import builtins
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

from .compiling import compiled
from .finder import install

__all__ = ["run_script"]


def _find_module(module: str) -> tuple[CodeType, ModuleSpec]:
    """The code and the spec of a module, or of the ``__main__`` of a package."""
    spec = importlib.util.find_spec(module)
    if spec is not None and spec.submodule_search_locations is not None:
        return _find_module(f"{module}.__main__")
    code = getattr(spec and spec.loader, "get_code", lambda name: None)(module)
    if spec is None or code is None:
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)
    return code, spec


def _script(path: str) -> tuple[CodeType, ModuleSpec | None]:
    """The code of a file, which has no spec."""
    with open(path, "rb") as file:
        return compiled(file.read(), path), None


def run_script(library: str, script: str, args: Sequence[str], module: bool = False) -> None:
    """Run a script as ``python script args`` does, in this process, with a library's name meaning this package.

    Parameters
    ----------
    library : str
        ``mxnet`` or ``mindspore``.
    script : str
        Path of the file.
    args : sequence of str
        The arguments in ``sys.argv`` after its path.
    module : bool
        Whether the script is the name of a module, which is run as by ``python -m``.

    Raises
    ------
    SystemExit
        When the script exits or fails; after a failure its traceback is printed first, beginning with the script's
        lines.
    """
    sys.argv = [script, *args]
    sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.abspath(script))
    install(library)
    main = ModuleType("__main__")
    sys.modules["__main__"] = main
    try:
        code, spec = _find_module(script) if module else _script(script)
    except (OSError, SyntaxError, ModuleNotFoundError) as error:
        missing = getattr(error, "name", None)  # otherwise the error comes from a package that contains the module
        inside = module and missing and not f"{script}.".startswith(f"{missing.removesuffix('.__main__')}.")
        where = error.__traceback__ if inside else None
        sys.excepthook(type(error), error.with_traceback(where), where)
        sys.exit(1)
    if spec is not None:
        script = sys.argv[0] = str(spec.origin)
        vars(main).update(__package__=spec.parent, __loader__=spec.loader)
    vars(main).update(__file__=script, __builtins__=builtins, __spec__=spec)
    try:
        exec(code, vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        below = error.__traceback__.tb_next if error.__traceback__ is not None else None
        sys.excepthook(type(error), error.with_traceback(below), below)
        sys.exit(130 if isinstance(error, KeyboardInterrupt) else 1)
