"""What the package ships for users without PyTorch is the committed checkpoint, frozen, built and verified."""

from __future__ import annotations

import shutil

import pytest
from tests.conftest import ARM

from interlock.artifact.environment import version_of
from interlock.artifact.evidence import Verdict
from interlock.artifact.folder import PolicyFolder
from interlock.cli.demo import _copy_frozen
from interlock.cli.load import load_binding


@pytest.fixture
def frozen(tmp_path):
    shutil.copy(ARM / "robot.yaml", tmp_path)
    _copy_frozen(ARM, tmp_path / "reach-block.policy")
    return PolicyFolder.open(tmp_path / "reach-block.policy")


def test_every_shipped_file_has_the_hash_that_its_lock_says(frozen):
    assert frozen.graph()
    assert {"source/model.safetensors", "source/config.json"} <= set(frozen.names())


def test_the_shipped_evidence_is_a_pass_for_this_robot_file(frozen, tmp_path):
    evidence = frozen.evidence("verify")
    assert evidence is not None
    assert evidence.verdict is Verdict.PASS
    binding = load_binding(frozen, tmp_path / "robot.yaml")
    assert evidence.inputs["binding"] == binding.identity


def test_the_shipped_graph_is_what_the_locked_exporter_makes(frozen, arm_policy):
    if version_of("torch") != frozen.evidence("build").environment["packages"]["torch"]:
        pytest.skip("another torch than the one the shipped graph was exported with")
    assert PolicyFolder.open(arm_policy).graph() == frozen.graph()
