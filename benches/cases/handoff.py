"""From an observation to the chunk of a worker process and back, without the time inside the engine."""

from __future__ import annotations

from collections.abc import Iterator

from benches.cases.control_work import standard_job
from benches.conditions import conditions_of, problems_of, scheduler_of
from benches.floor import Floor
from benches.job import PRIORITY, Job
from benches.lab import Lab
from benches.registry import benchmark
from benches.rows import Row, Target, sampled

SLOW = Job(contender="interlock", rate_hz=50, seconds=13.5, priority=PRIORITY)
TARGET = (Target("p99", 250.0),)


@benchmark("handoff", "hand-off to a worker process and back, synchronous policy, network excluded", order=2)
def handoff(lab: Lab) -> Iterator[Row]:
    for job in (standard_job(lab),) if lab.is_quick else (standard_job(lab), SLOW):
        measured = lab.one(job)
        floor = Floor.around([measured], shares_processors=True)  # the worker does
        conditions = conditions_of(measured, floor)
        case = f"{job.joints} joints, {job.rate_hz} Hz, loop {scheduler_of(measured)}, worker OTHER"
        yield sampled(
            "hand-off", case, measured.of("handoff_ns"), floor=floor, targets=TARGET, problems=problems_of(measured),
            conditions=conditions,
        )  # fmt: skip
        yield sampled("inside the engine", case, measured.of("infer_ns"), conditions=conditions)
