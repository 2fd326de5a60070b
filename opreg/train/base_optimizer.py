"""The base of all optimizers: learning rates, weight decay, update counts, and updates of one weight or of several."""

from __future__ import annotations

import itertools
import operator
import types
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from opreg.ndarray import zeros
from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.sparse_rules import update_weight

from ..builtin.optimizers.updating import Row, WeightGroup, update_together
from ..core.attrs import Amount
from ..core.cache import cached
from ..core.mode import MODE
from ..core.named_errors import name_errors
from ..core.other_names import UPDATES
from ..core.registry import get, ops
from ..core.settings import CheckedMethods, number
from ..core.slots import Slot
from ..core.spec import Shape
from ..core.versions import wrote_held
from ..errors import ArgumentError, DeviceError, DTypeError, FileFormatError, ShapeError, did_you_mean
from .lr_scheduler import LRScheduler
from .named import Named

if TYPE_CHECKING:
    from opreg.symbol.symbol import Symbol

    from .updater import Updater

__all__ = ["Optimizer"]

#: A function that makes an updater of an optimizer.
UPDATER = Slot("training")

FLOAT16, FLOAT32 = np.dtype("float16"), np.dtype("float32")

#: A key of a weight: a number or a name.
Index: TypeAlias = int | str
#: The state of a weight between updates.
State: TypeAlias = "NDArray | float | str | Sequence[State] | None"
#: Index, weight, gradient and state of a weight.
Update: TypeAlias = tuple[Index, NDArray, NDArray, Any]


def apply(name: str, weight: NDArray, grad: NDArray, *states: NDArray, **attrs: object) -> None:
    """Run the operator of that name on a weight, in place.

    The rates change in each step, so a call by attributes would prepare them each time: the kernel is called directly
    instead.
    """
    if any(value._sparse for value in (weight, grad, *states)):
        update_weight(name, weight, grad, states, attrs)
        return
    arrays = [weight._data, grad._data, *(state._data for state in states)]
    rule, ctx = get(name).kernels[0].rule, weight.context
    ctx.run(rule.function, ctx.xp, *arrays, out=arrays[0], **rule.select(attrs))
    wrote_held((weight, *states))


def zeros_of(weight: NDArray) -> NDArray:
    """A state of zeros, with the storage type of the weight."""
    return zeros(weight.shape, weight.context, weight.dtype, weight.stype)


def rows(*columns: Any) -> list[tuple[Any, ...]]:
    """A list of updates from lists of indices, weights, gradients and states, or from one of each."""
    if not isinstance(columns[0], (list, tuple)):
        return [columns]
    counts = [len(column) for column in columns]
    if len(set(counts)) > 1:
        raise ArgumentError(f"an update of several weights: expected lists of equal lengths, got "
                            f"{', '.join(map(str, counts))}")
    return list(zip(*columns))


# Methods by which a class updates a weight.
_MOVES = ("update", "update_all", "_apply_update", "update_multi_precision")
_methods = operator.attrgetter(*_MOVES)


def _updates_by_operators(kind: Any) -> bool:
    """Whether all updates of a class are operators, and nothing else."""
    return _are_operators(kind, _methods(kind))


# Methods that count an update of a weight and compute its rates.
_RATES = ("_count_and_rates", "_update_count", "_get_lr", "_get_lrs", "_get_wd", "_get_wds", "_factor")
_rate_methods = operator.attrgetter(*_RATES)

_REGISTERED = Named("optimizer")


@cached(64)
def _are_operators(kind: Any, methods: tuple[object, ...]) -> bool:
    owner: Any = next(cls for cls in kind.__mro__ if "_operator" in vars(cls))
    *first, last = methods
    return owner is not Optimizer and last is owner.update_multi_precision and first == list(_methods(Optimizer)[:3])


def _rate(optimizer: Optimizer, index: Index) -> float:
    return optimizer.learning_rate * optimizer._factor(index, "lr_mult", optimizer.lr_mult)


def _decay(optimizer: Optimizer, index: Index) -> float:
    return optimizer.wd * optimizer._factor(index, "wd_mult", optimizer.wd_mult)


def _first_of(owner: type[Optimizer], several: str) -> Callable[..., float]:
    """The method for one weight that follows from a class's method for several."""
    return lambda self, index: vars(owner)[several](self, [index])[0]


def _each_of(owner: type[Optimizer], method_name: str) -> Callable[..., list[float]]:
    """The method for several weights that follows from a class's method for one."""
    return lambda self, indices: [vars(owner)[method_name](self, index) for index in indices]


