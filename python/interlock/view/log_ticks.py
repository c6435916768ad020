"""What changed from one recorded tick to the next, as lines: rulings, missed ticks, ages, requests, commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlock.view.log_lines import Line, Words

RULINGS = ("passes", "limited", "refused")
RULING_LEVELS = ("info", "warning", "error")
KINDS = ("position", "position_pd", "velocity", "torque", "off")
DEATHS = {"worker_dead": "worker", "driver_dead": "driver"}


class TickEdges:
    """Keeps what it needs of the tick before. Give every tick in its order."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._missed = 0
        self._dropped = 0
        self._level = 0
        self._goal = 0
        self._kind = ""
        self._is_old = False
        self._ruling = 0
        self._since = 0  # tick at which the ruling began
        self._named: set[tuple[int, int]] = set()

    def take(self, tick: Any) -> Iterator[Line]:
        """Lines of one `interlock.v1.Tick`."""
        yield from self._time(tick)
        yield from self._age(tick)
        yield from self._requests(tick)
        yield from self._ruled(tick)
        yield from self._sent(tick)
        if tick.level != self._level:
            self._level = tick.level
            yield self._words.line(tick.acted_ns, "mode", "warning", f"level {tick.level}", tick=tick.tick)
        if tick.offered:
            text = f"observation {tick.observation_seq} is offered"
            yield self._words.line(
                tick.observed_ns, "align", "debug", text, tick=tick.tick, observation=tick.observation_seq
            )

    def _time(self, tick: Any) -> Iterator[Line]:
        missed, self._missed = tick.missed - self._missed, tick.missed
        if missed > 0:
            late_ms = (tick.woke_ns - tick.due_ns) / 1e6 + missed * self._words.tick_ns / 1e6
            ticks = "tick" if missed == 1 else "ticks"
            text = f"missed {missed} {ticks} before tick {tick.tick}: woke {late_ms:.1f} ms late"
            yield self._words.line(tick.woke_ns, "supervisor", "warning", text, tick=tick.tick, missed=missed)

    def _age(self, tick: Any) -> Iterator[Line]:
        limit_ns = self._words.max_age_ns
        age_ns = tick.due_ns - tick.captured_ns
        is_old = limit_ns > 0 and tick.sample_seq > 0 and age_ns > limit_ns
        if is_old == self._is_old:
            return
        self._is_old = is_old
        at = {"tick": tick.tick, "age_ms": age_ns / 1e6}
        if is_old:
            text = f"the newest measurement is {age_ns / 1e6:.1f} ms old, more than {limit_ns / 1e6:g} ms"
            yield self._words.line(tick.observed_ns, "align", "warning", text, **at)
        else:
            yield self._words.line(tick.observed_ns, "align", "info", "measurements are fresh again", **at)

    def _requests(self, tick: Any) -> Iterator[Line]:
        for number in tick.events:
            word = self._words.request(number)
            module = DEATHS.get(word)
            if module is None:
                text = f"{word} was taken in tick {tick.tick}"
                yield self._words.line(tick.observed_ns, "operator", "debug", text, tick=tick.tick, request=word)
            else:
                text = f"the {module} process ended"
                yield self._words.line(tick.observed_ns, module, "error", text, tick=tick.tick)
        if tick.goal_seq != self._goal:
            self._goal = tick.goal_seq
            text = f"goal {tick.goal_seq} is in force"
            yield self._words.line(tick.observed_ns, "operator", "debug", text, tick=tick.tick, goal=tick.goal_seq)

    def _ruled(self, tick: Any) -> Iterator[Line]:
        """One line where the guard's answer changes, and one for every code that joins while it lasts."""
        at_ns, ruling = tick.acted_ns, tick.ruling
        if ruling != self._ruling:
            if ruling == 0:
                lasted = tick.tick - self._since
                text = f"passes again, {RULINGS[min(self._ruling, 2)]} for {lasted} tick{'' if lasted == 1 else 's'}"
                yield self._words.line(at_ns, "guard", "info", text, tick=tick.tick, ticks=lasted)
            self._ruling, self._since = ruling, tick.tick
            self._named.clear()
        joints = [*tick.joints, *[-1] * (len(tick.codes) - len(tick.joints))]
        acted = [pair for pair in zip(tick.codes, joints, strict=False) if pair not in self._named]
        if not acted:
            return
        self._named.update(acted)
        level = RULING_LEVELS[min(ruling, 2)] if ruling else "debug"
        for code, joint in acted:
            word, name = self._words.code(code), self._words.joint(joint)
            said = f"{RULINGS[min(ruling, 2)] if ruling else 'noticed'}: {word}{f' of {name}' if name else ''}"
            yield self._words.line(at_ns, "guard", level, said, tick=tick.tick, code=word, joint=name or None)

    def _sent(self, tick: Any) -> Iterator[Line]:
        has_command = bool(tick.target) or (tick.sent and tick.kind == len(KINDS) - 1)
        kind = KINDS[min(tick.kind, len(KINDS) - 1)] if has_command else ""
        if kind and not tick.sent:
            kind = f"{kind}, dry"
        if kind == self._kind:
            return
        self._kind = kind
        what = {"": "no commands go out", "off": "the drives are let go"}.get(kind, f"commands go out: {kind}")
        what = f"{what} (computed, not sent)" if kind.endswith("dry") else what
        yield self._words.line(tick.sent_ns or tick.acted_ns, "supervisor", "info", what, tick=tick.tick)
