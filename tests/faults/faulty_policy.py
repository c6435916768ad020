"""A policy that does wrong when it is told to: a real graph whose velocity goal says which fault, and how much of it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import tiny_plan as tiny
from onnx import TensorProto, helper, numpy_helper

from interlock.runtime.bound import Bound

NONE, LOOP, SLOW, LEAK, ALLOCATE, NAN, CRASH = range(7)
TICK_NS = 10_000_000
MAX_AGE_NS = 100_000_000
VALID_NS = 60_000_000
DEADLINE_NS = 120_000_000  # of the asynchronous plan
STEP_RAD = (0.01, -0.005)  # in each tick, in the policy's order of joints
DISTANCE_RAD, REFUSED_DISTANCE_RAD = 0.15, 0.25
LEAKED_FLOATS = 1 << 18  # 1 MiB a round
ALLOCATED_FLOATS = 1 << 29  # 2 GiB at once
FOREVER = np.iinfo(np.int64).max


def plan(*, synchronous: bool = True) -> dict[str, Any]:
    """Two joints, position targets relative to the measured ones, the goal's first two parts as input."""
    made = tiny.plan(
        tick_ns=TICK_NS,
        ticks_per_period=1,
        ticks_per_inference=1,
        inference_deadline_ns=9_000_000,
        action_valid_ns=VALID_NS,
        max_age_state_ns=MAX_AGE_NS,
    )
    if not synchronous:
        made["timing"].update(
            synchronous=False,
            chunk=20,
            ticks_per_inference=4,
            inference_deadline_ns=DEADLINE_NS,
            action_valid_ns=2 * DEADLINE_NS,
            interpolate="linear",
        )
        made["outputs"][0]["shape"] = [1, 20, tiny.JOINTS]
    terms = made["inputs"][0]["terms"]
    goal = {"term": {"goal": {"part": [0, 1]}}, "dim": 2, "per_si": [1.0] * 2, "clip": None}
    terms.append({**goal, "offset": [0.0] * 2, "scale": [1.0] * 2})
    made["goal"]["velocity"] = [[0.0, 10.0], [0.0, 1e9], [0.0, 1.0]]
    return made


def watched_plan() -> dict[str, Any]:
    """A policy that goes its own way, one step further than its last action, on a robot that declares a distance."""
    made = plan()
    made["outputs"][0]["action"]["relative"] = False
    last = {"term": {"last_action": {"of": "raw"}}, "dim": 2, "per_si": [1.0] * 2, "clip": None}
    made["inputs"][0]["terms"].append({**last, "offset": [0.0] * 2, "scale": [1.0] * 2})
    made["limits"]["distance"] = [{"limit": DISTANCE_RAD, "refuse_beyond": REFUSED_DISTANCE_RAD}] * 2
    return made


def damped_plan() -> dict[str, Any]:
    """The same as the far end of springs, and a lost policy is damped."""
    made = plan()
    made["command"] = {"kind": "position_pd", "host_pd": False, "kp": [20.0, 20.0], "kd": [1.0, 1.0]}
    made["limits"].update(acc=None, jerk=None, vel=None)
    made["limits"]["torque"] = [{"limit": 20.0, "refuse_beyond": 1000.0}] * 2
    made["limits"]["target_step"] = [{"limit": 0.2, "refuse_beyond": 10.0}] * 2
    made["limits"]["vel_measured"] = [{"limit": 10.0, "refuse_beyond": 20.0}] * 2
    made["limits"]["kp_max"], made["limits"]["kd_max"] = [50.0, 50.0], [5.0, 5.0]
    made["safe"]["policy_lost"] = {"do": "damp", "kd": [2.0, 2.0]}
    return made


def bound(made: dict[str, Any]) -> Bound:
    """Plan and graph as a run takes them."""
    robot = {"type": "two_joints", "driver": {"use": "faulty_robot:FaultyRobot"}}
    rows, is_absolute = made["timing"]["chunk"], not made["outputs"][0]["action"]["relative"]
    return Bound(
        name="faulty",
        plan=copy.deepcopy(made),
        graph=graph(rows, goes_on=is_absolute),
        library=Path(tiny.library()),
        tokenizer=None,
        robot=robot,
        robot_folder=Path(),
    )


