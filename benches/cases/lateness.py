"""How late a tick begins, beside the operating system's own lateness and beside a plain Python loop, turn by turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benches.conditions import conditions_of, problems_of
from benches.floor import Floor
from benches.job import PRIORITY, Job
from benches.lab import Lab, MeasurementError
from benches.registry import benchmark
from benches.rows import Row, Target, failed, sampled

ROUNDS = 2
# Seconds per round: (contender, each floor). Two rounds of both contenders give p99 to everything.
LENGTHS = {500: (2.0, 0.7), 100: (3.5, 1.0)}
QUICK = (1.5, 0.4)
TARGET = (Target("ratio", 1.2),)


@benchmark("lateness", "lateness of a tick beside bare clock_nanosleep and a plain Python loop", order=3)
def lateness(lab: Lab) -> Iterator[Row]:
    for rate_hz, priority, is_busy in _conditions(lab):
        seconds, floor_seconds = QUICK if lab.is_quick else LENGTHS[rate_hz]
        ours = Job(
            contender="interlock", rate_hz=rate_hz, priority=priority, is_busy=is_busy, seconds=seconds,
            floor_seconds=floor_seconds,
        )  # fmt: skip
        case = f"{rate_hz} Hz, {ours.scheduler}{', busy Python thread' if is_busy else ''}"
        try:
            measured = lab.in_turn([ours, replace(ours, contender="plain")], rounds=1 if lab.is_quick else ROUNDS)
        except MeasurementError as failure:
            yield failed("lateness", f"interlock, {case}", str(failure), unit="us", targets=TARGET)
            continue
        floor = Floor.around(measured)
        for name, each in zip(("interlock", "plain Python loop"), measured, strict=True):
            yield sampled(
                "lateness", f"{name}, {case}", each.of("lateness_ns"), floor=floor,
                targets=TARGET if name == "interlock" else (), problems=problems_of(each, needs_scheduler=True),
                conditions=conditions_of(each, floor),
            )  # fmt: skip
        yield sampled("lateness", f"floor, {case}", floor.samples, floor=floor)


def _conditions(lab: Lab) -> list[tuple[int, int, bool]]:
    if lab.is_quick:
        return [(500, 0, True)]
    return [
        (rate_hz, priority, is_busy)
        for rate_hz in (500, 100)
        for priority in (0, PRIORITY)
        for is_busy in (False, True)
    ]
