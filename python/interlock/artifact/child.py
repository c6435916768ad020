"""Foreign frameworks and native parsers run here: a child process with limits, answering in JSON and plain arrays."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from interlock.errors import Exit, InterlockError

from .arrays import Arrays, read_arrays, write_arrays
from .files import read_file

Progress = Callable[[str], None]

_LONGEST_ANSWER = 16 << 20  # bytes of JSON
_KEPT_OUTPUT = 20_000  # bytes of what a child says, for the refusal
_HEARTBEAT_S = 1.0  # nothing is silent for two seconds

_ROOT = str(Path(__file__).parents[2])  # where this very package lies, which `-I` may not find by itself

# Runs in the child before anything else: the limits hold for the script and for what it loads.
_BOOT = """
import resource, runpy, sys
limits, kind, root, target = sys.argv[1].split(","), sys.argv[2], sys.argv[3], sys.argv[4]
for name, value in (each.split("=") for each in limits):
    which = getattr(resource, name)
    hard = resource.getrlimit(which)[1]
    value = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
    resource.setrlimit(which, (value, value))
sys.argv = sys.argv[4:]
if root:
    sys.path.insert(0, root)
runpy.run_path(target, run_name="__main__") if kind == "file" else runpy.run_module(target, run_name="__main__")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a child may use.

    Attributes:
        seconds: Wall-clock time.
        memory_bytes: Private memory.
        file_bytes: Largest file it may write.
    """

    seconds: float = 900.0
    memory_bytes: int = 16 << 30
    file_bytes: int = 4 << 30

    def words(self) -> str:
        """As `_BOOT` reads them."""
        return (
            f"RLIMIT_CORE=0,RLIMIT_DATA={self.memory_bytes},RLIMIT_FSIZE={self.file_bytes},"
            f"RLIMIT_CPU={max(1, int(self.seconds * 4))},RLIMIT_NOFILE=1024"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a child found out.

    Attributes:
        facts: Its JSON.
        arrays: Its arrays.
        files: Files it made, by name.
    """

    facts: dict[str, Any]
    arrays: Arrays = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)


class ChildFailed(InterlockError):
    """A child ended without an answer: it crashed, was killed, or ran out of time or memory."""


