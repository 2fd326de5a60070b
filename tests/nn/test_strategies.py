"""``opreg.parallel``: settings without effect, and the context that Cells for training read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from opreg.parallel import _utils
from opreg.parallel._auto_parallel_context import auto_parallel_context

import opreg as ms
from opreg.errors import ArgumentError


@pytest.fixture(autouse=True)
def _at_first() -> Iterator[None]:
    yield
    ms.reset_auto_parallel_context()
    ms.reset_algo_parameters()


def test_settings_are_kept_until_they_are_reset() -> None:
    ms.parallel.set_algo_parameters(elementwise_op_strategy_follow=True, tensor_slice_align_size=8)
    read = [ms.get_algo_parameters(name) for name in (
        "elementwise_op_strategy_follow", "tensor_slice_align_size", "algo_approxi_epsilon")]
    ms.reset_algo_parameters()
    assert read == [True, 8, 0.1] and ms.get_algo_parameters("tensor_slice_align_size") == 16


@pytest.mark.parametrize("call, said", [
    (lambda: ms.set_algo_parameters(fully_use_device=True), "set_algo_parameters: .* 'fully_use_device'. .*devices"),
    (lambda: ms.get_algo_parameters("epsilon"), "get_algo_parameters: there is no setting 'epsilon'")])
def test_other_settings_are_refused(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        call()
    with pytest.raises(AttributeError, match=r"opreg.parallel has no 'shard'\. .*docs/mindspore_names.md"):
        ms.parallel.shard  # noqa: B018


def _seen() -> list[Any]:
    context = auto_parallel_context()
    assert ms.parallel._auto_parallel_context is _utils
    assert [context.get_device_num(), context.get_global_rank(), context.get_gradients_mean(),
            context.get_parallel_mode(), context.get_pipeline_stages()] == [
        _utils._get_device_num(), _utils._get_global_rank(), _utils._get_gradients_mean(),
        _utils._get_parallel_mode(), _utils._get_pipeline_stages()]
    assert _utils._get_enable_parallel_optimizer() is False and _utils._get_pipeline_stages() == 1
    context.set_all_reduce_fusion_split_indices([10, 20])
    return [context.get_device_num_is_set(), _utils._get_device_num(), _utils._get_global_rank(),
            _utils._get_gradients_mean(), _utils._get_parameter_broadcast(), _utils._get_parallel_mode()]


def test_cells_ask_for_the_context() -> None:
    at_first = [False, 1, 0, False, False, "stand_alone"]
    assert _seen() == at_first
    ms.set_auto_parallel_context(device_num=1, gradients_mean=True, parameter_broadcast=True,
                                 parallel_mode=ms.ParallelMode.DATA_PARALLEL)
    assert _seen() == [True, 1, 0, True, True, "data_parallel"]
    ms.reset_auto_parallel_context()
    assert _seen() == at_first
