"""What the control thread does per tick: guard and recording on, hand-off and network excluded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benches.conditions import conditions_of, problems_of, scheduler_of
from benches.fixtures.texts import Kind
from benches.floor import Floor
from benches.job import PRIORITY, Job
from benches.lab import Lab, MeasurementError
from benches.registry import benchmark
from benches.rows import Row, Target, failed, sampled, single

ROBOTS: dict[int, tuple[tuple[int, Kind], ...]] = {
    500: ((12, "position_pd"), (12, "position"), (29, "position_pd")),
    100: ((12, "position_pd"), (29, "position_pd")),
}
# Seconds: p99.9 needs 6,636 ticks, which 100 Hz cannot give in the time of a benchmark.
LENGTHS = {500: 14.0, 100: 7.5}
PLAIN_S = 7.5
WORK = (Target("p50", 5.0), Target("p99", 20.0))
NO_ALLOCATION = (Target("value", 0.0),)


def standard_job(lab: Lab, rate_hz: int = 500) -> Job:
    """12 joints, position_pd: the measurement that several benchmarks look at."""
    if lab.is_quick:
        return Job(contender="interlock", rate_hz=rate_hz, seconds=2.0, floor_seconds=0.5, priority=PRIORITY)
    return Job(contender="interlock", rate_hz=rate_hz, seconds=LENGTHS[rate_hz], priority=PRIORITY)


@benchmark(
    "control_work", "control-thread work per tick, guard and recording on, hand-off and network excluded", order=1
)
def control_work(lab: Lab) -> Iterator[Row]:
    for rate_hz in (500,) if lab.is_quick else (500, 100):
        for joints, kind in ROBOTS[rate_hz][:1] if lab.is_quick else ROBOTS[rate_hz]:
            case = f"{joints} joints, {kind}, {rate_hz} Hz"
            try:
                measured = lab.one(replace(standard_job(lab, rate_hz), joints=joints, kind=kind))
            except MeasurementError as failure:
                yield failed("work per tick", case, str(failure), unit="us", targets=WORK)
                continue
            case = f"{case}, {scheduler_of(measured)}"
            floor = Floor.around([measured])
            conditions = conditions_of(measured, floor)
            problems = problems_of(measured)
            for name, words in (("work_ns", ""), ("work_alone_ns", ", without waking the driver's process")):
                yield sampled(
                    "work per tick", case + words, measured.of(name), floor=floor, targets=WORK, problems=problems,
                    conditions=conditions,
                )  # fmt: skip
            ticks = measured.count("executed")
            yield single(
                "allocations per tick", case, measured.count("control_allocations") / max(ticks, 1), n=ticks, unit="1",
                targets=NO_ALLOCATION, problems=problems, conditions=conditions,
            )  # fmt: skip
        if lab.is_quick:
            continue
        plain = lab.one(replace(standard_job(lab, rate_hz), contender="plain", seconds=PLAIN_S))
        floor = Floor.around([plain])
        yield sampled(
            "work per tick", f"plain Python loop, 12 joints, {rate_hz} Hz, {scheduler_of(plain)}", plain.of("work_ns"), floor=floor,
            conditions=conditions_of(plain, floor),
        )  # fmt: skip