def run_child(
    program: Path | str,
    *,
    request: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]] | None = None,
    files: Mapping[str, bytes] | None = None,
    wanted: tuple[str, ...] = (),
    python: Path | None = None,
    limits: Limits | None = None,
    progress: Progress | None = None,
    what: str,
) -> Answer:
    """Runs a program of ours in an empty folder that holds only what it is given.

    The child finds `request.json`, `arrays.npz` and `files`, and writes `answer.json`, `answer.npz` and `wanted`. Lines
    that it prints go to `progress`.

    Args:
        program: A script's path, which needs nothing of this package, or a module's name.
        request: Plain data.
        arrays: Named arrays.
        files: Verified bytes, by plain name.
        wanted: Names of files that it makes.
        python: Another interpreter; only for scripts.
        limits: What it may use.
        progress: Called at least every second.
        what: What is being done, for messages.

    Raises:
        InterlockError: What the child refused, with its code; `framework-missing` when a package is not installed.
        ChildFailed: `child-failed`, `child-timeout`.
    """
    limits = limits or Limits()
    folder = Path(tempfile.mkdtemp(prefix="interlock-child-"))
    try:
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        (folder / "arrays.npz").write_bytes(write_arrays(arrays or {}))
        for name, content in (files or {}).items():
            (folder / name).write_bytes(content)
        own = isinstance(program, str)
        boot = [limits.words(), "module" if own else "file", _ROOT if own else "", str(program), str(folder)]
        command = [str(python or sys.executable), "-I", "-c", _BOOT, *boot]
        status, said = _watch(command, folder, limits, progress, what)
        return _answer(folder, status, said, wanted, what)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watch(command: list[str], folder: Path, limits: Limits, progress: Progress | None, what: str) -> tuple[int, str]:
    """Runs the command to its end; returns its status and the end of what it said."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    environment = {**kept, "HOME": str(folder), "TMPDIR": str(folder), "CUDA_VISIBLE_DEVICES": ""}
    try:
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as cause:
        raise InterlockError(
            code="child-start",
            where=command[0],
            expected="a Python interpreter",
            got=os.strerror(cause.errno or 0),
            hint="name an interpreter that exists with --python",
        ) from None
    tail = bytearray()
    begun = reported = time.monotonic()
    ended = os.pidfd_open(child.pid)
    try:
        with selectors.DefaultSelector() as selector:
            assert child.stdout is not None
            selector.register(child.stdout, selectors.EVENT_READ)
            selector.register(ended, selectors.EVENT_READ)
            while _listen(selector, child.stdout, ended, tail, progress):
                now = time.monotonic()
                if now - begun > limits.seconds:
                    raise ChildFailed(
                        code="child-timeout",
                        where=what,
                        expected=f"an answer within {limits.seconds:.0f} s",
                        got="none",
                        hint="this computer is too slow for this model, or the checkpoint is damaged",
                        exit=Exit.NOT_EVALUATED,
                    )
                if progress is not None and now - reported >= _HEARTBEAT_S:
                    reported = now
                    progress(f"{what} … {now - begun:.0f} s")
    finally:
        # The group, not the process: whatever it started ends with it, also when it has ended itself. It was not waited
        # for yet, so its number cannot belong to anybody else.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        status = child.wait()
        os.close(ended)
        if child.stdout is not None:
            child.stdout.close()
    return status, bytes(tail).decode("utf-8", "replace")


def _listen(
    selector: selectors.BaseSelector, stream: IO[bytes], ended: int, tail: bytearray, progress: Progress | None
) -> bool:
    """Takes what the child says for at most one heartbeat; False once it has ended and said everything."""
    ready = {key.fd for key, _ in selector.select(_HEARTBEAT_S)}
    if stream.fileno() not in ready:
        return ended not in ready
    said = os.read(stream.fileno(), 65_536)
    if not said:
        selector.unregister(stream)
        return True
    tail += said
    del tail[:-_KEPT_OUTPUT]
    if progress is not None:
        for line in said.decode("utf-8", "replace").splitlines():
            if line.startswith("progress: "):
                progress(line.removeprefix("progress: ")[:200])
    return True


def _answer(folder: Path, status: int, said: str, wanted: tuple[str, ...], what: str) -> Answer:
    path = folder / "answer.json"
    if not path.is_file():
        raise _failure(status, said, what)
    try:
        facts = json.loads(read_file(folder, "answer.json", limit=_LONGEST_ANSWER))
    except (ValueError, RecursionError):
        raise _failure(status, said, what) from None
    refusal = facts.get("refusal") if isinstance(facts, dict) else None
    if isinstance(refusal, dict):
        raise InterlockError(
            code=str(refusal.get("code", "child-failed")),
            where=str(refusal.get("where", what)),
            expected=str(refusal.get("expected", "")),
            got=str(refusal.get("got", "")),
            hint=str(refusal.get("hint", "")),
            exit=Exit.NOT_EVALUATED if refusal.get("code") == "framework-missing" else Exit.REFUSED,
        )
    if status != 0 or not isinstance(facts, dict):
        raise _failure(status, said, what)
    arrays: Arrays = {}
    if (folder / "answer.npz").is_file():
        arrays = read_arrays(read_file(folder, "answer.npz"), where=f"{what}: answer")
    return Answer(facts=facts, arrays=arrays, files={name: read_file(folder, name) for name in wanted})


def _failure(status: int, said: str, what: str) -> ChildFailed:
    ended = f"ended by signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    last = [line.strip() for line in said.splitlines() if line.strip()]
    return ChildFailed(
        code="child-failed",
        where=what,
        expected="an answer",
        got=f"{ended}{': ' + last[-1][:300] if last else ''}",
        hint="the program that reads the checkpoint failed; the checkpoint may be damaged or of another version",
        exit=Exit.FAIL,
    )


def refuse_in_child(folder: Path, **refusal: str) -> None:
    """Called in a child: answers with a refusal."""
    (folder / "answer.json").write_text(json.dumps({"refusal": refusal}), encoding="utf-8")


def answer_in_child(folder: Path, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Called in a child: answers."""
    (folder / "answer.npz").write_bytes(write_arrays(arrays))
    (folder / "answer.json").write_text(json.dumps(facts), encoding="utf-8")
