"""From the launch of a cold process to the first command of the policy at the drives."""

from __future__ import annotations

import time

import numpy as np

from benches.contenders.interlock import begin, bound_of, options_of
from benches.job import Job, Measured
from interlock.serve.paced import PacedRun

POLL_S = 0.002
GIVE_UP_S = 10.0


def measure(job: Job, launched_ns: int) -> Measured:
    """Starts one run and takes it down again."""
    from pathlib import Path  # noqa: PLC0415
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    marks = {"imported_ns": time.monotonic_ns()}
    bound = bound_of(job)
    marks["bound_ns"] = time.monotonic_ns()
    with (
        TemporaryDirectory(prefix="interlock-bench-") as folder,
        PacedRun(bound, options_of(job, Path(folder) / "run.mcap")) as run,
    ):
        marks["ready_ns"] = time.monotonic_ns()
        begin(run)
        marks["running_ns"] = time.monotonic_ns()
        until_ns = time.monotonic_ns() + int(GIVE_UP_S * 1e9)
        while not (seen := run.ask_simulation({"do": "count"}))["first_policy_write_ns"]:
            if time.monotonic_ns() > until_ns or run.wait(POLL_S):
                raise RuntimeError(f"no command came: {run.status()}")
        granted = dict(run.granted)
    marks["commanded_ns"] = int(seen["first_policy_write_ns"])
    series = {name: np.array([at_ns - launched_ns], dtype=np.int64) for name, at_ns in marks.items()}
    return Measured(job=job, series=series, facts={"granted": granted, "first_write_ns": seen["first_write_ns"]})
