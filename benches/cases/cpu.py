"""Processor time per tick besides the network, and what the network costs with default inference threads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benches.cases.control_work import standard_job
from benches.conditions import conditions_of, problems_of
from benches.floor import Floor
from benches.job import Job
from benches.lab import Lab
from benches.registry import benchmark
from benches.rows import Row, Target, single

TARGET = (Target("value", 100.0),)


@benchmark("cpu_per_tick", "processor time per tick besides the network, 500 Hz, 12 joints, full guard", order=4)
def cpu_per_tick(lab: Lab) -> Iterator[Row]:
    measured = lab.one(standard_job(lab))
    used = measured.facts["cpu_us_per_tick"]
    ticks = measured.count("executed")
    # The median does not count what the machine did to somebody else meanwhile; the sum would be subtracted too much.
    network_us = float(np.median(measured.of("infer_ns"))) / 1e3 * measured.of("infer_ns").size / max(ticks, 1)
    floor = Floor.around([measured], shares_processors=True)
    besides_us = used["supervisor"] + used["worker"] - network_us
    bare_us = float(measured.facts["floor_cpu_us_per_tick"][-1])  # the first one also locks the memory
    yield single(
        "processor time per tick", "supervisor and worker without the network", n=ticks, unit="us",
        value=besides_us, ratio=besides_us / bare_us, against="processor time of the bare loop per tick", noise=floor.noise(), targets=TARGET,
        problems=problems_of(measured), conditions={**conditions_of(measured, floor), "parts_us": {**used, "network": network_us}},
    )  # fmt: skip
    for name in ("supervisor", "worker"):
        yield single("processor time per tick", f"{name}, all of it", used[name], n=ticks, unit="us")
    yield single("processor time per tick", "a bare loop that only sleeps and wakes", bare_us, n=ticks, unit="us")
    seconds = 1.0 if lab.is_quick else 4.0
    one, default = lab.in_turn(
        [
            Job(contender="plain", joints=29, rate_hz=100, seconds=seconds, floor_seconds=0, threads=threads)
            for threads in (1, 0)
        ],
        rounds=1,
    )
    base = one.facts["cpu_us_per_tick"]["process"]
    for name, each in (("one thread, no spinning", one), ("default threads", default)):
        yield single(
            "processor time per tick", f"plain Python loop, 480 -> 29 network, 100 Hz, {name}",
            each.facts["cpu_us_per_tick"]["process"], n=each.count("executed"), unit="us",
            ratio=each.facts["cpu_us_per_tick"]["process"] / base, against="one thread, no spinning",
            conditions=conditions_of(each),
        )  # fmt: skip
