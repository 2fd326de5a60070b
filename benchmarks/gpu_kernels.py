"""Compile kernels on a machine without a GPU, into a folder for ``CUPY_CACHE_DIR``, so that no time on the GPU is spent
in NVRTC.

    python -m benchmarks.gpu_kernels FOLDER [--arch 90]    # compiles, on any machine with CuPy and NVRTC
    python -m benchmarks.gpu_kernels FOLDER --here         # on the machine to which the folder was copied

CuPy names the files of its cache by a hash of the text, the options, the architecture and the versions of itself and of
NVRTC, and the options contain folders in which CuPy is installed. So each file has a record beside it, and ``--here``
renames the files as CuPy expects them in its folder on this machine. CuPy's own functions make the files and their
names; only its calls of the driver are replaced meanwhile.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import itertools
import json
import multiprocessing
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

__all__ = ["Text", "found", "rename", "texts_of_rows", "write"]

#: The number of multiprocessors of an H100, on which the source code of some kernels depends.
_PROCESSORS = 132


class Text(NamedTuple):
    """Source code for CuPy's compiler.

    Attributes
    ----------
    source : str
    options : tuple of str
        The options of a ``RawModule``, or all options of ``cupy.cuda.compiler``, with the folders of headers.
    names : tuple of str
        The name expressions; usually none.
    """

    source: str
    options: tuple[str, ...] = ("-std=c++17",)
    names: tuple[str, ...] = ()


class _Module:
    """Replaces CuPy's class, which loads code into a device."""

    def load(self, code: bytes) -> None:
        """Nothing."""

    def _set_mapping(self, mapping: Any) -> None:
        self.mapping = mapping


@contextlib.contextmanager
def _without_driver(folder: Path) -> Iterator[Any]:
    """CuPy's compiler with its cache in a folder, and without calls of a device."""
    from cupy.cuda import _compiler_cache, compiler

    arch = compiler._get_arch_for_options_for_nvrtc
    with mock.patch.multiple(compiler, _kernel_cache_backend=_compiler_cache.DiskKernelCacheBackend(str(folder)),
                             _get_arch_for_options_for_nvrtc=getattr(arch, "__wrapped__", arch)), \
            mock.patch.object(compiler.function, "Module", _Module):
        yield compiler


def _given(text: Text, arch: str) -> tuple[tuple[str, ...], str]:
    """The options and the text of headers that CuPy's compiler gets for a text of a ``RawModule``."""
    from cupy._core import core
    from cupy.cuda import compiler

    with mock.patch.object(compiler, "_compile_module_with_cache", return_value=None) as asked:
        core.compile_with_cache(text.source, text.options, arch, False)
    (_, options), words = asked.call_args
    return options, words["extra_source"]


def _folders(arch: str) -> list[str]:
    """The options that name CuPy's and CUDA's folders on this machine, in order."""
    return list(_given(Text("", ()), arch)[0])


class _CacheLookup(Exception):
    """CuPy looked up a file in its cache."""


def _compiled(folder: Path, text: Text, arch: str, ask: bool = False) -> str:
    """The name of the file of a source in CuPy's cache in a folder; NVRTC compiles it if it is missing, unless only the
    name is requested."""
    options, headers = _given(text, arch)
    if any(option in _folders(arch) for option in text.options):
        options = text.options
    names: list[str] = []
    with _without_driver(folder) as compiler:
        backend = compiler._kernel_cache_backend
        load = backend.load

        def noted(name: str) -> bytes | None:
            names.append(name)
            if ask:
                raise _CacheLookup
            return load(name)

        with mock.patch.object(backend, "load", noted), contextlib.suppress(_CacheLookup):
            compiler._compile_module_with_cache(text.source, options, arch=arch, extra_source=headers,
                                                name_expressions=text.names or None)
    return names[0]


def found(folder: Path, text: Text, arch: str = "90") -> bytes | None:
    """The machine code that CuPy finds in a folder for a source; None if CuPy would compile it."""
    from cupy.cuda._compiler_cache import DiskKernelCacheBackend

    return DiskKernelCacheBackend(str(folder)).load(_compiled(folder, text, arch, ask=True))


