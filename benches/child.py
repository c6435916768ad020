"""The measuring process: `python -m benches.child OUT`, the job as JSON on standard input. Ends when its parent does."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

PR_SET_PDEATHSIG = 1
FLOOR_WARMUP = 5  # wake-ups


def main() -> int:
    """Measures and leaves the answer in OUT."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    launched = json.load(sys.stdin)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)
    if os.getppid() != launched["parent_pid"]:
        return 130
    from benches.host import Load  # noqa: PLC0415
    from benches.job import I64, NO_SAMPLES, Given, Job  # noqa: PLC0415

    job = Job(**launched["job"])
    given = Given(folder=Path(launched["folder"]), launched_ns=launched["launched_ns"])
    measure = import_module(f"benches.contenders.{job.contender}").measure
    from benches.busy import busy_thread  # noqa: PLC0415
    from interlock import _core  # noqa: PLC0415

    crowding: list[float] = []
    cost_us: list[float] = []

    def floor() -> I64:
        if job.floor_seconds <= 0:
            return NO_SAMPLES
        before, began_s, used_ns = Load.now(), time.monotonic(), time.process_time_ns()
        late = _core.floor(float(job.rate_hz), job.floor_seconds, job.priority)
        cost_us.append((time.process_time_ns() - used_ns) / 1e3 / late.size)
        if (share := before.crowding(Load.now(), time.monotonic() - began_s)) is not None:
            crowding.append(share)
        return late[FLOOR_WARMUP:]

    with busy_thread(is_busy=job.is_busy):
        before = floor()
        measured = measure(job, given)
        measured.floor_before, measured.floor_after = before, floor()
    measured.facts["crowding"] = crowding
    measured.facts["floor_cpu_us_per_tick"] = cost_us
    measured.write(Path(sys.argv[1]))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
