"""A robot that takes torque: the supervisor runs the PD law itself, at the servo rate, from the guarded target."""

from __future__ import annotations

import numpy as np
import pytest

from interlock.cli.load import load_bound
from interlock.cli.wiring import make_plant
from interlock.runtime.lockstep import Episode, Moment, run_lockstep
from tests.conftest import interlock
from tests.policies.walkers import WALKERS, freeze_arguments, stage

TORQUE = 3  # command kind on the wire


@pytest.fixture
def torque_robot(shared_policies, tmp_path):
    walker = next(each for each in WALKERS if each.name == "url_g1")
    place = stage(walker, shared_policies.resolve(), tmp_path)
    robot = place / "robot.yaml"
    robot.write_text(robot.read_text().replace("accepts: [position_pd]", "accepts: [torque]"))
    for step in (freeze_arguments(walker, shared_policies.resolve()), ["build", "walker.policy"]):
        done = interlock(*step, cwd=place)
        assert done.returncode == 0, done.stderr
    return load_bound(place / "walker.policy", robot)


def test_the_supervisor_runs_the_pd_law_where_the_robot_takes_torque(torque_robot):
    gains = torque_robot.plan["command"]
    assert gains["host_pd"]
    limit = np.array([each["limit"] for each in torque_robot.plan["limits"]["torque"]])
    seen = []

    def watch(moment: Moment) -> None:
        if moment.done.sent and moment.mode == "Running":
            assert moment.done.kind == TORQUE
            seen.append(np.array(moment.done.command[2]))

    plant = make_plant("sim:mujoco", torque_robot)
    done = run_lockstep(torque_robot, plant, Episode(seconds=4.0, goal=(0.5, 0.0, 0.0)), watch=watch)
    torque = np.stack(seen)
    assert not done.outcome.fallen
    assert done.forward_mps > 0.4
    assert np.all(np.abs(torque) <= limit + 1e-9)
    changes = np.any(np.diff(torque, axis=0) != 0, axis=1)
    assert changes.mean() > 0.99, "every servo tick, not every policy period"
