"""Tables of the operators: their documentation, and the names of MXNet that are missing.

    python -m opreg.builtin --docs > docs/operators.md
    python -m opreg.builtin --stubs
    python -m opreg.builtin --missing
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from opreg import reference, stubs  # importing it registers all operators, including loops and branches
from opreg.core.op import Op
from opreg.core.registry import find, operators

__all__ = ["document", "missing", "LEFT_OUT"]

# Names of the NumPy interface.
_NP = "all|amax|amin|any|max|min|prod|product|reshape|roll|sometrue|sum"
_NPI = ("argmax|argmin|around|bitwise_.*|equal.*|full_like|greater.*|is(finite|inf|nan|neginf|posinf)|less.*|"
        "logical_not|matmul|mean|not_equal.*|std|tril|var|where|where_[lr]scalar")

#: Names of MXNet 1.9.1 that are left out, and why.
LEFT_OUT = {
    r"_backward|^_broadcast_backward$|^_contrib_backward|_split_v2_backward": "gradients, each under a name of our own",
    rf"^_np_(?!({_NP})$)|^_npi_(?!({_NPI})$)|^_npx_": "the NumPy interface, all but its ground",
    r"^_sparse_|^_contrib_(edge_id|dgl_)|^_square_sum$|sparse_embedding": "sparse storage",
    r"^_contrib_quantized_rnn$|^_sg_mkldnn_selfatt_|intgemm": "quantised recurrent layers and attention",
    r"^_(CachedOp|CachedOpThreadSafe|CustomFunction|NDArray|Native|NoGradient)$|^_(copyto|set_value)$":
        "MXNet's own machinery",
    r"^_cvim(decode|read)$|^_imdecode$": "decoding images: use an image library",
    r"^Custom$": "a function here: mx.nd.Custom, mx.sym.Custom",
}


def _mxnet_names() -> list[str]:
    names = (Path(__file__).parent / "mxnet_names.txt").read_text().split()
    return [name for name in names if not any(re.search(pattern, name) for pattern in LEFT_OUT)]


def missing() -> list[str]:
    """Names of MXNet 1.9.1 that no operator has, without those left out on purpose."""
    return [name for name in _mxnet_names() if find(name) is None]


def _signature(op: Op) -> str:
    signature = op.signature
    inputs = [f"*{'data' if signature.variadic else 'inputs'}"] if signature.variadic or signature.per_instance \
        else list(signature.input_names)
    fields = [f"{field.name}" if field.required else f"{field.name}={field.default!r}"
              for field in signature.schema.fields if field.name != "subgraphs"]
    return f"{op.name}({', '.join([*inputs, *fields])})"


def _families() -> Iterator[tuple[str, list[Op]]]:
    by_family: dict[str, list[Op]] = {}
    for op in operators():
        if not op.name.startswith(("custom.", "_backward", "_example")) and op.family:
            by_family.setdefault(op.family.replace("_", " "), []).append(op)
    for family in sorted(by_family):
        yield family, sorted(by_family[family], key=lambda op: (op.name.startswith("_"), op.name.lower()))


def document() -> str:
    """The page ``docs/operators.md``, made from the declarations."""
    lines = ["# Operators", "",
             "This page is for looking up the inputs, attributes and results of a built-in operator. Inputs come "
             "first, attributes after them; an attribute without a default is required. Every operator is "
             "`mx.nd.<name>` and `mx.sym.<name>`; names that begin with `_linalg_`, `_contrib_`, `_random_` and "
             "`_image_` are also found without this prefix in `linalg`, `contrib`, `random` and `image`.", ""]
    for family, ops in _families():
        lines += [f"## {family[0].upper()}{family[1:]}", ""]
        for op in ops:
            lines += [f"### {op.name}", "", f"`{_signature(op)}`", "", reference.markdown(op.doc), ""]
            if op.aliases:
                lines += ["Also: " + ", ".join(f"`{name}`" for name in op.aliases) + ".", ""]
    lines.append("Made from the declarations by `python -m opreg.builtin --docs`; not edited by hand.")
    return "\n".join(lines)


def main() -> None:
    """Print the requested table."""
    parser = argparse.ArgumentParser(prog="python -m opreg.builtin", description=__doc__.split("\n")[0])
    parser.add_argument("--docs", action="store_true", help="print docs/operators.md")
    parser.add_argument("--stubs", nargs="?", const=Path(__file__).parent.parent, type=Path, metavar="FOLDER",
                        help="write what type checkers read, beside the modules or below a folder")
    parser.add_argument("--missing", action="store_true", help="print names of MXNet that no operator has")
    options = parser.parse_args()
    if options.docs:
        print(document(), end="")
    elif options.stubs:
        stubs.write(options.stubs)
    elif options.missing:
        print("\n".join(missing()), end="\n" if missing() else "")
    else:
        parser.print_help()


if __name__ == "__main__":
    main()
