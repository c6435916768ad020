"""A recording as lines of text: every module on one timeline, read message by message, never held whole.

The writer takes chunks, ticks and notes from rings of their own, so neighbours in the file may stand out of order by as
long as the writer was away. Lines wait in a heap until nothing older can come any more; what comes later still is shown
with its own time.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

from interlock import _core
from interlock.errors import InterlockError
from interlock.view.log_lines import LEVELS, Line, Words
from interlock.view.log_ticks import TickEdges
from interlock.view.mcap_file import McapFile, Raw
from interlock.view.messages import FOREIGN, SCHEMA, Messages
from interlock.view.report_words import HAPPENED

CAMERA = "/camera/"
ASKED = ("operator-stop", "orderly-end", "terminal-closed", "")
STOPS = ("Stopping", "Faulted")
INSISTING_NS = 1_000_000_000  # the same request again this soon is one that is repeated until it is granted
DISORDER_NS = 5_000_000_000
MOST_WAITING = 100_000  # lines; beyond it the oldest is given whatever may come


def lines(path: Path) -> Iterator[Line]:
    """Every line of a recording in the order of time, up to where it is whole; the last says why it ends early.

    Raises:
        InterlockError: `recording-missing`, `recording-format`, `recording-schema`.
    """
    reader = _Reader(path)
    waiting: list[tuple[int, int, Line]] = []
    order = count()
    newest_ns = 0
    for line in reader.lines():
        newest_ns = max(newest_ns, line.epoch_ns)
        heapq.heappush(waiting, (line.epoch_ns, next(order), line))
        while waiting and (waiting[0][0] < newest_ns - DISORDER_NS or len(waiting) > MOST_WAITING):
            yield heapq.heappop(waiting)[2]
    while waiting:
        yield heapq.heappop(waiting)[2]
    if reader.ends_early:
        text = f"the recording ends early: {reader.ends_early}"
        yield Line(epoch_ns=newest_ns, module="record", level="error", text=text)


class _Reader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.ends_early = ""
        self._file = McapFile(path)
        self._messages = Messages(self._file)
        self._words: Words | None = None
        self._edges: TickEdges | None = None
        self._has_ended = False
        self._tick_at = (-1, 0)  # the tick read last, and when it had acted
        self._asked = ("", 0)  # the request read last, and when it was made

    def lines(self) -> Iterator[Line]:
        """Lines in the order of the file."""
        takes: dict[str, Callable[[Any], Iterator[Line]]] = {
            "/interlock/tick": self._tick, "/interlock/chunk": self._chunk, "/interlock/goal": self._goal,
            "/interlock/mode": self._mode, "/interlock/reward": self._reward, "/interlock/log": self._log,
            "/interlock/probe": self._probe,
        }  # fmt: skip
        try:
            for raw in self._file.messages():
                if raw.topic == "/interlock/header":
                    yield from self._header(self._decoded(raw))
                elif self._words is None:
                    continue
                elif raw.topic.startswith(CAMERA):
                    text = f"image of {raw.topic[len(CAMERA) :]}"
                    yield Line(epoch_ns=raw.time_ns, module="driver", level="debug", text=text)
                elif raw.topic == "/interlock/summary":
                    yield from self._summary(self._decoded(raw), raw.time_ns)
                elif raw.topic in takes:
                    yield from takes[raw.topic](self._decoded(raw))
        except FOREIGN as error:
            got = f"{type(error).__name__}: {str(error)[:120]}"
            raise self._refused("recording-schema", f"messages as {SCHEMA} defines them", got) from error
        if self._words is None:
            raise self._refused("recording-format", "a recording of interlock", self._file.ended or "another MCAP file")
        self.ends_early = self._file.ended or ("" if self._has_ended else "it has no summary")

    def _decoded(self, raw: Raw) -> Any:
        return self._messages.decode(raw.schema, bytes(raw.content))

    def _refused(self, code: str, expected: str, got: str) -> InterlockError:
        hint = "recordings are the .mcap files that `interlock run` writes; a newer one needs a newer interlock"
        return InterlockError(code=code, where=str(self.path), expected=expected, got=got, hint=hint)

    @property
    def words(self) -> Words:
        """What the header said."""
        assert self._words is not None
        return self._words

    def _header(self, message: Any) -> Iterator[Line]:
        if message.schema != SCHEMA:
            raise ValueError(f"schema {message.schema[:40]!r}")
        if self._words is not None:
            raise ValueError("a second header")
        plan, header = json.loads(message.plan_json), json.loads(message.header_json)
        timing = plan["timing"]
        self._words = Words(
            codes=dict(message.codes),
            modes=dict(message.modes),
            requests=_core.request_words(),
            joints=tuple(message.joints),
            offset_ns=message.clock.realtime_ns - message.clock.monotonic_ns,
            tick_ns=int(timing["tick_ns"]),
            max_age_ns=int(timing.get("max_age_state_ns", 0)),
        )
        self._edges = TickEdges(self._words)
        at_ns = message.clock.monotonic_ns
        clock = "manual" if message.manual_clock else "monotonic"
        who = f"{header.get('policy', 'a policy')} on {header.get('robot', 'a robot')}"
        begins = f"begins: {who}, {clock} clock, tick {self.words.tick_ns / 1e6:g} ms, interlock {message.version}"
        yield self.words.line(at_ns, "record", "info", begins)
        granted = header.get("granted")
        if isinstance(granted, dict):
            yield from self._granted(at_ns, granted)

    def _granted(self, at_ns: int, granted: dict[str, Any]) -> Iterator[Line]:
        memory = "locked" if granted.get("memory_locked") else "not locked"
        what = f"real-time granted: {granted.get('scheduler')} {granted.get('priority') or ''}".rstrip()
        yield self.words.line(at_ns, "supervisor", "info", f"{what}, memory {memory}", granted=granted)
        for refused in granted.get("refused") or ():
            yield self.words.line(at_ns, "supervisor", "warning", f"the kernel refused: {refused}")

    def _tick(self, message: Any) -> Iterator[Line]:
        assert self._edges is not None
        self._tick_at = message.tick, message.acted_ns
        return self._edges.take(message)

    def _chunk(self, message: Any) -> Iterator[Line]:
        named = f"chunk {message.seq} of worker {message.generation}"
        at = {"tick": message.tick, "chunk": message.seq, "generation": message.generation}
        if message.status:
            code = self.words.code(message.status)
            text = f"{named} cannot be used: {_why(code)}"
            yield self.words.line(message.arrived_ns, "worker", "error", text, code=code, **at)
        else:
            rows = f"{message.rows} action{'' if message.rows == 1 else 's'}"
            age_ms = (message.arrived_ns - message.at_ns) / 1e6
            took = f", inference {(message.inferred_ns - message.preprocessed_ns) / 1e6:.2f} ms"
            text = f"{named} arrived: {rows}, {age_ms:.2f} ms after its observation"
            text += took if message.inferred_ns and message.preprocessed_ns else ""
            yield self.words.line(message.arrived_ns, "worker", "debug", text, latency_ms=age_ms, **at)
        if message.refused and message.refused != message.status:
            code = self.words.code(message.refused)
            text = f"{named} is dropped: {_why(code)}"
            yield self.words.line(message.arrived_ns, "schedule", "warning", text, code=code, **at)

    def _goal(self, message: Any) -> Iterator[Line]:
        level = "info"
        if message.request:
            text, asked = f"asks to {message.request.replace('_', ' ')}", {"request": message.request}
            before, self._asked = self._asked, (message.request, message.stamp_ns)
            if before[0] == message.request and message.stamp_ns - before[1] < INSISTING_NS:
                text, level = f"{text} again", "debug"
        else:
            velocity = list(message.velocity)
            parts = [f"task {message.text!r}"] if message.text else []
            parts += [f"velocity {', '.join(f'{each:g}' for each in velocity)}"] if velocity else []
            text, asked = f"goal {message.seq}: {', '.join(parts) or 'none'}", {"goal": message.seq}
        yield self.words.line(message.stamp_ns, "operator", level, text, **asked)

    def _mode(self, message: Any) -> Iterator[Line]:
        before, after = self.words.mode(getattr(message, "from")), self.words.mode(message.to)
        code = self.words.code(message.cause)
        is_loss = after in STOPS and code not in ASKED
        change = f"{before} -> {after}" if before != after else f"begins in {after}"
        text = f"{change}: {_why(code)}" if code and before != after else change
        level = "error" if is_loss else "info"
        # The tick that changed it stands just before; it did so once it knew what this tick brought, not when it began.
        tick, acted_ns = self._tick_at
        at_ns = acted_ns if tick == message.tick and acted_ns else message.at_ns
        yield self.words.line(at_ns, "mode", level, text, tick=message.tick, mode=after, code=code or None)

    def _reward(self, message: Any) -> Iterator[Line]:
        text = f"{message.channel} {message.value:g}"
        code = self.words.code(message.code)
        yield self.words.line(message.at_ns, "guard", "debug", text, tick=message.tick, code=code)

    def _log(self, message: Any) -> Iterator[Line]:
        level = message.level if message.level in LEVELS else "info"
        yield self.words.line(message.at_ns, message.module, level, message.text)

    def _probe(self, message: Any) -> Iterator[Line]:
        shape = "x".join(str(each) for each in message.shape)
        text = f"{message.name}: {message.dtype} {shape} of observation {message.observation_seq}"
        facts = {"observation": message.observation_seq, "generation": message.generation}
        yield self.words.line(message.inferred_ns, "probe", "debug", text, **facts)

    def _summary(self, message: Any, epoch_ns: int) -> Iterator[Line]:
        self._has_ended = True
        lost = message.ticks_dropped + message.chunks_dropped + message.logs_dropped
        text = (
            f"ends: {message.ticks} ticks, {message.ticks_missed} missed, {message.ticks_limited} limited, "
            f"{message.ticks_refused} refused, {message.chunks} chunks, {message.images} images, "
            f"{'can' if message.replayable else 'cannot'} be replayed"
        )
        text += f"; {lost} messages and {message.images_dropped} images were dropped" if lost else ""
        level = "info" if message.replayable else "warning"
        # It carries the time at which the last tick was due; what that tick did came after.
        epoch_ns = max(epoch_ns, self._tick_at[1] + self.words.offset_ns)
        yield Line(epoch_ns=epoch_ns, module="record", level=level, text=text)


def _why(code: str) -> str:
    """What a code means, in words where there are any."""
    return f"{HAPPENED[code]} ({code})" if code in HAPPENED else code
