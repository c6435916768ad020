"""Runs measuring processes one at a time, turn by turn, and ends every one of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from benches.fixtures.prepare import write_graphs
from benches.host import Load
from benches.job import Job, Measured, pooled

ROOT = Path(__file__).parents[1]
GRACE_S = 30.0  # beyond the measured time: start, warm-up, coming to rest
END_S = 15.0
ENDING = (signal.SIGINT, signal.SIGTERM)
LAST_LINES = 6


class MeasurementError(Exception):
    """A measuring process did not answer. Carries its last words."""


@dataclass(slots=True, kw_only=True)
class Lab:
    """Where jobs are run.

    Attributes:
        is_quick: Shorter and fewer: shows that everything works, supports no claim.
        scale: Multiplies every measured time.
        on_job: Told what runs now.
    """

    is_quick: bool = False
    scale: float = 1.0
    on_job: Callable[[str], None] = lambda _text: None
    _folder: TemporaryDirectory[str] = field(default_factory=lambda: TemporaryDirectory(prefix="interlock-bench-"))
    _has_graphs: bool = False
    _kept: dict[tuple[Job, int], Measured] = field(default_factory=dict)

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    @property
    def folder(self) -> Path:
        """Graphs that measuring processes read; made on first use."""
        folder = Path(self._folder.name)
        if not self._has_graphs:
            self.on_job("making networks")
            write_graphs(folder)
            self._has_graphs = True
        return folder

    def run(self, job: Job) -> Measured:
        """One job, once."""
        job = job.scaled(self.scale)
        self.on_job(describe(job))
        before = Load.now()
        with TemporaryDirectory(prefix="interlock-bench-") as folder:
            out = Path(folder) / "measured.npz"
            self._process(job, out)
            measured = Measured.read(out)
        measured.facts["load"] = before.until(Load.now())
        return measured

    def one(self, job: Job, rounds: int = 1) -> Measured:
        """One job, measured once per invocation however many benchmarks ask for it."""
        key = (job, rounds)
        if key not in self._kept:
            self._kept[key] = pooled([self.run(job) for _ in range(rounds)])
        return self._kept[key]

    def in_turn(self, jobs: Sequence[Job], rounds: int) -> list[Measured]:
        """A B A B: what the machine does meanwhile hits all alike."""
        found: list[list[Measured]] = [[] for _ in jobs]
        for _ in range(rounds):
            for parts, job in zip(found, jobs, strict=True):
                parts.append(self.run(job))
        return [pooled(parts) for parts in found]

    def _process(self, job: Job, out: Path) -> None:
        asked = {"job": asdict(job), "parent_pid": os.getpid(), "folder": str(self.folder)}
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
        with (out.parent / "stderr").open("w+b") as said:
            launched_ns = time.monotonic_ns()
            with _ending_waits() as asked_to_end:
                process = subprocess.Popen(
                    [sys.executable, "-m", "benches.child", str(out)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    cwd=ROOT,
                    env=environment,
                    start_new_session=True,  # Ctrl-C is passed on once, by us
                )
            try:
                if asked_to_end:
                    raise KeyboardInterrupt
                text = json.dumps({**asked, "launched_ns": launched_ns})
                process.communicate(text.encode(), timeout=job.seconds + 2 * job.floor_seconds + GRACE_S)
            except subprocess.TimeoutExpired:
                raise MeasurementError(f"{describe(job)}: no end in sight, given up") from None
            finally:
                _end(process)
            if process.returncode != 0 or not out.exists():
                said.seek(0)
                lines = said.read().decode(errors="replace").strip().splitlines()[-LAST_LINES:]
                raise MeasurementError(f"{describe(job)}: ended with {process.returncode}: {' | '.join(lines)}")


@contextmanager
def _ending_waits() -> Iterator[list[int]]:
    """Ctrl-C between a fork and having its handle would leave a process that nobody ends."""
    noted: list[int] = []
    before = {number: signal.signal(number, lambda got, _frame: noted.append(got)) for number in ENDING}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks the process to bring its run to rest; insists after a while."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(END_S)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()


def describe(job: Job) -> str:
    """A job in a few words."""
    parts = [job.contender, f"{job.joints} joints", job.kind, f"{job.rate_hz} Hz", job.scheduler]
    if job.is_busy:
        parts.append("busy Python thread")
    return ", ".join(parts)
