"""Ranks with a slow network between them, on one machine: each has its own network namespace, and a relay delays
packets. For checking the model of ``benchmarks.network`` with more ranks than two.

``sudo python -m benchmarks.latency --delay 20 --ranks 2 4 8`` prints the times of sums there, by algorithm of MPICH,
and the times by the model that is fitted to two ranks. It needs ``ip netns`` and ``/dev/net/tun``; a kernel with ``tc
netem`` would
do without the relay.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import functools
import heapq
import json
import math
import os
import select
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .distributed import ROOT, least
from .network import Cluster, Link

_CLONE_NEWNET, _TUNSETIFF, _TUN, _NO_INFO = 0x40000000, 0x400454CA, 0x1, 0x1000
_MTU = 16000
_PATIENCE = 120.0

SIZES = [1 << 10, 1 << 16]
_ROW = 10  # several sums in a row, since distant ranks do not begin at the same time
#: MPICH's names of the algorithms, by the model's functions.
ALGORITHMS = {"ring": "ring", "recursive doubling": "recursive_doubling"}


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _device(namespace: str) -> int:
    """A network device of a namespace, as a file of packets."""
    libc, here = ctypes.CDLL(None, use_errno=True), os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/var/run/netns/{namespace}", os.O_RDONLY)
    try:
        if libc.setns(there, _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        device = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", b"eth0", _TUN | _NO_INFO))
        return device
    finally:
        libc.setns(here, _CLONE_NEWNET)
        os.close(here)
        os.close(there)


class _Relay:
    """Forwards packets from device to device with a delay in seconds."""

    def __init__(self, devices: list[int], delay: float):
        self._devices, self._delay, self._over = devices, delay, False
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        os.setpriority(os.PRIO_PROCESS, 0, -15)  # for this thread, since waiting ranks spin
        waiting: list[tuple[float, int, bytes]] = []
        while not self._over:
            pause = max(0.0, waiting[0][0] - time.perf_counter()) if waiting else 0.1
            for device in select.select(self._devices, [], [], pause)[0]:
                packet = os.read(device, _MTU + 100)
                if packet[0] >> 4 == 4 and 0 < packet[19] <= len(self._devices):  # the address's last byte
                    heapq.heappush(waiting, (time.perf_counter() + self._delay, packet[19] - 1, packet))
            while waiting and waiting[0][0] <= time.perf_counter():
                _, number, packet = heapq.heappop(waiting)
                os.write(self._devices[number], packet)

    def close(self) -> None:
        self._over = True
        self._thread.join()


@contextmanager
def namespaces(count: int, delay: float) -> Iterator[list[str]]:
    """A context with ``ranks`` network namespaces, which reach each other with a delay in seconds; gives their
    names."""
    names = [f"opreg{os.getpid()}-{i}" for i in range(count)]
    devices: list[int] = []
    relay = None
    try:
        for i, name in enumerate(names):
            _run("ip", "netns", "add", name)
            devices.append(_device(name))
            _run("ip", "-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", "eth0")
            _run("ip", "-n", name, "link", "set", "eth0", "mtu", str(_MTU), "up")
            _run("ip", "-n", name, "link", "set", "lo", "up")
        relay = _Relay(devices, delay)
        yield names
    finally:
        if relay is not None:
            relay.close()
        for device in devices:
            os.close(device)
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _measure_ranks(names: list[str], **settings: str) -> Any:
    """The measurements of a rank in each namespace."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.json"
        command = [str(Path(sys.executable).with_name("mpiexec"))]
        for name in names:
            command += [":"] * (name != names[0]) + ["-n", "1", "ip", "netns", "exec", name, sys.executable, "-m",
                                                     "benchmarks.latency", "--rank", str(path)]
        environ = {**os.environ, "MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "eth0",
                   "UCX_LOG_LEVEL": "error",
                   "HYDRA_LAUNCHER": "fork", "OMP_NUM_THREADS": "1", "OPREG_NUM_THREADS": "1",
                   "OPENBLAS_NUM_THREADS": "1", **settings}
        with subprocess.Popen(command, env=environ, cwd=ROOT) as process:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.terminate()  # mpiexec ends the processes that it started
                raise
        return json.loads(path.read_text())


def _rank(path: str) -> None:
    """Run as one of the ranks."""
    from opreg.distributed import world

    group = world()
    found = _sums(group)
    if group.rank == 0:
        Path(path).write_text(json.dumps(found))


def _sums(group: Any) -> list[float]:
    from mpi4py import MPI

    def work(array: np.ndarray) -> None:
        for _ in range(_ROW):
            MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, array)

    return [least(group, [functools.partial(work, np.zeros(nbytes // 4, np.float32))])[0] / _ROW for nbytes in SIZES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--delay", type=float, default=20.0, help="milliseconds from rank to rank")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--rank", metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank:
        _rank(arguments.rank)
        return
    links: dict[str, Link] = {}
    print("| ranks | what | measured, ms | model, ms |\n| --- | --- | --- | --- |")
    for count in arguments.ranks:
        with namespaces(count, arguments.delay / 1e3) as names:
            for title, word in ALGORITHMS.items():
                found = _measure_ranks(names, MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=word,
                                       MPIR_CVAR_DEVICE_COLLECTIVES="none")
                messages = 2 * (count - 1) if title == "ring" else math.ceil(math.log2(count))
                # The first row gives the cost of a message here, including MPI, the relay and busy processors.
                link = links.setdefault(title, Link(sum(found) / len(found) / messages, 0.0, 0.0))
                cluster = Cluster("here", link, link)
                model = cluster.ring if title == "ring" else cluster.doubling
                for nbytes, seconds in zip(SIZES, found):
                    print(f"| {count} | {nbytes >> 10} kB, {title} | {seconds * 1e3:.3g} | "
                          f"{model(nbytes, count) * 1e3:.3g} |", flush=True)


if __name__ == "__main__":
    main()
