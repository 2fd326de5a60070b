"""Data-parallel training by MindSpore's names: its settings, and gradients summed over processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from opreg.symbol.passes.reduce_gradients import allreduce_together
from opreg.symbol.reduction import Reduction, grouped

from ..cells.cell import Cell
from ..cells.context_settings import EPOCH, no_setting
from ..cells.parameter import Parameter
from ..cells.state import STATE
from ..cells.tensor import Tensor
from ..cells.tensor_base import TensorBase
from ..core.cache import cached
from ..core.named_errors import name_errors
from ..core.setting_reads import reads_setting
from ..core.spec import size
from ..distributed import Group, world
from ..distributed import group as find
from ..errors import ArgumentError
from .communication import broadcast_parameters

__all__ = ["ParallelMode", "set_auto_parallel_context", "get_auto_parallel_context", "reset_auto_parallel_context",
           "DistributedGradReducer", "reducer_for"]


class ParallelMode:
    """Ways to share work among processes: alone, or each with a part of the batch."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = [STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL]


_DEFAULTS: dict[str, Any] = {"parallel_mode": ParallelMode.STAND_ALONE, "gradients_mean": False,
                             "parameter_broadcast": False, "device_num": None, "global_rank": None}
_CHOSEN = dict(_DEFAULTS)
#: Accepted without effect, since programs set them.
_INERT = frozenset({"gradient_fp32_sync", "all_reduce_fusion_config", "comm_fusion", "enable_parallel_optimizer",
                    "parallel_optimizer_config", "full_batch", "dataset_strategy", "search_mode",
                    "auto_parallel_search_mode", "strategy_ckpt_load_file", "strategy_ckpt_save_file",
                    "strategy_ckpt_config", "loss_repeated_mean", "communi_parallel_mode",
                    "optimizer_weight_shard_size", "group_ckpt_save_file"})


def set_auto_parallel_context(**settings: object) -> None:
    """Set how processes share the work.

    Parameters
    ----------
    parallel_mode : str
        ``stand_alone``, the default, or ``data_parallel``: ``TrainOneStepCell`` sums gradients over all processes.
    gradients_mean : bool
        Whether gradients are averaged instead.
    parameter_broadcast : bool
        Whether training begins with the weights of rank 0.
    device_num, global_rank : int
        If given, they have to agree with the launcher.

    Raises
    ------
    ArgumentError
        For modes that split a network, and for unknown settings.
    """
    for name, value in settings.items():
        if name in _INERT:
            continue
        if name not in _DEFAULTS:
            raise no_setting("set_auto_parallel_context", name, _DEFAULTS)
        if name == "parallel_mode" and value not in (ParallelMode.STAND_ALONE, ParallelMode.DATA_PARALLEL):
            raise ArgumentError(f"set_auto_parallel_context: parallel_mode must be 'stand_alone' or 'data_parallel', "
                                f"got {value!r}; networks are not divided among devices here")
        if name in ("gradients_mean", "parameter_broadcast") and not isinstance(value, bool):
            raise ArgumentError(f"set_auto_parallel_context: {name} must be a bool, got {type(value).__name__}")
        if name in ("device_num", "global_rank"):
            actual = world().size if name == "device_num" else world().rank
            if value != actual:
                raise ArgumentError(f"set_auto_parallel_context: {name}={value!r}, but the launcher has set it to "
                                    f"{actual}")
    _CHOSEN.update({name: value for name, value in settings.items() if name in _DEFAULTS})
    EPOCH[0] += 1


@reads_setting
def get_auto_parallel_context(attr_key: str) -> Any:
    """A setting made with ``set_auto_parallel_context``."""
    if attr_key not in _DEFAULTS:
        raise no_setting("get_auto_parallel_context", attr_key, _DEFAULTS)
    if attr_key in ("device_num", "global_rank"):
        return world().size if attr_key == "device_num" else world().rank
    return _CHOSEN[attr_key]


def is_chosen(name: str) -> bool:
    """Whether the program has given a setting."""
    return _CHOSEN.get(name) is not None


