"""The arm's policy under contracts that are wrong: it misses, and who could have told before it moved."""

from __future__ import annotations

import copy
import shutil
from dataclasses import replace

import numpy as np
import pytest

from interlock.adapters.readers import READERS
from interlock.artifact.evidence import Verdict
from interlock.artifact.folder import PolicyFolder
from interlock.cli.load import load_binding, load_bound
from interlock.cli.wiring import make_plant
from interlock.errors import InterlockError
from interlock.release.verdict import CONTRACT
from interlock.release.verify import verify
from interlock.runtime.lockstep import Episode, run_lockstep

pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")

EPISODES, SECONDS = 12, 4.0  # the slowest of 200 right episodes takes 2.7 s
FIRST_SEED = 20_000
DEGREES_PER_RADIAN = 57.29577951308232
MOST_REACHED = 1  # of 12: 8 %


@pytest.fixture
def bound(arm_policy):
    return load_bound(arm_policy, arm_policy.parent / "robot.yaml")


class Mirrored:
    """The arm seen by a camera that gives mirrored pictures."""

    def __init__(self, plant):
        self._plant = plant

    def __getattr__(self, name):
        return getattr(self._plant, name)

    def images(self):
        return [np.ascontiguousarray(each[:, ::-1]) for each in self._plant.images()]


def colours_swapped(plan):
    for each in plan["inputs"]:
        if each["kind"] == "image":
            each["bgr"] = True


def in_degrees(plan):
    for each in plan["inputs"]:
        for term in each.get("terms", []):
            term["per_si"] = [value * DEGREES_PER_RADIAN for value in term["per_si"]]


def episodes(bound, plan, seen=lambda plant: plant):
    wrong = replace(bound, plan=plan)
    plant = seen(make_plant("sim:arm", wrong))
    return [
        run_lockstep(wrong, plant, Episode(seconds=SECONDS, seed=FIRST_SEED + number, record_images="none"))
        for number in range(EPISODES)
    ]


def reached(results) -> int:
    return sum(bool(each.outcome.success) for each in results)


def test_under_the_right_contract_it_reaches(bound):
    results = episodes(bound, bound.plan)
    assert reached(results) == EPISODES
    assert not any(each.refused for each in results)


def test_with_swapped_colours_it_reaches_nothing(bound):
    plan = copy.deepcopy(bound.plan)
    colours_swapped(plan)
    assert plan != bound.plan
    assert reached(episodes(bound, plan)) <= MOST_REACHED


def test_with_degrees_for_radians_the_guard_refuses_before_the_arm_is_anywhere(bound):
    plan = copy.deepcopy(bound.plan)
    in_degrees(plan)
    results = episodes(bound, plan)
    assert reached(results) == 0
    for each in results:
        assert each.modes[-2:] == ["Stopping", "Holding"]
        assert each.refused == 1


def test_a_mirrored_camera_is_seen_by_behaviour_alone(bound):
    """No contract says which way a camera looks, and the source is shown the same mirrored picture."""
    results = episodes(bound, bound.plan, Mirrored)
    assert reached(results) <= MOST_REACHED
    assert not any(each.refused for each in results)


# ---- who tells before it moves


@pytest.fixture
def edited(arm_policy, tmp_path):
    """The policy folder with one line of its contract edited, beside its robot file."""

    def do(old: str, new: str):
        path = shutil.copytree(arm_policy, tmp_path / "edited.policy")
        shutil.copy(arm_policy.parent / "robot.yaml", tmp_path)
        contract = path / "contract.yaml"
        text = contract.read_text()
        assert text.count(old) == 1
        contract.write_text(text.replace(old, new))
        return path

    return do


def verified(path, **more):
    binding = load_binding(PolicyFolder.open(path), path.parent / "robot.yaml")
    return verify(path, binding, readers=READERS, **more).evidence


def test_swapped_colours_fail_verification_and_the_picture_is_named(edited):
    evidence = verified(edited("color: rgb", "color: bgr"))
    assert evidence.verdict is Verdict.FAIL
    assert evidence.verdict.exit == 1
    assert evidence.failure_response == CONTRACT
    assert evidence.results["failures"][0].startswith("input image differs by")
    assert evidence.results["samples"]["served"]["worst_error"] > 1


def test_degrees_are_refused_by_check(edited):
    path = edited("unit: rad ", "unit: deg ")
    with pytest.raises(InterlockError) as refused:
        verified(path)
    assert {each.code for each in refused.value.problems} == {"start-outside-limits"}


def test_degrees_with_a_start_pose_in_degrees_fail_verification(edited):
    path = edited("unit: rad ", "unit: deg ")
    contract = path / "contract.yaml"
    pose = "{base_yaw: 0, shoulder: -0.15, elbow: 1.71, wrist: 1.58}"
    text = contract.read_text()
    assert pose in text
    contract.write_text(text.replace(pose, "{base_yaw: 0, shoulder: -8.6, elbow: 98, wrist: 90.5}"))
    evidence = verified(path)
    assert evidence.verdict is Verdict.FAIL
    assert evidence.failure_response == CONTRACT
    assert any(each.startswith("input state differs by") for each in evidence.results["failures"])


@pytest.mark.slow
def test_statistics_of_another_training_fail_verification(edited):
    evidence = verified(edited("mean: [0.485, 0.456, 0.406]", "mean: [0.5, 0.5, 0.5]"))
    assert evidence.verdict is Verdict.FAIL
    assert evidence.failure_response == CONTRACT
    assert evidence.results["failures"][0].startswith("input image differs by")
