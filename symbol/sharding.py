"""Sharding: each rank stores a part of the optimizer's states, and perhaps of the gradients, and updates its part of
the weights; then all ranks gather the whole weights.

Each bucket is divided into equal parts, one for each rank. So a rank has a slice of some weights, all of others, and
none of many. A rank has empty arrays for weights of which it stores nothing, so that all ranks count the same updates
of the same weights.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from opreg.core.graph import Node
from opreg.errors import ArgumentError
from opreg.ndarray.ndarray import NDArray
from opreg.ndarray.nesting import arrays_in, map_arrays
from opreg.typing import Array

from .arrays import zeros
from .plan import Step
from .reduction import Bucket, GradientBuckets, Member, first_names, joined

__all__ = ["Gather", "Sharding", "bucket_arrays"]


def bucket_arrays(reduced: GradientBuckets) -> dict[Node, tuple[NDArray | None, NDArray]]:
    """New arrays of zeros, contiguous in each bucket: for weights where they are gathered, else None, and for
    gradients."""
    shard, group = reduced.reduction.shard, reduced.reduction.group
    arrays: dict[Node, tuple[NDArray | None, NDArray]] = {}
    for bucket in reduced.buckets:
        ctx = bucket.ctx
        weights = None if shard is None else zeros(ctx, (bucket.count,), bucket.dtype)
        if shard == "gradients":
            part = zeros(ctx, (bucket.count // group.size,), bucket.dtype)
            grads = [part[bucket.placed(member, group.rank, group.size)] for member in bucket.members]
        else:
            flat = zeros(ctx, (bucket.count,), bucket.dtype)
            grads = [_stretch(flat, member) for member in bucket.members]
        for member, grad in zip(bucket.members, grads):
            weight = None if weights is None else NDArray(_stretch(weights, member), ctx)
            arrays[member.node] = weight, NDArray(grad, ctx)
    return arrays


def _stretch(flat: Array, member: Member) -> Array:
    return flat[member.begin:member.end].reshape(member.shape)


class Sharding:
    """Weights of which this rank updates a part.

    Attributes
    ----------
    weights, grads : list of NDArray
        This rank's parts, in the order of the parameters; the whole of weights that are in no bucket.

    Parameters
    ----------
    reduced : Reduced
        The buckets.
    indices : dict of str to index
        The weights that are updated, with their keys in the updater.
    weights, grads : list of NDArray
        The whole weights; the gradients as they are bound.
    """

    def __init__(self, reduced: GradientBuckets, indices: Mapping[str, Any], weights: Sequence[NDArray],
                 grads: Sequence[NDArray]):
        self._group, self._buckets = reduced.reduction.group, reduced.buckets
        places = {member.node.name: (bucket, member) for bucket in reduced.buckets for member in bucket.members}
        self._places = {index: places[name] for name, index in indices.items() if name in places}
        self.weights, self.grads = list(weights), list(grads)
        weight_of = dict(zip(indices, weights))
        for i, name in enumerate(indices):
            if name in places:
                part = places[name][0].part(places[name][1], self._group.rank, self._group.size)
                self.weights[i] = _part(name, weights[i], part)
                if reduced.reduction.shard != "gradients":
                    self.grads[i] = _part(name, grads[i], part)
        self.gathers = [Gather(reduced, bucket, {name: weight_of[name]._data for name in weight_of})
                        for bucket in reduced.buckets
                        if any(member.node.name in weight_of for member in bucket.members)]

    def part(self, index: Any, state: Any) -> Any:
        """This rank's part of a whole state."""
        if index not in self._places:
            return state
        bucket, member = self._places[index]
        share = bucket.part(member, self._group.rank, self._group.size)
        return map_arrays(state, lambda array: NDArray(array._data.reshape(-1)[share].copy(), array.context)
                       if array.shape == member.shape else array)

    def gather_states(self, states: Mapping[Any, Any]) -> dict[Any, Any]:
        """The whole states, gathered from all ranks, which must call this together."""
        result = dict(states)
        for bucket in self._buckets:
            indices = [index for index in states if self._places.get(index, (None,))[0] is bucket]
            arrays = {index: arrays_in(states[index]) for index in indices}
            for slot in range(max(map(len, arrays.values()), default=0)):
                parts = {index: array[slot] for index, array in arrays.items() if slot < len(array)}
                for index, array in bucket.ctx.run(self._gather_bucket, bucket, parts).items():
                    arrays[index][slot] = array
            result.update((index, map_arrays(states[index], functools.partial(_next, iter(arrays[index]))))
                         for index in indices)
        return result

    def _gather_bucket(self, bucket: Bucket, parts: Mapping[Any, NDArray]) -> dict[Any, NDArray]:
        rank, ranks = self._group.rank, self._group.size
        dtype = next(iter(parts.values()))._data.dtype
        share = zeros(bucket.ctx, (bucket.count // ranks,), dtype)
        for index, array in parts.items():
            share[bucket.placed(self._places[index][1], rank, ranks)] = array._data
        flat = self._group.all_gather(share, zeros(bucket.ctx, (bucket.count,), dtype))
        return {index: NDArray(_stretch(flat, self._places[index][1]).copy(), array.context)
                for index, array in parts.items()}


class Gather:
    """Gathers the weights of a bucket from all ranks.

    Attributes
    ----------
    ctx : Context
        The device of the weights.
    """

    capturable = False

    def __init__(self, reduced: GradientBuckets, bucket: Bucket, weights: Mapping[str, Array]):
        self._group, self._bucket, self.ctx = reduced.reduction.group, bucket, bucket.ctx
        members = [member for member in bucket.members if member.node.name in weights]
        self.names = [member.node.name for member in members]
        self.arrays = [weights[name] for name in self.names]
        share = bucket.count // self._group.size
        self._share = zeros(bucket.ctx, (share,), bucket.dtype)
        begin = self._group.rank * share
        flat = joined(self.arrays, bucket.count) if members == bucket.members else None
        self._bucket_array = zeros(bucket.ctx, (bucket.count,), bucket.dtype) if flat is None else flat
        self._into: list[Callable[[], object]] = []
        self._back: list[Callable[[], object]] = []
        if flat is not None:
            self._into.append(functools.partial(self._share.__setitem__, Ellipsis, flat[begin:begin + share]))
            return
        for member, array in zip(members, self.arrays):
            part = bucket.part(member, self._group.rank, self._group.size)
            place = self._share[bucket.placed(member, self._group.rank, self._group.size)]
            self._into.append(functools.partial(place.__setitem__, Ellipsis, array.reshape(-1)[part]))
            self._back.append(functools.partial(array.__setitem__, Ellipsis, _stretch(self._bucket_array, member)))

    def __call__(self) -> None:
        for bring in self._into:
            bring()
        self._group.all_gather(self._share, self._bucket_array)
        for bring in self._back:
            bring()

    def step(self) -> Step:
        """The step that gathers, to run after those that update weights."""
        step = Step(None, self._group.engine, [], f"{first_names(self.names)}; {self._bucket.nbytes:,} bytes", [self],
                    self.arrays, self.ctx, [self._share])
        step.title = "all_gather"
        return step


def _part(name: str, array: NDArray, part: slice) -> NDArray:
    if not array._data.flags.c_contiguous:
        raise ArgumentError(f"shard: {name} lies in memory with gaps; copy it")
    return NDArray(array._data.reshape(-1)[part], array.context)


def _next(arrays: Iterator[NDArray], _: NDArray) -> NDArray:
    return next(arrays)
