"""Recording at 1 kHz with three cameras: what it costs the control thread, and whether anything is lost."""

from __future__ import annotations

from collections.abc import Iterator

from benches.conditions import conditions_of, problems_of, scheduler_of
from benches.floor import Floor
from benches.job import PRIORITY, Job
from benches.lab import Lab
from benches.registry import benchmark
from benches.rows import Row, Target, sampled, single

COST = (Target("p99", 2.0),)
NOTHING_LOST = (Target("value", 0.0),)


@benchmark("recording", "recording at 1 kHz, 29 joints, three 640x480 cameras at 30 Hz as PNG", order=5)
def recording(lab: Lab) -> Iterator[Row]:
    job = Job(
        contender="interlock", joints=29, kind="position", rate_hz=1000, seconds=1.5 if lab.is_quick else 20.0,
        has_cameras=True, priority=PRIORITY, floor_seconds=0.5 if lab.is_quick else 1.0,
    )  # fmt: skip
    measured = lab.one(job)
    floor = Floor.around([measured])
    conditions = {**conditions_of(measured, floor), "recording": measured.facts["recording"]}
    problems = problems_of(measured)
    case = f"29 joints, 1000 Hz, three cameras, {scheduler_of(measured)}"
    yield sampled(
        "record per tick", case, measured.of("record_ns"), floor=floor, targets=COST, problems=problems,
        conditions=conditions,
    )  # fmt: skip
    recorded = measured.facts["recording"]
    for name in ("ticks", "chunks"):
        yield single(
            f"{name} lost by the recording", case, recorded[f"{name}_dropped"], n=recorded["ticks"], unit="1",
            targets=NOTHING_LOST, problems=problems, conditions=conditions,
        )  # fmt: skip
    yield single("images lost by the recording", case, recorded["images_dropped"], n=recorded["images"], unit="1")
    yield sampled("work per tick", case, measured.of("work_ns"), floor=floor, conditions=conditions)
    yield sampled("three pictures to tensors, in the worker", case, measured.of("preprocess_ns"), unit="ms")
