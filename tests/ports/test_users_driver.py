"""A robot with a driver of its own runs from one command, for a person who types its name."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bench_controller import BenchController

from interlock.view.recording import Recording

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "driver"
PATIENCE_S = 60
CONTRACT = """\
schema: interlock.contract/1
name: settle
trained_for: bench_arm
source: {reader: onnx, files: source/}
timing: {control_period_ms: 20, chunk: 1, action_delay_ms: 0}
joints:
  order: [lift, pan]
  unit: {others: rad}
  each:
    pan:  {default: 0.4}
    lift: {default: 0.6}
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
choices: {max_age_ms: 200, latency_budget_ms: 8, action_valid_ms: 200, start_within: {joint_pos_rad: 0.3}}
"""


def graph() -> bytes:
    """`actions = 1.8 * obs`: the arm creeps from where it is to its default pose."""
    onnx = pytest.importorskip("onnx", reason="the onnx package makes the graph of this test")
    helper, value = onnx.helper, onnx.helper.make_tensor_value_info
    weights = onnx.numpy_helper.from_array(1.8 * np.eye(2, dtype=np.float32), "w")
    made = helper.make_graph(
        [helper.make_node("MatMul", ["obs", "w"], ["actions"])],
        "settle",
        [value("obs", 1, [1, 2])],
        [value("actions", 1, [1, 2])],
        [weights],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


@pytest.fixture(scope="module")
def port():
    """One that is free: it stands in the robot file, so that it is the same for verification and every run."""
    with BenchController() as controller:
        return controller.port


@pytest.fixture(scope="module")
def folder(tmp_path_factory, port):
    """Robot file, driver and a verified policy."""
    folder = tmp_path_factory.mktemp("bench")
    shutil.copy(EXAMPLE / "bench_arm.py", folder)
    robot = (EXAMPLE / "robot.yaml").read_text(encoding="utf-8")
    (folder / "robot.yaml").write_text(robot.replace("port: 5005", f"port: {port}"))
    (folder / "contract.yaml").write_text(CONTRACT)
    (folder / "settle.onnx").write_bytes(graph())
    for step in (
        ("freeze", "settle.onnx", "--contract", "contract.yaml", "-o", "settle.policy"),
        ("build", "settle.policy"),
        ("verify", "settle.policy"),
    ):
        done = subprocess.run(
            [sys.executable, "-m", "interlock", *step], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run_in_terminal(folder: Path, answer: str, *more: str) -> tuple[int, str]:
    """`interlock run` on a terminal of its own where `answer` is typed when it asks; its exit code and what it said."""
    master, slave = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "interlock", "run", "settle.policy", *more],
        cwd=folder, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    said, is_answered = b"", False
    while select.select([master], [], [], PATIENCE_S)[0]:
        try:
            said += os.read(master, 4096)
        except OSError:  # the terminal closes with its last process
            break
        if b"? arm" in said and not is_answered:
            os.write(master, f"{answer}\n".encode())
            is_answered = True
    os.close(master)
    return process.wait(PATIENCE_S), said.decode(errors="replace")


def test_it_runs_for_who_types_the_robots_name(folder, port, tmp_path):
    with BenchController(port=port) as controller:
        code, said = run_in_terminal(folder, "bench_arm", "--seconds", "1.5", "--output", str(tmp_path / "run"))
        assert code == 0, said
        assert controller.commanded > 0
    recording = Recording.open(tmp_path / "run" / "run.mcap")
    assert recording.complete
    assert {"Armed", "Running", "Stopping", "Holding"} <= {mode.after for mode in recording.modes}
    start, end = recording.ticks.pos[0], recording.ticks.pos[-1]
    goal = np.array([0.4, 0.6])
    assert np.abs(end - goal).max() < 0.5 * np.abs(start - goal).max(), "degrees of the robot, radians of the policy"


def test_it_does_not_move_for_who_types_something_else(folder, port, tmp_path):
    with BenchController(port=port) as controller:
        code, said = run_in_terminal(folder, "yes", "--output", str(tmp_path / "run"))
        assert (code, controller.commanded) == (4, 0), said
        assert "arm-declined" in said


def test_without_a_terminal_it_does_not_move(folder, port, tmp_path):
    with BenchController(port=port) as controller:
        done = subprocess.run(
            [sys.executable, "-m", "interlock", "run", "settle.policy", "-o", str(tmp_path / "run")],
            cwd=folder, input="bench_arm\n", capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        assert (done.returncode, controller.commanded) == (4, 0), done.stderr
        assert "arm-needs-terminal" in done.stderr


def test_a_dry_run_reads_the_robot_and_sends_nothing(folder, port, tmp_path):
    with BenchController(port=port) as controller:
        code, said = run_in_terminal(folder, "", "--dry", "--seconds", "1", "--output", str(tmp_path / "run"))
        assert (code, controller.commanded) == (0, 0), said
    recording = Recording.open(tmp_path / "run" / "run.mcap")
    assert not recording.ticks.sent.any()
    assert np.isfinite(recording.ticks.target).any(), "what would have been sent is recorded"


def test_it_is_not_driven_once_its_robot_file_is_another(folder, port, tmp_path):
    robot = (folder / "robot.yaml").read_text(encoding="utf-8")
    (folder / "faster.yaml").write_text(robot.replace("vel: 120", "vel: 121", 1))
    with BenchController(port=port) as controller:
        code, said = run_in_terminal(folder, "bench_arm", "--robot", "faster.yaml", "--output", str(tmp_path / "run"))
        assert (code, controller.commanded) == (5, 0), said
        assert "not-verified" in said
