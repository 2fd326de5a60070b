"""A small model of ranks and their network: the time of an allreduce, and of a training step with the buckets of a real
plan.

The cost of a message has the parameters of LogGP (A. Alexandrov et al., LogGP: incorporating long messages into the
LogP model, 1995): its latency ``L``, overheads ``o`` of sender and receiver, and ``G`` seconds a byte. Rings and trees
of such messages are described in R. Thakur et al., Optimization of collective communication operations in MPICH,
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
    """The cost of a message: seconds of latency, of overhead on either side, and per byte."""

    latency: float
    overhead: float
    per_byte: float

    def seconds(self, nbytes: float) -> float:
        """Seconds from sending a message to its arrival."""
        return self.latency + 2 * self.overhead + nbytes * self.per_byte


@dataclass(frozen=True)
class Cluster:
    """Machines of some ranks each.

    Attributes
    ----------
    name : str
    inside, between : Link
        Links to a rank on the same machine, and on another machine. ranks : int Ranks on a machine; each has its own
        network adapter. adding : float Seconds for adding one byte to another. begin : float Seconds of a call before
        the first message.

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
        """Seconds of an allreduce in a ring: each part goes around twice, and is summed in the first round."""
        if count == 1:
            return 0.0
        machines = -(-count // self.ranks)
        steps, crossings = 2 * (count - 1), 2 * (machines - 1)
        waits = (steps - crossings) * self.inside.seconds(0) + crossings * self.between.seconds(0)
        return (self.begin + waits + steps * nbytes / count * self._per_byte(machines)
                + (count - 1) * nbytes / count * self.adding)

    def tree(self, nbytes: float, count: int) -> float:
        """Seconds of an allreduce up and down a tree of machines, in pipelined pieces."""
        if count == 1:
            return 0.0
        machines = -(-count // self.ranks)
        depth = math.ceil(math.log2(machines)) if machines > 1 else 0
        waits = 2 * ((min(count, self.ranks) - 1) * self.inside.seconds(0) + depth * self.between.seconds(0))
        return self.begin + waits + nbytes * (2 * self._per_byte(machines) + self.adding)

    def doubling(self, nbytes: float, count: int) -> float:
        """Seconds of an allreduce by recursive doubling: pairs exchange all data, at distances 1, 2, 4 and so on."""
        per_byte = self._per_byte(-(-count // self.ranks)) + self.adding
        return self.begin + math.ceil(math.log2(count)) * (self.between.seconds(0) + nbytes * per_byte)

    def quicker(self, nbytes: float, count: int) -> float:
        """Seconds of the faster algorithm, which libraries choose."""
        return min(self.ring(nbytes, count), self.tree(nbytes, count))

    def _per_byte(self, machines: int) -> float:
        return self.inside.per_byte if machines == 1 else max(self.inside.per_byte, self.between.per_byte / self.ranks)


#: One rank per machine on InfiniBand of 200 Gb/s: NVIDIA's page of ConnectX-6 has the rate and a latency below 0.6 µs.
#: An
#: overhead of 0.3 µs on either side, and sums at 20 GB/s, are assumed.
ADAPTER = Cluster("200 Gb/s, a rank a machine", Link(0.6e-6, 0.3e-6, 1 / 25e9), Link(0.6e-6, 0.3e-6, 1 / 25e9), 1,
                  1 / 20e9, 1e-6)
#: Eight H100 per machine, with NVLink of 450 GB/s in one direction, as in the vendor's data sheet, and an adapter of
#: 200 Gb/s each. Latencies are those of NCCL's own model (``src/graph/tuning.cc``: ring, simple, NVLink and network).
HOPPERS = Cluster("8 GPUs with NVLink a machine, 200 Gb/s each", Link(3.4e-6, 0.0, 1 / 450e9),
                  Link(9.6e-6, 0.0, 1 / 25e9), 8, 0.0, 8.4e-6)


def fitted(name: str, measured: Sequence[tuple[int, float]], adding: float) -> Cluster:
    """Two ranks with measured seconds of allreduces by bytes: the shortest gives the fixed cost of messages, the
    longest the cost of a byte."""
    (small, first), (large, last) = measured[0], measured[-1]
    rate = max((last - first) / (large - small) - adding / 2, 1e-12)
    link = Link(first / 2, 0.0, rate)
    return Cluster(name, link, link, 1, adding)


# ------------------------------------------------------------------------------------------------- a step


class Timeline(NamedTuple):
    """A step of one rank: the time when each bucket is complete, and the time of the step.

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
        """The same step with its computation slowed down by a factor."""
        return Timeline([(ready * factor, nbytes) for ready, nbytes in self.buckets], self.backward * factor,
                        self.step * factor)


class Step(NamedTuple):
    """A step of all ranks: its seconds, those of communication, and those of communication that backward does not
    hide."""

    seconds: float
    communication: float
    exposed: float

    @property
    def hidden(self) -> float:
        """The part of the communication that backward hides."""
        return 1 - self.exposed / self.communication if self.communication else 1.0


def timeline(executor: Any, seconds: Callable[[str, int], float]) -> Timeline:
    """The times when the buckets of an executor's plan are complete; ``seconds`` are the times of the steps of forward,
    backward and update, by half and number."""
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
    """A step of ``ranks`` ranks: buckets are sent one after the other, each once it is complete. Without ``hides`` they
    are sent after backward, as on a host whose cores both compute and copy."""
    free = line.backward if not hides else 0.0
    total = 0.0
    for ready, nbytes in line.buckets:
        taken = allreduce(nbytes, count)
        free, total = max(free, ready) + taken, total + taken
    exposed = max(free - line.backward, 0.0)
    return Step(line.step + exposed, total, exposed)

