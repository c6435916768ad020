"""Three camera pictures to network tensors: this project's stage and OpenCV with numpy, turn by turn on one core."""

from __future__ import annotations

import os
import time
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benches.fixtures.policies import chunk_bound
from benches.fixtures.texts import CAMERA_HW, CAMERAS, SIDE
from benches.job import Given, Job, Measured
from interlock import _core

MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)
WARMUP = 3


def measure(job: Job, given: Given) -> Measured:
    """Alternates both for `job.seconds`."""
    try:
        cv2 = import_module("cv2")
    except ImportError:
        return Measured(job=job, facts={"missing": "opencv is not installed (pip install opencv-python-headless)"})
    cv2.setNumThreads(1)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rng = np.random.default_rng(0)
    pictures = [[_picture(rng) for _ in CAMERAS] for _ in range(4)]
    bound = chunk_bound(given.folder, job.rate_hz)
    pipeline = _core.Pipeline(bound.plan_json, None, str(bound.library))
    sample = np.zeros(3 * job.joints + 10)
    sample[3 * job.joints] = 1.0
    ours: list[int] = []
    theirs: list[int] = []
    worst, turn = 0.0, 0
    until_ns = time.monotonic_ns() + int(job.seconds * 1e9)
    while time.monotonic_ns() < until_ns or turn < WARMUP + 11:
        seen = pictures[turn % len(pictures)]
        at = [time.monotonic_ns()]
        tensors = pipeline.preprocess(sample, seen)
        at.append(time.monotonic_ns())
        wanted = [_reference(cv2, picture) for picture in seen]
        at.append(time.monotonic_ns())
        worst = max(worst, *(_grey_levels(tensors[name], other) for name, other in zip(CAMERAS, wanted, strict=True)))
        turn += 1
        if turn > WARMUP:
            ours.append(at[1] - at[0])
            theirs.append(at[2] - at[1])
    return Measured(
        job=job,
        series={"ours_ns": np.array(ours, dtype=np.int64), "reference_ns": np.array(theirs, dtype=np.int64)},
        facts={"worst_grey_levels": round(worst, 3), "opencv": cv2.__version__},
    )


def _picture(rng: np.random.Generator) -> NDArray[np.uint8]:
    return rng.integers(0, 256, size=(*CAMERA_HW, 3), dtype=np.uint8)


def _reference(cv2: Any, picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    small = cv2.resize(picture, (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
    scaled = (small.astype(np.float32) / 255.0 - MEAN) / STD
    return np.ascontiguousarray(scaled.transpose(2, 0, 1)[None])


def _grey_levels(ours: NDArray[np.float32], theirs: NDArray[np.float32]) -> float:
    return float(np.max(np.abs((ours - theirs) * STD.reshape(1, 3, 1, 1))) * 255.0)
