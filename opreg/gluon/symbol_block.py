"""Symbol blocks: graphs of symbols, for instance from files, as blocks."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opreg.ndarray.context import current_context
from opreg.symbol.json import load
from opreg.symbol.symbol import Group, Symbol, Variable

from ..cells.state import STATE
from ..cells.symbolic import evaluate_graph
from ..errors import OpError
from ..typing import DTypeLike
from .base_block import Block
from .base_parameter import Contexts, Parameter
from .errors import BlockError
from .hybrid_block import HybridBlock
from .parameter_dict import ParameterDict
from .structure import flatten, regroup, same, symbols_and_contexts

__all__ = ["SymbolBlock"]


class SymbolBlock(HybridBlock):
    """A block made of symbols; variables that are no inputs become its parameters.

    Parameters
    ----------
    outputs : Symbol or list of Symbol
        The outputs.
    inputs : Symbol or list of Symbol
        The input variables.
    params : ParameterDict, optional
        Parameters of another block, to share them.

    Examples
    --------
    >>> import opreg as mx
    >>> x = mx.sym.var("x")
    >>> net = SymbolBlock(mx.sym.FullyConnected(x, num_hidden=3, name="fc"), x)
    >>> net.initialize(mx.init.One())
    >>> net(mx.nd.ones((1, 2))).asnumpy(), list(net.collect_params())
    (array([[3., 3., 3.]], dtype=float32), ['fc_weight', 'fc_bias'])
    """

    _active = True
    _traces = ("_cached_op",)

    def __init__(self, outputs: Any, inputs: Any, params: ParameterDict | None = None):
        super().__init__()
        self._prefix, self._params = "", ParameterDict("", params)
        if isinstance(inputs, Symbol) and len(inputs._entries) == 1:
            inputs = [inputs]
        if isinstance(outputs, (list, tuple)) and len(outputs) == 1:
            outputs = outputs[0]
        variables, in_format = flatten(inputs, "input")
        heads, out_format = flatten(outputs, "output")
        for variable in variables:
            if len(variable._entries) != 1 or variable._entries[0][0].op is not None:
                raise BlockError(f"Input symbols must be variable, but {variable} is an output of operators")
        out, names = Group(heads), {variable.name for variable in variables}
        states = set(out.list_auxiliary_states())
        for name, dtype in _dtypes(variables, out).items():
            if name not in names:
                more = {"grad_req": "null"} if name in states else {}
                self.params.get(name, allow_deferred_init=True, dtype=dtype, **more)
        self.__dict__.update(_cached_graph=(variables, out), _in_format=in_format, _out_format=out_format)
        cut = len(_begin(list(self._params)))
        self._reg_params.update((name[cut:], parameter) for name, parameter in self._params.items())

    @staticmethod
    def imports(symbol_file: str | os.PathLike[str], input_names: str | Sequence[str],
                param_file: str | os.PathLike[str] | None = None, ctx: Contexts = None, allow_missing: bool = False,
                ignore_extra: bool = False) -> SymbolBlock:
        """A block from files of ``HybridBlock.export`` or ``Module.save_checkpoint``.

        Parameters
        ----------
        symbol_file : str
            The graph, ``-symbol.json``.
        input_names : str or list of str
            Names of its input variables.
        param_file : str, optional
            The parameters, ``.params``.
        ctx : Context or list of Context, optional
            Contexts of the parameters.
        allow_missing, ignore_extra : bool
            Whether the file may lack parameters, or have others.
        """
        names = [input_names] if isinstance(input_names, str) else list(input_names)
        inputs = [Variable(name, dtype=np.float32) if param_file is None else Variable(name) for name in names]
        block = SymbolBlock(load(symbol_file), inputs)
        if param_file is not None:
            block.collect_params().load(param_file, ctx, allow_missing, ignore_extra, cast_dtype=True,
                                        dtype_source="saved")
        return block

    def __repr__(self) -> str:
        inputs, out = self._cached_graph
        return f"{type(self).__name__}(\n{out!r} : {len(inputs)} -> {len(out._entries)}\n)"

    def _check_graph(self) -> None:
        """Do nothing: the graph never changes."""

    def _clear_cached_op(self) -> None:
        graph = self._cached_graph
        super()._clear_cached_op()
        self.__dict__["_cached_graph"] = graph

    def _graph_params(self) -> Mapping[str, Parameter]:
        input_names = set(self._cached_graph[1].list_inputs()) if self._cached_graph else ()
        return {name: parameter for name, parameter in self.collect_params().items() if name in input_names}

    def forward(self, x: Any, *args: Any) -> Any:
        """Compute outputs from arrays or symbols."""
        has_symbols, contexts = symbols_and_contexts((x, *args))
        if contexts and not has_symbols:
            with contexts[0]:
                return self._call_cached_op(x, *args) if STATE.trace is None else self._traced_call(x, *args)
        if not isinstance(x, Symbol):
            raise BlockError("HybridBlock requires the first argument to forward be either Symbol or NDArray, but got "
                             f"{type(x)}")
        values, form = flatten([x, *args], "input")
        if not same(form, self._in_format):
            raise BlockError(f"Invalid input format {form}, expected {self._in_format}")
        inputs, out = self._cached_graph
        composed = out(**{str(variable.name): value for variable, value in zip(inputs, values)})
        return regroup(list(composed), self._out_format)

    def _traced_call(self, *args: Any) -> Any:
        """The outputs in the trace of a compiled function."""
        self._deferred_infer_shape(*args)
        variables, out = self._cached_graph
        values = {}
        for name, parameter in self._graph_params().items():
            parameter._finish_deferred_init()
            values[name] = parameter.data(current_context())
        values.update(zip([str(variable.name) for variable in variables], flatten(args, "input")[0]))
        return regroup(evaluate_graph(out._graph(), lambda node: values[node.name]), self._out_format)

    def cast(self, dtype: DTypeLike) -> None:
        """Cast all parameters to another dtype; those of batch norms use float32 in place of float16."""
        Block.cast(self, dtype)
        if np.dtype(dtype) == np.float16:
            names = set(self.params)
            for name in names:
                match = re.fullmatch("(.*)(running|moving)_var", name)
                parts = [f"{match[1]}{match[2]}_mean", f"{match[1]}gamma", f"{match[1]}beta"] if match else []
                if match and names.issuperset(parts):
                    for parameter_name in (name, *parts):
                        self.params[parameter_name].cast("float32")
        self._clear_cached_op()

    def reset_ctx(self, ctx: Contexts) -> None:
        """Move all parameters to other contexts."""
        self.collect_params().reset_ctx(ctx)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Not available: the block has a graph instead."""
        raise NotImplementedError("a SymbolBlock has a graph and no hybrid_forward")


def _begin(names: Sequence[str]) -> str:
    """The common prefix of all names."""
    least, most = min(names, default=""), max(names, default="")
    same = next((i for i, (a, b) in enumerate(zip(least, most)) if a != b), min(len(least), len(most)))
    return least[:same]


def _dtypes(inputs: Sequence[Symbol], out: Symbol) -> dict[str, Any]:
    """The dtypes of all variables of a graph; float32 where no rule decides."""
    names = [*out.list_arguments(), *out.list_auxiliary_states()]
    known_dtypes: dict[str, Any] = {}
    for variable in inputs:
        dtype = variable.infer_type()[0]
        if dtype and dtype[0] is not None:
            known_dtypes[str(variable.name)] = dtype[0]
    try:
        inferred, _, states = out.infer_type(**known_dtypes)
    except OpError:
        inferred = None
    if inferred is None:
        return dict.fromkeys(names, np.float32)
    return {name: dtype or np.float32 for name, dtype in zip(names, [*inferred, *states])}


