"""How a paced run is set up and set going. Imports no more than a run needs: starting is measured with it."""

from __future__ import annotations

from pathlib import Path

from benches.job import Job
from interlock.serve.paced import PacedOptions, PacedRun

DRIVER = "benches.fixtures.steady:SteadyRobot"
MODE_TIMEOUT_S = 10.0
START_RETRY_S = 0.02
GOAL = (0.5, 0.0, 0.0)


def options_of(job: Job, recording: Path) -> PacedOptions:
    """How a job is run: recorded, guarded, one inference thread."""
    return PacedOptions(
        driver=DRIVER,
        recording=recording,
        record_images="png" if job.has_cameras else "none",
        header={"benchmark": True},
        realtime_priority=job.priority,
        simulated=True,
    )


def begin(run: PacedRun) -> None:
    """Arms and starts. Raises `RuntimeError` with the loop's own reason when it does not come to that."""
    if run.bound.plan["goal"]["velocity"] is not None:
        run.retask(None, GOAL)
    run.request("recover" if run.mode() == "Holding" else "arm")
    if run.wait_mode("Armed", timeout_s=MODE_TIMEOUT_S) is None:
        raise RuntimeError(f"arm was not granted: {run.status()}")
    for _ in range(int(MODE_TIMEOUT_S / START_RETRY_S)):
        run.request("start")  # refused until what arming begins has come to its end
        if run.wait_mode("Running", timeout_s=START_RETRY_S) is not None:
            return
        if run.mode() == "Holding":  # a worker that is late in the very first tick is lost at once
            run.request("recover")
            run.wait_mode("Armed", timeout_s=START_RETRY_S)
    raise RuntimeError(f"start was not granted: {run.status()}")
