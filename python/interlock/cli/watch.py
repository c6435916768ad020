"""`interlock watch`: a running loop, live, seen from another terminal and without it noticing."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from interlock.errors import Exit, InterlockError
from interlock.runtime.beacon import Attached, nothing_runs, running
from interlock.view.live import Look, look
from interlock.view.live_panel import panel

REFRESH_S = 0.25
LINE_S = 1.0  # between two lines of --json
TORN_LOOKS = 8  # so often half a look is taken for a writer that was stopped, not for bad luck
ENDED = "the run has ended"
DIED = "the supervisor died: the drives do what the robot file declares under supervisor_lost"


def watch(folder: Path | None, *, once: bool, as_json: bool) -> int:
    """Watches until the run ends; returns 0, or 1 when its process died.

    Args:
        folder: The run's folder; None: the newest that runs, here or in `runs/`.
        once: One look, then done.
        as_json: One object a line, one line a second.

    Raises:
        InterlockError: `watch-none`, `watch-file`, `watch-not-yours`, `board-layout`.
    """
    chosen = _newest() if folder is None else folder
    with Attached.open(chosen) as attached:
        try:
            if as_json:
                return _lines(attached, once=once)
            return _screen(attached, once=once)
        except KeyboardInterrupt:
            return int(Exit.DONE)


def _newest() -> Path:
    found = running(Path())
    if not found:
        raise nothing_runs(Path(), "none here or in runs/")
    return found[0]


def _looked(attached: Attached) -> Look | None:
    for _ in range(TORN_LOOKS):
        if (found := look(attached.watched)) is not None:
            return found
        attached.wait(REFRESH_S / TORN_LOOKS)
    return None


def _lines(attached: Attached, *, once: bool) -> int:
    while True:
        has_ended = attached.wait(0.0)
        found = _looked(attached)
        line: dict[str, Any] = {"folder": str(attached.folder), "pid": attached.pid}
        line |= found.as_json() if found is not None else {"state": "stopped while writing"}
        if has_ended:
            line["state"] = _ending(found)
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        if once or has_ended:
            return _code(line["state"]) if has_ended else int(Exit.DONE)
        attached.wait(LINE_S)


def _ending(found: Look | None) -> str:
    """How a run ended whose process is gone."""
    return found.state if found is not None and found.state in ("ended", "failed") else "died"


def _code(state: str) -> int:
    return int(Exit.DONE if state == "ended" else Exit.FAIL)


def _screen(attached: Attached, *, once: bool) -> int:
    console = Console(highlight=False)
    last: Look | None = None
    if once:
        found = _looked(attached)
        if found is None:
            raise _torn(attached)
        console.print(_panel(attached, found, last, console))
        return int(Exit.DONE)
    # On a terminal a screen of its own, so that nothing is left behind but what is said at the end.
    with Live(
        console=console, auto_refresh=False, screen=console.is_terminal, transient=not console.is_terminal
    ) as live:
        while True:
            has_ended = attached.wait(0.0)
            found = _looked(attached)
            if found is not None:
                live.update(_panel(attached, found, last, console), refresh=True)
                last = found if last is None or found.at_ns - last.at_ns >= LINE_S * 1e9 else last
            if has_ended:
                break
            attached.wait(REFRESH_S)
    found = _looked(attached) or last
    state = _ending(found)
    if found is not None:
        console.print(_panel(attached, replace(found, state=state), None, console))
    said = ENDED if state == "ended" else DIED if state == "died" else "the loop was ended by a defect"
    console.print(said, soft_wrap=True)
    console.print(f"next: interlock show {attached.folder} --log", soft_wrap=True)
    return _code(state)


def _panel(attached: Attached, found: Look, before: Look | None, console: Console) -> Any:
    rates = {}
    if before is not None and found.at_ns > before.at_ns:
        ticks = found.numbers["executed"] - before.numbers["executed"]
        rates["executed"] = ticks * 1e9 / (found.at_ns - before.at_ns)
    return panel(found, where=str(attached.folder), rates=rates, width=console.width)


def _torn(attached: Attached) -> InterlockError:
    return InterlockError(
        code="watch-stopped",
        where=str(attached.folder),
        expected="a loop that ticks",
        got=f"process {attached.pid}, stopped while it wrote",
        hint=f"see whether process {attached.pid} is suspended",
        next="interlock watch --help",
    )
