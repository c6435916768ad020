"""`interlock robot import`."""

from __future__ import annotations

from pathlib import Path

from interlock.adapters.mjcf_import import import_mjcf
from interlock.artifact.files import write_file
from interlock.cli.given import given_bytes
from interlock.cli.screen import Screen
from interlock.errors import Exit, InterlockError

LARGEST_MODEL_FILE = 32 << 20


def import_files(files: list[Path], output: Path, *, as_json: bool) -> int:
    """Makes a robot file; returns the exit code. An existing file is never replaced."""
    screen = Screen(as_json=as_json)
    if output.exists():
        raise InterlockError(
            code="output-exists",
            where=str(output),
            expected="a new file",
            got="one that is there already",
            hint="people edit robot files, so none is ever overwritten; choose another name",
            exit=Exit.CONFLICT,
        )
    made = import_mjcf([(path.name, _content(path)) for path in files])
    folder = output.resolve().parent
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder, output.name, made.text.encode())
    screen.say(made.summary)
    for line in made.conflicts:
        screen.detail(f"conflict, tightest kept: {line}")
    for line in made.asks:
        screen.detail(f"not in any file (ask): {line}")
    screen.say(f"next: edit {output}, then interlock check NAME.policy --robot {output}")
    screen.result({"output": str(output), "conflicts": list(made.conflicts), "asks": list(made.asks)})
    return int(Exit.DONE)


def _content(path: Path) -> bytes:
    return given_bytes(path, kind="model", limit=LARGEST_MODEL_FILE, hint="name the robot's MJCF files")
