"""A policy that freezes and builds in no time: three joints, one matrix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

ROBOT = """\
schema: interlock.robot/1
type: small_arm
base: fixed
driver: {use: "sim:mujoco", period_ms: 10}
sim: {mjcf: arm.xml, step_ms: 1}
sensors:
  joints: {gives: {pos: rad, vel: rad/s, torque: N*m}, period_ms: 10, clock: host}
joints:
  order: [lift, pan, bend]
  accepts: [position]
  unit: {others: rad}
  each:
    pan:  {pos: [-2, 2], vel: 3, acc: 20, jerk: 1000}
    lift: {pos: [-2, 2], vel: 3, acc: 20, jerk: 1000}
    bend: {pos: [-2, 2], vel: 3, acc: 20, jerk: 1000}
  source: {pos: drawing, vel: drawing, acc: drawing, jerk: drawing}
safe:
  before_start: {do: move_to_start, in_s: 3}
  policy_lost: {do: stop_and_hold}
  goal_lost: {do: stop_and_hold}
  on_exit: {do: stop_and_hold}
  supervisor_lost: {command_timeout_ms: 100, drives_then: hold}
  estop: {by: none, reason: "simulated robot"}
"""

CONTRACT = """\
schema: interlock.contract/1
name: small
trained_for: small_arm
source: {reader: onnx, files: source/}
timing: {control_period_ms: 20, chunk: 1, action_delay_ms: 0}
joints:
  order: [pan, lift, bend]
  unit: {others: rad}
  each:
    pan:  {default: 0.1}
    lift: {default: -0.2}
    bend: {default: 0.3}
inputs:
  obs:
    dtype: float32
    history: none
    clip: none
    terms:
      - {term: joint_pos_rel, unit: rad, scale: 1}
state: none
noise: none
language: none
outputs:
  actions: {role: action, kind: joint_position_target, unit: rad, scale: 0.5, offset: default, clip: none}
choices: {max_age_ms: 40, latency_budget_ms: 20, start_within: {joint_pos_rad: 0.3}}
"""

MODEL = """\
<mujoco model="arm">
  <compiler angle="radian"/>
  <worldbody>
    <body name="one"><joint name="pan" range="-2 2"/><geom size=".1"/></body>
  </worldbody>
  <actuator><position name="pan" joint="pan" kp="10"/></actuator>
</mujoco>
"""


def graph(*, external: str | None = None, shape: int = 3) -> bytes:
    """`actions = obs @ w`; with `external`, the matrix lies in a file of that name."""
    onnx = pytest.importorskip("onnx", reason="the onnx package makes the graph of these tests")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    weights = numpy_helper.from_array(matrix(shape), "w")
    if external is not None:
        weights.ClearField("raw_data")
        weights.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", external), ("offset", "0"), ("length", str(matrix(shape).nbytes))):
            weights.external_data.add(key=key, value=value)
    value = helper.make_tensor_value_info
    made = helper.make_graph(
        [helper.make_node("MatMul", ["obs", "w"], ["actions"])], "small",
        [value("obs", 1, [1, shape])], [value("actions", 1, [1, 3])], [weights],
    )  # fmt: skip
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def matrix(rows: int = 3) -> np.ndarray:
    return (np.eye(rows, 3) * 0.1).astype(np.float32)


def place(folder: Path) -> Path:
    """A working folder: robot, contract, model and graph."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "robot.yaml").write_text(ROBOT)
    (folder / "contract.yaml").write_text(CONTRACT)
    (folder / "arm.xml").write_text(MODEL)
    (folder / "checkpoint").mkdir(exist_ok=True)
    (folder / "checkpoint" / "small.onnx").write_bytes(graph())
    return folder
