"""Replay: segments of plans on devices that can record work and replay it by one call, as CUDA graphs do.

In the first run of a segment, each ``FirstRun`` is replaced. The second run prepares the recording. In the third run,
stretches of steps are recorded, and from then on each stretch is one call. Between stretches there are islands, steps
that run as before: users' code that is not ``capturable``, steps that draw random numbers or have side effects, and
steps that the device refused to record. The back end provides the recorder.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

import numpy as np

from opreg.backends.devices import recorder
from opreg.core import threads
from opreg.core.effects import draws
from opreg.core.steps import Recorder, RefusedError, is_plain
from opreg.errors import OpError, note
from opreg.ndarray.context import Context
from opreg.typing import Array, ArrayModule

from .plan import Function, Segment, Step
from .program import without_gc

__all__ = ["RecordedSegment", "runs_python", "segments"]


class _Phase(enum.Enum):
    """The state of a recording, which decides about the next run."""

    WARM = "to be captured in its third run"
    RECORD = "to be captured in its next run"
    REPLAY = "captured"
    OFF = "not captured"


def segments(contexts: Iterable[Context]) -> Callable[[list[Step]], Segment]:
    """The class of a plan's segments, chosen by the devices of its steps."""
    places = {ctx for ctx in contexts if ctx.xp is not np}
    if not places:
        return Segment
    if len(places) > 1:
        return lambda steps: RecordedSegment(steps, None, "its steps are on several devices")
    ctx = places.pop()

    def segment(steps: list[Step]) -> Segment:
        try:
            segment_recorder = recorder(ctx.xp, ctx.device_id)
        except Exception as error:
            return RecordedSegment(steps, None, f"{type(error).__name__}: {error}")
        return Segment(steps) if segment_recorder is None else RecordedSegment(steps, segment_recorder, xp=ctx.xp)

    return segment


class RecordedSegment(Segment):
    """A segment that is recorded in its third run, or for some reason never.

    Parameters
    ----------
    steps : list of Step
        In order.
    recorder : Recorder or None
        None if the segment is not recorded, for the given ``reason``.
    """

    __slots__ = ("_recorder", "_phase", "_reason", "_notes", "_xp")

    def __init__(self, steps: list[Step], recorder: Recorder | None, reason: str = "", xp: ArrayModule = np):
        super().__init__(steps)
        self._recorder, self._reason, self._xp = recorder, reason, xp
        self._phase = _Phase.OFF if recorder is None else _Phase.WARM
        self._notes: dict[Step, str] = {}

    def _flatten(self) -> None:
        super()._flatten()
        self._notes = {}
        if self._phase is not _Phase.OFF:
            self._phase = _Phase.WARM

    def run(self) -> None:
        recorder = self._recorder
        if self._instruments:  # steps run one by one, and write to arrays that no recording reads
            super().run()
            if self._phase is not _Phase.OFF:
                self._flatten()
            return
        if self._phase is not _Phase.REPLAY and recorder is not None and not self.fresh:
            if self._phase is _Phase.WARM:
                self._warm(recorder)
                return
            if self._phase is _Phase.RECORD:
                self._record(recorder)
        super().run()

    # ------------------------------------------------------------------------------------------- recording

    def _warm(self, recorder: Recorder) -> None:
        """Run the steps with the memory that the recording will use. If there is too little, later runs are not
        recorded."""
        try:
            with recorder.warm_up():
                super().run()
        except MemoryError as error:
            self._give_up(error)
            raise
        self._phase = _Phase.RECORD

    def _give_up(self, error: Exception) -> None:
        """Run without a recording from now on."""
        self._phase, self._reason, self._recorder = _Phase.OFF, f"{type(error).__name__}: {error}", None

    @without_gc  # collection would free device memory during a recording
    def _record(self, recorder: Recorder) -> None:
        """Replace steps by their recordings."""
        try:
            pieces, notes = self._pieces(recorder)
        except _Differs as difference:
            self._fail(difference.error, difference.step, self.steps.index(difference.step))
        except Exception as error:
            self._give_up(error)
            return
        self.flat = [function for function, _ in pieces]
        self._owners = [step for _, step in pieces]
        self.plain = all(map(is_plain, self.flat))
        self._place()
        self._phase, self._notes = _Phase.REPLAY, notes

    def _pieces(self, recorder: Recorder) -> tuple[list[tuple[Function, Step]], dict[Step, str]]:
        """The functions in order, each with its first step, and the text that ``description`` returns for each step."""
        notes: dict[Step, str] = {}
        steps = [step for step in self.steps if step.run]
        for step in steps:
            reason = self._declared_reason(step)
            if reason is None and _is_capturable(step):
                try:
                    self._compare(step, recorder)
                except RefusedError as refused:
                    reason = str(refused)
            if reason is not None:
                notes[step] = f"island: {reason}"
        stretches = [stretch for alone, row in itertools.groupby(steps, notes.__contains__)
                     for stretch in ([[step] for step in row] if alone else _record_runs(recorder, list(row), notes))]
        pieces: list[tuple[Function, Step]] = []
        for number, graph in enumerate(stretch for stretch in stretches if isinstance(stretch, _RecordedSteps)):
            notes.update((step, f"graph {number}") for step in graph.steps)
        for stretch in stretches:
            pieces += ([(stretch.function, stretch.steps[0])] if isinstance(stretch, _RecordedSteps) else
                       [(function, step) for step in stretch for function in step.run])
        return pieces, notes

    def _declared_reason(self, step: Step) -> str | None:
        """The reason why a step must not be recorded, as far as declarations tell."""
        reason, op = runs_python(step), None if step.node is None else step.node.op
        if reason is not None:
            return reason
        node = step.node
        if node is not None and op is not None and op.traits.random and draws(op, node.attrs) \
                and not all(map(_keeps_state, step.run)):
            return "draws random numbers"
        if not all(getattr(function, "capturable", True) for function in step.run):
            return "takes values from the host"
        if not all(isinstance(out, self._xp.ndarray) for out in step.outs if out is not None):
            return "computes elsewhere"
        return None

    def _compare(self, step: Step, recorder: Recorder) -> None:
        """Compare a replay of a user's step with a run of it, on other inputs than those of the recording."""
        node = step.node
        assert node is not None and node.op is not None
        arrays = _distinct([*step.ins, *step.outs])
        with recorder.warm_up():
            # All copies are made before the recording: memory that is allocated later may be written by the replay.
            before = [array.copy() for array in arrays]
            try:
                for array in _distinct(step.ins):
                    _change(array)
                changed = [array.copy() for array in arrays]
                threads.call_all(step.run)
                computed = [array.copy() for array in arrays]
                _restore(arrays, before)
                replay = recorder.record(step.run)
                _restore(arrays, changed)
                replay()
                same = [_bytes(array.copy()) == _bytes(value) for array, value in zip(arrays, computed)]
                agrees = all(bool(equal.all().get()) for equal in same)
            finally:
                _restore(arrays, before)
        if not agrees:
            raise _Differs(step, OpError(
                f"{node.describe()} declares capturable=True, but on other inputs a replay of its {step.kernel} gives "
                "other values than a run: it reads or stores something besides its arrays, which a replay does not "
                "update"))

    # ----------------------------------------------------------------------------------------- questions

    @property
    def nbytes(self) -> int:
        return 0 if self._recorder is None else self._recorder.nbytes

    def description(self, step: Step | None = None) -> str:
        if step is not None:
            return self._notes.get(step, "")
        if self._phase is _Phase.REPLAY:
            graphs = len({text for text in self._notes.values() if text.startswith("graph")})
            islands = sum(text.startswith("island") for text in self._notes.values())
            return f"{graphs} graph{'s' * (graphs != 1)}, {islands} island{'s' * (islands != 1)}"
        if self._instruments and self._phase is not _Phase.OFF:
            return "not captured: its steps are watched"
        return self._phase.value + (f": {self._reason}" if self._phase is _Phase.OFF else "")

    def _fail(self, error: Exception, step: Step, number: int) -> NoReturn:
        if self._notes.get(step, "").startswith("graph"):
            note(error, f"{self._notes[step]}, which begins at step {number} of {len(self.steps)}")
            raise error
        super()._fail(error, step, number)


