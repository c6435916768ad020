"""What the command line shows: steps with their times, progress on long work, tables; nothing under --json but JSON."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from interlock import _core
from interlock.errors import InterlockError

LONGEST_MESSAGE = 4000  # characters; a path may be long


@dataclass(slots=True)
class Screen:
    """Standard output for people, or for machines.

    Attributes:
        as_json: Print one JSON object at the end and nothing else.
        quiet: Print results, not progress.
    """

    as_json: bool = False
    quiet: bool = False
    console: Console = field(default_factory=lambda: Console(highlight=False, soft_wrap=True))
    _status: Status | None = None

    def say(self, text: str = "", *, style: str = "") -> None:
        """One line for a person."""
        if not self.as_json:
            self._print(escape(_harmless(text)), style=style or None)

    def detail(self, text: str) -> None:
        """A line that belongs to the step above."""
        self.say(f"    {text}")

    def update(self, text: str) -> None:
        """Replaces the text of the running step; on a plain stream this is silent."""
        if self._status is not None:
            self._status.update(escape(text))

    @contextmanager
    def step(self, name: str, number: str = "") -> Iterator[StepLine]:
        """Shows that `name` is running, then its one-line result with the time that it took."""
        began = _core.monotonic_ns()
        line = StepLine()
        if not self.as_json and self.console.is_terminal:
            with self.console.status(escape(f"{number} {name} …".strip())) as status:
                self._status = status
                try:
                    yield line
                finally:
                    self._status = None
        else:
            if not self.as_json and not self.quiet:
                self._print(escape(f"{number} {name} …".strip()))
            yield line
        seconds = (_core.monotonic_ns() - began) / 1e9
        took = "unchanged" if line.unchanged else f"{seconds:.1f} s"
        self.say(f"{number} {name:<8} {line.text:<92} {took}".strip())

    def _print(self, text: str, style: str | None = None) -> None:
        # A terminal that went away must not end what brings the robot to rest.
        with contextlib.suppress(OSError):
            self.console.print(text, style=style)

    def result(self, value: dict[str, Any]) -> None:
        """The machine's answer."""
        if self.as_json:
            with contextlib.suppress(OSError):
                sys.stdout.write(json.dumps(_finite(value), indent=1, default=str, allow_nan=False) + "\n")
                sys.stdout.flush()

    def refuse(self, refusal: InterlockError) -> None:
        """A refusal, on standard error for people and as the answer for machines."""
        if self.as_json:
            self.result(refusal.as_json())
            return
        errors = Console(stderr=True, highlight=False, soft_wrap=True)
        for line in refusal.lines():
            style = "bold red" if line.startswith("error") else "bold" if line.startswith("next") else None
            errors.print(escape(_one_message(line)), style=style)


def _harmless(text: str) -> str:
    """Text that may quote what a stranger wrote, without control sequences."""
    return "".join(each if each.isprintable() or each == "\n" else repr(each)[1:-1] for each in text)


def harmless_line(text: str) -> str:
    """One line that stays one: nothing quoted in it can pass for another."""
    return _harmless(text).replace("\n", "\\n")


def _one_message(text: str) -> str:
    """The same where each line must stay what it is: nothing quoted can pass for a line of ours, or fill the screen."""
    shown = _harmless(text)
    if len(shown) > LONGEST_MESSAGE:
        shown = f"{shown[: LONGEST_MESSAGE // 2]} … {shown[-LONGEST_MESSAGE // 2 :]}"
    return shown.replace("\n", "\n    ")


def _finite(value: Any) -> Any:
    """JSON has no NaN: what is not a number is null."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@dataclass(slots=True)
class StepLine:
    """What a step reports once it is done."""

    text: str = ""
    unchanged: bool = False