def reset_auto_parallel_context() -> None:
    """Restore the default: each process works alone."""
    _CHOSEN.update(_DEFAULTS)
    EPOCH[0] += 1


class DistributedGradReducer(Cell):
    """Sums or means of gradients over the processes of a group.

    Gradients are sent in buckets of a few megabytes. In a compiled function, such as a training step, a bucket is sent
    as soon as its gradients are computed, and all buckets are awaited at the end.

    Parameters
    ----------
    parameters : list of Parameter
        Parameters of the gradients; gradients of ``layerwise_parallel`` ones are not changed.
    mean : bool, optional
        Whether sums are divided by ``degree``; ``gradients_mean`` of the context by default.
    degree : int, optional
        The size of the group by default.
    fusion_type : int
        Accepted without effect.
    group : str
        Name of the group.

    Examples
    --------
    >>> reducer = DistributedGradReducer([Parameter(Tensor([1.0]), name="w")], mean=True)
    >>> print(*reducer((Tensor([2.0]),)))
    [2.]
    """

    def __init__(self, parameters: Sequence[Parameter], mean: bool | None = None, degree: int | None = None,
                 fusion_type: int = 1, group: str = "world"):
        super().__init__(auto_prefix=False)
        if degree is not None and (type(degree) is not int or degree < 1):
            raise ArgumentError(f"DistributedGradReducer: degree must be an int of at least 1, got {degree!r}")
        self.mean = get_auto_parallel_context("gradients_mean") if mean is None else mean
        self.degree, self.group = find(group).size if degree is None else degree, group
        self._names = [None if getattr(each, "layerwise_parallel", False) else each.name for each in parameters]

    def construct(self, grads: Sequence[Tensor]) -> tuple[Tensor, ...]:
        if len(grads) != len(self._names):
            raise ArgumentError(f"DistributedGradReducer: expected {len(self._names)} gradients, one for each "
                                f"parameter, got {len(grads)}")
        results, ranks = list(grads), find(self.group)
        chosen = [i for i in _completion_order(grads) if self._names[i] is not None]
        if ranks.size > 1:
            reduction = _reduction(ranks, self.mean and self.degree == ranks.size)
            for bucket in grouped([(i, grads[i]._dt, size(grads[i].shape) * grads[i]._dt.itemsize) for i in chosen],
                                  reduction.bucket_bytes):
                attrs = {"reduction": reduction, "names": tuple([self._names[i] for i in bucket])}
                totals = _read_in_trace(grads[bucket[0]])._apply(allreduce_together, [grads[i] for i in bucket], attrs)
                for i, total in zip(bucket, totals if isinstance(totals, tuple) else (totals,)):
                    results[i] = total
        if self.mean and self.degree != ranks.size:
            for i in chosen:
                results[i] = results[i] * (1.0 / self.degree)
        return tuple(results)


def _read_in_trace(value: Tensor) -> TensorBase:
    """The traced tensor of a value in the function that is being compiled; the value itself outside of a trace."""
    return value if STATE.trace is None else STATE.trace.read(value)


def _completion_order(grads: Sequence[Tensor]) -> Iterable[int]:
    """Positions of gradients in the order in which they are computed; outside of a trace all exist already."""
    places = range(len(grads))
    if STATE.trace is None:
        return places
    values = list(map(STATE.trace.read, grads))  # a gradient may be computed from another one
    positions = {node: position for position, node in enumerate(STATE.trace.order)}
    return sorted(places, key=lambda i: positions[values[i]._entry[0]])


@cached(64)
def _reduction(ranks: Group, mean: bool) -> Reduction:
    """The reduction for a group; it caches the agreement of the ranks."""
    return Reduction(ranks, mean)


def reducer_for(weights: Sequence[Parameter]) -> DistributedGradReducer | None:
    """The Cell that reduces gradients in a training step, by the context's settings; it may broadcast the weights
    first."""
    if _CHOSEN["parallel_mode"] != ParallelMode.DATA_PARALLEL:
        return None
    if _CHOSEN["parameter_broadcast"]:
        broadcast_parameters(weights)
    return DistributedGradReducer(weights)


name_errors(__name__, globals(), __all__)
