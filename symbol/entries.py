"""Entries of a graph: their names and attributes, shapes and dtypes, files, and binding."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from opreg.core.graph import Entry, Graph, Node
from opreg.core.op import Op
from opreg.core.slots import Slot
from opreg.errors import TRIMMED, ArgumentError, AttrError, OpError
from opreg.ndarray.context import Context, current_context
from opreg.typing import DTypeLike

from .argument_specs import Dims, inferred_dtypes, inferred_shapes, unknown_shapes
from .infer import mxnet_shape
from .naming import HIDDEN, hide, output_name

if TYPE_CHECKING:
    from opreg.distributed.groups import Group as Ranks
    from opreg.ndarray.ndarray import NDArray

    from .arrays import Gradients, Requests, Values
    from .executor import Executor
    from .head_gradients import OutGrads
    from .reduction import Reduction

__all__ = ["Entries", "refuse_declared"]

#: Write a symbol as JSON text, write it to a file, and list the nodes of its graph.
DUMPS, SAVE, DEBUG_STR = Slot("graphs"), Slot("graphs"), Slot("graphs")
#: Bind a symbol to arrays of the caller, and to new arrays.
BIND, SIMPLE_BIND = Slot("graphs"), Slot("graphs")


def _texts(node: Node) -> dict[str, str]:
    texts = {} if node.op is None else node.op.signature.schema.texts(node.keywords)
    return {**texts, **node.tags}


def _add_plain_names(texts: dict[str, str]) -> dict[str, str]:
    """Attributes, with those that have a hidden name (``__lr_mult__``) listed under the plain one (``lr_mult``),
    too."""
    plain = {name[2:-2]: text for name, text in texts.items() if name.startswith("__") and name[2:-2] in HIDDEN}
    return {**texts, **plain}


def refuse_declared(op: Op | None, name: str, tags: Mapping[str, str], keywords: Mapping[str, Any]) -> None:
    """Refuse tags that say another value of an attribute that the operator declares: files would hold that value, and
    the graph computes with the one of the call."""
    schema = () if op is None else op.signature.schema
    for key in [each for each in tags if each in schema]:
        assert op is not None
        fields = op.signature.schema
        text = fields.texts({key: keywords[key] if key in keywords else fields[key].default}).get(key)
        if tags[key] != text:
            raise AttrError(f"operator {op.name}, node {name!r}: {key}={tags[key]!r} is set beside the call that made "
                            f"the node, which has {key}={text}. Call the operator with {key}={tags[key]}")


class Entries:
    """One or several entries of a graph; ``Symbol`` derives from it.

    Examples
    --------
    >>> from opreg.symbol import Variable
    >>> isinstance(Variable("x"), Entries)
    True
    """

    __slots__ = ("_entries", "_whole")

    def __init__(self, entries: Sequence[Entry]):
        self._entries = tuple(entries)
        self._whole: Graph | None = None

    def _single_entry(self, what: str) -> Entry:
        if len(self._entries) != 1:
            raise ArgumentError(f"{what}: expected a symbol with one output, {self!r} has {len(self._entries)}; pick "
                                "one, as in symbol[0]")
        return self._entries[0]

    def _graph(self) -> Graph:
        """The graph that computes these entries. It is made once, since the inputs of nodes never change."""
        if self._whole is None:
            self._whole = Graph(self._entries)
        return self._whole

    @property
    def name(self) -> str | None:
        """The name of the node; None where the entries are outputs of several nodes."""
        nodes = {node for node, _ in self._entries}
        return nodes.pop().name if len(nodes) == 1 else None

    def list_arguments(self) -> list[str]:
        """Names of the variables that are arguments, in order of first use."""
        return [node.name for node in self._graph().variables()[0]]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the variables that are auxiliary states."""
        return [node.name for node in self._graph().variables()[1]]

    def list_inputs(self) -> list[str]:
        """Names of all variables."""
        return [node.name for node in self._graph().nodes if node.op is None]

    def list_outputs(self) -> list[str]:
        """Names of the outputs, such as ``fc_output``."""
        return [output_name(entry) for entry in self._entries]

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self._entries)

    def attr(self, key: str) -> str | None:
        """An attribute of the node as text; None where it is not set, or where there are several nodes."""
        if len({node for node, _ in self._entries}) != 1:
            return None
        return _texts(self._entries[0][0]).get(hide(key))

    def list_attr(self, recursive: bool = False) -> dict[str, str]:
        """All attributes of the node as text."""
        if recursive:
            raise OpError("list_attr(recursive=True) is not supported; attr_dict() lists the attributes of all nodes")
        return _add_plain_names(_texts(self._entries[0][0]))

    def attr_dict(self) -> dict[str, dict[str, str]]:
        """Attributes of all nodes that have any, as text, by node name. Nodes of the same name share one dict."""
        by_name: dict[str, dict[str, str]] = {}
        for node in self._graph().nodes:
            attrs = _add_plain_names(_texts(node))
            if attrs:
                by_name.setdefault(node.name, {}).update(attrs)
        return by_name

    def _set_attr(self, **attrs: str) -> None:
        """Set attributes of the node; ``name`` renames it.

        Raises
        ------
        AttrError
            For a value that is no text, and for an attribute by which the operator computes: a node never changes.
        """
        for name, value in attrs.items():
            if not isinstance(value, str):
                raise AttrError(f"attribute {name} must be text, got {value!r}")
        node = self._entries[0][0]
        refuse_declared(node.op, node.name, attrs, node.keywords)
        node.name = attrs.pop("name", node.name)
        node.tags = {**node.tags, **{hide(name): value for name, value in attrs.items()}}

    # --------------------------------------------------------------------------------------------- inference

    def infer_shape(self, *args: Dims, **keywords: Dims) -> tuple[list | None, list | None, list | None]:
        """Infer the shapes of arguments, outputs and auxiliary states from the shapes of some arguments.

        A dimension of 0 is unknown; it is empty where no rule infers another size. -1 is always an unknown dimension,
        and ``()`` an unknown shape. If a shape cannot be inferred, a warning lists what is unknown, and all three
        results are None.

        Raises
        ------
        ShapeError
            If shapes contradict each other. The error names the node.
        """
        graph = self._graph()
        with TRIMMED:
            groups = inferred_shapes(graph, self, "infer_shape", args, keywords)
        if unknown := unknown_shapes(graph, groups):
            warnings.warn(unknown, stacklevel=2)
            return None, None, None
        return groups

    def infer_shape_partial(self, *args: Dims, **keywords: Dims) -> tuple[list, list, list]:
        """Like ``infer_shape``, with 0 for unknown dimensions and ``()`` for unknown shapes; under ``np_shape`` -1 and
        None."""
        return tuple([mxnet_shape(shape) for shape in group]  # type: ignore[return-value]
                     for group in inferred_shapes(self._graph(), self, "infer_shape_partial", args, keywords))

    def infer_type(self, *args: DTypeLike, **keywords: DTypeLike) -> tuple[list, list, list]:
        """Infer the dtypes of arguments, outputs and auxiliary states, as NumPy classes; float32 where no rule
        determines one."""
        groups = inferred_dtypes(self._graph(), self, "infer_type", args, keywords)
        return tuple([np.float32 if dtype is None else dtype.type for dtype in group]  # type: ignore
                     for group in groups)

    def infer_type_partial(self, *args: DTypeLike, **keywords: DTypeLike) -> tuple[list, list, list]:
        """Like ``infer_type``, with None where no rule determines a dtype."""
        groups = inferred_dtypes(self._graph(), self, "infer_type_partial", args, keywords)
        return tuple([None if dtype is None else dtype.type for dtype in group] for group in groups)  # type: ignore

    # ------------------------------------------------------------------------------------------------- files

    def tojson(self, remove_amp_cast: bool = True) -> str:
        """The graph in MXNet's JSON format. As in MXNet, the nodes ``amp_cast`` and ``amp_multicast`` are left out by
        default."""
        return DUMPS.function(self, remove_amp_cast)

    def save(self, fname: str | os.PathLike[str], remove_amp_cast: bool = True) -> None:
        """Write the text of ``tojson`` to a file. If writing fails, the file is as it was before."""
        SAVE.function(self, fname, remove_amp_cast)

    def debug_str(self) -> str:
        """A text that lists every node with its inputs and attributes."""
        return DEBUG_STR.function(self._graph())

    # --------------------------------------------------------------------------------------------- execution

    def bind(self, ctx: Context | Sequence[Context] | None, args: Values, args_grad: Gradients | None = None,
             grad_req: Requests = "write", aux_states: Values | None = None,
             group2ctx: Mapping[str, Context] | None = None, shared_exec: Executor | None = None,
             check_kernels: bool | str = False, recompute: bool | str | None = None, *,
             head_grads: OutGrads = None, check_numbers: bool | str | None = None,
             reduce: Ranks | Reduction | None = None, shard: str | None = None, tf32: bool | None = None) -> Executor:
        """Make an executor that computes on the arrays of the caller.

        Parameters
        ----------
        ctx : Context
            The device that computes.
        args : list or dict of NDArray
            Arrays of all arguments.
        args_grad : list or dict of NDArray, optional
            Arrays that gradients are written into.
        grad_req : str, list or dict
            ``write``, ``add`` or ``null``, for all arguments or for each.
        aux_states : list or dict of NDArray, optional
            Arrays of the auxiliary states.
        group2ctx : dict of str to Context, optional
            The device of the nodes of each ``ctx_group``.
        check_kernels : bool or "report"
            Compare each kernel with the reference kernel, which runs on copies of the same inputs. A difference far
            beyond rounding raises an error; with ``"report"``, it does not. ``executor.kernel_report()`` shows the
            largest differences. This is slow, and serves to find a wrong kernel.
        recompute : bool or "all", optional
            Whether backward computes cheap results of forward again instead of storing them, which needs less memory
            and more time. The default is set by the environment variable ``MXNET_BACKWARD_DO_MIRROR``. Matrix products
            and convolutions are computed again only with ``"all"``, users' operators only where they have the attribute
            ``force_mirroring``, and random numbers never.
        head_grads : NDArray, list or dict of NDArray by output name, optional
            Gradients of the outputs, with their shapes and dtypes, that ``backward`` without arguments uses. Each
            backward reads these arrays in place, so write the gradients of the next step into them.
        check_numbers : bool or "debug", optional
            Whether a step of forward or backward that makes a NaN or an infinity from finite inputs raises a
            `NonFiniteError`. The error names the operator, the node, the line of code that made it, the position of the
            value, and the ranges of inputs and outputs. With ``"debug"``, a debugger stops there first. Checking makes
            steps slower. The default is set by the environment variable ``OPREG_CHECK_NUMBERS``.
        reduce : opreg.distributed.Group or opreg.symbol.reduction.Reduction, optional
            Ranks whose gradients are summed while backward runs. A ``Reduction`` also says whether to take the mean,
            and how many bytes are sent together.
        shard : {"states", "gradients"}, optional
            Values that are divided among these ranks: with ``"states"`` the states of the optimizer (ZeRO 1), with
            ``"gradients"`` also the gradients (ZeRO 2). Each update gathers the whole weights again. With
            ``"gradients"``, ``grad_dict`` holds the parts of this rank, and only ``simple_bind`` makes them.
        tf32 : bool, optional
            Whether matrix products and convolutions of float32 on a GPU may round their factors to TF32, which has 11
            of the 24 significant bits. By default they may if the environment variable ``OPREG_TF32`` is 1.

        Examples
        --------
        >>> from opreg.ndarray import array, cpu
        >>> from opreg.symbol import Variable
        >>> executor = (Variable("x") * 2).bind(cpu(), {"x": array([1, 2])})
        >>> executor.forward()[0].asnumpy()
        array([2., 4.], dtype=float32)
        """
        with TRIMMED:
            return BIND.function(self, ctx, args, args_grad, grad_req, aux_states, group2ctx, check_kernels, recompute,
                                 head_grads, check_numbers, reduce, shard, tf32)

    def simple_bind(self, ctx: Context | Sequence[Context] | None, grad_req: Requests = "write",
                    type_dict: Mapping[str, DTypeLike] | None = None, stype_dict: Mapping[str, str] | None = None,
                    group2ctx: Mapping[str, Context] | None = None, shared_arg_names: Sequence[str] | None = None,
                    shared_exec: Executor | None = None,
                    shared_buffer: dict[str, NDArray] | None = None, check_kernels: bool | str = False,
                    recompute: bool | str | None = None, *, head_grads: OutGrads = None,
                    check_numbers: bool | str | None = None, reduce: Ranks | Reduction | None = None,
                    shard: str | None = None, tf32: bool | None = None, **kwargs: Any) -> Executor:
        """Make an executor on new arrays of zeros, whose shapes are inferred from those given by keyword.

        ``check_kernels``, ``recompute``, ``head_grads``, ``check_numbers``, ``reduce``, ``shard`` and ``tf32`` are
        those of ``bind``. ``stype_dict`` gives storage types of arguments by name, in addition to those that
        ``Variable`` gave. The gradient of an argument is ``row_sparse`` if the argument is, or if an operator declares
        that few of its rows have gradients: the weight of ``Embedding(sparse_grad=True)``, or the dense factor of a CSR
        matrix.

        Examples
        --------
        >>> from opreg.ndarray import cpu
        >>> from opreg.symbol import Variable
        >>> (Variable("x") * 2).simple_bind(cpu(), x=(2, 3)).arg_dict["x"].shape
        (2, 3)
        """
        with TRIMMED:
            return SIMPLE_BIND.function(self, ctx, grad_req, type_dict, stype_dict, group2ctx, shared_arg_names,
                                        shared_exec, shared_buffer, kwargs, check_kernels, recompute, head_grads,
                                        check_numbers, reduce, shard, tf32)

    def eval(self, ctx: Context | Sequence[Context] | None = None, **kwargs: NDArray | np.ndarray) -> list[NDArray]:
        """Bind to arrays given by keyword and compute the outputs, a list of NDArrays.

        Examples
        --------
        >>> from opreg.ndarray import array
        >>> from opreg.symbol import Variable
        >>> (Variable("x") * 2).eval(x=array([1, 2]))[0].asnumpy()
        array([2., 4.], dtype=float32)
        """
        return self.bind(ctx or current_context(), kwargs, grad_req="null").forward()