def write(folder: Path, text: Text, arch: str = "90") -> str:
    """Compile a source by NVRTC into a folder, as CuPy's cache does, with a record of it; returns the name of the
    file."""
    folder.mkdir(parents=True, exist_ok=True)
    name, folders = _compiled(folder, text, arch), _folders(arch)
    options = [folders.index(option) if option in folders else option for option in text.options]
    record = {**text._asdict(), "options": options, "arch": arch, **_versions()}
    (folder / f"{name}.json").write_text(json.dumps(record))
    return name


def _versions() -> dict[str, Any]:
    import cupy
    from cupy.cuda import compiler

    return {"cupy": cupy.__version__, "nvrtc": list(compiler._get_nvrtc_version())}


def rename(folder: Path) -> tuple[int, int]:
    """Rename the files of a folder as CuPy expects them on this machine. Returns the number of files, and the number of
    files of other versions of CuPy or NVRTC, which remain unused."""
    done = other = 0
    for record in sorted(folder.glob("*.json")):
        read = json.loads(record.read_text())
        arch, code = read["arch"], folder / record.stem
        if {name: read[name] for name in ("cupy", "nvrtc")} != _versions() or not code.exists():
            other += 1
            continue
        folders = _folders(arch)
        options = tuple([folders[each] if isinstance(each, int) else each for each in read["options"]])
        here = _compiled(folder, Text(read["source"], options, tuple(read["names"])), arch, ask=True)
        if here != code.name:
            shutil.copyfile(code, folder / here)
        done += 1
    return done, other


# ----------------------------------------------------------------------------------------------- which texts


def texts_of_rows(names: Iterable[str] | None = None) -> list[Text]:
    """The sources of opreg's kernels that the test rows of all operators, or of some, need; nothing is computed."""
    from opreg.backends.cuda import compiler
    from tests.backends.cuda.test_strict import ROWS, Use
    from tests.builtin.test_operators import plannable
    from tests.cuda import device
    from tests.running import eager, graph

    wanted = None if names is None else set(names)
    texts: dict[Text, None] = {}

    def module(xp: Any, code: str, options: Sequence[str] = ()) -> Any:
        texts[Text(code, tuple(options))] = None
        return device._RawModule(xp, code)

    with mock.patch.object(compiler, "_processors", return_value=_PROCESSORS), \
            mock.patch.object(device.Gpu, "RawModule", module), \
            mock.patch.object(device._Kernel, "_launch", return_value=None), device.gpus():
        from opreg.ndarray.context import Context

        compiler._compile_function.cache_clear()  # type: ignore[attr-defined]
        for row in ROWS:
            if wanted is not None and row.op not in wanted:
                continue
            for dtype in row.dtypes:
                use = Use.of(row, dtype)
                for way in (eager, graph) if plannable(row) else (eager,):
                    # Values are not computed, so code that checks them may raise an error.
                    with contextlib.suppress(Exception):
                        _run(way, use, row, Context("gpu", 0))
    compiler._compile_function.cache_clear()  # type: ignore[attr-defined]
    return list(texts)


def _run(way: Callable[..., Any], use: Any, row: Any, ctx: Any) -> None:
    from tests.builtin.test_operators import differentiated
    from tests.running import eager, heads

    grads = row.train and differentiated(row)
    way(use, ctx, heads(use, eager(use).outs) if grads else None, grads=grads)


def main(words: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser("python -m benchmarks.gpu_kernels", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--arch", default="90", help="of the GPU: 90 is that of an H100 and of an H200")
    parser.add_argument("--here", action="store_true", help="name the files as CuPy on this machine does")
    parser.add_argument("--only", nargs="+", metavar="OPERATOR", help="the kernels of these alone")
    given = parser.parse_args(words)
    try:
        import cupy  # noqa: F401
    except ImportError as error:
        print(f"CuPy is missing ({error}): its cache is made by its own functions", file=sys.stderr)
        return 1
    if given.here:
        done, other = rename(given.folder)
        print(f"{done} kernels are CuPy's here, {other} are of other versions")
        return 0
    texts = texts_of_rows(given.only)
    with concurrent.futures.ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as workers:
        names = set(workers.map(write, itertools.repeat(given.folder), texts, itertools.repeat(given.arch)))
    print(f"{len(names)} kernels for sm_{given.arch} in {given.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
