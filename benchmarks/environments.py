"""The peers: the interpreter and the packages that each needs, and a check of the installed version."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["BY_HAND", "COLUMNS", "COMPILED", "ENVIRONMENTS", "ON_DEVICE", "OURS", "other_version", "set_up"]

#: The interpreter and the packages of each environment; the framework itself comes first.
ENVIRONMENTS = {
    "fast": (sys.executable, ["numba>=0.60", "numpy", "onednn-cpu-gomp>=2023.2", "pillow"]),
    "mxnet": ("python3.11", ["mxnet==1.9.1", "numpy==1.23.5"]),
    "torch": (sys.executable, ["torch==2.13.0", "numpy"]),
    "jax": ("python3.13", ["jax==0.12.*"]),
    "pytensor": ("python3.13", ["pytensor==3.3.*"]),
    "mindspore": ("python3.11", ["mindspore==2.10.0", "numpy<2"]),
    "onnx": (sys.executable, ["onnxruntime==1.*", "onnx", "numpy"]),
}

#: Columns of the table, with their modules and environments.
COLUMNS = {
    "opreg": ("run_opreg", ""),
    "opreg[fast]": ("run_opreg", "fast"),
    "NumPy": ("run_numpy", ""),
    "MXNet": ("run_mxnet", "mxnet"),
    "PyTorch": ("run_torch", "torch"),
    "torch.compile": ("run_torch", "torch"),
    "JAX": ("run_jax", "jax"),
    "PyTensor": ("run_pytensor", "pytensor"),
    "MindSpore": ("run_mindspore", "mindspore"),
    "MindSpore jit": ("run_mindspore", "mindspore"),
    "ONNX Runtime": ("run_onnx", "onnx"),
    "numba": ("run_numba", "fast"),
}

#: Columns that are not peers.
OURS = ("opreg", "opreg[fast]")

#: Workloads written by hand in NumPy: not a peer, but the lower bound of opreg with NumPy alone.
BY_HAND = "NumPy"

#: Frameworks that trace a program, including Python bodies of operators, and run the compiled trace.
COMPILED = ("torch.compile", "JAX", "PyTensor", "MindSpore jit", "ONNX Runtime", "numba")

#: The columns that are measured on a GPU, or on its stand-in; the others run only on the host.
ON_DEVICE = ("opreg", "PyTorch", "torch.compile", "JAX")


def other_version(column: str, version: str) -> str:
    """The requirement that the installed version of a column does not meet, or nothing.

    >>> other_version("JAX", "0.10.2"), other_version("JAX", "0.12.1"), other_version("PyTorch", "2.13.0+cpu")
    ('jax==0.12.*', '', '')
    >>> other_version("numba", "0.66.0")  # any
    ''
    """
    environment = COLUMNS[column][1]
    if column in (*OURS, BY_HAND):
        return ""
    requirement = ENVIRONMENTS[environment][1][0]
    asked = requirement.partition("==")[2] or "*"
    plain = version.partition("+")[0]
    same = f"{plain}.".startswith(asked[:-1]) if asked.endswith("*") else plain == asked
    return "" if same else requirement


def set_up(folder: Path) -> None:
    """Make the environments in a folder."""
    for name, (python, packages) in ENVIRONMENTS.items():
        interpreter = _interpreter(python)
        if interpreter is None:
            print(f"{name}: needs {python}, which is not there")
            continue
        place = folder / name
        for command in ([interpreter, "-m", "venv", place],
                        [place / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check", *packages]):
            done = subprocess.run([str(word) for word in command], check=False)
            if done.returncode:
                print(f"{name}: {shlex.join(map(str, command))} failed")
                break


def _interpreter(name: str) -> str | None:
    """The path of a working interpreter, also among those of pyenv, since pyenv's commands on the path may have no
    version installed."""
    version = re.sub(r"\D*(3\.\d+)", r"\1", Path(name).name)
    others = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{version}.*/bin/python"), reverse=True)
    for found in (shutil.which(name), *map(str, others)):
        if found is not None and not subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode:
            return found
    return None
