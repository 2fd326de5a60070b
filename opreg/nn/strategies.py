"""Settings of MindSpore's search for parallel strategies, and functions that its Cells call on the context.

Strategies split a network, which this library does not do: the settings are stored without effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..aliases import inner
from ..cells.context_settings import no_setting
from ..core.named_errors import name_errors
from ..core.setting_reads import reads_setting
from ..distributed import world
from ..errors import did_you_mean
from .parallel import get_auto_parallel_context, is_chosen

__all__ = ["get_algo_parameters", "reset_algo_parameters", "set_algo_parameters"]

if not TYPE_CHECKING:  # the submodules of this module, which are the module itself
    __getattr__ = inner(__name__, lambda name: (
        f"opreg.parallel has no {name!r}. {did_you_mean(name, __all__)} What MindSpore has beside is listed in "
        "docs/mindspore_names.md"))

_DEFAULTS: dict[str, Any] = {"fully_use_devices": False, "elementwise_op_strategy_follow": False,
                             "enable_algo_approxi": False, "algo_approxi_epsilon": 0.1,
                             "tensor_slice_align_enable": False, "tensor_slice_align_size": 16}
_CHOSEN = dict(_DEFAULTS)


def set_algo_parameters(**kwargs: float) -> None:
    """Store settings of MindSpore's search for parallel strategies; this library makes no such search.

    Raises
    ------
    ArgumentError
        For a setting that MindSpore does not have.

    Examples
    --------
    >>> set_algo_parameters(elementwise_op_strategy_follow=True)
    >>> get_algo_parameters("elementwise_op_strategy_follow")
    True
    >>> reset_algo_parameters()
    """
    for name in kwargs:
        _check("set_algo_parameters", name)
    _CHOSEN.update(kwargs)


@reads_setting
def get_algo_parameters(attr_key: str) -> Any:
    """A setting made with ``set_algo_parameters``."""
    return _CHOSEN[_check("get_algo_parameters", attr_key)]


def reset_algo_parameters() -> None:
    """Set all settings back to their defaults."""
    _CHOSEN.update(_DEFAULTS)


def _check(owner: str, name: str) -> str:
    if name not in _DEFAULTS:
        raise no_setting(owner, name, _DEFAULTS)
    return name


# -------------------------------------------------------------- names that training Cells take from parallel._utils


def _get_device_num() -> int:
    return world().size


def _get_global_rank() -> int:
    return world().rank


def _get_gradients_mean() -> bool:
    return get_auto_parallel_context("gradients_mean")


def _get_parallel_mode() -> str:
    return get_auto_parallel_context("parallel_mode")


def _get_parameter_broadcast() -> bool:
    return get_auto_parallel_context("parameter_broadcast")


def _get_enable_parallel_optimizer() -> bool:
    return False


def _get_pipeline_stages() -> int:
    return 1


class _Context:
    """The context as an object, with the methods that scripts call."""

    get_device_num, get_global_rank = staticmethod(_get_device_num), staticmethod(_get_global_rank)
    get_gradients_mean, get_parallel_mode = staticmethod(_get_gradients_mean), staticmethod(_get_parallel_mode)
    get_pipeline_stages = staticmethod(_get_pipeline_stages)

    @staticmethod
    def get_device_num_is_set() -> bool:
        return is_chosen("device_num")

    @staticmethod
    def set_all_reduce_fusion_split_indices(indices: Any, group: str = "") -> None:
        """Accepted without effect: ``DistributedGradReducer`` chooses the sizes of buckets."""


def auto_parallel_context() -> _Context:
    """The context as an object."""
    return _Context()


name_errors(__name__, globals(), __all__)
