"""Cell: a layer with parameters, child Cells, hooks, and an optional gradient of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, Self, TypeVar

import numpy as np

from ..core.mode import MODE
from ..core.named_errors import wrong_call
from ..core.parameters import signature_of
from ..core.reports import NotebookTable
from ..core.settings import Checked
from ..core.spec import as_dtype, is_floating
from ..custom.signature import warn_misspelt
from ..errors import ArgumentError, DTypeError, OpError, did_you_mean, is_it, is_ours, note, refuse_keywords
from . import bprop, cell_hooks
from . import dtype as dtypes
from .context_settings import compiles, get_context
from .handles import KINDS, Hook, HookHandle, Hooks
from .jit import Cache, Jitted
from .parameter import Parameter
from .parameter_container import ParameterContainer
from .state import STATE
from .tensor_base import TensorBase
from .traced import symbol_of
from .tree import map_tensors
from .typing import TensorDType

if TYPE_CHECKING:
    from opreg.symbol.symbol import Symbol

__all__ = ["Cell", "converted"]


#: Arguments of ``recompute`` that are accepted without effect.
_RECOMPUTE = frozenset(("mp_comm_recompute", "parallel_optimizer_comm_recompute", "recompute_slice_activation",
                        "use_reentrant", "output_recompute", "early_stop", "context_fn"))


P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")


class _Constructs(Protocol[P, R]):
    def construct(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


class Cell(ParameterContainer, Checked, NotebookTable):
    """A layer: derive from it, make parameters and children in ``__init__``, compute in ``construct``.

    If a Cell defines ``bprop(self, *inputs, out, dout)``, this method computes its gradient: it returns a gradient for
    each input. If ``self.internal_params`` is a list of parameters, it also returns a dict of their gradients.

    Parameters
    ----------
    auto_prefix : bool
        Whether parameters of children are named after the attributes that lead to them.
    flags : dict, optional
        Attributes to set.

    Examples
    --------
    >>> from opreg import Tensor
    >>> class Twice(Cell):
    ...     def construct(self, x):
    ...         return x * 2
    >>> Twice()(Tensor([1.0, 2.0]))
    Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  4.00000000e+00])
    """

    #: Whether ``training`` of this Cell decides the mode of its operators; otherwise the caller's mode does.
    _has_mode = True

    def __init_subclass__(cls, **keywords: Any):
        super().__init_subclass__(**keywords)
        if not cls.__module__.startswith("opreg."):
            warn_misspelt(cls, Cell, ("construct", "bprop"))

    def __init__(self, auto_prefix: bool = True, flags: dict[str, Any] | None = None):
        super().__init__(auto_prefix)
        self.__dict__.update(
            _hooks={kind: Hooks() for kind in KINDS}, _jitted=None, _flags={}, training=False, requires_grad=False,
            _phase="train", _bprop_debug=False, _has_bprop=hasattr(type(self), "bprop"),
            _construct_arity=_arity(type(self).construct))
        self._find_shortcut()
        if flags:
            self.add_flags(**flags)

    def _touch(self) -> None:
        super()._touch()
        self._find_shortcut()

    def _find_shortcut(self) -> None:
        """Store whether a call of the Cell only has to call ``construct``."""
        own = self.__dict__
        own["_plain"] = not (any(own["_hooks"].values()) or own["_has_bprop"] or own["_cast"] is not None
                             or own["_cast_out"] is not None)
        own["_layer"] = () if own["_plain"] and is_ours(type(self).construct) else None

    # ------------------------------------------------------------------------------------------------ calling

    def construct(self, *inputs: Any, **kwargs: Any) -> Any:
        """Compute the outputs; every Cell defines its own."""
        what = "rename forward to construct" if hasattr(type(self), "forward") else "define construct(self, ...)"
        raise AttributeError(f"The '{type(self).__name__}' object has no attribute 'construct': {what}, which computes "
                             f"the outputs{is_it(type(self), 'construct')}")

    if TYPE_CHECKING:  # it has the signature of ``construct``

        def __call__(self: _Constructs[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    else:

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            attributes = self.__dict__
            if "_plain" not in attributes:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '_auto_prefix': please call "
                                     "Cell.__init__() firstly, as in super().__init__()")
            trace = STATE.trace
            if trace is None:
                if not STATE.inside:
                    if not attributes["_checked_names"]:
                        self.check_names()
                    if compiles():
                        return self._cache().call(self, args, kwargs)
                    STATE.inside = True
                    try:
                        return self._run(args, kwargs, attributes["training"])
                    finally:
                        STATE.inside = False
                return self._run(args, kwargs, attributes["training"])
            with trace.enter_cell(self) as training:
                return self._run(args, kwargs, training)

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], training: bool) -> Any:
        attributes, thread = self.__dict__, MODE.__dict__
        frame, layer, mode = thread["frame"], attributes["_layer"], None
        apart = frame is None or layer is None  # inner layers of this library need no check: their caller is known
        if self._has_mode and (now := thread["current"]()).training is not training:
            mode = now
        try:
            if apart:
                thread["frame"] = layer
            if mode is not None:
                thread["set"](mode.recorded(None, training))
            if attributes["_plain"]:
                return self.construct(*args, **kwargs)
            out = self._run_with_all(args, kwargs)
            return out if attributes["_cast_out"] is None else converted(out, attributes["_cast_out"])
        except Exception as error:
            wrong = wrong_call(error, f"{type(self).__name__}.construct", self.construct, args, kwargs)
            if wrong is not None:
                note(wrong, f"in Cell {self.path}")
                raise wrong from None
            if attributes["_plain"]:
                self._explain(error, args, kwargs)
            if any(map(_is_symbol, (*args, *kwargs.values()))):
                note(error, "a Cell takes tensors, not symbols: cell.to_symbol(*examples) converts the Cell to a "
                            "symbol")
            note(error, f"in Cell {self.path}")
            raise
        finally:
            if apart:
                thread["frame"] = frame
            if mode is not None:
                thread["set"](mode)

    def _explain(self, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Extend an error caused by unfit inputs with an explanation, so that it does not blame the weights."""
        inside = any(text.startswith("in Cell ") for text in getattr(error, "__notes__", ()))
        if inside or not isinstance(error, OpError):
            return
        inputs = [*args, *kwargs.values()]
        text = self.misfit(*inputs) or (_dtype_difference(self, inputs) if isinstance(error, DTypeError) else None)
        if text is not None:
            error.args = (f"{self.path}: {text}",)

    def misfit(self, *inputs: Any) -> str | None:
        """An explanation why inputs do not fit, or None. It is called after ``construct`` has raised an error."""

    def _run_with_all(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run casts, hooks, bprop and ``construct``."""
        attributes, kinds = self.__dict__, self._hooks
        if (attributes["_has_bprop"] or kinds["backward"] or kinds["backward_pre"]) and any(
                map(_is_symbol, (*args, *kwargs.values()))):
            raise ArgumentError(f"{self.path}: the graph of a symbol would have neither the Cell's bprop nor its "
                                "backward hooks")
        if attributes["_cast"] is not None:
            args, kwargs = converted((args, kwargs), attributes["_cast"])
        called = args, kwargs
        if kinds["forward_pre"]:
            try:
                args, kwargs = cell_hooks.forward_pre(self, args, kwargs)
            except Exception:
                self._call_hooks_of_failure(args, kwargs)
                raise
        watched = (MODE.current().recording or STATE.trace is not None) and (kinds["backward"] or kinds["backward_pre"])
        hooked_args = args
        if watched:
            args, link, tagged = cell_hooks.tag_inputs(self, args)
        attributes["_running"] += 1
        try:
            if attributes["_has_bprop"]:
                out = bprop.apply(self, args, kwargs)
            else:
                out = self.construct(*args, **kwargs)
        except Exception as error:
            self._explain(error, hooked_args, kwargs)
            changed = cell_hooks.changed_inputs(self, called, (hooked_args, kwargs))
            if changed is not None:
                note(error, changed)
            self._call_hooks_of_failure(hooked_args, kwargs)
            raise
        finally:
            attributes["_running"] -= 1
        if not kinds["forward"]:
            return cell_hooks.tag_outputs(out, link, tagged) if watched else out
        if not watched:
            return cell_hooks.forward(self, hooked_args, kwargs, out)
        if any(hook.convention == "document" for hook in kinds["backward"].values()):
            return cell_hooks.forward(self, hooked_args, kwargs, cell_hooks.tag_outputs(out, link, tagged))
        out = cell_hooks.forward(self, args, kwargs, out)
        return cell_hooks.tag_outputs(out, link, tagged)  # backward hooks get gradients of what forward hooks returned

    def _call_hooks_of_failure(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call the forward hooks that are registered with ``always_call``."""
        if any(hook.always_call for hook in self._hooks["forward"].values()):
            cell_hooks.forward(self, args, kwargs, None, failed=True)

    # -------------------------------------------------------------------------------------------- compilation

    def _cache(self) -> Cache:
        """The cache of compiled plans; it does not keep the Cell alive."""
        if self._jitted is None:
            self.__dict__["_jitted"] = Cache(self)
        return self._jitted

    def _compiled(self) -> Jitted:
        return Jitted(self, self._cache())

    def compile(self, *args: Any, **kwargs: Any) -> Jitted:
        """Compile for inputs like these, without running; returns the compiled Cell, which is called like the Cell.

        In ``GRAPH_MODE`` calling the Cell compiles it, too.
        """
        if not self._checked_names:
            self.check_names(refuse=True)
        jitted = self._compiled()
        jitted.prepare(*args, **kwargs)
        return jitted

    def compile_and_run(self, *args: Any, **kwargs: Any) -> Any:
        """Compile the Cell and call it."""
        return self._compiled()(*args, **kwargs)

    def to_symbol(self, *inputs: Any, **kwargs: Any) -> Symbol:
        """The Cell as a Symbol of registered operators.

        Parameters
        ----------
        *inputs : Tensor, shape or nothing
            Example inputs, or tuples of int for shapes of float32. Without any, shapes are unknown, and a Cell that
            reads them raises an error.

        Returns
        -------
        Symbol
            Its arguments are the inputs, by the names of ``construct``, and the parameters, by theirs.

        Examples
        --------
        >>> class Twice(Cell):
        ...     def construct(self, x):
        ...         return x * 2
        >>> Twice().to_symbol().list_arguments()
        ['x']
        """
        return symbol_of(self, inputs, kwargs)

    # ------------------------------------------------------------------------------------------------- state

    def set_train(self, mode: bool = True) -> Self:
        """Set training or inference mode for this Cell and all Cells inside; returns this Cell."""
        if not isinstance(mode, bool):
            raise ArgumentError(f"{self.path}: set_train expects a bool, got {type(mode).__name__}")
        phase = "train" if mode else "predict"
        if self._phase != phase:
            self.phase = phase
        for _, cell in self.cells_and_names():
            cell.training = mode
        return self

    def set_grad(self, requires_grad: bool = True) -> Self:
        """Set the attribute ``requires_grad`` of this Cell; returns it."""
        self.requires_grad = requires_grad
        return self

    @property
    def phase(self) -> str:
        """``train``, ``predict``, or a user's text."""
        return self._phase

    @phase.setter
    def phase(self, value: str) -> None:
        if not isinstance(value, str):
            raise ArgumentError(f"{self.path}: phase must be text, got {type(value).__name__}")
        self._phase = value

    @property
    def bprop_debug(self) -> bool:
        """Whether ``bprop`` runs as plain Python, on values, also in a compiled function."""
        return self._bprop_debug

    @bprop_debug.setter
    def bprop_debug(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise ArgumentError(f"{self.path}: bprop_debug must be a bool, got {type(value).__name__}")
        self.__dict__["_bprop_debug"] = value
        self._touch()

    @property
    def param_prefix(self) -> str:
        """The prefix of its parameters' names."""
        name = self.path.partition(".")[2]
        return name

    @property
    def cls_name(self) -> str:
        """The name of its class."""
        return type(self).__name__

    def add_flags(self, **flags: Any) -> Self:
        """Set attributes and record them as flags; returns this Cell."""
        for name, value in flags.items():
            setattr(self, name, value)
            self._flags[name] = value
        return self

    def add_flags_recursive(self, **flags: Any) -> Self:
        """``add_flags`` of every Cell of the tree."""
        for _, cell in self.cells_and_names():
            cell.add_flags(**flags)
        return self

    def get_flags(self) -> dict[str, Any]:
        """The flags that were set."""
        return dict(self._flags)

    def to_float(self, dst_type: TensorDType) -> Self:
        """Compute in another dtype: inputs and parameters are cast when the Cell runs; returns this Cell.

        Parameters
        ----------
        dst_type : float16, float32 or bfloat16
        """
        valid = ("float16", "float32", "bfloat16")
        name = as_dtype(dst_type).name
        if name not in valid:
            raise ArgumentError(f"{self.path}: to_float expects float16, float32 or bfloat16, got {name}")
        for _, cell in self.cells_and_names():
            cell._set_cast(as_dtype(dst_type))
        return self

    def _give_float(self, dtype: np.dtype) -> None:
        """Cast the outputs of this Cell, after its hooks."""
        self.__dict__["_cast_out"] = dtype
        self._touch()

    def set_comm_fusion(self, fusion_type: int, recurse: bool = True) -> Self:
        """Set ``comm_fusion`` of the trainable parameters; returns this Cell."""
        for parameter in self.trainable_params(recurse):
            parameter.comm_fusion = fusion_type
        return self

    def set_inputs(self, *inputs: object, **kwargs: object) -> None:
        """Store inputs for ``get_inputs``, without other effects: compiled functions take any shapes."""
        names = signature_of(self.construct).parameters
        refuse_keywords("set_inputs", [name for name in kwargs if name not in names], names)
        self.__dict__["_described_inputs"] = kwargs or inputs

    def get_inputs(self) -> dict[str, Any] | tuple[Any, ...] | None:
        """The inputs that ``set_inputs`` was called with: a tuple, or a dict of keywords; None before."""
        described: dict[str, Any] | tuple[Any, ...] | None = self.__dict__.get("_described_inputs")
        return described

    def update_cell_prefix(self) -> None:
        """Accepted without effect: ``param_prefix`` of each child follows from its place."""

    def recompute(self, **keywords: object) -> None:
        """Accepted without effect: values that a gradient needs are stored."""
        refuse_keywords("recompute", keywords.keys() - _RECOMPUTE, _RECOMPUTE)

    def set_jit_config(self, jit_config: object) -> None:
        """Accepted without effect."""

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Parameter, Parameter]:
        """A dict of each parameter to itself; their values exist already."""
        return {parameter: parameter for parameter in self.get_parameters()}

    # ------------------------------------------------------------------------------------------------- hooks

    def register_forward_pre_hook(self, hook_fn: Callable[..., Any], prepend: bool = False, with_kwargs: bool = False
                                  ) -> HookHandle:
        """Call a function before every run.

        Parameters
        ----------
        hook_fn : callable
            Called with this Cell and a tuple of its positional inputs; with ``with_kwargs`` also with the keyword
            inputs. Returns None or new inputs: a tuple, the only input, or with ``with_kwargs`` ``(args, kwargs)``.
        prepend : bool
            Whether it is called before the hooks registered already.

        Returns
        -------
        HookHandle
            Its ``remove`` removes the hook.
        """
        return HookHandle.add(self, self._hooks["forward_pre"], hook_fn, prepend, with_kwargs=with_kwargs)

    def register_forward_hook(self, hook_fn: Callable[..., Any], prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> HookHandle:
        """Call a function after every run.

        Parameters
        ----------
        hook_fn : callable
            Called with this Cell, its positional inputs and its output; with ``with_kwargs`` the keyword inputs come
            before the output. Returns None or a new output.
        prepend : bool
            Whether it is called before the hooks registered already.
        always_call : bool
            Whether it is called, with None as the output, when the Cell raises.
        """
        return HookHandle.add(self, self._hooks["forward"], hook_fn, prepend, with_kwargs=with_kwargs,
                              always_call=always_call)

    def register_backward_pre_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call a function with the output gradients before the Cell's backward.

        Parameters
        ----------
        hook_fn : callable
            Called with this Cell and a tuple of gradients, with None for a missing one. Returns None or new gradients.
        """
        return HookHandle.add(self, self._hooks["backward_pre"], hook_fn)

    def register_backward_hook(self, hook_fn: Callable[..., Any], convention: str | None = None) -> HookHandle:
        """Call a function with the input and output gradients after the Cell's backward.

        Parameters
        ----------
        hook_fn : callable
            In the convention ``document``, called with ``(cell_id, grad_input, grad_output)``: text of class and
            identity, the output gradients, and the input gradients. In ``2.4``, called with ``(cell, grad_input,
            grad_output)``: the Cell, the input gradients, and the output gradients. Returns None or a tuple of new
            input gradients.
        convention : {"document", "2.4"}
            The default is set by ``set_context`` or ``nn.convention``.
        """
        convention = get_context("convention") if convention is None else convention
        if convention not in ("document", "2.4"):
            raise ArgumentError(f"register_backward_hook: convention {convention!r}. "
                                f"{did_you_mean(convention, ('document', '2.4'))}")
        return HookHandle.add(self, self._hooks["backward"], hook_fn, convention=convention)

    def register_full_backward_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """``register_backward_hook`` in the convention ``"2.4"``.

        Outputs are then those after forward hooks, unless the Cell also has a backward hook of the other convention.
        """
        return self.register_backward_hook(hook_fn, "2.4")

    def hooks(self) -> dict[str, list[Hook]]:
        """All hooks of the tree: a dict of ``path:kind``, such as ``conv1:backward``, to a list."""
        registered: dict[str, list[Hook]] = {}
        for path, cell in self.cells_and_names():
            for kind in KINDS:
                if cell._hooks[kind]:
                    registered[f"{path}:{kind}"] = list(cell._hooks[kind].values())
            for name, parameter in cell._params.items():
                if parameter is not None and parameter._hooks:
                    place = f"{path}.{name}" if path else name
                    registered[f"{place}:gradient"] = list(parameter._hooks.values())
        return registered

    def remove_hooks(self) -> None:
        """Remove all hooks of the tree."""
        for _, cell in self.cells_and_names():
            for kind in KINDS:
                cell._hooks[kind].clear()
            for parameter in cell._params.values():
                if parameter is not None and parameter._hooks:
                    parameter._hooks.clear()
                    parameter._touch()
            cell._touch()

    def check_bprop(self, *inputs: object, eps: float = 1e-6, rtol: float = 1e-4, atol: float = 1e-5, seed: int = 0
                    ) -> float:
        """Compare ``bprop`` with central differences of ``construct``, in float64.

        Parameters
        ----------
        *inputs : Tensor
            Inputs at which to compare.
        eps : float
            Step of the central differences.
        rtol, atol : float
            Tolerances of the comparison.
        seed : int
            Seed of the random weights with which outputs are summed.

        Returns
        -------
        float
            The largest difference.

        Raises
        ------
        AssertionError
            The error names the input, the element, and the difference.
        """
        if not self._has_bprop:
            raise ArgumentError(f"{self.path}: check_bprop: this Cell has no bprop")
        return bprop.check(self, inputs, eps, rtol, atol, seed)


def converted(value: T, dtype: np.dtype) -> T:
    """A tensor, or a nesting of tensors, with floating-point values cast to a dtype."""
    result: T = map_tensors(lambda leaf: leaf._cast(dtype) if is_floating(leaf._dt) else leaf, value)
    return result


def _dtype_difference(cell: Cell, inputs: Sequence[object]) -> str | None:
    """A sentence about an input whose dtype differs from that of the Cell's floating parameters; None without one."""
    parameter_dtype = next((p._dt for p in cell._params.values() if p is not None and is_floating(p._dt)), None)
    other = next((value for value in inputs if isinstance(value, TensorBase) and value._dt != parameter_dtype), None)
    if parameter_dtype is None or other is None:
        return None
    given, name = (f"ms.{str(dtypes.of(dtype)).lower()}" for dtype in (other._dt, parameter_dtype))
    return f"an input is of {given}, the parameters are of {name}: convert one, as with x.astype({name})"


def _arity(construct: Callable[..., Any]) -> int:
    """The number of positional inputs of a ``construct`` without defaults; -1 for others."""
    try:
        parameters = list(signature_of(construct).parameters.values())[1:]
    except (TypeError, ValueError):
        return -1
    plain = all(p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty for p in parameters)
    return len(parameters) if plain else -1


def _is_symbol(value: object) -> bool:
    return hasattr(value, "list_arguments")
