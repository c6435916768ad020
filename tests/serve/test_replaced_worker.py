"""A dead worker is replaced as often as it dies, and a replacement that cannot be loaded moves nothing."""

from __future__ import annotations

import dataclasses
import os
import signal

import pytest

from interlock.cli.load import load_bound
from interlock.errors import InterlockError
from interlock.serve.paced import PacedOptions, PacedRun

pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")

TASK = "reach the red block"


@pytest.fixture
def run(arm_policy, tmp_path):
    bound = load_bound(arm_policy, arm_policy.parent / "robot.yaml")
    options = PacedOptions(
        driver="sim:arm",
        driver_options={"seed": 3, "task": TASK},
        recording=tmp_path / "run.mcap",
        simulated=True,
    )
    with PacedRun(bound, options) as made:
        made.retask(TASK)
        yield made


def into_motion(run: PacedRun, what: str) -> None:
    assert run.ask(what, "Armed", timeout_s=10) == "Armed"
    assert run.ask("start", "Running", timeout_s=10) == "Running"
    before = run.status()["chunks"]
    run.wait(0.6)
    assert run.status()["chunks"] > before, "the worker in charge answers"
    assert run.mode() == "Running"


def lose_worker(run: PacedRun) -> int:
    """Kills the worker in charge; returns which process that was."""
    killed = run.worker.process.pid
    os.kill(killed, signal.SIGKILL)
    assert run.wait_mode("Holding", timeout_s=10) == "Holding"
    assert run.status()["cause"] == "worker-dead"
    return killed


def test_a_worker_killed_twice_in_a_row_is_replaced_twice(run):
    into_motion(run, "arm")
    killed = set()
    for _ in range(2):
        killed.add(lose_worker(run))
        run.replace_worker()
        assert run.mode() == "Holding", "a new worker alone changes nothing"
        into_motion(run, "recover")
    assert len(killed | {run.worker.process.pid}) == 3
    status = run.status()
    assert status["planned"] == status["executed"] + status["missed"]


def test_a_replacement_that_cannot_be_loaded_moves_nothing_and_the_next_one_serves(run):
    into_motion(run, "arm")
    lose_worker(run)
    good = run.bound
    run.bound = dataclasses.replace(good, graph=b"no graph at all")
    with pytest.raises(InterlockError):
        run.replace_worker()
    assert run.ask("recover", "Armed", timeout_s=0.5) is None
    assert run.mode() == "Holding"
    assert run.status()["request_refused"] == "not-ready"
    run.bound = good
    run.replace_worker()
    into_motion(run, "recover")
