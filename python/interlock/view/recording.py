"""A recording, read back: columns of ticks and lists of everything else.

Messages are decoded by the schemas that stand in the file itself, so any later version can be read as long as it keeps
the fields used here. A file that was cut off gives all that is whole; `Recording.complete` and `Recording.reason` tell.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlock.errors import InterlockError
from interlock.view.image_file import Image
from interlock.view.mcap_file import McapFile, Raw
from interlock.view.messages import FOREIGN, SCHEMA, Messages
from interlock.view.tick_columns import TickColumns, Ticks

__all__ = ["Chunk", "Goal", "Image", "Log", "ModeChange", "Recording", "Reward", "Summary", "Ticks"]

MOST_JOINTS = 256
CAMERA = "/camera/"
F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One chunk that arrived. Times in monotonic ns, 0: not reached.

    Attributes:
        tick: Tick at which it was taken.
        generation: Of the worker that made it.
        seq: Sequence number of its observation.
        at_ns: Time of its observation.
        status: Code that the worker reported, 0: usable.
        refused: Code by which the schedule refused it, 0: accepted.
        confidence: NaN where the policy has none.
        actions: SI, robot order. Shape `(rows, n)`.
        received_ns: The worker saw the observation.
        preprocessed_ns: Tensors were ready.
        inferred_ns: The engine returned.
        decoded_ns: Actions were in physical units.
        arrived_ns: The control thread saw it.
    """

    tick: int
    generation: int
    seq: int
    at_ns: int
    status: int
    refused: int
    confidence: float
    actions: F64
    received_ns: int
    preprocessed_ns: int
    inferred_ns: int
    decoded_ns: int
    arrived_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What the operator asked: a velocity, a text, or a request such as `arm`."""

    seq: int
    stamp_ns: int
    velocity: tuple[float, ...]
    text: str
    tokens: tuple[int, ...]
    request: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeChange:
    """One change of mode. `cause` is a code's word, empty for none; the first one has no mode before."""

    tick: int
    at_ns: int
    before: str
    after: str
    level: int
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """A violation as an event for learning. `joint` is -1 for none in particular; `ruling` 1 limited, 2 refused."""

    tick: int
    at_ns: int
    channel: str
    value: float
    code: str
    joint: int
    ruling: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A line for people."""

    at_ns: int
    module: str
    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What the writer said at the end. Above 0 dropped ticks or chunks the run cannot be replayed."""

    ticks: int
    ticks_missed: int
    ticks_limited: int
    ticks_refused: int
    chunks: int
    images: int
    ticks_dropped: int
    chunks_dropped: int
    images_dropped: int
    logs_dropped: int
    replayable: bool
    images_ended: bool
    writer_busy_ns: int
    writer_longest_ns: int
    bytes: int