class _Differs(Exception):
    """The replay of a step computes other values than the step."""

    def __init__(self, step: Step, error: OpError):
        super().__init__(str(error))
        self.step, self.error = step, error


class _RecordedSteps:
    """Recorded steps, which one function replays."""

    def __init__(self, function: Function, steps: Sequence[Step]):
        self.function, self.steps = function, steps


def _record_runs(recorder: Recorder, steps: list[Step], notes: dict[Step, str]) -> list[_RecordedSteps | list[Step]]:
    """Record steps in stretches, divided by the steps that the device refuses to record."""
    if not steps:
        return []
    functions = [function for step in steps for function in step.run]
    owners = [number for number, step in enumerate(steps) for _ in step.run]
    try:
        return [_RecordedSteps(recorder.record(functions), steps)]
    except RefusedError as refused:
        if len(steps) == 1:
            notes[steps[0]] = f"island: {refused}"
            return [steps]
        if refused.number is None:  # the recording was refused at its end, and the step is unknown
            half = len(steps) // 2
            return _record_runs(recorder, steps[:half], notes) + _record_runs(recorder, steps[half:], notes)
        at = owners[refused.number]
        notes[steps[at]] = f"island: {refused}"
        return [*_record_runs(recorder, steps[:at], notes), [steps[at]], *_record_runs(recorder, steps[at + 1:], notes)]


def runs_python(step: Step) -> str | None:
    """The reason why no device may record a step; None if that depends on the kernel."""
    op = None if step.node is None else step.node.op
    if op is not None and op.traits.capturable is False:
        return "runs users' code that does not declare capturable=True"
    if op is not None and op.traits.has_side_effect:
        return "does something beside computing"
    if op is not None and op.signature.per_instance and op.traits.capturable is None:
        return f"its kernel, {step.kernel}, is Python that runs each time"
    return None


def _is_capturable(step: Step) -> bool:
    """Whether a user's operator declares that it may be recorded."""
    return step.node is not None and step.node.op is not None and step.node.op.traits.capturable is True


def _keeps_state(function: Function) -> bool:
    """Whether a function keeps the state of its random generator on the device, so that replays advance it."""
    return getattr(getattr(function, "func", function), "capturable", False)


def _distinct(arrays: Iterable[Array | None]) -> list[Array]:
    """The arrays that are not None, each once."""
    return list({id(array): array for array in arrays if array is not None}.values())


def _change(array: Array) -> None:
    """Change an array's values to others that kernels accept: reverse it, and scale floating-point values."""
    if array.ndim:
        array[...] = array[(slice(None, None, -1),) * array.ndim].copy()
    if array.dtype.kind not in "biu":
        array *= 0.75


def _restore(arrays: Sequence[Array], values: Sequence[Array]) -> None:
    for array, value in zip(arrays, values):
        array[...] = value


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view("uint8")
