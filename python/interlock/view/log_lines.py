"""One line of the timeline, and the words of a recording that lines are written with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LEVELS = ("debug", "info", "warning", "error")
# Whoever can be heard. Lines of other names are shown as they stand in the recording.
MODULES = (
    "driver", "align", "worker", "schedule", "guard", "mode", "operator", "record", "supervisor", "shadow", "probe",
    "metrics",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one module did.

    Attributes:
        epoch_ns: When, nanoseconds since the epoch.
        module: Who; see `MODULES`.
        level: One of `LEVELS`.
        text: What, for people.
        facts: The same as plain data: `tick`, `code`, `joint` and others, where they say something.
    """

    epoch_ns: int
    module: str
    level: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def shown(self) -> str:
        """`[nanoseconds since the epoch][MODULE][LEVEL] text`."""
        return f"[{self.epoch_ns}][{self.module}][{self.level.upper()}] {self.text}"

    def as_json(self) -> dict[str, Any]:
        """The line as plain data."""
        return {
            "epoch_ns": self.epoch_ns,
            "module": self.module,
            "level": self.level,
            "text": self.text,
            **self.facts,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a recording's header says about its numbers.

    Attributes:
        codes: Word of each code.
        modes: Name of each mode.
        requests: Word of each request.
        joints: Names, robot order.
        offset_ns: Nanoseconds since the epoch minus monotonic ones.
        tick_ns: Tick.
        max_age_ns: Oldest measurement that the plan admits; 0: it does not say.
    """

    codes: Mapping[int, str]
    modes: Mapping[int, str]
    requests: Mapping[int, str]
    joints: tuple[str, ...]
    offset_ns: int
    tick_ns: int
    max_age_ns: int

    def code(self, number: int) -> str:
        """The stable word of a code; empty for none."""
        return self.codes.get(number, f"code {number}") if number else ""

    def mode(self, number: int) -> str:
        """The name of a mode."""
        return self.modes.get(number, f"mode {number}")

    def request(self, number: int) -> str:
        """The word of a request."""
        return self.requests.get(number, f"request {number}")

    def joint(self, number: int) -> str:
        """A joint's name; empty for none in particular."""
        return self.joints[number] if 0 <= number < len(self.joints) else ""

    def line(self, at_ns: int, module: str, level: str, text: str, **facts: Any) -> Line:
        """A line about something at a monotonic time. Facts that are None are left out."""
        kept = {name: value for name, value in facts.items() if value is not None}
        return Line(epoch_ns=at_ns + self.offset_ns, module=module, level=level, text=text, facts=kept)
