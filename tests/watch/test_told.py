"""What happens around the loop stands on the same timeline: processes, refusals, signals, episodes."""

from __future__ import annotations

import os
import signal

import pytest

from interlock.cli.load import load_bound
from interlock.serve.operator import Operator, parse
from interlock.serve.paced import PacedOptions, PacedRun
from interlock.serve.session import Session, signals_noted
from interlock.view.log import lines

pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")


@pytest.fixture
def arm(arm_copy, tmp_path):
    """A run of the simulated arm, and how its timeline is read afterwards."""
    bound = load_bound(arm_copy, arm_copy.parent / "robot.yaml")
    options = PacedOptions(
        driver="sim:arm", driver_options={"seed": 3}, recording=tmp_path / "run.mcap", simulated=True,
        realtime_priority=50,
    )  # fmt: skip

    def told():
        return [(line.module, line.level, line.text) for line in lines(tmp_path / "run.mcap")]

    return PacedRun(bound, options), told


def test_how_a_process_ended_is_told_with_its_signal(arm):
    run, told = arm
    with run:
        run.retask("reach the red block")
        assert run.ask("arm", "Armed", timeout_s=10) == "Armed"
        pid = run.worker.process.pid
        os.kill(pid, signal.SIGKILL)
        assert run.wait_mode("Holding", timeout_s=10) == "Holding"
        while run.worker.process.poll() is None:
            run.wait(0.01)
        run.status()
        run.replace_worker()
    lines_ = told()
    assert lines_.count(("worker", "error", f"process {pid} was killed by SIGKILL")) == 1
    assert ("worker", "error", "the worker process ended") in lines_
    assert any(module == "worker" and text.startswith("worker 2 is loaded") for module, _, text in lines_)


def test_an_episode_a_refusal_and_a_signal_are_told(arm):
    run, told = arm
    with signals_noted() as noted, Operator() as operator, run:
        session = Session(run, operator, noted)
        session._obey(parse("goal 0.5 0 0"))
        os.kill(os.getpid(), signal.SIGTERM)
        session.episode(task="reach the red block", goal=None, seconds=5.0, simulated=True)
    lines_ = told()
    assert any(level == "warning" and "goal-not-taken" in text for _, level, text in lines_)
    assert ("operator", "warning", "signal received: SIGTERM") in lines_
    assert any(module == "operator" and text.startswith("episode ends after") for module, _, text in lines_)
