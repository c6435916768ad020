"""Readers against what a careful person found out about each policy; read in place, skipped where it is absent."""

import dataclasses
import json
import os
import shutil
from pathlib import Path

import pytest

from interlock.adapters.readers import READERS
from interlock.adapters.readers.facts import numbers, one_if_equal, without_suffix
from interlock.contract.expand_contract import expand_contract
from interlock.contract.text import load_contract, load_robot
from interlock.errors import InterlockError, NeedsAnswer
from interlock.release.freeze import freeze

HERE = Path(__file__).parents[1] / "policies"
POLICIES = Path(os.environ.get("INTERLOCK_POLICIES", HERE.parents[1].parent / "shared" / "policies"))
needs_policies = pytest.mark.skipif(
    not POLICIES.is_dir(), reason=f"the published policies are not at hand (INTERLOCK_POLICIES={POLICIES})"
)

HOLOSOMA = {
    "control_rate_hz": 50,
    "action_scale": 0.25,
    "gait_period_s": 1.0,
    "observations": {
        "base_ang_vel": 0.25, "projected_gravity": 1, "command_lin_vel": 1, "command_ang_vel": 1, "dof_pos": 1,
        "dof_vel": 0.05, "actions": 1, "sin_phase": 1, "cos_phase": 1,
    },
    "default_joint_pos": [-0.312, 0, 0, 0.669, -0.363, 0, -0.312, 0, 0, 0.669, -0.363, 0, 0, 0, 0,
                          0.2, 0.2, 0, 0.6, 0, 0, 0, 0.2, -0.2, 0, 0.6, 0, 0, 0],
}  # fmt: skip


def robot(name):
    return load_robot((HERE / name / "robot.yaml").read_text())


def by_hand(name):
    """The contract that a person wrote, without what is not a fact of training."""
    return facts(load_contract((HERE / name / "contract.yaml").read_text()))


def facts(contract):
    expanded = dataclasses.asdict(expand_contract(contract))
    for key in ("name", "source", "choices", "conventions"):
        del expanded[key]
    return expanded


@needs_policies
def test_deploy_yaml_gives_the_contract_that_a_person_wrote(tmp_path):
    done = freeze(POLICIES / "url_g1", tmp_path / "p.policy", readers=READERS, robot=robot("url_g1"))
    assert facts(load_contract(done.folder.contract_text)) == by_hand("url_g1")
    assert set(done.facts) == {"file", "convention", "robot", "choice"}
    assert done.answered == 0


@needs_policies
def test_gains_stand_in_motor_order_and_everything_else_in_policy_order(tmp_path):
    done = freeze(POLICIES / "url_g1", tmp_path / "p.policy", readers=READERS, robot=robot("url_g1"))
    sheet = json.loads((POLICIES / "url_g1" / "facts.json").read_text())
    joints = done.contract.joints
    assert list(joints.names) == sheet["joints_policy_order"]
    assert list(joints.kp) == sheet["kp"]
    assert list(joints.kd) == sheet["kd"]
    assert list(joints.default) == sheet["default_joint_pos"]
    assert any("SDK motor order" in note for note in done.notes)


@needs_policies
def test_a_python_tag_is_data_and_is_told(tmp_path):
    done = freeze(POLICIES / "url_g1", tmp_path / "p.policy", readers=READERS, robot=robot("url_g1"))
    assert any("builtins.slice read as data, not executed" in note for note in done.notes)


@pytest.fixture
def deploy(tmp_path):
    """A copy of the upstream files that may be changed."""
    if not POLICIES.is_dir():
        pytest.skip(f"the published policies are not at hand (INTERLOCK_POLICIES={POLICIES})")

    def change(*pairs):
        folder = tmp_path / "checkpoint"
        folder.mkdir()
        shutil.copy(POLICIES / "url_g1" / "policy.onnx", folder)
        text = (POLICIES / "url_g1" / "upstream" / "deploy.yaml").read_text()
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        (folder / "deploy.yaml").write_text(text)
        return folder

    return change


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("joint_ids_map: [0, 6,", "joint_ids_map: [6, 6,", "source-contradiction"),
        ("step_dt: 0.02", "step_dt: fast", "source-contradiction"),
        ("step_dt: 0.02", "", "source-contradiction"),
        ("projected_gravity:", "imagined_gravity:", "term-unknown"),
        ("history_length: 5", "history_length: 4", "source-contradiction"),
        ("joint_ids: !!python/object/apply:builtins.slice [null, null, null]", "joint_ids: [1, 2]", "not-served"),
        ("JointPositionAction", "PreTrainedPolicyAction", "not-served"),
        ("scale: [0.2, 0.2, 0.2]", "scale: [0.2, 0.2]", "source-contradiction"),
        ("lin_vel_x: [-0.5, 1.0]", "lin_vel_x: [.nan, 1.0]", "source-contradiction"),
        ("stiffness: [100.0,", "stiffness: [", "source-contradiction"),
    ],
)
def test_a_deploy_yaml_that_contradicts_itself_is_refused(deploy, tmp_path, old, new, code):
    folder = deploy((old, new))
    with pytest.raises(InterlockError) as caught:
        freeze(folder, tmp_path / "p.policy", readers=READERS, robot=robot("url_g1"))
    assert caught.value.code == code
    assert caught.value.problems[0].hint
    assert not (tmp_path / "p.policy").exists()


