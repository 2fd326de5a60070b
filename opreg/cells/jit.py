"""jit: functions and Cells compiled once for each kind of inputs.

Plans read parameters from the parameters' own memory, so each run sees their current values. Other state that a trace
has read, such as attributes of Cells, hooks and ``requires_grad``, is watched; when it changes, the function is traced
again.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, overload

from opreg.core import generators
from opreg.custom.function import SpecsChanged
from opreg.ndarray.context import current_context
from opreg.ndarray.finite import check_setting
from opreg.symbol.inspect.explain import line_of

from ..core.invalidation import watch
from ..core.locks import rlock
from ..core.mode import MODE
from ..core.op import Op
from ..core.reports import Explanation, report
from ..errors import ArgumentError, refuse_keywords, warn
from . import tree
from .bailout import CallSignatures, LeftToPython, ReadChanged, SignatureChanged, StateChanged
from .compiled import Compiled, CompiledOnDevice, run_in_python
from .context_settings import EPOCH
from .former_state import FormerState
from .guards import Fork, Path, Step, Variants, up_to
from .parameter import Parameter
from .parameter_container import ParameterContainer
from .plan_memory import PlanMemories
from .reads import Reads
from .state import STATE
from .tensor import TENSORS, Tensor, tensor
from .tensor_hooks import has_hooks
from .traced import trace_function
from .traced_tensor import has_attribute
from .tree import Structure
from .variables import ONE_THREAD

__all__ = ["Jitted", "Cache", "jit", "ms_function"]

F = TypeVar("F", bound=Callable[..., Any])
Args: TypeAlias = tuple[Any, ...]
Keywords: TypeAlias = dict[str, Any]

#: Number of kinds of inputs for which a function stays compiled; the least recently used one is dropped.
KINDS = 128
#: Number of variants for one kind of inputs, by values that Python reads; with more, the function runs as Python.
VARIANTS = 32
#: Number of variants of a kind that stay cached although they do not fit now: a change may be undone, as when a network
#: is trained and evaluated in turn.
PAST = 3
#: Number of consecutive traces that may each serve only one run, because the function reads a value that changes every
#: time.
WASTED = 8


class _Python:
    """Stands for a compiled function that runs as Python code."""

    certain, ctx, training = False, None, None

    def __init__(self, reason: str, reads: Reads | None):
        self.reason, self._reads = reason, reads

    def changed(self) -> str | None:
        """The read value that has changed since, as text; compiling may be tried again then."""
        return None if self._reads is None else self._reads.changed()

    def prepare(self) -> None:
        """Do nothing: there is nothing to prepare."""


class _Kind:
    """The compiled variants of a function for inputs of one kind.

    Attributes
    ----------
    current : Compiled or _Python
        The variant that the next run tries.
    variants : Variants
        Its compiled variants, by the values that Python reads.
    used : int
        Time of its last use.
    wasted : int
        Traces in a row that served one run each.
    past : list of (current, variants)
        Earlier variants, valid again if the change is undone.
    missing_attributes : set of str
        Attributes that its variants asked arguments for, and that no argument had.
    """

    __slots__ = ("current", "variants", "signatures", "used", "wasted", "past", "missing_attributes")

    def __init__(self) -> None:
        self.current: Compiled | _Python | None = None
        self.variants: Variants[Compiled] = Variants()
        self.signatures = CallSignatures()
        self.used = self.wasted = 0
        self.past: list[tuple[Compiled | _Python, Variants[Compiled]]] = []
        self.missing_attributes: set[str] = set()

    def serves(self, leaves: Sequence[Tensor]) -> bool:
        """Whether the variants are for this caller: for the device, the mode, and the attributes that a program has put
        on its tensors."""
        compiled = self.current
        if compiled is None or isinstance(compiled, _Python):
            return True
        ctx = leaves[0]._ctx if leaves else current_context()
        return (ctx is compiled.ctx and (compiled.training is None or compiled.training is MODE.current().training)
                and not any(has_attribute(leaf, name) for name in self.missing_attributes for leaf in leaves))

    def find_change(self) -> str | None:
        """The change that makes all variants invalid, as text; None if one is valid."""
        if self.current is None:
            return None
        changed = self.current.changed()
        if changed is not None:
            self.past.append((self.current, self.variants))
            self.current, self.variants = None, Variants()
            for i, (past, variants) in enumerate(self.past[:-1]):
                if past.changed() is None:
                    del self.past[i]
                    self.current, self.variants = past, variants
                    return None
            del self.past[:-PAST]
        return changed


class Cache:
    """The cache of a compiled function, by kinds of inputs.

    Parameters
    ----------
    owner : Cell, optional
        The Cell that holds this cache; the cache does not keep it alive.
    numbers : bool or "debug", optional
        Whether steps check their results; see ``check_numbers`` of ``jit``.
    gradients_of : sequence of Parameter
        Parameters whose gradients are the inputs, in this order, if that is known.
    """

    def __init__(self, owner: ParameterContainer | None = None, numbers: bool | str | None = None,
                 gradients_of: Sequence[Parameter] = ()):
        self.numbers, self._gradients_of = numbers, gradients_of
        self._owner = None if owner is None else weakref.ref(owner)
        self.kinds: dict[Hashable, _Kind] = {}
        self.memories = PlanMemories()
        self._now = 0
        self._lock = rlock()  # held while kinds are changed and hooks are called
        self._warned: set[str] = set()
        watch(self)

    def on_register(self, op: Op | None) -> None:
        """Drop all plans when an operator is registered."""
        self.kinds.clear()

    # ---------------------------------------------------------------------------------------------- calling

    def call(self, function: Callable, args: Args, kwargs: Keywords) -> Any:
        """Call the function."""
        key, leaves = _key(args, kwargs)
        kind = self.kinds.get(key)
        if kind is not None:
            compiled = kind.current
            if (compiled is not None and compiled.certain
                    and (leaves[0]._ctx if leaves else current_context()) is compiled.ctx
                    and (compiled.training is None or compiled.training is MODE.current().training)):
                reads = compiled.reads
                check = reads.check
                if (check is None or check() is None) and (reads.epoch == EPOCH[0] or reads.changed() is None):
                    self._now = kind.used = self._now + 1
                    kind.wasted = 0
                    simple = STATE.outside is None and not MODE.current().recording
                    return compiled.run(leaves) if simple else compiled.call(function, leaves)
        return self._call(function, key, leaves, args, kwargs)

    def _call(self, function: Callable, key: Hashable, leaves: Sequence[Tensor], args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> Any:
        """``call``, after state that may have changed is checked."""
        kind = self._kind(function, key, leaves, args, kwargs)
        compiled = kind.current
        if not isinstance(compiled, Compiled) or compiled.certain or not compiled.traced.calls:
            return self._call_variants(function, kind, leaves, args, kwargs)
        with ONE_THREAD, self._lock:
            try:
                return self._call_variants(function, kind, leaves, args, kwargs)
            finally:
                kind.signatures.end_run()

    def _call_variants(self, function: Callable, kind: _Kind, leaves: Sequence[Tensor], args: tuple[Any, ...],
                       kwargs: dict[str, Any]) -> Any:
        """Call variants until a run is complete. A run ends early if a value that was read, the form of a hook's
        result, or a spec that a dry run has found, differs from that of the trace, or if a hook changes state that the
        function reads later."""
        compiled, anew, left = kind.current, False, ""
        former = FormerState()
        while isinstance(compiled, Compiled):
            try:
                kind.signatures.reads = compiled.reads
                with generators.noted_states() as drawn:
                    result = compiled.call(function, leaves)
                if left:
                    kind.current = self._as_python(function, left)
                return result
            except ReadChanged as change:
                known_steps = up_to(compiled.traced.steps, change.fork, change.answer)
                new = kind.variants.at(change.fork, change.answer)
                if new is not None and new.changed() is not None:
                    new = None
            except SignatureChanged as change:
                kind.signatures.known[change.place] = change.signature
                known_steps, new = compiled.traced.steps, None
            except SpecsChanged:
                if anew:  # shapes depend on values of the inputs, not on values from outside
                    raise
                anew, known_steps, new = True, compiled.traced.steps, None
            except StateChanged as change:
                known_steps, new, left = compiled.traced.steps, None, str(change)
            except LeftToPython as error:
                generators.go_back(drawn)
                kind.current = self._as_python(function, error.reason)
                break
            kind.signatures.start_over()
            if kind.signatures.latest is not None:
                former.add(kind.signatures.latest, compiled.reads.former_values())
            generators.go_back(drawn)  # the run that starts over draws the same values
            kind.current = compiled = new or self._compiled(
                function, kind, leaves, args, kwargs, known_steps, former)
        return run_in_python(function, args, kwargs)

    # -------------------------------------------------------------------------------------------- compiling

    def _kind(self, function: Callable, key: Hashable, leaves: Sequence[Tensor], args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> _Kind:
        """The variants for such inputs; compiles one if none is valid."""
        with self._lock:
            kind = self.kinds.get(key)
            if kind is not None and not kind.serves(leaves):
                key = (key, leaves[0]._ctx if leaves else current_context(), MODE.current().training,
                       *[tuple(sorted(vars(leaf))) for leaf in leaves])
                kind = self.kinds.get(key)
            if kind is None:
                kind = self._new(function, key)
            self._now = kind.used = self._now + 1
            if kind.signatures.left and isinstance(kind.current, Compiled):
                kind.current = self._as_python(function, kind.signatures.left)
            changed = kind.find_change()
            if kind.current is not None:
                kind.wasted = 0
                return kind
            kind.wasted += changed is not None
            if kind.wasted > WASTED:
                kind.past.clear()
                reason = f"{changed} changes from call to call, so that each call would trace the function anew"
                kind.current = self._as_python(function, reason)
            else:
                kind.current = self._compiled(function, kind, leaves, args, kwargs)
            return kind

    def _new(self, function: Callable, key: Hashable) -> _Kind:
        if len(self.kinds) >= KINDS:
            self._warn(function, f"was compiled for more than {KINDS} kinds of inputs, shapes, dtypes and Python "
                                 "values. The least recently used kind is dropped, and compiled again when called. "
                                 "Pass numbers that change as tensors, or as mutable(number), and pad lengths to a "
                                 "few sizes")
            del self.kinds[min(self.kinds, key=lambda key: self.kinds[key].used)]
        kind = self.kinds[key] = _Kind()
        return kind

    def _compiled(self, function: Callable, kind: _Kind, leaves: Sequence[Tensor], args: tuple[Any, ...],
                  kwargs: dict[str, Any], known_steps: Sequence[Step] = (), former: FormerState | None = None
                  ) -> Compiled | _Python:
        """Trace the function."""
        first = kind.variants.first
        if len(kind.variants.compiled) >= VARIANTS and isinstance(first, Fork):
            return self._as_python(function, f"the values that it reads or that decide shapes, first at {first.where}, "
                                             f"had more than {VARIANTS} combinations")
        arguments = _flatten_arguments(args, kwargs)[2]
        path = Path(kind.variants, known_steps)
        try:
            traced = trace_function(function, arguments, [(leaf.shape, leaf._dt) for leaf in leaves],
                                    leaves[0]._ctx if leaves else None, kind.signatures, path, leaves, self._owner,
                                    former=former)
        except LeftToPython as error:
            return self._as_python(function, error.reason, error.reads)
        compiled = (Compiled if traced.ctx.device is None else CompiledOnDevice)(
            traced, arguments, self.memories, check_setting(self.numbers), self._gradients_of)
        path.end(compiled)
        kind.missing_attributes |= traced.missing_attributes
        if traced.reads.comparisons.unseen:
            self._warn(function, "uses the values that it read while it was traced, and does not see changes of "
                                 + "; ".join(traced.reads.comparisons.unseen))
        return compiled

    def _as_python(self, function: Callable, reason: str, reads: Reads | None = None) -> _Python:
        self._warn(function, f"is not compiled but runs as Python: {reason}")
        return _Python(reason, reads)

    def _warn(self, function: Callable, text: str) -> None:
        """Warn once."""
        if text not in self._warned:
            self._warned.add(text)
            name = getattr(function, "__name__", "__call__")
            warn(f"{type(getattr(function, '__self__', function)).__name__ if name == '__call__' else name} {text}")

    def prepare(self, function: Callable, args: Args, kwargs: Keywords) -> None:
        """Compile for inputs like these, without running."""
        key, leaves = _key(args, kwargs)
        current = self._kind(function, key, leaves, args, kwargs).current
        if current is not None:
            current.prepare()

    def explain(self) -> Explanation:
        """Text of all steps of each plan made so far."""
        lines = []
        for key, kind in self.kinds.items():
            if isinstance(kind.current, _Python):
                lines.append(f"for {key}: runs as Python, since {kind.current.reason}")
            for compiled in kind.variants.compiled:
                for title, plan in compiled.plans:
                    lines.append(f"for {key}{title}:")
                    steps = [*plan.plan.forward.steps, *plan.plan.backward.steps]
                    lines += [line_of(number, step) for number, step in enumerate(steps)]
        return Explanation(report(lines))


def _key(args: Args, kwargs: Keywords) -> tuple[Hashable, Sequence[Tensor]]:
    """The key of arguments, and the tensors among them."""
    if not kwargs:
        alone = len(args) == 1 and type(args[0]) is tuple  # gradients, as an optimizer receives them
        leaves: Sequence[Any] = args[0] if alone else args
        kinds: list[Hashable] = [tuple] if alone else []
        for leaf in leaves:
            if type(leaf) not in TENSORS:
                break
            data = leaf._data
            kinds += data.shape, data.dtype
            if leaf._entry is not None and has_hooks(leaf):
                kinds.append("hooks")
        else:
            return tuple(kinds), leaves
    return _flatten_arguments(args, kwargs)[:2]


def _flatten_arguments(args: Args, kwargs: Keywords) -> tuple[Hashable, list[Tensor], Structure]:
    """The key of arguments, the tensors among them, and their nesting."""
    arrays: list[Any] = []
    structure = tree.flatten([list(args), kwargs], arrays, tree.is_variable)
    leaves = [tensor(array) for array in arrays]
    key = tree.key_of(structure), *[(leaf._data.shape, leaf._data.dtype, has_hooks(leaf)) for leaf in leaves]
    return key, leaves, structure


class _MethodCaches(dict[str, Cache]):
    """The caches of an object's compiled methods, by name.

    Attributes
    ----------
    owner : function
        Gives the object. A copy of the object, which begins with the same attributes, makes caches of its own.
    """

    __slots__ = ("owner",)

    def __init__(self, owner: object):
        super().__init__()
        try:
            self.owner: Callable[[], object] = weakref.ref(owner)
        except TypeError:  # a class with slots
            self.owner = lambda: owner

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, ()  # plans belong to one object and one process


#: Attributes of a compiled function itself, beside those of its class.
_OWN = frozenset({"function", "_cache", "__wrapped__"})


class Jitted:
    """A compiled function or Cell; it is compiled for each kind of inputs.

    ``function`` is the original. Inside another compiled function it is traced as part of that one. Attributes that
    are read, set or deleted are those of the original.
    """

    compiled = True

    def __init__(self, function: Callable, cache: Cache | None = None):
        self.function, self._cache = function, Cache() if cache is None else cache

    def __getattr__(self, name: str) -> Any:
        function = self.__dict__.get("function")
        if hasattr(function, "construct") or (name not in _OWN and hasattr(function, name)):
            return getattr(function, name)
        if isinstance(function, functools.partial):  # a method
            if name in functools.WRAPPER_ASSIGNMENTS:
                return getattr(function.func, name)
            if name == "__signature__":
                return inspect.signature(function)
        raise AttributeError(f"a compiled function has no {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _OWN or hasattr(Jitted, name):
            super().__setattr__(name, value)
        else:
            setattr(self.function, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__dict__:
            super().__delattr__(name)
        else:
            delattr(self.function, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A compiled copy of a Cell or object; a function is its own copy."""
        copied = copy.deepcopy(self.function, memo)
        return self if copied is self.function else jit(copied, check_numbers=self._cache.numbers)

    def __reduce__(self) -> str | tuple[Any, ...]:
        at: Any = sys.modules.get(self.__module__)
        path = getattr(self, "__qualname__", "")
        for name in path.split("."):
            at = getattr(at, name, None)
        return path if at is self else (jit, (self.function,))  # pickle finds a decorated function by its name

    def __get__(self, instance: Any, owner: type | None = None) -> Jitted:
        if instance is None:
            return self
        attributes, name = getattr(instance, "__dict__", {}), self.function.__name__
        caches = attributes.get("_methods")
        if caches.__class__ is not _MethodCaches or caches.owner() is not instance:
            caches = attributes["_methods"] = _MethodCaches(instance)
        if name not in caches:
            caches[name] = Cache(instance if isinstance(instance, ParameterContainer) else None, self._cache.numbers)
        return Jitted(functools.partial(self.function, instance), caches[name])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if STATE.trace is not None:
            return self.function(*args, **kwargs)
        return self._cache.call(self.function, args, kwargs)

    def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Compile for inputs like these, without running."""
        self._cache.prepare(self.function, args, kwargs)

    @property
    def check_numbers(self) -> bool | str | None:
        """The argument ``check_numbers``, see ``jit``."""
        return self._cache.numbers

    @property
    def cache_size(self) -> int:
        """Number of kinds of inputs for which it is compiled."""
        return len(self._cache.kinds)

    def explain(self) -> Explanation:
        """Text of all steps of each plan made so far."""
        return self._cache.explain()

    def __repr__(self) -> str:
        return f"<compiled {self.function!r}>"


class _Decorator(Protocol):
    """Type of a decorator that keeps the type of the function."""

    def __call__(self, function: F, /) -> F: ...


@overload
def jit(function: F, *, input_signature: object = None, hash_args: object = None, jit_config: object = None,
        compile_once: bool = False, capture_mode: str = "ast", jit_level: str = "O0", dynamic: int = 0,
        fullgraph: bool = False, backend: str = "", check_numbers: bool | str | None = None, **options: object
        ) -> F: ...


@overload
def jit(function: None = None, *, input_signature: object = None, hash_args: object = None, jit_config: object = None,
        compile_once: bool = False, capture_mode: str = "ast", jit_level: str = "O0", dynamic: int = 0,
        fullgraph: bool = False, backend: str = "", check_numbers: bool | str | None = None, **options: object
        ) -> _Decorator: ...


def jit(function: Any = None, mode: object = None, input_signature: object = None, hash_args: object = None,
        jit_config: object = None, compile_once: bool = False, *, capture_mode: str = "ast", jit_level: str = "O0",
        dynamic: int = 0, fullgraph: bool = False, backend: str = "", check_numbers: bool | str | None = None,
        **options: object) -> Any:
    """Compile a function: it is traced once for each kind of inputs, and then run as a plan.

    Branches and loops on shapes, dtypes and Python values are traced. If Python reads values of tensors, in a branch, a
    loop, ``int()`` or ``asnumpy()``, the function is traced for that value, each run compares it, and another value
    causes another trace. A function that no graph can hold runs as Python, with a warning. ``print`` and other effects
    happen while tracing only; hooks act on every run.

    Parameters
    ----------
    function : callable
        A function of tensors and Python values, nested in tuples, lists and dicts. Cells are compiled with
        ``cell.compile`` or in ``GRAPH_MODE``; of a class of Cells ``construct`` is compiled.
    mode, input_signature, hash_args, jit_config, compile_once, capture_mode, jit_level, dynamic, fullgraph, backend
        Accepted without effect for MindSpore's programs, as are the options of its back ends.
    check_numbers : bool or "debug", optional
        Whether the first step, forward or backward, that computes a NaN or an infinity from finite values raises a
        `NonFiniteError` that names it; with ``"debug"`` a debugger stops first. The environment variable
        ``OPREG_CHECK_NUMBERS`` sets the default.

    Returns
    -------
    Jitted
        The compiled function; it is called like the original.

    Raises
    ------
    ArgumentError
        For options that MindSpore does not have.

    Examples
    --------
    >>> from opreg import Tensor
    >>> @jit
    ... def area(width, height):
    ...     return width * height
    >>> area(Tensor(2.0), Tensor(3.0))
    Tensor(shape=[], dtype=Float32, value= 6)
    """
    _check_options(capture_mode, jit_level, dynamic, fullgraph, options)
    if "fn" in options:  # MindSpore 2.0 calls it so
        function = options["fn"]
    if function is None:
        return jit if check_numbers is None else functools.partial(jit, check_numbers=check_numbers)
    if isinstance(function, type) and hasattr(function, "construct"):
        function.construct = jit(function.construct, check_numbers=check_numbers)
        return function
    if check_numbers is not None:
        check_setting(check_numbers)
        if isinstance(function, Jitted):
            function = function.function
        if hasattr(function, "construct"):
            return Jitted(function, Cache(function, check_numbers))
    if isinstance(function, Jitted):
        return function
    if hasattr(function, "construct"):
        return function._compiled()
    if not callable(function):
        raise ArgumentError(f"jit: expected a function or a Cell, got {type(function).__name__}")
    return functools.update_wrapper(Jitted(function, Cache(numbers=check_numbers)), function, updated=())


#: MindSpore's name before 2.0.
ms_function = jit

#: Options for the back ends of MindSpore.
_OPTIONS = ("fn", "disable_format_transform", "exec_order", "ge_options", "infer_boost", "debug_level", "exc_mode",
            "jit_syntax_level", "op_debug_option")
_NAMED = ("mode", "input_signature", "hash_args", "jit_config", "compile_once", "capture_mode", "jit_level", "dynamic",
          "fullgraph", "backend", "check_numbers")


def _check_options(capture_mode: str, jit_level: str, dynamic: object, fullgraph: object,
                   options: Mapping[str, object]) -> None:
    refuse_keywords("jit", [name for name in options if name not in _OPTIONS], (*_NAMED, *_OPTIONS))
    for name, value, valid in (("capture_mode", capture_mode, ("ast", "bytecode", "trace")),
                               ("jit_level", jit_level, ("", "O0", "O1", "O2", "O3"))):
        if value not in valid:
            raise ArgumentError(f"jit: {name} must be one of {', '.join(map(repr, valid))}, got {value!r}")
    if not isinstance(dynamic, int) or not isinstance(fullgraph, bool):
        raise ArgumentError(f"jit: dynamic must be an int and fullgraph a bool, got {dynamic!r} and {fullgraph!r}")
