"""The manual clock: the same run twice is the same run, bit for bit; the guard makes no right policy worse."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from tests.conftest import interlock
from tests.policies.walkers import NO_WORSE, WALK_S, WALKERS, Walker

from interlock.contract.bind import bind
from interlock.contract.text import load_contract, load_robot
from interlock.runtime.bound import Bound
from interlock.runtime.library import onnxruntime_library
from interlock.runtime.lockstep import Episode, run_lockstep
from interlock.view.recording import Recording

pytest.importorskip("mujoco", reason="the simulated robots need the extra `sim`")

POLICIES = Path(__file__).parents[1] / "policies"
OF_THE_HOST = {"record_ns"}  # how long the recorder took: the only column that the host decides


def columns(path: Path) -> dict[str, object]:
    recording = Recording.open(path)
    assert recording.complete
    ticks = recording.ticks
    return {each.name: getattr(ticks, each.name) for each in dataclasses.fields(ticks) if each.name not in OF_THE_HOST}


def assert_same(one: Path, other: Path) -> int:
    """Every column of every tick; returns how many ticks there are."""
    left, right = columns(one), columns(other)
    assert left.keys() == right.keys()
    for name, values in left.items():
        if isinstance(values, np.ndarray):
            assert values.shape == right[name].shape, name
            assert values.tobytes() == right[name].tobytes(), f"{name} differs"
        else:
            assert values == right[name], name
    return len(left["tick"])


def lockstep(folder: Path, policy: str, output: str, *more: str) -> dict:
    done = interlock("run", policy, "--sim", "--lockstep", *more, "-o", output, "--json", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_run_with_a_camera_repeats_bit_for_bit(arm_folder, tmp_path):
    task = ("--task", "reach the blue block", "--seed", "20007", "--seconds", "3")
    answers = [lockstep(arm_folder, "reach-block.policy", str(tmp_path / name), *task) for name in ("one", "two")]
    one, two = (tmp_path / name / "run.mcap" for name in ("one", "two"))
    assert assert_same(one, two) > 100
    assert answers[0]["episodes"] == answers[1]["episodes"]
    opened = [Recording.open(path) for path in (one, two)]
    chunks = [[(each.seq, each.at_ns, each.actions.tobytes()) for each in recording.chunks] for recording in opened]
    assert chunks[0] == chunks[1] != []
    pictures = [{name: len(taken) for name, taken in recording.images.items()} for recording in opened]
    assert pictures[0] == pictures[1] != {}


def test_another_seed_is_another_run(arm_folder, tmp_path):
    task = ("--task", "reach the blue block", "--seconds", "1")
    for seed in ("20007", "20008"):
        lockstep(arm_folder, "reach-block.policy", str(tmp_path / seed), *task, "--seed", seed)
    with pytest.raises(AssertionError, match="differs"):
        assert_same(*(tmp_path / seed / "run.mcap" for seed in ("20007", "20008")))


@pytest.fixture
def bound(shared_policies):
    def join(walker: Walker) -> Bound:
        text = {kind: (POLICIES / walker.name / f"{kind}.yaml").read_text() for kind in ("contract", "robot")}
        binding = bind(load_contract(text["contract"]), load_robot(text["robot"]))
        (graph,) = (shared_policies / walker.name).glob("*.onnx")
        return Bound(
            name=walker.name, plan=binding.plan(), graph=graph.read_bytes(), library=onnxruntime_library(),
            tokenizer=None, robot=binding.robot.as_json(), robot_folder=shared_policies / walker.name,
        )  # fmt: skip

    return join


def walk(joined: Bound, walker: Walker, **more):
    from interlock.cli.wiring import make_plant

    goal = tuple(map(float, walker.goal.split(",")))
    return run_lockstep(joined, make_plant("sim:mujoco", joined), Episode(seconds=WALK_S, goal=goal, **more))


@pytest.mark.parametrize("walker", WALKERS, ids=lambda each: each.name)
def test_the_guard_makes_no_walker_worse(walker, bound):
    joined = bound(walker)
    guarded = walk(joined, walker, keep_commands=True)
    bare = walk(joined, walker, guard=False, keep_commands=True)
    assert not guarded.outcome.fallen
    assert not bare.outcome.fallen
    assert guarded.refused == 0
    assert guarded.forward_mps >= bare.forward_mps * (1 - NO_WORSE)
    if guarded.limited == 0:
        assert guarded.commands.tobytes() == bare.commands.tobytes(), "a guard that does not act changes nothing"


@pytest.mark.parametrize("walker", WALKERS[:2], ids=lambda each: each.name)
def test_a_walk_repeats_bit_for_bit(walker, bound, tmp_path):
    joined = bound(walker)
    results = [walk(joined, walker, recording=tmp_path / f"{name}.mcap") for name in ("one", "two")]
    assert assert_same(tmp_path / "one.mcap", tmp_path / "two.mcap") == results[0].ticks
    assert results[0].forward_mps == results[1].forward_mps
