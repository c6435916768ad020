"""How others find a run: a small file in its folder names its process and the descriptor of the memory that it shows.

The memory itself has no name. It is opened through `/proc/PID/fd/N`, which the kernel allows to the same user alone,
and it vanishes with the process, however that ends. The run takes no part in it: it is not asked, slowed or kept alive.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
from dataclasses import dataclass
from pathlib import Path

from interlock import _core
from interlock.errors import Exit, InterlockError

NAME = "watch.json"
SCHEMA = "interlock.watch/1"
MEMORY = "/memfd:interlock-status"
LARGEST = 4096  # bytes
STARTED = 19  # field 22 of /proc/PID/stat, counted after the name: since boot, in clock ticks
LOG = "interlock show {folder} --log"


@dataclass(slots=True)
class Beacon:
    """The file of a run in this process."""

    path: Path

    @staticmethod
    def light(folder: Path, status_fd: int) -> Beacon:
        """Writes it whole or not at all, readable by this user alone."""
        path = folder / NAME
        staged = folder / f".{NAME}.{os.getpid()}"
        told = {"schema": SCHEMA, "pid": os.getpid(), "started": _started(os.getpid()), "fd": status_fd}
        staged.unlink(missing_ok=True)
        # A new file of ours, whatever somebody else may have put there.
        descriptor = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(told, file)
        staged.replace(path)
        return Beacon(path)

    def put_out(self) -> None:
        """Takes it away, unless another run has put its own there since."""
        with contextlib.suppress(OSError, ValueError, TypeError):
            if json.loads(self.path.read_text()).get("pid") == os.getpid():
                self.path.unlink()


@dataclass(slots=True)
class Attached:
    """A run of another process, seen from here.

    Attributes:
        folder: Its folder.
        pid: Its process.
        watched: What it shows.
    """

    folder: Path
    pid: int
    watched: _core.Watched
    _pidfd: int

    @staticmethod
    def open(folder: Path) -> Attached:
        """Attaches to the run in a folder.

        Raises:
            InterlockError: `watch-none` where nothing runs, `watch-not-yours` for another user's run, `board-layout`
                for a run of another version.
        """
        pid, started, descriptor = _read(folder)
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            raise nothing_runs(folder, f"process {pid}, which has ended") from None
        try:
            return Attached(folder, pid, _attach(folder, pid, started, descriptor), pidfd)
        except BaseException:
            os.close(pidfd)
            raise

    @property
    def is_alive(self) -> bool:
        """Whether its process still runs."""
        return not self.wait(0.0)

    def wait(self, seconds: float) -> bool:
        """Waits for its process to end; True once it has."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def close(self) -> None:
        """Lets go of it."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def __enter__(self) -> Attached:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def running(place: Path) -> list[Path]:
    """Folders below `place` in which a run can be watched now, the newest first."""
    found = []
    for path in (place / NAME, *place.glob(f"*/{NAME}"), *place.glob(f"runs/*/{NAME}")):
        with contextlib.suppress(InterlockError, OSError):
            pid, started, _ = _read(path.parent)
            if _started(pid) == started:
                found.append((path.stat().st_mtime_ns, path.parent))
    return [folder for _, folder in sorted(set(found), reverse=True)]


def nothing_runs(folder: Path, got: str) -> InterlockError:
    """There is nothing to watch."""
    return InterlockError(
        code="watch-none",
        where=str(folder),
        expected="a run that is going on",
        got=got,
        hint="a run can be watched while it runs; afterwards its recording tells everything",
        next=LOG.format(folder=folder) if (folder / "run.mcap").exists() else "interlock run --help",
    )


def _read(folder: Path) -> tuple[int, int, int]:
    """Process, when it started, and its descriptor."""
    try:
        descriptor = os.open(folder / NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        raise _not_yours(folder) from None
    except OSError:
        raise nothing_runs(folder, "none here") from None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(LARGEST)
    try:
        told = json.loads(content)
        numbers = told["pid"], told["started"], told["fd"]
        is_fit = told["schema"] == SCHEMA and all(type(each) is int and 0 <= each < 2**63 for each in numbers)
    except (ValueError, KeyError, TypeError, RecursionError):
        is_fit, numbers = False, (0, 0, 0)
    if not is_fit or numbers[0] == 0:
        raise InterlockError(
            code="watch-file",
            where=str(folder / NAME),
            expected=f"what {SCHEMA} says",
            got="something else",
            hint="it was not written by this version of interlock; the recording can be read all the same",
            next=LOG.format(folder=folder),
        )
    return numbers


def _attach(folder: Path, pid: int, started: int, descriptor: int) -> _core.Watched:
    # Its number may have been given to another process since.
    if _started(pid) != started:
        raise nothing_runs(folder, f"process {pid}, which has ended")
    place = f"/proc/{pid}/fd/{descriptor}"
    try:
        # Opened only if it is what it should be: to open something else may do something.
        if not str(Path(place).readlink()).startswith(MEMORY):
            raise nothing_runs(folder, f"process {pid}, which shows nothing any more")
        opened = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        raise _not_yours(folder) from None
    except OSError:
        raise nothing_runs(folder, f"process {pid}, which shows nothing any more") from None
    try:
        return _core.Watched.attach(opened)
    except _core.CoreError as refusal:
        raise InterlockError(code=refusal.code, where=str(folder), got=str(refusal), hint=refusal.hint) from None
    finally:
        os.close(opened)


def _not_yours(folder: Path) -> InterlockError:
    return InterlockError(
        code="watch-not-yours",
        where=str(folder),
        expected="a run of your own",
        got="another user's",
        hint="watch as the user who runs it; a program with capabilities of its own is closed to others, root excepted",
        next="interlock watch --help",
        exit=Exit.REFUSED,
    )


def _started(pid: int) -> int:
    """When a process started; -1 where there is none, or it has ended and was not waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return -1
    return -1 if fields[0] in "ZX" else int(fields[STARTED])
