"""A small policy and its plan, written out by hand: nothing here comes from the code under test."""

from __future__ import annotations

import copy
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

JOINTS = 2
TICK_NS = 5_000_000

SMALL: dict[str, Any] = {
    "schema": "interlock.plan/1",
    "identity": {"contract": "0" * 64, "robot": "1" * 64, "binding": "2" * 64},
    "timing": {
        "tick_ns": TICK_NS,
        "ticks_per_period": 2,
        "ticks_per_inference": 2,
        "chunk": 1,
        "action_delay_ns": 0,
        "handover": "replace",
        "interpolate": "hold",
        "synchronous": True,
        "inference_deadline_ns": 4_000_000,
        "action_valid_ns": 30_000_000,
        "manual_latency_ns": 0,
        "max_age_state_ns": 25_000_000,
        "max_age_image_ns": 100_000_000,
        "max_skew_ns": 100_000_000,
        "latency_budget_ns": 20_000_000,
    },
    "joints": {
        "names": ["shoulder", "elbow"],
        "si_per_unit": [1.0, 1.0],
        "policy_from_robot": [1, 0],
        "default_pos": [0.1, -0.1],
    },
    "command": {"kind": "position", "host_pd": False, "kp": [], "kd": []},
    "cameras": [],
    "inputs": [
        {
            "kind": "terms",
            "name": "obs",
            "terms": [
                {
                    "term": "joint_pos",
                    "dim": 2,
                    "per_si": [1.0, 1.0],
                    "clip": None,
                    "offset": [0.0, 0.0],
                    "scale": [1.0, 1.0],
                }
            ],
            "history": {"steps": 1, "per_term": True, "oldest_first": True, "repeat_first": True},
            "clip": None,
        }
    ],
    "outputs": [
        {
            "name": "action",
            "shape": [1, 1, 2],
            "role": "action",
            "action": {
                "clip": None,
                "scale": [1.0, 1.0],
                "offset": [0.0, 0.0],
                "si_per_unit": [1.0, 1.0],
                "relative": True,
            },
        }
    ],
    "goal": {"velocity": None, "slew_per_s": None, "text": False, "timeout_ns": 0},
    "limits": {
        "pos": [{"lo": -2.0, "hi": 2.0, "refuse_lo": -2.5, "refuse_hi": 2.5}] * 2,
        "vel": [{"limit": 2.0, "refuse_beyond": 50.0}] * 2,
        "acc": [{"limit": 20.0, "refuse_beyond": 1e5}] * 2,
        "jerk": [{"limit": 1000.0, "refuse_beyond": 1e8}] * 2,
        "torque": None,
        "target_step": None,
        "vel_measured": None,
        "kp_max": None,
        "kd_max": None,
    },
    "safe": {
        "before_start": None,
        "policy_lost": {"do": "stop_and_hold"},
        "goal_lost": {"do": "stop_and_hold"},
        "on_exit": {"do": "stop_and_hold"},
        "command_timeout_ns": 100_000_000,
        "floating_base": False,
    },
    "start": {"pose": [0.0, 0.0], "within_pos": [0.5, 0.5], "within_tilt_rad": None},
}


def plan(**timing: Any) -> dict[str, Any]:
    """The small plan with other timing."""
    made = copy.deepcopy(SMALL)
    made["timing"].update(timing)
    made["outputs"][0]["shape"] = [1, made["timing"]["chunk"], JOINTS]
    return made


def asynchronous_plan() -> dict[str, Any]:
    """Chunks of eight actions, offered every four ticks, arriving two ticks later on the manual clock."""
    return plan(
        synchronous=False,
        chunk=8,
        ticks_per_inference=4,
        inference_deadline_ns=100_000_000,
        manual_latency_ns=2 * TICK_NS,
        interpolate="cubic",
    )


def graph(rows: int = 1, *, step: tuple[float, float] = (0.02, -0.01), nan: bool = False) -> bytes:
    """action = step in every row, whatever is observed; as NaN when asked."""
    value = np.full((1, rows, JOINTS), np.nan) if nan else np.broadcast_to(np.array(step), (1, rows, JOINTS))
    nodes = [
        helper.make_node("ReduceSum", ["obs"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "zero"], ["nothing"]),
        helper.make_node("Add", ["step", "nothing"], ["action"]),
    ]
    made = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, JOINTS])],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, [1, rows, JOINTS])],
        [
            numpy_helper.from_array(np.float32(0.0).reshape(()), "zero"),
            numpy_helper.from_array(np.array(value, dtype=np.float32), "step"),
        ],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


SIDE = 4


def seeing(made: dict[str, Any]) -> dict[str, Any]:
    """The same plan with one small camera, bytes as 0 to 1."""
    made["cameras"] = [{"name": "front", "height": SIDE, "width": SIDE, "bgr": False, "period_ns": 20_000_000}]
    made["inputs"].append(
        {
            "kind": "image",
            "name": "front",
            "camera": 0,
            "height": SIDE,
            "width": SIDE,
            "bgr": False,
            "chw": True,
            "resize": "none",
            "range": [0.0, 1.0],
            "mean": [0.0, 0.0, 0.0],
            "std": [1.0, 1.0, 1.0],
            "uint8": False,
        }
    )
    return made


def seeing_graph() -> bytes:
    """action = 0.01 * mean brightness, for both joints."""
    nodes = [
        helper.make_node("ReduceSum", ["obs"], ["sum"], keepdims=0),
        helper.make_node("Mul", ["sum", "zero"], ["nothing"]),
        helper.make_node("ReduceMean", ["front"], ["light"], keepdims=0),
        helper.make_node("Mul", ["light", "gain"], ["scaled"]),
        helper.make_node("Add", ["scaled", "nothing"], ["action"]),
    ]
    made = helper.make_graph(
        nodes,
        "seeing",
        [
            helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, JOINTS]),
            helper.make_tensor_value_info("front", TensorProto.FLOAT, [1, 3, SIDE, SIDE]),
        ],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, [1, 1, JOINTS])],
        [
            numpy_helper.from_array(np.float32(0.0).reshape(()), "zero"),
            numpy_helper.from_array(np.full((1, 1, JOINTS), 0.01, np.float32), "gain"),
        ],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def text(made: dict[str, Any]) -> str:
    """As it crosses the boundary."""
    return json.dumps(made)


def library() -> str:
    """libonnxruntime of the installed wheel."""
    spec = find_spec("onnxruntime")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return str(next(Path(spec.submodule_search_locations[0], "capi").glob("libonnxruntime.so*")))


def state(pos: tuple[float, ...] = (0.0, 0.0)) -> np.ndarray:
    """A flat sample at rest, upright."""
    n = len(pos)
    flat = np.zeros(3 * n + 10)
    flat[:n] = pos
    flat[3 * n] = 1.0
    return flat
