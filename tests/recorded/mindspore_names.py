"""Names that MindSpore 2.10 has in its modules and classes, and the page of missing ones.

They are kept in ``mindspore_names.json``. Where MindSpore is installed, this file writes them; elsewhere it prints
the page, which ``test_mindspore_names.py`` compares:

    python tests/recorded/mindspore_names.py --record tests/recorded/mindspore_names.json
    PYTHONPATH=. python tests/recorded/mindspore_names.py > docs/mindspore_names.md
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import json
import re
import sys
import warnings
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

#: Modules whose public names are compared one by one, and classes whose members are.
MODULES = ["", "nn", "ops", "mint", "mint.nn", "mint.nn.functional", "mint.linalg", "mint.special", "mint.optim",
           "common", "common.initializer", "train", "context", "amp", "numpy",
           "dataset", "dataset.transforms", "dataset.vision", "mindrecord", "experimental", "parallel",
           "nn.probability"]
CLASSES = ["Tensor", "Parameter", "nn.Cell"]

#: Missing modules, and what to use instead.
ABSENT_MODULES = {
    "boost": "no counterpart",
    "communication": "`communication` has ranks and groups",
    "hal": "`num_gpus`, `gpu(0)`",
    "multiprocessing": "Python's own",
    "rewrite": "`cell.to_symbol()`",
    "scipy": "SciPy, in your own operator",
    "utils": "no counterpart",
}

#: Missing names of other modules: patterns, and what to use instead.
INSTEAD = [
    ("*COO*|*CSR*|coo_*|csr_*|*_coo|*_csr|RowTensor*|SparseTensor*|Sparse*|sparse_*|dense_to_sparse*|"
     "*MapTensor*|MapTensor*|*SparseTensor*", "no counterpart: tensors are dense"),
    ("complex*|Complex*|cdouble|cfloat|Imag|imag|Real|real|Conj*|conj|Angle|angle|is_complex|isreal|eig|Eig|"
     "eigvals|polar|Polar|view_as_real|adjoint|H|mH", "there are no complex dtypes"),
    ("*fft*|*FFT*", "`nd.contrib.fft` and `ifft`: real and imaginary parts, one beside the other"),
    ("float8*|hifloat8|qint*|Quant[A-Z]*|FakeQuant*|*_quant|quant_*",
     "dtypes are those of 8 bits and more of NumPy, and bfloat16"),
    ("*Ext|*_ext", "the name without the ending"),
    ("All*|Broadcast|Barrier|*Scatter*Collective*|Collective*|*ISend*|NeighborExchange*|Receive|Reduce|ReduceScatter*|"
     "Send|*Allreduce*|*allreduce*|*Pipeline*|pipeline*|*shard*|*Shard*|*parallel*|*Parallel*|*Virtual*|*strateg*|"
     "*distributed*|Distributed*|DistributedGradReducer|*comm_fusion|*checkpoint_by_rank|rank_list*|*_rank|*AllGather*|"
     "*hccl*|set_mindio*|mindio*|MicroBatch*|AdaSum*|*Grad*Reducer|parameter_broadcast|*group_info*|*_ps_*|*ps_context",
     "no counterpart; `communication` has ranks and groups"),
    ("Apply*|Fused*Adam*|Fused*Ftrl*|Fused*Momentum|Fused*AdaFactor*|FusedSparse*|SGD|Momentum|Adam*|LARSUpdate|"
     "ResourceApply*", "classes of `nn.optim`"),
    ("*RegOp|*Custom*Builder|*infer_op*|*op_infer*|*_op_wrapper|custom_info_register|op_info_register|TBE*|*aot*|"
     "kernel|ms_kernel|DataType", "kernels are attached to registered operators"),
    ("OnRequestExit|BackupAndRestore|TrainFaultTolerance|"
     "FlopsUtilizationCollector|*Summary*|build_searched_strategy|"
     "connect_network_with_dataset|Convert*Utils",
     "your own callback for `Model`"),
    ("*LossScale*|*ScaleSense*|*Overflow*|*FloatStatus*|FloatStatus|clear_float_status",
     "`amp.all_finite`"),
    ("*mindir*|*MindIR*|export|load|*obf*|ckpt_to*|safetensors_to*|load_checkpoint_async|async_ckpt*|"
     "*segmented*|get_ckpt_path*|convert_checkpoint*|merge_*", "`save_checkpoint`, or `cell.to_symbol()` and its file"),
    ("*memory*|*Stream*|*stream*|Event|*Event*|MemPool|*Allocator|set_cpu_affinity|*kernel_launch*|launch_blocking|*offload*|"
     "data_ptr|*device*|DeviceCtx|pin_memory|is_pinned|move_to|*profiler*|Profiler|*dump*|Dump*|mstx|run_check",
     "contexts are `cpu()` and `gpu(0)`; `mx.profiler`, `executor.profile()`"),
    ("read_*|write_*|encode_*|get_image_*|*Video*|ImageReadMode", "`image.imread`, or a library for files"),
    ("*Dataset", "`GeneratorDataset` with your own reader"),
    ("*ToMR", "a loop of your own over `FileWriter`"),
    ("*Thor|thor|*Bn*|Dense*Act|Conv2d*Act", "the layers that they combine"),
]

_NAME = re.compile(r"[A-Za-z]\w*")
_RECORDED = Path(__file__).parent / "mindspore_names.json"


def find(module: str, root: str) -> Any:
    """A module, or a class in one, by its name below a package."""
    path, _, last = module.rpartition(".")
    if last in ("Tensor", "Parameter", "Cell"):
        return getattr(importlib.import_module(f"{root}.{path}" if path else root), last)
    return importlib.import_module(f"{root}.{module}" if module else root)


def record() -> dict[str, list[str]]:
    """Public names of MindSpore."""
    found = {}
    for name in [*MODULES, *CLASSES, *ABSENT_MODULES]:
        holder = find(name, "mindspore")
        listed = getattr(holder, "__all__", None) or dir(holder)
        found[name] = sorted({each for each in listed if isinstance(each, str) and _NAME.fullmatch(each)})
    return found


@functools.cache
def absent() -> dict[str, list[str]]:
    """Missing names by module and class."""
    missing = {}
    for name, listed in json.loads(_RECORDED.read_text()).items():
        try:
            holder = find(name, "opreg")
        except ModuleNotFoundError:
            missing[name] = listed
            continue
        left = [each for each in listed if not _has(holder, each)]
        if left:
            missing[name] = left
    return missing


def _has(holder: Any, word: str) -> bool:
    """Whether a module or class has a name, or a module has a submodule of this name, imported or not."""
    if not hasattr(holder, word) and inspect.ismodule(holder):
        with contextlib.suppress(ImportError):
            importlib.import_module(f"{holder.__name__}.{word}")
            return True
    return hasattr(holder, word)


def _there(place: str, word: str) -> bool:
    """Whether a module has a name that is no submodule."""
    found = getattr(find("" if place == "opreg" else place, "opreg"), word, None)
    return found is not None and not inspect.ismodule(found)


def _instead(name: str, word: str) -> tuple[str, str]:
    """Replacement for a name, and the text of the name in the row."""
    text = f"`{word}`"
    if name not in CLASSES:
        for place in (*(["nn"] if name.startswith("mint") else []), "ops", "opreg"):
            if _there(place, word):
                return f"the same name in `{place}`", text
    for patterns, use in INSTEAD:
        if any(fnmatchcase(word, pattern) for pattern in patterns.split("|")):
            return use, text
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", word).lower()
    if name not in CLASSES and _there("ops", snake):  # the function that a primitive is the class of
        return "a function", f"{text}: `ops.{snake}`"
    return "", text


def _groups(name: str, words: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Names by their replacement; names without one come last."""
    groups: dict[str, list[str]] = {}
    for word in words:
        use, text = _instead(name, word)
        groups.setdefault(use, []).append(text)
    yield from sorted(groups.items(), key=lambda group: (group[0] == "", group[0]))


