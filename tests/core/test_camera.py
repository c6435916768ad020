"""Images go from the driver's ring to the network; a camera that lies or falls silent stops the robot."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_plan as tiny
from tiny_robot import Robot

from interlock import _core

CODES = {word: number for number, word in _core.code_words().items()}
MODES = {name: number for number, name in _core.mode_names().items()}


def seeing() -> dict:
    """Slow ticks and generous ages, for a busy machine."""
    made = tiny.seeing(tiny.plan(tick_ns=10_000_000, inference_deadline_ns=9_000_000, action_valid_ns=200_000_000))
    made["timing"].update(max_age_state_ns=500_000_000, max_age_image_ns=500_000_000, max_skew_ns=1_000_000_000)
    return made


def test_the_policy_sees_what_the_camera_gave() -> None:
    pipeline = _core.Pipeline(tiny.text(seeing()), tiny.seeing_graph(), tiny.library())
    for light in (0, 51, 255):
        targets = pipeline.infer(tiny.state(), [np.full((4, 4, 3), light, np.uint8)])
        np.testing.assert_allclose(targets, np.full((1, 2), 0.01 * light / 255), atol=1e-7)


def test_an_image_of_another_size_is_refused() -> None:
    pipeline = _core.Pipeline(tiny.text(seeing()), tiny.seeing_graph(), tiny.library())
    with pytest.raises(_core.CoreError) as refusal:
        pipeline.infer(tiny.state(), [np.zeros((4, 5, 3), np.uint8)])
    assert refusal.value.code == "dimension"
    with pytest.raises(_core.CoreError):
        pipeline.infer(tiny.state(), [])


def test_a_paced_run_moves_by_what_the_camera_shows(tmp_path) -> None:
    with Robot(seeing(), tiny.seeing_graph(), recording=tmp_path / "run.mcap") as robot:
        robot.run()
        robot.until_status(lambda status: status["accepted"] >= 20)
        assert robot.last_command()[4] > 0.0
        final = robot.core.stop()
    assert final["control_allocations"] == 0
    assert final["recording"]["images"] > 0


@pytest.mark.parametrize(("fault", "code"), [("frozen", "frozen-image"), ("silent", "stale-image")])
def test_a_camera_fault_stops_the_robot(fault, code) -> None:
    with Robot(seeing(), tiny.seeing_graph(), fault=fault) as robot:
        robot.run()
        robot.until("Holding")
        assert robot.core.status()["cause"] == CODES[code]


def test_a_frozen_camera_stops_the_lockstep_robot() -> None:
    core = _core.Lockstep(tiny.text(seeing()), tiny.seeing_graph(), tiny.library())
    pos = np.zeros(2)
    core.request("arm")
    for tick in range(60):
        now = 1_000_000_000 + tick * 10_000_000
        core.image(0, np.full((4, 4, 3), 100 + (min(30, tick)), np.uint8), now)
        done = core.step(now, tiny.state(tuple(pos)), now)
        if done.mode == MODES["Armed"]:
            core.request("start")
        if done.sent:
            pos = done.command[0]
        if tick == 29:
            assert done.mode == MODES["Running"]
    assert done.mode == MODES["Holding"]
    assert "frozen-image" in core.status()["lost_by"] or core.status()["cause"] == CODES["frozen-image"]
