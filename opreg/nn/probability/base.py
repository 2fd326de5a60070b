"""The base of distributions: methods that check and complete their arguments, and call those of the classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...cells.cell import Cell
from ...cells.dtype import float32
from ...cells.dtype import of as dtype_of
from ...cells.tensor import Tensor
from ...cells.tensor_base import TensorBase
from ...cells.typing import TensorDType
from ...core.spec import is_floating
from ...errors import ArgumentError, did_you_mean
from .. import ops

__all__ = ["Distribution", "check_values", "shape_of_values"]


class Distribution(Cell):
    """A distribution: derive from it, and define the methods whose names begin with an underscore.

    A call with the name of a method calls the method: ``normal("log_prob", value)``.

    Parameters
    ----------
    seed : int, optional
        Accepted without effect; ``set_seed`` makes random values reproducible.
    dtype : dtype
        The dtype of random values.
    name : str
        The name of the distribution in errors.
    parameters : mapping
        Values by name: numbers, arrays or tensors, or None for those that methods get.

    Attributes
    ----------
    batch_shape : tuple of int
        The common shape of the parameters.
    """

    #: Names of the parameters, as methods take them.
    names: tuple[str, ...] = ()
    _floats = True

    def __init__(self, seed: int | None, dtype: TensorDType, name: str, parameters: Mapping[str, Any]):
        super().__init__()
        self.name, self.dtype, self.seed = name, dtype_of(dtype), seed
        if self._floats and not is_floating(self.dtype.dtype):
            raise ArgumentError(f"{name}: expected a floating dtype, got {self.dtype}")
        self.parameter_type = self.dtype if self._floats else float32
        self._given = [None if value is None else value if isinstance(value, TensorBase) else
                       Tensor(np.asarray(value, np.float64), self.parameter_type) for value in parameters.values()]
        known = [value for value in self._given if value is not None]
        self.batch_shape = tuple(np.broadcast_shapes(*[value.shape for value in known])) if known else ()
        self.broadcast_shape, self.is_scalar_batch = self.batch_shape, not self.batch_shape

    def construct(self, name: str, *args: Any, **keywords: Any) -> Any:
        """Call the method of that name."""
        method = getattr(type(self), name, None)
        if method is None or name.startswith("_"):
            raise NotImplementedError(f"{self.name} has no method {name!r}. {did_you_mean(name, _METHODS)}")
        return method(self, *args, **keywords)

    def extend_repr(self) -> str:
        """The parameters if they are numbers, or their shape."""
        if self.batch_shape:
            return f"batch_shape = {self.batch_shape}"
        return ", ".join([f"{name} = {value}" for name, value in zip(self.names, self._given)])

    def prob(self, value: Tensor, *args: Any, **keywords: Any) -> Tensor:
        """Probability, or density, of a value."""
        return ops.exp(self.log_prob(value, *args, **keywords))

    def log_prob(self, value: Tensor, *args: Any, **keywords: Any) -> Tensor:
        """Logarithm of ``prob``."""
        return self._log_prob(self._value(value), *self._parameters(args, keywords))

    def cdf(self, value: Tensor, *args: Any, **keywords: Any) -> Tensor:
        """Probability of at most a value."""
        return self._cdf(self._value(value), *self._parameters(args, keywords))

    def log_cdf(self, value: Tensor, *args: Any, **keywords: Any) -> Tensor:
        """Logarithm of ``cdf``."""
        return ops.log(self.cdf(value, *args, **keywords))

    def survival_function(self, value: Tensor, *args: Any, **keywords: Any) -> Tensor:
        """Probability of more than a value."""
        return self._survival(self._value(value), *self._parameters(args, keywords))

    def log_survival(self, value: Tensor, *args: Any, **keywords: Any) -> Tensor:
        """Logarithm of ``survival_function``."""
        return ops.log(self.survival_function(value, *args, **keywords))

    def mean(self, *args: Any, **keywords: Any) -> Tensor:
        """Expected value."""
        return self._mean(*self._parameters(args, keywords))

    def mode(self, *args: Any, **keywords: Any) -> Tensor:
        """Value of the largest probability."""
        return self._mode(*self._parameters(args, keywords))

    def var(self, *args: Any, **keywords: Any) -> Tensor:
        """Variance."""
        return self._var(*self._parameters(args, keywords))

    def sd(self, *args: Any, **keywords: Any) -> Tensor:
        """Standard deviation."""
        return ops.sqrt(self._var(*self._parameters(args, keywords)))

    def entropy(self, *args: Any, **keywords: Any) -> Tensor:
        """Entropy, in nats."""
        return self._entropy(*self._parameters(args, keywords))

    def kl_loss(self, dist: str, *args: Any, **keywords: Any) -> Tensor:
        """Divergence of Kullback and Leibler from another distribution of the same class.

        Parameters
        ----------
        dist : str
            Name of the class.
        args, keywords
            Parameters of the other distribution, by position, or as ``mean_b``; then, perhaps, those of this one.
        """
        self._same(dist)
        others = [f"{name}_b" for name in self.names]
        other = {name[:-2]: keywords.pop(name) for name in others if name in keywords}
        count = len(self.names) - len(other)
        b = self._parameters(args[:count], other, given=False)
        return self._kl(b, self._parameters(args[count:], keywords))

    def cross_entropy(self, dist: str, *args: Any, **keywords: Any) -> Tensor:
        """Entropy plus ``kl_loss``; it takes what ``kl_loss`` takes."""
        own = {name: keywords[name] for name in self.names if name in keywords}
        count = len(self.names) - sum(f"{name}_b" in keywords for name in self.names)
        return self.entropy(*args[count:], **own) + self.kl_loss(dist, *args, **keywords)

    def sample(self, shape: Sequence[int] = (), *args: Any, **keywords: Any) -> Tensor:
        """Random values: an array of the given shape for each element of the parameters, whose axes come last."""
        return self._sample(tuple(shape), *self._parameters(args, keywords)).astype(self.dtype)

    def _same(self, dist: str) -> None:
        if dist != type(self).__name__:
            raise ArgumentError(f"{self.name}: Expected dist input is {type(self).__name__}, but got {dist}.")

    def _value(self, value: Any) -> Tensor:
        if not isinstance(value, TensorBase):
            raise ArgumentError(f"{self.name}: For value, input type must be a Tensor or Parameter, got "
                                f"{type(value).__name__}")
        return value.astype(self.parameter_type)

    def _parameters(self, args: Sequence[Any], keywords: Mapping[str, Any], given: bool = True) -> list[Tensor]:
        """Parameters in order: those of a call, or those of the Cell."""
        if len(args) > len(self.names) or not keywords.keys() <= set(self.names):
            wrong = next((name for name in keywords if name not in self.names), "")
            raise ArgumentError(f"{self.name}: expected the parameters {', '.join(self.names)}, got {len(args)} by "
                                f"position{f' and {wrong!r}. {did_you_mean(wrong, self.names)}' if wrong else ''}")
        result = []
        for i, name in enumerate(self.names):
            value = args[i] if i < len(args) else keywords.get(name)
            if value is None and given:
                value = self._given[i]
            if not isinstance(value, TensorBase):
                raise ArgumentError(f"{self.name}: the type {name} must be subclass of Tensor. It can not be "
                                    f"{'None' if value is None else type(value).__name__} since it is not specified "
                                    "during initialization.")
            result.append(value.astype(self.parameter_type))
        return result

    def _missing(self, what: str) -> Any:
        raise NotImplementedError(f"{what} is not implemented for {type(self).__name__} distribution.")

    def _log_prob(self, value: Tensor, *parameters: Tensor) -> Tensor:
        return self._missing("log_prob")

    def _cdf(self, value: Tensor, *parameters: Tensor) -> Tensor:
        return self._missing("cdf")

    def _survival(self, value: Tensor, *parameters: Tensor) -> Tensor:
        return 1.0 - self._cdf(value, *parameters)

    def _mean(self, *parameters: Tensor) -> Tensor:
        return self._missing("mean")

    def _mode(self, *parameters: Tensor) -> Tensor:
        return self._missing("mode")

    def _var(self, *parameters: Tensor) -> Tensor:
        return self._missing("var")

    def _entropy(self, *parameters: Tensor) -> Tensor:
        return self._missing("entropy")

    def _kl(self, other: Sequence[Tensor], own: Sequence[Tensor]) -> Tensor:
        return self._missing("kl_loss")

    def _sample(self, shape: tuple[int, ...], *parameters: Tensor) -> Tensor:
        return self._missing("sample")


_METHODS = [name for name in vars(Distribution) if not name.startswith("_") and name not in ("construct", "names")]


def shape_of_values(shape: tuple[int, ...], *parameters: Tensor) -> tuple[int, ...]:
    """The shape of random values."""
    return *shape, *np.broadcast_shapes(*[value.shape for value in parameters])


def check_values(name: str, what: str, value: Any, holds: Callable[[np.ndarray], Any], expected: str) -> None:
    """Refuse parameters that no distribution has."""
    if value is not None and not isinstance(value, TensorBase) and not np.all(holds(np.asarray(value, np.float64))):
        raise ArgumentError(f"{name}: {what} must be {expected}, got {value}")