def test_a_tag_that_would_run_code_runs_nothing(deploy, tmp_path):
    canary = tmp_path / "canary"
    folder = deploy(
        ("clip: null\n    joint_names", f"clip: !!python/object/apply:os.system ['touch {canary}']\n    joint_names")
    )
    with pytest.raises(InterlockError):
        freeze(folder, tmp_path / "p.policy", readers=READERS, robot=robot("url_g1"))
    assert not canary.exists()


def test_without_a_robot_the_joint_names_are_asked(deploy, tmp_path):
    with pytest.raises(NeedsAnswer) as caught:
        freeze(deploy(), tmp_path / "p.policy", readers=READERS)
    assert [each.where for each in caught.value.problems] == ["joint_names"]
    assert "--robot" in caught.value.problems[0].hint


@needs_policies
@pytest.mark.parametrize("name", ["hs_g1_ppo", "hs_g1_fastsac"])
def test_holosoma_metadata_and_answers_give_the_contract_that_a_person_wrote(tmp_path, name):
    done = freeze(
        POLICIES / name, tmp_path / "p.policy", readers=READERS, robot=robot("hs_g1_ppo"), answers=HOLOSOMA,
        answered_by="N", answered_on="2026-11-30",
    )  # fmt: skip
    assert facts(load_contract(done.folder.contract_text)) == by_hand(name)
    assert done.folder.lock.facts["timing.control_rate_hz"].detail == "N, 2026-11-30"


@needs_policies
def test_what_holosoma_does_not_say_is_asked_with_candidates_and_where_to_look(tmp_path):
    with pytest.raises(NeedsAnswer) as caught:
        freeze(POLICIES / "hs_g1_ppo", tmp_path / "p.policy", readers=READERS, robot=robot("hs_g1_ppo"))
    asked = {each.where: each.hint for each in caught.value.problems}
    assert set(asked) == {"observations", "control_rate_hz", "action_scale", "default_joint_pos"}
    assert all("look in" in hint for hint in asked.values())
    assert "100 numbers, the 100 that the graph takes" in asked["observations"]


@needs_policies
def test_terms_are_alphabetical_whatever_order_the_answers_list(tmp_path):
    backwards = {**HOLOSOMA, "observations": dict(reversed(HOLOSOMA["observations"].items()))}
    done = freeze(
        POLICIES / "hs_g1_ppo", tmp_path / "p.policy", readers=READERS, robot=robot("hs_g1_ppo"), answers=backwards
    )
    assert facts(load_contract(done.folder.contract_text)) == by_hand("hs_g1_ppo")


@needs_policies
@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("control_rate_hz", "fifty", "answer-kind"),
        ("control_rate_hz", True, "answer-kind"),
        ("observations", {"dof_pos": 1}, "source-contradiction"),
        ("observations", {"heading": 1}, "source-contradiction"),
        ("default_joint_pos", [0, 0], "source-contradiction"),
        ("default_joint_pos", {"left_knee_joint": 0.6}, "source-contradiction"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(tmp_path, key, value, code):
    with pytest.raises(InterlockError) as caught:
        freeze(
            POLICIES / "hs_g1_ppo", tmp_path / "p.policy", readers=READERS, robot=robot("hs_g1_ppo"),
            answers={**HOLOSOMA, key: value},
        )  # fmt: skip
    assert caught.value.code == code


@needs_policies
def test_a_bare_graph_takes_the_contract_that_is_given(tmp_path):
    text = (HERE / "pg_go1" / "contract.yaml").read_text()
    done = freeze(POLICIES / "pg_go1", tmp_path / "p.policy", readers=READERS, contract=text)
    assert done.folder.contract_text == text
    assert done.folder.names("source/") == ("source/go1_policy.onnx",)


def test_numbers_are_finite_and_as_many_as_joints():
    assert numbers(2, 3, "x") == [2, 2, 2]
    for wrong in ([1, 2], [1, 2, float("nan")], [1, 2, "3"], [1, 2, True], None):
        with pytest.raises(InterlockError):
            numbers(wrong, 3, "x")
    assert one_if_equal([0.5, 0.5]) == 0.5
    assert without_suffix(["a_joint", "b"]) == (["a_joint", "b"], "")
