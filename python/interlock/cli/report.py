"""`interlock report`: one page from a recording."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from interlock.cli.screen import Screen
from interlock.errors import Exit, InterlockError
from interlock.view.page import NOTHING
from interlock.view.recording import Recording
from interlock.view.report import find, report_html, report_numbers, sibling_row

PAGE = "report.html"
RUN = "run.mcap"
MOST_SIBLINGS = 100  # recordings of one folder that are read for its table


def report(recording: Path, output: Path | None, *, as_json: bool) -> int:
    """Writes the page; returns the exit code. Raises `InterlockError` for what is not a readable recording."""
    screen = Screen(as_json=as_json)
    chosen, all_of_it = _recordings(recording)
    target = output or _beside(chosen)
    if target.is_dir():
        target /= PAGE
    with screen.step("report") as line:
        opened = Recording.open(chosen)
        found = find(opened)
        screen.update(f"reading {len(all_of_it)} recordings")
        rows = [_row(path, chosen, recording) for path in all_of_it] if len(all_of_it) > 1 else []
        text = report_html(opened, found, rows)
        _write(target, text)
        line.text = f"{chosen.name} → {target} ({len(text) / 1e6:.1f} MB)"
    numbers = report_numbers(opened, found)
    screen.detail(str(numbers["summary"]))
    screen.say(f"open it in any browser: {target.resolve().as_uri()}")
    screen.result({**numbers, "report": str(target), "exit": int(Exit.DONE)})
    return int(Exit.DONE)


def write(recording: Path, target: Path) -> Path:
    """Writes the page of one recording; returns where it lies."""
    opened = Recording.open(recording)
    _write(target, report_html(opened, find(opened)))
    return target


def _recordings(path: Path) -> tuple[Path, list[Path]]:
    """The recording to show and, for a folder, all that it holds."""
    if path.is_file():
        return path, [path]
    found = sorted(path.rglob("*.mcap")) if path.is_dir() else []
    if not found:
        raise InterlockError(
            code="recording-missing",
            where=str(path),
            expected="a run folder or an .mcap file",
            got="a folder without a recording" if path.is_dir() else "nothing",
            hint="every `interlock run` writes one, into runs/ unless told otherwise",
            next="interlock run NAME.policy --sim",
        )
    whole_run = path / RUN
    newest = max(found, key=lambda each: (each.stat().st_mtime_ns, each.name))
    chosen = whole_run if whole_run in found else newest
    kept = [chosen, *[each for each in found if each != chosen][: MOST_SIBLINGS - 1]]
    return chosen, sorted(kept)


def _row(path: Path, chosen: Path, folder: Path) -> list[object]:
    name = str(path.relative_to(folder))
    try:
        opened = Recording.open(path)
    except InterlockError as refusal:
        return [name, NOTHING, NOTHING, NOTHING, NOTHING, f"not readable ({refusal.code})", NOTHING]
    return sibling_row(name, opened, is_shown=path == chosen)


def _beside(recording: Path) -> Path:
    return recording.with_name(PAGE) if recording.name == RUN else recording.with_suffix(".html")


def _write(target: Path, text: str) -> None:
    """Puts the page in place whole or not at all."""
    staged = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staged.write_text(text, encoding="utf-8")
        staged.replace(target)
    except OSError as cause:
        with suppress(OSError):
            staged.unlink()
        raise InterlockError(
            code="report-not-written",
            where=str(target),
            expected="a place that can be written",
            got=cause.strerror or str(cause),
            hint="choose another place with -o FILE",
        ) from None