class Factors(Protocol):
    """An object with factors of learning rate and decay for a weight."""

    lr_mult: float
    wd_mult: float


@_REGISTERED.of
class Optimizer(CheckedMethods):
    """The base of all optimizers: learning rates, weight decay, and the update count of each weight.

    A subclass defines ``create_state(index, weight)`` and ``update(index, weight, grad, state)``.

    Parameters
    ----------
    rescale_grad : float
        Factor of the gradients, usually one over the batch size.
    param_idx2name : dict of int to str
        Names of the weights, for rates by name. Parameters that end in neither ``_weight`` nor ``_gamma`` are not
        decayed.
    wd : float
        Weight decay.
    clip_gradient : float or None
        Bound to which the rescaled gradient is clipped.
    learning_rate : float or None
        The learning rate; 0.01 by default.
    lr_scheduler : LRScheduler or None
        Computes the rate from the number of updates; ``learning_rate``, if given, is its base rate.
    sym : Symbol or None
        A symbol whose variables have ``__lr_mult__`` and ``__wd_mult__``.
    begin_num_update : int
        Initial number of updates.
    multi_precision : bool
        Whether float16 weights are updated in a float32 copy.
    param_dict : dict of int to objects with ``lr_mult`` and ``wd_mult``
        Factors of the weights; they override those by name.

    Examples
    --------
    >>> from opreg import nd
    >>> class SignDescent(Optimizer):
    ...     def create_state(self, index, weight):
    ...         return None
    ...     def update(self, index, weight, grad, state):
    ...         self._update_count(index)
    ...         weight -= self._get_lr(index) * nd.sign(grad)
    >>> weight, rule = nd.array([1.0, 1.0]), SignDescent(learning_rate=0.5)
    >>> rule.update(0, weight, nd.array([3.0, -0.1]), None)
    >>> weight.asnumpy()
    array([0.5, 1.5], dtype=float32)
    """

    opt_registry = _REGISTERED
    _plain_methods = "one_by_one", "count_updates"

    #: Endings of names whose weights are decayed.
    _decayed: tuple[str, ...] = ("_weight", "_gamma")
    #: Whether each element of a weight is updated independently, so that each rank may update a part. Each class
    #: declares this, except those that update by operators.
    elementwise = False
    #: Settings that are a number or None.
    _may_be_none = frozenset({"clip_gradient"})

    if not TYPE_CHECKING:  # any name is possible

        def __getattr__(self, name: str) -> Any:
            words = UPDATES.get(name)
            raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}"
                                 + (f": {words}" if words else ""), name=name, obj=self)

    def __init__(self, rescale_grad: float = 1.0, param_idx2name: Mapping[Index, str] | None = None, wd: Amount = 0.0,
                 clip_gradient: float | None = None, learning_rate: float | None = None,
                 lr_scheduler: LRScheduler | None = None, sym: Symbol | None = None, begin_num_update: int = 0,
                 multi_precision: bool = False, param_dict: Mapping[Index, Factors] | None = None):
        self.rescale_grad = rescale_grad
        self.lr_scheduler = lr_scheduler
        if lr_scheduler is not None and learning_rate is not None:
            lr_scheduler.base_lr = learning_rate
        self.lr = 0.01 if learning_rate is None else learning_rate
        self.wd = wd
        self.clip_gradient = clip_gradient
        self.multi_precision = multi_precision
        self.allow_np_array = MODE.np_array  # MXNet's programs read it; updates accept arrays of either kind
        self.begin_num_update = self.num_update = begin_num_update
        self._all_index_update_counts: dict[int, dict[Index, int]] = {0: {}}
        self._index_update_count = self._all_index_update_counts[0]
        if param_idx2name is not None and not isinstance(param_idx2name, Mapping):
            raise ArgumentError("param_idx2name: expected a dict of indices to names")
        self.idx2name = dict(param_idx2name or {})
        self.sym_info = (sym.attr_dict(), sym.list_arguments()) if sym is not None else ()
        self.param_dict = dict(param_dict or {})
        self.lr_mult: dict[Index, float] = {}
        self.wd_mult: dict[Index, float] = {}
        self.set_lr_mult({})
        self.set_wd_mult({})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for single, several in (("_get_lr", "_get_lrs"), ("_get_wd", "_get_wds")):
            owner = next(base for base in cls.__mro__ if single in vars(base) or several in vars(base))
            if single not in vars(owner):
                setattr(cls, single, _first_of(owner, several))
            elif several not in vars(owner):
                setattr(cls, several, _each_of(owner, single))

    @staticmethod
    def register(klass: type[Optimizer]) -> type[Optimizer]:
        """A decorator that registers an optimizer by the name of its class in lower case."""
        return Optimizer.opt_registry.enter(klass)

    @staticmethod
    def create_optimizer(name: str, **kwargs: Any) -> Optimizer:
        """An optimizer by its name.

        Raises
        ------
        AttrError
            For an unregistered name.
        ArgumentError
            For a keyword that the optimizer does not take, with the nearest that it does.

        Examples
        --------
        >>> Optimizer.create_optimizer("SGD", momentum=0.9).momentum
        0.9
        """
        made: Optimizer = Optimizer.opt_registry.find(name)(**kwargs)
        return made

    def updater(self) -> Updater:
        """The updater that applies this optimizer to weights by index, and holds their states."""
        updater: Updater = UPDATER.function(self)
        return updater

    # ------------------------------------------------------------------------------------------- states

    def create_state(self, index: Any, weight: NDArray) -> State:
        """The initial state of a weight: None, an array, or a tuple of arrays."""
        return None

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> State:
        """The initial state of a weight; for a float16 weight with ``multi_precision``, ``(float32 copy, state)``."""
        if self._in_float32(weight):
            copy = weight.astype(FLOAT32)
            return copy, self.create_state(index, copy)
        return self.create_state(index, weight)

    def _in_float32(self, weight: NDArray) -> bool:
        if weight.dtype == FLOAT16 and not self.multi_precision:
            warnings.warn("small steps are lost on float16 weights; set multi_precision=True", stacklevel=4)
        return self.multi_precision and weight.dtype == FLOAT16

    # ------------------------------------------------------------------------------------------- updates

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Update a weight and its state by one step, or several weights, given in lists.

        Raises
        ------
        ShapeError, DTypeError, ArgumentError
            When gradient or state do not fit the weight; then nothing was changed or counted.
        """
        listed = isinstance(index, (list, tuple))
        updates = rows(index, weight, grad, state) if listed else ((index, weight, grad, state),)
        for update in updates:
            self._check(*update)
        for update in updates:
            before = self._index_update_count.get(update[0]), self.num_update
            try:
                self._apply_update(*update)
            except Exception:
                self._uncount(update[0], *before)
                raise

    def _apply_update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Count and apply an update that was checked."""
        name, states = self._operator(state)
        apply(name, weight, grad, *states, **self._attributes(*self._count_and_rates(index)))

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Update a weight, given a state by ``create_state_multi_precision``."""
        if isinstance(index, (list, tuple)):
            self.update_all(rows(index, weight, grad, state))
        elif self.multi_precision and weight.dtype == FLOAT16:
            copy, inner = state
            self.update(index, copy, grad.astype(FLOAT32), inner)
            weight[:] = copy
        else:
            self.update(index, weight, grad, state)

    def update_all(self, updates: Sequence[Update]) -> None:
        """Update several weights: index, weight, gradient and a state by ``create_state_multi_precision`` for each.

        If the class names its operator, one call updates all weights with the same rates and dtype.
        """
        count = len(updates)
        by_operator = (
            count > 1 and self.one_by_one() is None
            and not any(weight._sparse or grad._sparse for _, weight, grad, _ in updates)
            and len({index for index, _, _, _ in updates}) == len({id(weight._data) for _, weight, _, _ in updates})
            == count)
        if not by_operator:
            for index, weight, grad, _ in updates:
                self._check(index, weight, grad, ())
            for index, weight, grad, state in updates:
                self._set_current_context(weight.context.device_id)
                self.update_multi_precision(index, weight, grad, state)
            return
        rows = self.rows_of(updates)
        for alike in self.count_updates(rows):
            rule, ctx = get(alike.operator).kernels[0].rule, alike.ctx
            ctx.run(update_together, ctx.xp, vars(rule.function)["rule"], [
                (rows[i].arrays[0], rows[i].arrays) for i in alike.members], **rule.select(alike.attrs))
        wrote_held(array for _, weight, _, state in updates for array in (weight, *self._operator(state)[1]))

    # ------------------------------------------------------------------------------------ several by one rule

    def one_by_one(self) -> str | None:
        """The reason why weights are updated one by one; None if one call of an operator updates many."""
        if self.multi_precision:
            return "multi_precision: float16 weights move in float32 copies"
        if not vars(self).keys().isdisjoint(_MOVES):
            return f"this {type(self).__name__} was given a method of its own"
        return None if _updates_by_operators(type(self)) else f"{type(self).__name__} moves each weight by itself"

    def _has_own_rates(self) -> bool:
        """Whether its class or a program overrides the methods that count updates or compute rates."""
        return not vars(self).keys().isdisjoint(_RATES) or _rate_methods(type(self)) != _RATE_METHODS

    def undivided_reason(self) -> str | None:
        """The reason why a part of a weight cannot be updated separately; None if all elements are independent."""
        if vars(type(self)).get("elementwise") or _updates_by_operators(type(self)):
            return None
        return f"{type(self).__name__} may read a weight as a whole; if it does not, declare elementwise = True"

    def rows_of(self, updates: Sequence[Update]) -> list[Row]:
        """Weights in the form of ``count_updates``, for an optimizer that updates by operators.

        Raises
        ------
        ShapeError, DTypeError, DeviceError, ArgumentError
            When a gradient or a state does not fit its weight.
        """
        rows: list[Row] = []
        kinds: dict[tuple[Any, ...], int] = {}
        last, kind = "", 0
        ctx: Any = None
        dtype: Any = None
        for index, weight, grad, state in updates:
            name, states = self._operator(state)
            data = weight._data
            # Most weights have the kind of the previous one.
            if name != last or weight._ctx is not ctx or data.dtype is not dtype:
                last, ctx, dtype = name, weight._ctx, data.dtype
                kind = kinds.setdefault((name, ctx, dtype), len(kinds))
            shape, arrays = data.shape, [data]
            for operand in (grad, *states):
                array = operand._data
                if array.shape != shape or array.dtype is not dtype or operand._ctx is not ctx:
                    self._check(index, weight, grad, state)  # a check that accepts states with a shape of their own
                arrays.append(array)
            rows.append(Row(index, name, ctx, kind, arrays))
        return rows

    def count_updates(self, rows: Sequence[Row]) -> list[WeightGroup]:
        """Count an update of each weight; returns the weights that can be updated together, with their attributes."""
        counted: dict[tuple[Any, ...], list[int]] = {}
        factors: list[Iterable[float]] = [itertools.repeat(1.0)] * 2
        own_rates = self._has_own_rates()
        if not own_rates:
            factors = [self._factors(rows, "lr_mult", self.lr_mult), self._factors(rows, "wd_mult", self.wd_mult)]
        device = rate = None
        first, wd = self.begin_num_update, self.wd
        for i, (index, _, ctx, kind, _), rate_factor, decay_factor in zip(itertools.count(), rows, *factors):
            if ctx.device_id != device:
                device = ctx.device_id
                self._set_current_context(device)
                counts = self._index_update_count
            if own_rates:
                key = kind, *self._count_and_rates(index)
            else:  # the same as ``_count_and_rates``, inlined for speed
                count = counts[index] = counts.get(index, first) + 1
                if count > self.num_update:
                    self.num_update, rate = count, None
                if rate is None:
                    rate = self.learning_rate
                key = kind, count, rate * rate_factor, wd * decay_factor
            if key in counted:
                counted[key].append(i)
            else:
                counted[key] = [i]
        together: dict[tuple[Any, ...], WeightGroup] = {}
        for (kind, *rates), members in counted.items():
            attrs = self._attributes(*rates)
            _, name, ctx, _, _ = rows[members[0]]
            together.setdefault((kind, *attrs.values()), WeightGroup(name, ctx, attrs, [])).members.extend(members)
        return list(together.values())

    def _operator(self, state: Any) -> tuple[str, tuple[NDArray, ...]]:
        """The operator that updates a weight with this state, and the arrays of the state for it."""
        raise NotImplementedError(f"{type(self).__name__} must define update, which changes a weight")

    def _attributes(self, count: int, lr: float, wd: float) -> dict[str, Any]:
        """Attributes of the operator, given the number of the update, rate and decay; the operator may ignore some."""
        return dict(lr=lr, wd=wd, rescale_grad=self.rescale_grad, clip_gradient=self._bound)

    def _check(self, index: Index, weight: NDArray, grad: NDArray, state: State) -> None:
        """Refuse a gradient or a state that does not fit the weight."""
        if getattr(grad, "_sparse", False) or getattr(weight, "_sparse", False):
            if grad.shape != weight.shape:
                self._compare(index, weight, "gradient", grad, weight.shape)
            return
        try:
            data, slope = weight._data, grad._data
        except AttributeError:
            kind = type(grad if hasattr(weight, "_data") else weight).__name__
            raise ArgumentError(f"the update of {self._label(index)}: expected arrays, got {kind}") from None
        shape, dtype = data.shape, data.dtype
        if slope.shape != shape or slope.dtype is not dtype or grad._ctx is not weight._ctx:
            self._compare(index, weight, "gradient", grad, shape)
        if state is None:
            return
        shape = self._shape_of_states(weight)
        for part in state if isinstance(state, (tuple, list)) else (state,):
            if isinstance(part, NDArray) and (part._data.shape != shape or part._data.dtype is not dtype
                                              or part._ctx is not weight._ctx):
                self._compare(index, weight, "state", part, shape)

    def _compare(self, index: Index, weight: NDArray, what: str, operand: NDArray, shape: Shape) -> None:
        if operand.shape != shape:
            raise ShapeError(f"{self._label(index)} of shape {weight.shape} got a {what} of shape {operand.shape}"
                             + ("" if shape == weight.shape else f", expected {shape}"))
        if not np.can_cast(operand.dtype, weight.dtype, "same_kind"):
            raise DTypeError(f"{self._label(index)} of dtype {np.dtype(weight.dtype)} got a {what} of dtype "
                             f"{np.dtype(operand.dtype)}")
        if not operand.context.shares(weight.context):
            raise DeviceError(f"{self._label(index)} on {weight.context} got a {what} on {operand.context}: move it "
                              f"with {what}.as_in_context({weight.context})")

    def _shape_of_states(self, weight: NDArray) -> Shape:
        return weight._data.shape

    def _label(self, index: Index) -> str:
        """The name of a weight in errors."""
        return f"weight {self.idx2name.get(index, index)!r}"

    # -------------------------------------------------------------------------------------------- rates

    @property
    def learning_rate(self) -> float:
        """The current learning rate."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate; refused if there is a scheduler, which would override it."""
        if self.lr_scheduler is not None:
            raise UserWarning("the learning rate comes from the lr_scheduler; set its base_lr instead")
        self.lr = number(f"{type(self).__name__}.set_learning_rate: lr", lr)

    def set_lr_mult(self, args_lr_mult: Mapping[Index, float]) -> None:
        """Set factors of the rate by name or index; for others the symbol's factors apply, else one."""
        self.lr_mult = {**self._factors_of_symbol("__lr_mult__"), **self._check_factors("lr_mult", args_lr_mult)}

    def set_wd_mult(self, args_wd_mult: Mapping[Index, float]) -> None:
        """Set factors of the decay by name or index; for others the symbol's factors apply, else one for names that end
        in ``_weight`` or ``_gamma``, and zero for other names."""
        plain: dict[Index, float] = {name: 0.0 for name in self.idx2name.values() if not name.endswith(self._decayed)}
        self.wd_mult = {**plain, **self._factors_of_symbol("__wd_mult__"),
                        **self._check_factors("wd_mult", args_wd_mult)}

    def _check_factors(self, what: str, factors: Mapping[Index, float]) -> Mapping[Index, float]:
        for index, factor in factors.items():
            number(f"{type(self).__name__}: {what} of {index!r}", factor)
        return factors

    def _factors_of_symbol(self, key: str) -> dict[Index, float]:
        if not self.sym_info:
            return {}
        attrs, names = self.sym_info
        return {name: float(attrs[name][key]) for name in names if key in attrs.get(name, ())}

    def _factor(self, index: Index, attribute: str, by_name: Mapping[Index, float]) -> float:
        if index in self.param_dict:
            return getattr(self.param_dict[index], attribute)
        if index in by_name:
            return by_name[index]
        return by_name.get(self.idx2name.get(index, ""), 1.0)

    def _factors(self, rows: Sequence[Row], attribute: str, by_name: Mapping[Index, float]) -> Iterable[float]:
        """``_factor`` of several weights."""
        if self.param_dict:
            return [self._factor(row[0], attribute, by_name) for row in rows]
        if by_name:  # inlined from ``_factor``
            names = self.idx2name
            return [by_name[row[0]] if row[0] in by_name else by_name.get(names.get(row[0], ""), 1.0) for row in rows]
        return itertools.repeat(1.0)

    def _get_lr(self, index: Index) -> float:
        """The rate of one weight."""
        several = self._put_later("_get_lrs", "_get_lr")
        return several([index])[0] if several else _rate(self, index)

    def _get_wd(self, index: Index) -> float:
        """The decay of one weight."""
        several = self._put_later("_get_wds", "_get_wd")
        return several([index])[0] if several else _decay(self, index)

    def _get_lrs(self, indices: Iterable[Index]) -> list[float]:
        """The rates of several weights."""
        one = self._put_later("_get_lr", "_get_lrs")
        return [one(index) if one else _rate(self, index) for index in indices]

    def _get_wds(self, indices: Iterable[Index]) -> list[float]:
        """The decays of several weights."""
        one = self._put_later("_get_wd", "_get_wds")
        return [one(index) if one else _decay(self, index) for index in indices]

    def _put_later(self, name: str, other: str) -> Callable[..., Any] | None:
        """The method of this name that a program assigned to this optimizer or to one of its classes, if neither that
        class nor its bases define the ``other`` method of the pair; otherwise None."""
        members, kind = vars(self), type(self)
        result = None if other in members else members.get(name)
        for base in kind.__mro__[:kind.__mro__.index(Optimizer)]:
            if other in vars(base):
                result = None  # this class defines the other method, which decides
            elif result is None and name in vars(base):
                result = types.MethodType(vars(base)[name], self)
        return result

    def _set_current_context(self, device_id: int) -> None:
        """Count updates apart for each device that holds a copy of the weights."""
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {})

    def _update_count(self, index: Any) -> int:
        """Count an update of a weight, or of several; returns the number of updates of the last one."""
        if isinstance(index, (list, tuple)):
            return [0, *map(self._update_count, index)][-1]
        counts = self._index_update_count
        count = counts[index] = counts.get(index, self.begin_num_update) + 1
        if count > self.num_update:
            self.num_update = count
        return count

    def _uncount(self, index: Index, count: int | None, num_update: int) -> None:
        """Undo the count of an update that failed."""
        self.num_update = num_update
        if count is None:
            self._index_update_count.pop(index, None)
        else:
            self._index_update_count[index] = count

    def _step(self, index: Index) -> tuple[int, dict[str, float]]:
        """Count an update; return the number of updates of the weight, and the attributes that nearly all update
        operators have."""
        count, lr, wd = self._count_and_rates(index)
        return count, Optimizer._attributes(self, count, lr, wd)

    def _count_and_rates(self, index: Index) -> tuple[int, float, float]:
        """Count an update; returns its number, and the weight's rate and decay."""
        return self._update_count(index), self._get_lr(index), self._get_wd(index)

    @property
    def _bound(self) -> float:
        """``clip_gradient`` in the form of operators."""
        return self.clip_gradient or -1.0

    def _prepare_gradient(self, grad: NDArray) -> NDArray:
        """The rescaled and clipped gradient, for rules in array arithmetic."""
        return self._clip(grad * self.rescale_grad)

    def _clip(self, g: NDArray) -> NDArray:
        return ops.clip(g, a_min=-self.clip_gradient, a_max=self.clip_gradient) if self.clip_gradient else g

    # ------------------------------------------------------------------------------------------ settings

    def settings(self) -> dict[str, float | str | None]:
        """The optimizer's settings by name, as they are saved."""
        return {name: value for name, value in vars(self).items()
                if not name.startswith("_") and isinstance(value, (int, float, str, type(None)))}

    def check_settings(self, settings: Mapping[str, object]) -> None:
        """Refuse settings that are not this optimizer's.

        Raises
        ------
        FileFormatError
            For a name that ``settings`` does not have, or a value of another type.
        """
        defaults = self.settings()
        for name, value in settings.items():
            if name not in defaults:
                raise FileFormatError(f"optimizer states: {type(self).__name__} has no setting {name!r}. "
                                      f"{did_you_mean(name, defaults)}")
            now = defaults[name]
            if name in ("num_update", "begin_num_update"):
                expected, fits = "a number of updates", type(value) is int and value >= 0
            elif isinstance(now, (bool, str)):
                expected, fits = f"a {type(now).__name__}", type(value) is type(now)
            elif value is None:
                expected, fits = "a number", now is None or name in self._may_be_none
            else:
                expected, fits = "a number", type(value) in (int, float) and value == value
            if not fits:
                raise FileFormatError(f"optimizer states: setting {name}: expected {expected}, got {value!r}")


_RATE_METHODS = _rate_methods(Optimizer)


name_errors(__name__, globals(), __all__)
