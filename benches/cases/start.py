"""From the launch of a cold process to the first guarded command of a small policy at the drives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benches.conditions import problems_of
from benches.fixtures.prepare import write_release
from benches.floor import Noise
from benches.job import Job, pooled
from benches.lab import Lab
from benches.registry import benchmark
from benches.rows import Row, Target, single

TARGET = (Target("value", 1.5),)
STARTS = 5
FAIR_SHARE = 0.8
STAGES = {
    "imported_ns": "interpreter and imports",
    "bound_ns": "and release verified, contract bound",
    "ready_ns": "and driver, worker and loop ready",
    "first_ns": "first command at the drives, armed",
    "running_ns": "and running",
}


@benchmark("start", "launch of a process to the first guarded command of a release, policy at 50 Hz", order=6)
def start(lab: Lab) -> Iterator[Row]:
    job = Job(contender="start", rate_hz=50, seconds=1.0, floor_seconds=0)
    write_release(lab.folder, job.joints, job.rate_hz)
    if not lab.is_quick:
        lab.run(job)  # fills the page cache: the process is cold, the disk is not what is measured
    measured = pooled([lab.run(job) for _ in range(1 if lab.is_quick else STARTS)])
    n = measured.of("commanded_ns").size
    problems = problems_of(measured)
    # Imports keep one processor busy; when they got less than that, others had it.
    share = float(measured.of("importing_ns").sum() / measured.of("imported_ns").sum())
    words = f"noisy: only {share:.0%} of a processor while importing"
    noise = Noise(words, 1 / share) if share < FAIR_SHARE else None
    for name, words in STAGES.items():
        yield single("median time since launch", words, float(np.median(measured.of(name))) / 1e9, n=n, unit="s")
    yield single(
        "median time since launch", "first command of the policy at the drives",
        float(np.median(measured.of("commanded_ns"))) / 1e9, n=n, unit="s", targets=TARGET,
        noise=noise, problems=problems, conditions={"each_s": [each / 1e9 for each in measured.of("commanded_ns").tolist()]},
    )  # fmt: skip
