"""The worker's process: says when it is ready, and never outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess

import numpy as np
import pytest
import tiny_plan as tiny
from tiny_robot import SECOND_NS, WORKER, start

from interlock import _core


def rings() -> tuple[_core.Ring, _core.Ring]:
    """Observations in, chunks out."""
    return (
        _core.Ring.create("observation", 4, _core.observation_bytes(tiny.JOINTS)),
        _core.Ring.create("chunk", 4, _core.chunk_bytes(1, tiny.JOINTS)),
    )


def asked(observation: _core.Ring, chunk: _core.Ring, parent: int) -> dict:
    """What the worker's process is told."""
    return {
        "plan": tiny.plan(),
        "graph": tiny.graph().hex(),
        "library": tiny.library(),
        "observation": observation.fd,
        "chunk": chunk.fd,
        "images": [],
        "generation": 7,
        "parent": parent,
    }


def test_a_worker_says_that_it_is_ready_and_ends_with_its_parent() -> None:
    parent = subprocess.Popen(["sleep", "600"])
    observation, chunk = rings()
    worker = start(WORKER, asked(observation, chunk, parent.pid), [observation.fd, chunk.fd])
    try:
        assert chunk.wait(0, 30 * SECOND_NS)
        ready = np.zeros(_core.chunk_bytes(1, tiny.JOINTS), np.uint8)
        assert chunk.latest(ready) is not None
        generation, seq, _, status, _, rows = ready.view(np.uint64)[:6]
        assert (generation, seq, status, rows) == (7, 0, 0, 0)
        assert worker.poll() is None
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        assert worker.wait(30) == 0
    finally:
        worker.kill()
        worker.wait()


def test_a_graph_that_does_not_fit_the_plan_is_refused_before_the_worker_is_ready() -> None:
    observation, chunk = rings()
    with pytest.raises(_core.CoreError) as refusal:
        _core.run_worker(
            tiny.text(tiny.plan()),
            tiny.graph(rows=3),
            tiny.library(),
            observation=observation,
            chunk=chunk,
            images=[],
            generation=1,
        )
    assert refusal.value.code == "engine-input"
    assert not chunk.wait(0, 0)


def test_too_few_camera_rings_are_refused() -> None:
    observation, chunk = rings()
    with pytest.raises(_core.CoreError) as refusal:
        _core.run_worker(
            tiny.text(tiny.seeing(tiny.plan())),
            tiny.seeing_graph(),
            tiny.library(),
            observation=observation,
            chunk=chunk,
            images=[],
            generation=1,
            parent_pidfd=os.pidfd_open(os.getpid()),
        )
    assert refusal.value.code == "ring-layout"