class Recording:
    """One run.

    Attributes:
        path: The file.
        complete: It was closed properly. False: the rest is missing.
        reason: Why it is not complete, for people; empty otherwise.
        plan: The plan as it ran.
        header: What the caller wrote about identities, versions, host and what the kernel granted.
        version: Of the program that wrote it.
        joints: Names, robot order.
        is_manual: Times are a manual clock's.
        ticks: Columns.
        chunks: In order of arrival.
        goals: Goals and requests.
        modes: Changes of mode.
        rewards: Violations.
        logs: Lines for people.
        images: Per camera, decoded only when asked.
        clocks: (monotonic, realtime, TAI) in ns, at the start and every second.
        summary: The writer's last word; None where the recording is not complete.
    """

    def __init__(self, path: Path) -> None:
        self._file = McapFile(path)
        self._messages = Messages(self._file)
        self._codes: dict[int, str] = {}
        self._mode_names: dict[int, str] = {}
        self._offset_ns = 0
        self._columns: TickColumns | None = None
        self.path = path
        self.plan: dict[str, Any] = {}
        self.header: dict[str, Any] = {}
        self.version = ""
        self.joints: list[str] = []
        self.is_manual = False
        self.chunks: list[Chunk] = []
        self.goals: list[Goal] = []
        self.modes: list[ModeChange] = []
        self.rewards: list[Reward] = []
        self.logs: list[Log] = []
        self.images: dict[str, list[Image]] = {}
        self.clocks: list[tuple[int, int, int]] = []
        self.summary: Summary | None = None
        takes: dict[str, Callable[[Any], None]] = {
            "/interlock/header": self._take_header, "/interlock/clock": self._take_clock,
            "/interlock/tick": self._take_tick, "/interlock/chunk": self._take_chunk,
            "/interlock/goal": self._take_goal, "/interlock/mode": self._take_mode,
            "/interlock/reward": self._take_reward, "/interlock/log": self._take_log,
            "/interlock/summary": self._take_summary,
        }  # fmt: skip
        try:
            self._read(takes)
        except FOREIGN as error:
            got = f"{type(error).__name__}: {str(error)[:120]}"
            raise self._refuse("recording-schema", f"messages as {SCHEMA} defines them", got) from error
        if self._columns is None:
            raise self._refuse("recording-format", "a recording of interlock", self._file.ended or "another MCAP file")
        self.ticks: Ticks = self._columns.ticks()
        self.reason: str = self._file.ended or ("" if self.summary else "it has no summary")
        self.complete: bool = not self.reason

    @classmethod
    def open(cls, path: Path | str) -> Recording:
        """Reads the file.

        Raises:
            InterlockError: `recording-missing`; `recording-format` for what is no recording; `recording-schema` for one
                that says something this version does not understand.
        """
        return cls(Path(path))

    @property
    def tick_ns(self) -> int:
        """Tick, ns."""
        return int(self._timing("tick_ns"))

    @property
    def action_period_s(self) -> float:
        """Time between two actions of a chunk, s."""
        return self.tick_ns * int(self._timing("ticks_per_period")) / 1e9

    @property
    def is_synchronous(self) -> bool:
        """Each tick of the policy waited for its own chunk."""
        return bool(self._timing("synchronous"))

    @property
    def joints_text(self) -> str:
        """How many joints, in words."""
        return f"{len(self.joints)} joint{'' if len(self.joints) == 1 else 's'}"

    @property
    def begin_ns(self) -> int:
        """The first tick's release, the clock's start where there is none; zero of `second`."""
        return int(self.ticks.due_ns[0]) if len(self.ticks) else self.clocks[0][0] if self.clocks else 0

    @property
    def epoch_ns(self) -> int:
        """`begin_ns` in nanoseconds since the epoch."""
        return self.begin_ns + self._offset_ns

    @property
    def seconds(self) -> float:
        """From the first tick's release to the end of the last tick."""
        return self.span[1]

    @property
    def span(self) -> tuple[float, float]:
        """First and last second."""
        if not len(self.ticks):
            return (0.0, 0.0)
        return (0.0, self.second(int(self.ticks.due_ns[-1]) + self.tick_ns))

    def second(self, monotonic_ns: int) -> float:
        """Seconds since the first tick."""
        return (monotonic_ns - self.begin_ns) / 1e9

    def seconds_of(self, monotonic_ns: NDArray[np.int64]) -> F64:
        """Seconds since the first tick, of a column."""
        seconds: F64 = (monotonic_ns - self.begin_ns) / 1e9
        return seconds

    def code_word(self, number: int) -> str:
        """The stable word of a code."""
        return self._codes.get(number, f"code {number}")

    def mode_name(self, number: int) -> str:
        """The name of a mode."""
        return self._mode_names.get(number, f"mode {number}")

    def _timing(self, key: str) -> Any:
        timing = self.plan.get("timing")
        value = timing.get(key) if isinstance(timing, dict) else None
        if not isinstance(value, int):
            raise self._refuse("recording-schema", f"timing.{key} in the plan", repr(value)[:40])
        return value

    def _refuse(self, code: str, expected: str, got: str) -> InterlockError:
        hint = "recordings are the .mcap files that `interlock run` writes; a newer one needs a newer interlock"
        return InterlockError(code=code, where=str(self.path), expected=expected, got=got, hint=hint)

    def _read(self, takes: dict[str, Callable[[Any], None]]) -> None:
        for raw in self._file.messages():
            if raw.topic.startswith(CAMERA):
                self._take_image(raw)
            elif raw.topic in takes:
                takes[raw.topic](self._messages.decode(raw.schema, bytes(raw.content)))

    def _take_header(self, message: Any) -> None:
        if message.schema != SCHEMA:
            raise ValueError(f"schema {message.schema[:40]!r}")
        if self._columns is not None:
            raise ValueError("a second header")
        self.plan, self.header = json.loads(message.plan_json), json.loads(message.header_json)
        if not isinstance(self.plan, dict) or not isinstance(self.header, dict):
            raise TypeError("plan and header must be objects")
        self.joints = list(message.joints)
        if len(self.joints) > MOST_JOINTS:
            raise ValueError(f"{len(self.joints)} joints")
        self.version, self.is_manual = message.version, bool(message.manual_clock)
        self._codes, self._mode_names = dict(message.codes), dict(message.modes)
        self._offset_ns = message.clock.realtime_ns - message.clock.monotonic_ns
        self._columns = TickColumns(len(self.joints))

    def _take_clock(self, message: Any) -> None:
        self.clocks.append((message.monotonic_ns, message.realtime_ns, message.tai_ns))

    def _take_tick(self, message: Any) -> None:
        if self._columns is None:
            raise ValueError("a tick before the header")
        self._columns.add(message)

    def _take_chunk(self, message: Any) -> None:
        same = {name: getattr(message, name) for name in Chunk.__slots__ if name != "actions"}
        actions = np.array(message.actions, dtype=np.float64).reshape(message.rows, len(self.joints))
        self.chunks.append(Chunk(actions=actions, **same))

    def _take_goal(self, message: Any) -> None:
        velocity, tokens = tuple(message.velocity), tuple(message.tokens)
        asked = {name: getattr(message, name) for name in ("seq", "stamp_ns", "text", "request")}
        self.goals.append(Goal(velocity=velocity, tokens=tokens, **asked))

    def _take_mode(self, message: Any) -> None:
        before, after = self.mode_name(getattr(message, "from")), self.mode_name(message.to)
        cause = self.code_word(message.cause) if message.cause else ""
        at = {name: getattr(message, name) for name in ("tick", "at_ns", "level")}
        self.modes.append(ModeChange(before=before, after=after, cause=cause, **at))

    def _take_reward(self, message: Any) -> None:
        same = {name: getattr(message, name) for name in Reward.__slots__ if name != "code"}
        self.rewards.append(Reward(code=self.code_word(message.code), **same))

    def _take_log(self, message: Any) -> None:
        self.logs.append(Log(**{name: getattr(message, name) for name in Log.__slots__}))

    def _take_summary(self, message: Any) -> None:
        self.summary = Summary(**{name: getattr(message, name) for name in Summary.__slots__})

    def _take_image(self, raw: Raw) -> None:
        schema, place = raw.schema, raw.place
        image = Image(raw.time_ns - self._offset_ns, lambda: self._messages.decode(schema, self._file.content(place)))
        self.images.setdefault(raw.topic[len(CAMERA) :], []).append(image)
