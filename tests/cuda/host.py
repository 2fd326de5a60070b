"""Kernels of CUDA C++ compiled for the host by the system's compiler, against ``host.h``.

Launches are collected and run together in a process of its own, under sanitizers of the compiler if asked to: one
compilation serves many kernels, and a read out of bounds ends that process and no other.
"""

from __future__ import annotations

import functools
import os
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from opreg.backends.cuda.instructions import PRELUDE

from .compiled import COMPILER, LINKER, KernelError, built, line_of

__all__ = ["COMPILER", "Array", "Host", "KernelError", "array", "meets"]

# Unoptimized code keeps every access for the sanitizers and compiles in half the time; errors name lines by -g1.
_FLAGS = ("-O0", "-g1", "-fno-omit-frame-pointer")
_SANITIZERS = {"address": (*_FLAGS, "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
               "thread": (*_FLAGS, "-fsanitize=thread"), "": ("-O1",)}

# Compiled once for all programs: it takes four times as long as the kernels of a test.
_MAIN = """
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <vector>

void call(unsigned kernel, unsigned blocks, unsigned threads, void** arguments);

struct Launch {
    unsigned kernel, blocks, threads, done = 0;
    std::vector<std::vector<char>> values;
    std::vector<void*> arguments;
};

static std::vector<char> read_bytes(size_t count) {
    std::vector<char> bytes(count);
    if (count && std::fread(bytes.data(), 1, count, stdin) != count) std::exit(3);
    return bytes;
}
template <class T> static T read_number() {
    T number;
    std::memcpy(&number, read_bytes(sizeof(T)).data(), sizeof(T));
    return number;
}

int main() {
    std::vector<std::pair<char*, size_t>> buffers(read_number<unsigned>());
    for (auto& [memory, size] : buffers) {  // no byte longer than it is, so that a sanitizer sees its end
        size = read_number<uint64_t>();
        memory = static_cast<char*>(std::malloc(size));
        std::memcpy(memory, read_bytes(size).data(), size);
    }
    std::map<unsigned, std::deque<Launch>> streams;
    for (unsigned count = read_number<unsigned>(); count; --count) {
        unsigned stream = read_number<unsigned>();
        Launch& launch = streams[stream].emplace_back();
        launch.kernel = read_number<unsigned>(), launch.blocks = read_number<unsigned>();
        launch.threads = read_number<unsigned>();
        launch.values.resize(read_number<unsigned>());
        for (auto& value : launch.values) {
            if (read_number<unsigned>() == 0) {
                unsigned buffer = read_number<unsigned>();
                char* pointer = buffers[buffer].first + read_number<uint64_t>();
                value.assign(reinterpret_cast<char*>(&pointer), reinterpret_cast<char*>(&pointer) + sizeof(pointer));
            } else {
                size_t size = read_number<unsigned>();
                value = read_bytes(size);
            }
            launch.arguments.push_back(value.data());
        }
    }
    while (!streams.empty())  // a block of each stream in turn; a stream that is alone runs a launch at once
        for (auto stream = streams.begin(); stream != streams.end();) {
            Launch& launch = stream->second.front();
            host::first_block = launch.done;
            launch.done = host::end_block = streams.size() == 1 ? launch.blocks : launch.done + 1;
            call(launch.kernel, launch.blocks, launch.threads, launch.arguments.data());
            if (launch.done == launch.blocks) stream->second.pop_front();
            stream = stream->second.empty() ? streams.erase(stream) : std::next(stream);
        }
    for (auto& [memory, size] : buffers) std::fwrite(memory, 1, size, stdout);
}
"""


class Launched(NamedTuple):
    """A requested launch."""

    text: str
    name: str
    blocks: int
    threads: int
    arguments: tuple
    stream: int


class Array(np.ndarray):
    """An array of the host that kernels get as an array of the device."""

    @property
    def __cuda_array_interface__(self) -> dict:
        return {"data": (self.ctypes.data, False), "shape": self.shape, "typestr": self.dtype.str,
                "strides": self.strides, "version": 3}


def array(source: object, dtype: object = None) -> Array:
    """A copy that is aligned to 16 bytes."""
    found = np.asarray(source, dtype)
    memory = np.empty(found.nbytes + 16, np.uint8)
    start = -memory.ctypes.data % 16
    made = memory[start:start + found.nbytes].view(found.dtype).reshape(found.shape).view(Array)
    made[...] = found
    return made


class _Module:
    def __init__(self, host: Host, code: str):
        self.host, self.code = host, code

    def get_function(self, name: str):
        """The kernel of that name."""
        return functools.partial(self._launch, name)

    def _launch(self, name: str, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple) -> None:
        self.host.launches.append(Launched(self.code.removeprefix(PRELUDE), name, grid[0], block[0], arguments,
                                           self.host.stream))


class Host:
    """Stand-in for the array module where kernels are bound: it collects launches until ``run``.

    Attributes
    ----------
    stream : int
        Stream of the next launches. Kernels of one stream run one after the other; of several streams, a block of each
        runs in turn.
    """

    class cuda:
        """Its devices."""

        class Device:
            """A device with one processor, so that grids take several steps."""

            id = 0
            attributes = {"MultiProcessorCount": 1}

    def __init__(self) -> None:
        self.launches: list[Launched] = []
        self.stream = 0

    def RawModule(self, code: str, options: Sequence[str] = ()) -> _Module:
        """A module of kernels."""
        return _Module(self, code)

    def rewrite(self, replaced: str, by: str) -> None:
        """Changes the text of collected kernels, so that a test sees whether a mistake is found."""
        assert any(replaced in each.text for each in self.launches), replaced
        self.launches = [each._replace(text=each.text.replace(replaced, by)) for each in self.launches]

    def run(self, sanitizer: str = "address", order: str = "forward") -> None:
        """Runs the collected launches in order, and writes their results to the arrays.

        Raises
        ------
        KernelError
            The sanitizer's report, after the line that it names, or a barrier that some threads do not reach.
        """
        kernels = list(dict.fromkeys((each.text, each.name) for each in self.launches))
        program = _program(tuple(kernels), sanitizer)
        numbers = {kernel: i for i, kernel in enumerate(kernels)}
        # by address and size, so that all views of an array give one entry
        buffers: dict[tuple[int, int], tuple[int, np.ndarray]] = {}
        requests = [struct.pack("=I", len(self.launches))]
        for each in self.launches:
            requests.append(struct.pack("=IIIII", each.stream, numbers[each.text, each.name], each.blocks, each.threads,
                                        len(each.arguments)))
            for argument in each.arguments:
                if isinstance(argument, np.ndarray):
                    memory = _memory(argument)
                    number, memory = buffers.setdefault((memory.ctypes.data, memory.nbytes), (len(buffers), memory))
                    requests.append(struct.pack("=IIQ", 0, number, argument.ctypes.data - memory.ctypes.data))
                else:
                    value = np.asarray(argument)
                    requests.append(struct.pack("=II", 1, value.nbytes) + value.tobytes())
        contents = [struct.pack("=I", len(buffers))]
        contents += [struct.pack("=Q", memory.nbytes) + memory.tobytes() for _, memory in buffers.values()]
        environment = {**os.environ, "CUDA_HOST_ORDER": order, "TSAN_OPTIONS": "exitcode=66:halt_on_error=1",
                       "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0"}
        done = subprocess.run([program], input=b"".join(contents + requests), capture_output=True, env=environment,
                              check=False)
        self.launches = []
        if done.returncode:
            report = done.stderr.decode(errors="replace")
            raise KernelError(f"{line_of(report)}\n{report[:4000]}".strip() or f"exit status {done.returncode}")
        content, at = done.stdout, 0
        for _, memory in buffers.values():
            memory[...] = np.frombuffer(content, np.uint8, memory.nbytes, at)
            at += memory.nbytes


def _memory(given: np.ndarray) -> np.ndarray:
    """All bytes of the array of which this is a view, made by ``array``."""
    owner = given
    while isinstance(owner.base, np.ndarray) and isinstance(owner.base, Array):
        owner = owner.base
    first, last = np.lib.array_utils.byte_bounds(owner)
    memory = owner
    while isinstance(memory.base, np.ndarray):
        memory = memory.base
    start = first - memory.ctypes.data
    return memory.reshape(-1).view(np.uint8)[start:start + last - first]


def meets(text: str) -> bool:
    """Whether threads of a kernel wait for each other."""
    return any(word in text for word in ("across<", "__sync", "__shfl", "__shared__", "_REDUCE"))


@functools.cache
def _program(kernels: tuple[tuple[str, str], ...], sanitizer: str) -> Path:
    """The executable that runs these kernels."""
    parts, cases = [], []
    for i, (text, name) in enumerate(kernels):
        parts += [f"namespace kernel{i} {{", text.replace('extern "C" ', ""), "}"]
        together = "true" if sanitizer == "thread" or meets(text) else "false"
        cases.append(f"case {i}: return host::launch(kernel{i}::{name}, blocks, threads, arguments, {together});")
    parts.append("void call(unsigned kernel, unsigned blocks, unsigned threads, void** arguments) {\n"
                 "    switch (kernel) {\n        " + "\n        ".join(cases) + "\n    }\n}")
    main = built(_MAIN, "-c", *_SANITIZERS[sanitizer], header="host", suffix=".o")
    return built("\n".join(parts), *_SANITIZERS[sanitizer], *LINKER, f"-Wl,{main}")
