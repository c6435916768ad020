"""Camera pictures to network tensors, beside OpenCV and numpy on the same core."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benches.job import Job
from benches.lab import Lab
from benches.registry import benchmark
from benches.rows import Row, Target, not_evaluated, sampled, single

FASTER = (Target("value", 2.0, is_lower=True),)
EQUAL = (Target("value", 1.0),)
CASE = "three 640x480 to 224x224, normalised"


@benchmark("preprocess", "preprocessing three cameras on one core, beside OpenCV with numpy", order=7)
def preprocess(lab: Lab) -> Iterator[Row]:
    job = Job(contender="preprocess", joints=29, rate_hz=1000, seconds=0.5 if lab.is_quick else 4.0, floor_seconds=0)
    measured = lab.one(job)
    if "missing" in measured.facts:
        yield not_evaluated("times faster", CASE, measured.facts["missing"], unit="1", targets=FASTER)
        return
    ours, reference = measured.of("ours_ns"), measured.of("reference_ns")
    yield sampled("preprocess", f"interlock, through its Python boundary, {CASE}", ours, unit="ms")
    yield sampled("preprocess", f"OpenCV {measured.facts['opencv']} with numpy, {CASE}", reference, unit="ms")
    faster = float(np.median(reference) / np.median(ours))
    yield single("times faster, medians", CASE, faster, n=ours.size, unit="1", targets=FASTER)
    yield single(
        "largest difference, grey levels",
        CASE,
        measured.facts["worst_grey_levels"],
        n=ours.size,
        unit="1",
        targets=EQUAL,
    )
