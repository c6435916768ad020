"""Stopping is not leaving: a stop ends where the robot was brought to rest, only an orderly exit goes somewhere."""

from __future__ import annotations

import os
import signal
import socket

import numpy as np
import pytest

from interlock.cli.load import load_bound
from interlock.serve.operator import Operator
from interlock.serve.paced import PacedOptions, PacedRun
from interlock.serve.session import Session, signals_noted
from interlock.view.recording import Recording

pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")

TASK = "reach the red block"
HOME = np.array([0.0, -0.15, 1.71, 1.58])  # robot.yaml: poses.home, typed again
FAR_RAD = 0.1


def say(word, folder):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(folder / "operator.sock"))
        client.sendall(f"{word}\n".encode())


@pytest.mark.parametrize("how", [signal.SIGTERM, "stop", "quit", "lost"], ids=str)
def test_only_an_orderly_exit_goes_to_the_rest_pose(arm_policy, tmp_path, how):
    bound = load_bound(arm_policy, arm_policy.parent / "robot.yaml")
    options = PacedOptions(
        driver="sim:arm", driver_options={"seed": 3, "task": TASK}, recording=tmp_path / "run.mcap", simulated=True
    )
    with (
        signals_noted() as noted,
        Operator(socket_path=tmp_path / "operator.sock") as operator,
        PacedRun(bound, options) as run,
    ):
        session = Session(run, operator, noted)
        acted = []

        def act(status):
            pose = run.bound.to_si(_state(run))[:4]
            if not acted and status["mode_name"] == "Running" and np.abs(pose - HOME).max() > 3 * FAR_RAD:
                acted.append(how)
                if how == "lost":
                    os.kill(run.worker.process.pid, signal.SIGKILL)
                elif isinstance(how, str):
                    say(how, tmp_path)
                else:
                    os.kill(os.getpid(), how)

        session.on_status = act
        session.episode(task=TASK, goal=None, seconds=10, simulated=True, rest=False)
        run.stop()
    assert acted
    recording = Recording.open(tmp_path / "run.mcap")
    last = recording.ticks.target[recording.ticks.sent][-1]
    is_home = np.abs(last - HOME).max() < FAR_RAD
    assert is_home == (how == "quit")
    cause = {"lost": "worker-dead", "quit": "orderly-end"}.get(how, "operator-stop")
    assert {mode.cause for mode in recording.modes} == {"", cause}


def _state(run):
    flat = np.empty(3 * run.bound.joints + 10)
    assert run._driver_links.state.latest(flat) is not None
    return flat
