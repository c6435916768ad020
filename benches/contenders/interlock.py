"""This project's paced loop: supervisor, worker and driver as three processes, as every run has them."""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benches.contenders.running import begin, options_of
from benches.fixtures.policies import actor_bound, chunk_bound
from benches.job import I64, Given, Job, Measured
from interlock.runtime.bound import Bound
from interlock.serve.paced import PacedRun
from interlock.view.recording import Recording

WARMUP_S = 0.3
SLICE_S = 0.25  # Ctrl-C is heard between two waits
COUNTED = ("planned", "executed", "missed", "offered", "chunks", "late", "limited", "refused", "control_allocations")


@dataclass(frozen=True, slots=True)
class Moment:
    """Counters and processor time at one moment."""

    counters: dict[str, int]
    monotonic_ns: int
    supervisor_s: float
    worker_s: float
    driver_s: float

    @classmethod
    def of(cls, run: PacedRun) -> Moment:
        """Reads them."""
        status = run.status()
        used = resource.getrusage(resource.RUSAGE_SELF)
        return cls(
            {name: int(status[name]) for name in COUNTED},
            time.monotonic_ns(),
            used.ru_utime + used.ru_stime,
            processor_s(run.worker.process.pid),
            processor_s(run.driver.process.pid),
        )


def processor_s(pid: int) -> float:
    """Processor time of another process, all its threads."""
    return time.clock_gettime((~pid << 3) | 2)  # the kernel's number for that process's CPU clock


def bound_of(job: Job, folder: Path) -> Bound:
    """Policy and robot of a job."""
    if job.has_cameras:
        return chunk_bound(folder, job.rate_hz)
    return actor_bound(folder, job.joints, job.kind, job.rate_hz)


def measure(job: Job, given: Given) -> Measured:
    """Runs a policy in mode Running for `job.seconds`."""
    bound = bound_of(job, given.folder)
    with TemporaryDirectory(prefix="interlock-bench-") as folder:
        recording = Path(folder) / "run.mcap"
        with PacedRun(bound, options_of(job, recording)) as run:
            begin(run)
            _wait(run, WARMUP_S)
            first = Moment.of(run)
            _wait(run, job.seconds)
            last = Moment.of(run)
            mode, granted = run.mode(), dict(run.granted)
            cause = str(run.status().get("cause", ""))
            timings = run.supervisor.timings()
            final = run.stop()
        recorded = Recording.open(recording)
        size = recording.stat().st_size
    counters = {name: last.counters[name] - first.counters[name] for name in COUNTED}
    series = _series(timings, first, last) | _stages(recorded, first.monotonic_ns, last.monotonic_ns)
    series["work_alone_ns"] = series["work_ns"] - _sending(recorded, first, last)
    unanswered = _unanswered(recorded, first.monotonic_ns, last.monotonic_ns)
    if bound.plan["timing"]["synchronous"] and unanswered:
        # Nobody saw when these were answered; they took the deadline at least.
        at_least = np.full(unanswered, bound.plan["timing"]["inference_deadline_ns"], dtype=np.int64)
        series["handoff_ns"] = np.concatenate([series["handoff_ns"], at_least])
    ticks = max(counters["executed"], 1)
    facts: dict[str, Any] = {
        "counters": counters,
        "granted": granted,
        "recording": {**(final.get("recording") or {}), "file_bytes": size},
        "cpu_us_per_tick": {
            "supervisor": (last.supervisor_s - first.supervisor_s) / ticks * 1e6,
            "worker": (last.worker_s - first.worker_s) / ticks * 1e6,
            "driver": (last.driver_s - first.driver_s) / ticks * 1e6,
        },
        "unanswered": unanswered,
        "problems": _problems(counters, mode, cause),
    }
    return Measured(job=job, series=series, facts=facts)


def _wait(run: PacedRun, seconds: float) -> None:
    until_ns = time.monotonic_ns() + int(seconds * 1e9)
    while (left_s := (until_ns - time.monotonic_ns()) / 1e9) > 0:
        if run.wait(min(left_s, SLICE_S)):
            return


def _series(timings: dict[str, I64], first: Moment, last: Moment) -> dict[str, I64]:
    """Samples of the measured window: one per executed tick, of lateness one per planned tick."""
    windows = {
        "lateness_ns": (first.counters["planned"], last.counters["planned"]),
        "work_ns": (first.counters["executed"], last.counters["executed"]),
        "record_ns": (first.counters["executed"], last.counters["executed"]),
    }
    return {name: timings[name][begin:end] for name, (begin, end) in windows.items()}


def _stages(recorded: Recording, first_ns: int, last_ns: int) -> dict[str, I64]:
    """Inference and hand-off of every chunk of the window, from the recording.

    Hand-off: from the observation being ready to the control thread seeing its chunk, without the time inside the
    engine. Preprocessing, decoding, both ways through shared memory and both wake-ups are in it.
    """
    ticks = recorded.ticks
    offers = ticks.offered.astype(bool)
    observed = dict(zip(ticks.observation_seq[offers].tolist(), ticks.observed_ns[offers].tolist(), strict=True))
    rows = [
        (chunk.arrived_ns - observed[chunk.seq], chunk.inferred_ns - chunk.preprocessed_ns,
         chunk.preprocessed_ns - chunk.received_ns)
        for chunk in recorded.chunks
        if chunk.seq in observed and first_ns <= observed[chunk.seq] < last_ns and chunk.inferred_ns > 0
    ]  # fmt: skip
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return {
        "handoff_ns": table[:, 0] - table[:, 1],
        "round_trip_ns": table[:, 0],
        "infer_ns": table[:, 1],
        "preprocess_ns": table[:, 2],
    }


def _sending(recorded: Recording, first: Moment, last: Moment) -> I64:
    """Waking the driver's process with the command, per executed tick of the window."""
    ticks = recorded.ticks
    taken = np.where(ticks.sent_ns > 0, ticks.sent_ns - ticks.acted_ns, 0)
    return taken[first.counters["executed"] : last.counters["executed"]].astype(np.int64)


def _unanswered(recorded: Recording, first_ns: int, last_ns: int) -> int:
    """Observations of the window whose chunk was never seen: a newer one took its place."""
    ticks = recorded.ticks
    offers = ticks.offered.astype(bool) & (ticks.observed_ns >= first_ns) & (ticks.observed_ns < last_ns)
    return len(set(ticks.observation_seq[offers].tolist()) - {chunk.seq for chunk in recorded.chunks})


def _problems(counters: dict[str, int], mode: str, cause: str) -> list[str]:
    found = []
    if counters["planned"] != counters["executed"] + counters["missed"]:
        found.append(f"ticks do not add up: {counters['planned']} planned, {counters}")
    if mode != "Running":
        found.append(f"left Running for {mode}: {cause}")
    return found