def page() -> str:
    """Text of ``docs/mindspore_names.md``."""
    missing, recorded = absent(), json.loads(_RECORDED.read_text())
    lines = ["# Missing names of MindSpore", "",
             "This page is generated: it compares the public names of MindSpore 2.10 with those of opreg, "
             "`python tests/recorded/mindspore_names.py > docs/mindspore_names.md`. "
             "[Coming from MindSpore](mindspore.md) says where the other names differ. "
             "Names without a counterpart need [an operator](write_an_operator.md) or a Cell of your own.", "",
             "## Modules", "", "| MindSpore 2.10 | names | what to use |", "|---|---|---|"]
    lines += [f"| `{name}` | {len(missing[name])} | {use} |" for name, use in ABSENT_MODULES.items()]
    for name in [name for name in [*MODULES, *CLASSES] if name in missing]:
        lines += ["", f"## {f'mindspore.{name}'.rstrip('.')}", "",
                  f"{len(missing[name])} of {len(recorded[name])} are missing.", "",
                  "| what to use | names |", "|---|---|"]
        lines += [f"| {use or 'no counterpart'} | {', '.join(words)} |" for use, words in _groups(name, missing[name])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--record"]:
        Path(sys.argv[2]).write_text(json.dumps(record(), separators=(",", ":"), sort_keys=True) + "\n")
    else:
        print(page(), end="")
