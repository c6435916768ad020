"""A policy that is small enough to read: three joints, two hidden units, made with the onnx package."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from interlock.adapters.readers import READERS
from interlock.contract.bind import bind
from interlock.contract.text import load_contract, load_robot
from interlock.release.build import build
from interlock.release.freeze import freeze
from interlock.release.verify import verify

JOINTS = ("pan", "lift", "bend")

ROBOT = """
schema: interlock.robot/1
type: small_arm
base: fixed
driver: {use: "sim:none", period_ms: 10}
sim: {mjcf: none.xml, step_ms: 1}
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

CONTRACT = """
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
    history: {steps: 2, layout: per_term, order: oldest_first, at_reset: repeat_first}
    clip: none
    terms:
      - {term: joint_pos_rel, unit: rad, scale: 1}
      - {term: joint_vel, unit: rad/s, scale: 0.05}
      - {term: last_action, of: raw, scale: 1}
STATE
noise: none
language: none
outputs:
  actions: {role: action, kind: joint_position_target, unit: rad, scale: 0.5, offset: default, clip: none}
STATE_OUTPUT
choices: {max_age_ms: 40, latency_budget_ms: 20, start_within: {joint_pos_rad: 0.3}}
"""

PLAIN = CONTRACT.replace("STATE_OUTPUT\n", "").replace("STATE", "state: none")
RECURRENT = CONTRACT.replace(
    "STATE_OUTPUT", "  h_out: {role: state, shape: [1, 4], dtype: float32}"
).replace(
    "STATE",
    "state:\n  h_in: {next: h_out, shape: [1, 4], dtype: float32, at_reset: zeros, on_dropped_chunk: keep,"
    " on_fallback: reset, on_swap: reset}",
)  # fmt: skip


def tiny_graph(
    *, seed=0, output="actions", order=(0, 1, 2), nan=False, recurrent=False, stuck=False, extra=False, nudge=0.0
):
    """A two-layer network as ONNX bytes; the switches make the mistakes of exporters."""
    onnx = pytest.importorskip("onnx", reason="the onnx package makes the graphs of these tests")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    draw = np.random.default_rng(seed)
    first, bias = draw.normal(0, 0.4, (18, 8)).astype(np.float32), draw.normal(0, 0.1, 8).astype(np.float32)
    last = draw.normal(0, 0.4, (8, 3)).astype(np.float32)
    recur = draw.normal(0, 0.6, (8, 4)).astype(np.float32)
    mix = draw.normal(0, 0.6, (4, 3)).astype(np.float32)
    last[0, 0] += nudge
    last = last[:, list(order)]
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Gemm", ["obs", "w1", "b1"], ["z"]),
        helper.make_node("Tanh", ["z"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "w2"], ["raw"]),
    ]
    weights = {"w1": first, "b1": bias, "w2": last}
    inputs, outputs = [value("obs", 1, [1, 18])], [value(output, 1, [1, 3])]
    result = "raw"
    if recurrent:
        weights |= {"wh": recur, "wm": mix[:, list(order)]}
        inputs.append(value("h_in", 1, [1, 4]))
        outputs.append(value("h_out", 1, [1, 4]))
        nodes += [
            helper.make_node("MatMul", ["hidden", "wh"], ["hz"]),
            helper.make_node("Add", ["hz", "h_in"], ["hs"]),
            helper.make_node("Tanh", ["hs"], ["h_new"]),
            # A state that hides in a buffer: the graph answers from step 0 for ever.
            helper.make_node("Mul", ["h_in", "zero"], ["h_out"]) if stuck else helper.make_node("Identity", ["h_new"], ["h_out"]),
            helper.make_node("MatMul", ["h_new", "wm"], ["hm"]),
            helper.make_node("Add", ["raw", "hm"], ["both"]),
        ]  # fmt: skip
        weights["zero"] = np.zeros(1, np.float32)
        result = "both"
    if nan:
        # NaN only where the first input is negative: a single lucky sample would not show it.
        nodes += [helper.make_node("Slice", ["obs", "s", "e", "a"], ["one"]), helper.make_node("Sqrt", ["one"], ["root"]),
                  helper.make_node("Mul", ["root", "tiny"], ["bad"]), helper.make_node("Add", [result, "bad"], [output])]  # fmt: skip
        weights |= {"s": np.array([0]), "e": np.array([1]), "a": np.array([1]), "tiny": np.array([1e-30], np.float32)}
    else:
        nodes.append(helper.make_node("Identity", [result], [output]))
    if extra:
        nodes.append(helper.make_node("Identity", ["hidden"], ["debug"]))
        outputs.append(value("debug", 1, [1, 8]))
    graph = helper.make_graph(
        nodes, "tiny", inputs, outputs, [numpy_helper.from_array(v, k) for k, v in weights.items()]
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return made.SerializeToString()


def place(folder: Path, graph: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "small.onnx").write_bytes(graph)
    return folder


@pytest.fixture
def robot():
    return load_robot(ROBOT)


@pytest.fixture
def freeze_tiny(tmp_path):
    """Freezes the tiny policy; returns the folder's path."""

    def do(graph=None, *, contract=PLAIN, name="small.policy", **extra):
        source = place(tmp_path / "checkpoint", graph if graph is not None else tiny_graph())
        return freeze(source, tmp_path / name, readers=READERS, contract=contract, **extra).folder.path

    return do


_BUILT: dict[tuple, Path] = {}


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    return tmp_path_factory.mktemp("built")


@pytest.fixture
def built_tiny(shelf, tmp_path):
    """A frozen and built tiny policy of its own: copied, since a policy folder is relocatable."""

    def do(graph=None, *, contract=PLAIN):
        graph = graph if graph is not None else tiny_graph()
        key = (graph, contract)
        if key not in _BUILT:
            source = place(shelf / f"source{len(_BUILT)}", graph)
            made = freeze(source, shelf / f"small{len(_BUILT)}.policy", readers=READERS, contract=contract).folder.path
            build(made, readers=READERS)
            _BUILT[key] = made
        target = tmp_path / "small.policy"
        shutil.copytree(_BUILT[key], target)
        return target

    return do


@pytest.fixture
def verify_tiny(robot):
    def do(path, **extra):
        contract = load_contract((path / "contract.yaml").read_text())
        return verify(path, bind(contract, robot), readers=READERS, **extra)

    return do
