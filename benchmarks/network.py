"""A small model of ranks and what is between them: how long an allreduce takes, and with it a step of training whose
buckets are those of a real plan.

What a message costs is said in the words of LogGP (A. Alexandrov et al., LogGP: incorporating long messages into the
LogP model, 1995): its latency ``L``, overheads ``o`` of sender and receiver, and ``G`` seconds a byte. What rings and
trees are made of such messages is in R. Thakur et al., Optimization of collective communication operations in MPICH,
2005, and for several processors a machine in NCCL's own model, ``src/graph/tuning.cc``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["ADAPTER", "HOPPERS", "Cluster", "Link", "Step", "Timeline", "fitted", "simulated", "timeline"]


@dataclass(frozen=True)
class Link:
    """What a message takes: seconds of latency, overhead of either side, and seconds a byte."""

    latency: float
    overhead: float
    per_byte: float

    def seconds(self, nbytes: float) -> float:
        """From when it is sent to when it is there."""
        return self.latency + 2 * self.overhead + nbytes * self.per_byte


@dataclass(frozen=True)
class Cluster:
    """Machines of some ranks each.

    Attributes
    ----------
    name : str
    inside, between : Link
        From a rank to one of the same machine, and of another.
    ranks : int
        Of a machine; each has an adapter of its own to the others.
    adding : float
        Seconds a byte that is added to another.
    begin : float
        Seconds that a call takes before anything moves.

    Examples
    --------
    >>> round(1e6 * ADAPTER.ring(4e6, 2), 1), round(1e6 * ADAPTER.tree(4e6, 1024), 1)
    (263.4, 545.0)
    """

    name: str
    inside: Link
    between: Link
    ranks: int = 1
    adding: float = 0.0
    begin: float = 0.0

    def ring(self, nbytes: float, count: int) -> float:
        """Seconds of an allreduce in a ring: each part goes round twice, and is added to on its first way."""
        if count == 1:
            return 0.0
        machines = -(-count // self.ranks)
        steps, crossings = 2 * (count - 1), 2 * (machines - 1)
        waits = (steps - crossings) * self.inside.seconds(0) + crossings * self.between.seconds(0)
        return (self.begin + waits + steps * nbytes / count * self._per_byte(machines)
                + (count - 1) * nbytes / count * self.adding)

    def tree(self, nbytes: float, count: int) -> float:
        """Seconds of one up and down a tree of machines, in pieces that follow each other."""
        if count == 1:
            return 0.0
        machines = -(-count // self.ranks)
        depth = math.ceil(math.log2(machines)) if machines > 1 else 0
        waits = 2 * ((min(count, self.ranks) - 1) * self.inside.seconds(0) + depth * self.between.seconds(0))
        return self.begin + waits + nbytes * (2 * self._per_byte(machines) + self.adding)

    def doubling(self, nbytes: float, count: int) -> float:
        """Seconds of one in which pairs exchange all they have, each time with another that is twice as far away."""
        per_byte = self._per_byte(-(-count // self.ranks)) + self.adding
        return self.begin + math.ceil(math.log2(count)) * (self.between.seconds(0) + nbytes * per_byte)

    def quicker(self, nbytes: float, count: int) -> float:
        """Seconds of the one that takes less, which libraries choose."""
        return min(self.ring(nbytes, count), self.tree(nbytes, count))

    def _per_byte(self, machines: int) -> float:
        return self.inside.per_byte if machines == 1 else max(self.inside.per_byte, self.between.per_byte / self.ranks)


#: One rank a machine on InfiniBand of 200 Gb/s: NVIDIA's page of ConnectX-6 has the rate and a latency below 0.6 µs. An
#: overhead of 0.3 µs on either side, and sums at 20 GB/s, are taken for granted.
ADAPTER = Cluster("200 Gb/s, a rank a machine", Link(0.6e-6, 0.3e-6, 1 / 25e9), Link(0.6e-6, 0.3e-6, 1 / 25e9), 1,
                  1 / 20e9, 1e-6)
#: Eight H100 a machine with NVLink of 450 GB/s in one direction, as the vendor's data sheet has it, and an adapter of
#: 200 Gb/s each. Latencies are those of NCCL's own model (``src/graph/tuning.cc``: ring, simple, NVLink and network).
HOPPERS = Cluster("8 GPUs with NVLink a machine, 200 Gb/s each", Link(3.4e-6, 0.0, 1 / 450e9),
                  Link(9.6e-6, 0.0, 1 / 25e9), 8, 0.0, 8.4e-6)


def fitted(name: str, measured: Sequence[tuple[int, float]], adding: float) -> Cluster:
    """Two ranks of which an allreduce of so many bytes was measured to take so many seconds: the shortest says what
    messages cost beside their bytes, the longest what a byte does."""
    (small, first), (large, last) = measured[0], measured[-1]
    rate = max((last - first) / (large - small) - adding / 2, 1e-12)
    link = Link(first / 2, 0.0, rate)
    return Cluster(name, link, link, 1, adding)


# ------------------------------------------------------------------------------------------------- a step


class Timeline(NamedTuple):
    """A step of one rank: when each bucket is complete, and how long all takes.

    Attributes
    ----------
    buckets : list of (float, int)
        Seconds from the beginning, and bytes.
    backward, step : float
        Seconds to the end of backward, and of the update.
    """

    buckets: list[tuple[float, int]]
    backward: float
    step: float

    def times(self, factor: float) -> Timeline:
        """One whose computation takes so many times as long."""
        return Timeline([(ready * factor, nbytes) for ready, nbytes in self.buckets], self.backward * factor,
                        self.step * factor)


class Step(NamedTuple):
    """A step of all ranks: seconds, those of communication, and those of it that are not hidden behind backward."""

    seconds: float
    communication: float
    exposed: float

    @property
    def hidden(self) -> float:
        """Which part of the communication is."""
        return 1 - self.exposed / self.communication if self.communication else 1.0


def timeline(executor: Any, seconds: Callable[[str, int], float]) -> Timeline:
    """When the buckets of an executor's plan are complete; ``seconds`` are those of a step of its forward, backward or
    update, by half and number."""
    plan, buckets, now = executor.plan(True), [], 0.0
    backward = 0.0
    for half, segment in executor._plans_of(plan.is_train)[0].segments:
        for number, step in enumerate(segment.steps):
            name = "" if step.node is None else step.node.op.name
            if name == "_allreduce_start":
                buckets.append((now, step.node.attrs["journey"].bucket.nbytes))
            elif not name.endswith("_wait"):
                now += seconds(half, number)
        if half == "backward":
            backward = now
    return Timeline(buckets, backward, now)


def simulated(line: Timeline, allreduce: Callable[[float, int], float], count: int, hides: bool = True) -> Step:
    """A step of so many ranks: buckets travel one after the other, each when it is complete. Without ``hides`` only
    when backward is over, as where the processor that computes is the one that copies."""
    free = line.backward if not hides else 0.0
    total = 0.0
    for ready, nbytes in line.buckets:
        taken = allreduce(nbytes, count)
        free, total = max(free, ready) + taken, total + taken
    exposed = max(free - line.backward, 0.0)
    return Step(line.step + exposed, total, exposed)