def graph(rows: int = 1, *, goes_on: bool = False) -> bytes:
    """action = a small step in every row, plus whatever the fault makes of it; `goes_on`: from its last action."""
    constants = {
        "index_which": np.array([2], np.int64),
        "index_amount": np.array([3], np.int64),
        "index_last": np.array([4, 5], np.int64),
        "zero": np.zeros(1, np.float32),
        "one": np.ones(1, np.float32),
        "step": np.broadcast_to(np.array(STEP_RAD, np.float32), (1, rows, tiny.JOINTS)),
        "forever": np.array(FOREVER, np.int64),
        "true": np.array(True),
        "least": np.array([np.iinfo(np.int32).min], np.int32),
        "minus_one": np.array([-1], np.int32),
        "leaked": np.array([LEAKED_FLOATS], np.int64),
        "allocated": np.array([ALLOCATED_FLOATS], np.int64),
        **{f"is_{fault}": np.array([fault], np.int64) for fault in range(1, 7)},
    }
    nodes = [
        helper.make_node("Gather", ["obs", "index_which"], ["which_2d"], axis=1),
        helper.make_node("Gather", ["obs", "index_amount"], ["amount_2d"], axis=1),
        helper.make_node("ReduceSum", ["which_2d"], ["which_0d"], keepdims=0),
        helper.make_node("ReduceSum", ["amount_2d"], ["amount_0d"], keepdims=0),
        helper.make_node("Cast", ["which_0d"], ["which"], to=TensorProto.INT64),
        helper.make_node("Cast", ["amount_0d"], ["rounds"], to=TensorProto.INT64),
        helper.make_node("Mul", ["zero", "amount_0d"], ["nothing"]),  # known only when it runs: nothing is folded
        helper.make_node("Add", ["one", "nothing"], ["something"]),
    ]
    branches = {
        LOOP: [_loop("forever", "turned"), helper.make_node("Mul", ["turned", "nothing"], ["out"])],
        SLOW: [_loop("rounds", "turned"), helper.make_node("Mul", ["turned", "nothing"], ["out"])],
        LEAK: [
            _loop("forever", "turned", kept="heap"),
            helper.make_node("ReduceSum", ["heap"], ["sum"], keepdims=0),
            helper.make_node("Mul", ["sum", "nothing"], ["out"]),
        ],
        ALLOCATE: [
            helper.make_node("Expand", ["something", "allocated"], ["heap"]),
            helper.make_node("ReduceSum", ["heap"], ["sum"], keepdims=0),
            helper.make_node("Mul", ["sum", "nothing"], ["out"]),
        ],
        NAN: [helper.make_node("Div", ["nothing", "nothing"], ["out"])],
        CRASH: [
            # The one quotient that the processor cannot represent and that ONNX Runtime does not look for: SIGFPE.
            helper.make_node("Cast", ["nothing"], ["none"], to=TensorProto.INT32),
            helper.make_node("Add", ["none", "least"], ["dividend"]),
            helper.make_node("Add", ["none", "minus_one"], ["divisor"]),
            helper.make_node("Div", ["dividend", "divisor"], ["quotient"]),
            helper.make_node("Cast", ["quotient"], ["out"], to=TensorProto.FLOAT),
        ],
    }
    last = "step"
    if goes_on:
        nodes.append(helper.make_node("Gather", ["obs", "index_last"], ["last_action"], axis=1))
        nodes.append(helper.make_node("Add", ["step", "last_action"], ["step_on"]))
        last = "step_on"
    for fault, body in branches.items():
        nodes += [
            helper.make_node("Equal", ["which", f"is_{fault}"], [f"cond_{fault}"]),
            helper.make_node(
                "If",
                [f"cond_{fault}"],
                [f"extra_{fault}"],
                then_branch=_branch(f"fault_{fault}", body),
                else_branch=_branch(f"none_{fault}", [helper.make_node("Identity", ["nothing"], ["out"])]),
            ),
            helper.make_node("Add", [last, f"extra_{fault}"], [f"action_{fault}"]),
        ]
        last = f"action_{fault}"
    nodes.append(helper.make_node("Identity", [last], ["action"]))
    made = helper.make_graph(
        nodes,
        "faulty",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, tiny.JOINTS + (4 if goes_on else 2)])],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, [1, rows, tiny.JOINTS])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def _branch(name: str, nodes: list[Any]) -> Any:
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)])


def _loop(rounds: str, out: str, kept: str = "") -> Any:
    """`rounds` times x = x / 2 + 1; keeps a large tensor of every round where `kept` names one."""
    nodes = [
        helper.make_node("Identity", ["go"], ["go_on"]),
        helper.make_node("Mul", ["x", "something"], ["same"]),
        helper.make_node("Sqrt", ["same"], ["x_next"]),
    ]
    float_, truth = TensorProto.FLOAT, TensorProto.BOOL
    outputs = [
        helper.make_tensor_value_info("go_on", truth, []),
        helper.make_tensor_value_info("x_next", float_, [1]),
    ]
    if kept:
        nodes.append(helper.make_node("Expand", ["x_next", "leaked"], ["large"]))
        outputs.append(helper.make_tensor_value_info("large", float_, [LEAKED_FLOATS]))
    inputs = [
        helper.make_tensor_value_info("round", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", truth, []),
        helper.make_tensor_value_info("x", float_, [1]),
    ]
    body = helper.make_graph(nodes, f"body_{out}_{rounds}_{kept}", inputs, outputs)
    return helper.make_node("Loop", [rounds, "true", "something"], [out, *([kept] if kept else [])], body=body)
