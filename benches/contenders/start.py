"""From the launch of a cold process to the first command of a release's policy at the drives."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benches.contenders.running import begin, options_of
from benches.fixtures.prepare import RELEASE
from benches.job import Given, Job, Measured
from interlock.cli.load import load_bound
from interlock.serve.paced import PacedRun

POLL_S = 0.002
GIVE_UP_S = 10.0


def measure(job: Job, given: Given) -> Measured:
    """Loads and verifies a policy folder, runs it, and takes it down again."""
    marks = {"imported_ns": time.monotonic_ns()}
    importing_ns = time.process_time_ns()
    bound = load_bound(given.folder / RELEASE, given.folder / "robot.yaml")
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
            if run.mode() == "Holding":
                begin(run)
        granted = dict(run.granted)
    marks["first_ns"] = int(seen["first_write_ns"])
    marks["commanded_ns"] = int(seen["first_policy_write_ns"])
    series = {name: np.array([at_ns - given.launched_ns], dtype=np.int64) for name, at_ns in marks.items()}
    series["importing_ns"] = np.array([importing_ns], dtype=np.int64)
    return Measured(job=job, series=series, facts={"granted": granted})
