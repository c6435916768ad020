"""What the robot file says about drives that nobody commands reaches the simulated drives."""

from pathlib import Path

import numpy as np
import pytest

from interlock.cli.wiring import make_driver
from interlock.contract.bind import bind
from interlock.contract.text import load_contract, load_robot
from interlock.errors import InterlockError

pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")

ARM = Path(__file__).parents[2] / "python" / "interlock" / "adapters" / "arm"
LOST = "{command_timeout_ms: 100, drives_then: hold}"


def driver(lost):
    robot = (ARM / "robot.yaml").read_text(encoding="utf-8")
    assert LOST in robot
    binding = bind(
        load_contract((ARM / "frozen" / "contract.yaml").read_text(encoding="utf-8")),
        load_robot(robot.replace(LOST, lost)),
    )
    return make_driver(
        {
            "driver": "sim:arm", "driver_options": {}, "robot": binding.robot.as_json(), "plan": binding.plan(),
            "robot_folder": str(ARM),
        }
    )  # fmt: skip


def test_their_damping_is_their_own():
    made = driver("{command_timeout_ms: 100, drives_then: damp, kd: {elbow: 3, others: 2}}")
    assert np.array_equal(made._drives_kd, [2, 2, 3, 2])


def test_damping_that_nobody_gave_is_refused_before_anything_starts():
    with pytest.raises(InterlockError) as refusal:
        driver("{command_timeout_ms: 100, drives_then: damp}")
    assert refusal.value.code == "damp-gain-missing"
