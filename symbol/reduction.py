"""Reduction: gradients are summed over all ranks of a group, in buckets, while backward runs.

A bucket holds a few megabytes of gradients that are computed one after the other. Its contents depend on the graph
alone, so all ranks have the same buckets in the same order; they compare them before the first one is sent. If the
gradients of a bucket are contiguous in memory, as those of ``simple_bind`` are, no copies are made.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from opreg.core.addresses import address_of
from opreg.core.attrs import to_text
from opreg.core.graph import Graph, Node
from opreg.core.spec import Shape, Spec, as_dtype, show, size
from opreg.errors import ArgumentError, did_you_mean
from opreg.ndarray.context import Context
from opreg.ndarray.ndarray import NDArray
from opreg.typing import Array

if TYPE_CHECKING:
    from opreg.distributed.groups import Group

__all__ = ["Bucket", "Member", "GradientBuckets", "Reduction", "divide_into_buckets", "grouped", "joined",
           "first_names"]

T = TypeVar("T")

#: Bytes of gradients at which a bucket is closed.
BUCKET = 4 << 20

#: Values that may be divided among ranks.
SHARDS = ("states", "gradients")

_SHOWN = 3  # the most names that ``some`` lists

_PLAIN = (str, int, float, bool, tuple, type(None))  # types of attributes whose text is the same on all ranks


class Reduction:
    """The settings of the reduction of gradients over ranks.

    Parameters
    ----------
    group : opreg.distributed.Group
        The ranks.
    gradients_mean : bool
        Whether to take the mean over all ranks, for losses that are means over a batch, instead of the sum.
    weights : sequence of str, optional
        The arguments whose gradients are reduced, by default all that have gradients.
    shard : {"states", "gradients"}, optional
        Values that are divided among ranks: the states of the optimizer (ZeRO 1), or also the gradients (ZeRO 2).
    bucket_bytes : int, optional
        Bytes of gradients at which a bucket is closed and sent.

    Raises
    ------
    ArgumentError
        If ``group`` is no group, or another argument has no valid value.

    Examples
    --------
    >>> from opreg.distributed.groups import Group
    >>> Reduction(Group(), gradients_mean=True)
    <Reduction: mean over 1 rank>
    """

    def __init__(self, group: Group, gradients_mean: bool = False, weights: Sequence[str] | None = None,
                 shard: str | None = None, bucket_bytes: int = BUCKET):
        if not hasattr(group, "iallreduce"):
            raise ArgumentError(f"reduce: expected a Group of opreg.distributed, got {type(group).__name__}")
        if shard is not None and shard not in SHARDS:
            raise ArgumentError(f"shard: {shard!r}. {did_you_mean(str(shard), SHARDS)}")
        if bucket_bytes < 1:
            raise ArgumentError(f"bucket_bytes={bucket_bytes}: expected a positive number")
        self.group, self.gradients_mean, self.shard = group, gradients_mean, shard
        self.weights = None if weights is None else list(weights)
        self.bucket_bytes = bucket_bytes
        self._agreed: set[str] = set()

    @classmethod
    def of_arguments(cls, reduce: Group | Reduction | None, shard: str | None) -> Reduction | None:
        """The reduction that arguments of ``bind`` ask for; None for none, or for a single rank."""
        if reduce is None:
            if shard is not None:
                raise ArgumentError(f"shard={shard!r} needs a group of ranks: give reduce=, too")
            return None
        reduction = reduce if isinstance(reduce, Reduction) else cls(reduce, shard=shard)
        if shard not in (None, reduction.shard):
            raise ArgumentError(f"shard={shard!r} but the Reduction has shard={reduction.shard!r}")
        return None if reduction.group.size == 1 else reduction

    @property
    def op(self) -> str:
        """The operation: ``"sum"`` or ``"mean"``."""
        return "mean" if self.gradients_mean else "sum"

    def chosen(self, requests: Iterable[Node]) -> list[Node]:
        """The arguments whose gradients are reduced, among those that have gradients."""
        by_name = {node.name: node for node in requests}
        for name in () if self.weights is None else self.weights:
            if name not in by_name:
                raise ArgumentError(f"reduce: weights: no gradient is kept of {name!r}. {did_you_mean(name, by_name)}")
        return [node for node in requests if self.weights is None or node.name in self.weights]

    def agree(self, what: str, key: str, text: Callable[[], str]) -> None:
        """Compare a text with that of the other ranks, once for each key; an error if they differ."""
        if key not in self._agreed:
            self.group.agree(what, text())
            self._agreed.add(key)

    def __repr__(self) -> str:
        ranks = f"{self.group.size} rank{'s' * (self.group.size != 1)}"
        return f"<Reduction: {self.op} over {ranks}{f', {self.shard} sharded' if self.shard else ''}>"


class Member(NamedTuple):
    """A gradient in a bucket: its variable, its shape, and the index of its first element."""

    node: Node
    shape: Shape
    begin: int

    @property
    def end(self) -> int:
        """The index after its last element."""
        return self.begin + size(self.shape)


@dataclass(frozen=True, eq=False)
class Bucket:
    """Gradients that are reduced by one call.

    Attributes
    ----------
    number : int
        Its index among all buckets, in the order in which they are sent.
    members : list of Member
        The gradients, in their order in the bucket.
    dtype, ctx
        Dtype and device of all members.
    count : int
        The number of elements; rounded up to a multiple of the number of ranks where ranks get parts.
    """

    number: int
    members: list[Member]
    dtype: np.dtype
    ctx: Context
    count: int

    @property
    def nbytes(self) -> int:
        """Bytes of the bucket."""
        return self.count * self.dtype.itemsize

    def part(self, member: Member, rank: int, ranks: int) -> slice:
        """The slice of a member that belongs to a rank's part of the bucket; perhaps empty."""
        share = self.count // ranks
        begin, end = max(member.begin, rank * share), min(member.end, (rank + 1) * share)
        return slice(begin - member.begin, end - member.begin) if begin < end else slice(0, 0)

    def placed(self, member: Member, rank: int, ranks: int) -> slice:
        """The slice of a rank's part of the bucket that belongs to a member."""
        part, before = self.part(member, rank, ranks), rank * (self.count // ranks)
        if part.stop == 0:
            return slice(0, 0)
        return slice(member.begin + part.start - before, member.begin + part.stop - before)


class GradientBuckets:
    """The buckets of a graph's gradients.

    Attributes
    ----------
    reduction : Reduction
    buckets : list of Bucket
        In the order in which they are sent.

    Parameters
    ----------
    reduction : Reduction
        The settings.
    graph : Graph
        The graph, which must be the same on all ranks.
    groups : sequence of sequence of variables
        The variables whose gradients share a bucket.
    requests : mapping by variable
        Spec, device and gradient request of each variable.
    """

    def __init__(self, reduction: Reduction, graph: Graph, groups: Sequence[Sequence[Node]],
                 requests: Mapping[Node, tuple[Spec, Context, str]]):
        ranks = reduction.group.size if reduction.shard else 1
        self.reduction = reduction
        self.buckets = [_bucket(number, nodes, requests, ranks) for number, nodes in enumerate(groups)]
        self._graph, self._requests = graph, {node: request for node, (_, _, request) in requests.items()}

    def agree(self) -> None:
        """Compare graph and buckets with the other ranks, once for all executors with the same graph and buckets."""
        self.reduction.agree("the graph of bind", self.text, lambda: self.text)

    def agree_on(self, weights: Mapping[str, NDArray]) -> None:
        """Compare the values of weights with the other ranks before the first update, since different ones would stay
        different."""
        def checksums() -> str:
            return "\n".join(f"{name} with the checksum {zlib.crc32(weight.asnumpy().tobytes()):08x}"
                             for name, weight in weights.items())

        self.reduction.agree("the weights before the first update, which one rank broadcasts,", " ".join(weights),
                             checksums)

    @property
    def text(self) -> str:
        """The settings, buckets and nodes that all ranks must share, one a line. Shapes of data are left out."""
        reduction = self.reduction
        lines = [f"gradients {reduction.op}, shard {reduction.shard}, buckets of {reduction.bucket_bytes} bytes"]
        lines += [f"bucket {bucket.number}: {member.node.name} {bucket.dtype} {show(member.shape)} "
                  f"{self._requests[member.node]}" for bucket in self.buckets for member in bucket.members]
        places = {node: number for number, node in enumerate(self._graph.nodes)}
        for number, node in enumerate(self._graph.nodes):
            if node.op is not None:
                attributes = [f"{name}={to_text(value)}" for name, value in sorted(node.keywords.items())
                         if isinstance(value, _PLAIN)]
                inputs = [f"{places[source]}[{i}]" for source, i in node.inputs]
                lines.append(" ".join([f"node {number}: {node.op.name}({', '.join(inputs)})", *attributes]))
        return "\n".join(lines)


def divide_into_buckets(reduction: Reduction, graph: Graph,
                        requests: Mapping[Node, tuple[Spec, Context, str]]) -> GradientBuckets:
    """Divide gradients into buckets, in the order in which backward is expected to compute them.

    Parameters
    ----------
    reduction : Reduction
        The settings.
    graph : Graph
        The forward graph.
    requests : mapping by variable
        Spec, device and gradient request of each argument that has a gradient.
    """
    first: dict[Node, int] = {}
    for position, node in enumerate(graph.nodes):
        for source, _ in node.inputs:
            first.setdefault(source, position)
    items = []
    for node in sorted(reduction.chosen(requests), key=lambda node: -first.get(node, -1)):
        (shape, dtype), *place = requests[node]
        items.append((node, (dtype, *place), size(shape or ()) * as_dtype(dtype).itemsize))
    return GradientBuckets(reduction, graph, grouped(items, reduction.bucket_bytes), requests)


def grouped(items: Iterable[tuple[T, Hashable, int]], nbytes: int) -> list[list[T]]:
    """Divide ``(item, kind, bytes)`` into groups of one kind, in order. A group is closed once it has ``nbytes`` bytes.

    Examples
    --------
    >>> grouped([("a", "float32", 4), ("b", "int32", 4), ("c", "float32", 4), ("d", "float32", 4)], 8)
    [['a', 'c'], ['b'], ['d']]
    """
    groups: list[list[T]] = []
    begun: dict[Hashable, tuple[list[T], int]] = {}  # open groups by kind, with their bytes
    for item, kind, more in items:
        group, before = begun.pop(kind, ([], 0))
        if not group:
            groups.append(group)
        group.append(item)
        if before + more < nbytes:
            begun[kind] = group, before + more
    return groups


def _bucket(number: int, nodes: Sequence[Node], gradients: Mapping[Node, tuple[Spec, Context, str]], ranks: int
            ) -> Bucket:
    spec, ctx, _ = gradients[nodes[0]]
    shapes = [gradients[node][0].shape or () for node in nodes]
    ends = list(itertools.accumulate(map(size, shapes)))
    members = [Member(node, shape, end - size(shape)) for node, shape, end in zip(nodes, shapes, ends)]
    return Bucket(number, members, as_dtype(spec.dtype), ctx, -(-ends[-1] // ranks) * ranks)


def first_names(names: Sequence[str]) -> str:
    """The first names of a list, and the count of the others.

    Examples
    --------
    >>> first_names(list("abcde"))
    'a, b, c and 2 more'
    """
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


# ------------------------------------------------------------------------------------------------- memory


def joined(arrays: Sequence[Array], count: int) -> Array | None:
    """A flat view of ``count`` elements that begins with these arrays; None where they are not contiguous in this
    order.

    Examples
    --------
    >>> whole = np.arange(8)
    >>> joined([whole[1:3], whole[3:7].reshape(2, 2)], 7).tolist(), joined([whole[1:3], whole[4:]], 6)
    ([1, 2, 3, 4, 5, 6, 7], None)
    """
    first = next((array for array in arrays if array.size), arrays[0])
    base, itemsize = _base(first), first.dtype.itemsize
    if not all(array.flags.c_contiguous and array.dtype == first.dtype and _base(array) is base for array in arrays):
        return None
    if not hasattr(base, "dtype") or not base.flags.c_contiguous:
        return None
    storage = base.reshape(-1).view(np.uint8)
    origin = address_of(storage)
    begin = at = address_of(first) - origin
    for array in arrays:
        if array.size and address_of(array) != origin + at:
            return None
        at += array.size * itemsize
    end = begin + count * itemsize
    return storage[begin:end].view(first.dtype) if end <= storage.size else None


def _base(array: Array) -> Array:
    """The array that owns the memory."""
    base = getattr(array, "base", None)
    return array if base is None else base
