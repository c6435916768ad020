"""Our own checkpoint: its code is never run from its folder, its parts belong together, its export is its policy."""

import hashlib
import json
import shutil

import numpy as np
import pytest
from tests.conftest import ARM

from interlock.adapters.readers import READERS
from interlock.artifact.evidence import Verdict
from interlock.artifact.folder import GRAPH, PolicyFolder
from interlock.contract.bind import bind
from interlock.contract.text import load_contract, load_robot
from interlock.errors import InterlockError, NotEvaluated
from interlock.release import framework
from interlock.release.freeze import freeze
from interlock.release.verify import verify

CHECKPOINT = ARM / "reach_block"


@pytest.fixture
def checkpoint(tmp_path):
    """A copy that may be changed."""
    return shutil.copytree(CHECKPOINT, tmp_path / "checkpoint", ignore=shutil.ignore_patterns("__pycache__"))


def rewrite(folder, **changes):
    """Changes keys of config.json and writes down the hashes of the files again."""
    config = json.loads((folder / "config.json").read_text())
    config.update(changes)
    for name in config["files_sha256"]:
        config["files_sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "config.json").write_text(json.dumps(config))


def refused(checkpoint, tmp_path):
    with pytest.raises(InterlockError) as caught:
        freeze(checkpoint, tmp_path / "p.policy", readers=READERS)
    assert not (tmp_path / "p.policy").exists()
    assert caught.value.problems[0].hint
    return caught.value


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_file_of_another_training_is_refused(checkpoint, tmp_path, name):
    content = bytearray((checkpoint / name).read_bytes())
    content[-2] ^= 1
    (checkpoint / name).write_bytes(content)
    assert refused(checkpoint, tmp_path).code == "source-contradiction"


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_missing_part_is_refused(checkpoint, tmp_path, name):
    (checkpoint / name).unlink()
    assert refused(checkpoint, tmp_path).code == "file-missing"


@pytest.mark.parametrize("size", [0, 7, 100, 5000, -1])
def test_truncated_weights_are_refused_although_their_hash_is_right(checkpoint, tmp_path, size):
    whole = (checkpoint / "model.safetensors").read_bytes()
    (checkpoint / "model.safetensors").write_bytes(whole[:size])
    rewrite(checkpoint)
    assert refused(checkpoint, tmp_path).code in {"safetensors-malformed", "file-empty"}


def test_weights_that_are_not_numbers_are_refused(checkpoint, tmp_path):
    whole = bytearray((checkpoint / "model.safetensors").read_bytes())
    whole[-4:] = np.array([np.nan], "<f4").tobytes()
    (checkpoint / "model.safetensors").write_bytes(whole)
    rewrite(checkpoint)
    assert refused(checkpoint, tmp_path).code == "weights-not-finite"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"type": "interlock-vla"}', '{"type": "interlock-vla", "format": 2}'])
def test_a_damaged_config_is_refused(checkpoint, tmp_path, text):
    (checkpoint / "config.json").write_text(text)
    assert refused(checkpoint, tmp_path).code in {"file-empty", "source-contradiction", "reader-missing"}


def test_another_tokenizer_than_the_config_says_is_refused(checkpoint, tmp_path):
    (checkpoint / "tokenizer.json").write_text((checkpoint / "tokenizer.json").read_text() + " ")
    rewrite(checkpoint)
    assert refused(checkpoint, tmp_path).code == "tokenizer-hash"


@pytest.mark.parametrize("key", ["timing", "joints", "inputs", "image", "language", "outputs"])
def test_a_config_without_a_part_is_refused(checkpoint, tmp_path, key):
    config = json.loads((checkpoint / "config.json").read_text())
    del config[key]
    (checkpoint / "config.json").write_text(json.dumps(config))
    assert refused(checkpoint, tmp_path).code in {"source-contradiction", "missing-key"}


def test_code_in_a_checkpoint_is_never_executed(checkpoint, tmp_path):
    canary = tmp_path / "canary"
    (checkpoint / "model.py").write_text(f"open({str(canary)!r}, 'w')\n")
    (checkpoint / "sitecustomize.py").write_text(f"open({str(canary)!r}, 'w')\n")
    rewrite(checkpoint)
    assert refused(checkpoint, tmp_path).code == "source-contradiction"
    assert not canary.exists()


def test_a_network_of_another_shape_than_its_weights_is_refused(checkpoint, tmp_path):
    pytest.importorskip("torch", reason="the source framework")
    config = json.loads((checkpoint / "config.json").read_text())
    rewrite(checkpoint, network={**config["network"], "hidden": 32})
    assert refused(checkpoint, tmp_path).code == "weights-mismatch"


def test_without_the_framework_nothing_is_frozen_and_it_is_not_a_pass(checkpoint, tmp_path, monkeypatch):
    def missing(*_, **__):
        raise InterlockError(code="framework-missing", where="torch", hint="pip install it")

    monkeypatch.setattr(framework, "run_child", missing)
    with pytest.raises(NotEvaluated) as caught:
        freeze(checkpoint, tmp_path / "p.policy", readers=READERS)
    assert caught.value.exit == 3
    assert caught.value.next.startswith("pip install")
    assert not (tmp_path / "p.policy").exists()


@pytest.fixture
def policy(arm_policy, tmp_path):
    return shutil.copytree(arm_policy, tmp_path / "reach-block.policy")


def bound(policy):
    robot = load_robot((ARM / "robot.yaml").read_text())
    return bind(load_contract((policy / "contract.yaml").read_text()), robot)


def test_source_graph_and_served_engine_act_alike(policy):
    done = verify(policy, bound(policy), readers=READERS)
    results = done.evidence.results
    assert done.evidence.verdict is Verdict.PASS, results["failures"] + results["doubts"]
    assert results["samples"]["origin"] == "dataset"
    assert set(results["mistakes"]) == {"colours_swapped", "image_mirrored", "degrees_for_radians", "joints_reversed"}
    assert all(each["noticed"] for each in results["mistakes"].values())
    assert results["inputs"]["tokens"] == 0
    assert "by its own code" in results["independence"]


def test_kept_references_serve_where_the_framework_is_missing(policy, monkeypatch):
    verify(policy, bound(policy), readers=READERS)
    folder = PolicyFolder.open(policy)
    folder.commit({}, replacing=("evidence/verify.json",))

    def missing(*_, **__):
        raise InterlockError(code="framework-missing", where="torch", hint="pip install it")

    monkeypatch.setattr(framework, "run_child", missing)
    with pytest.raises(NotEvaluated):
        verify(policy, bound(policy), readers=READERS, steps=400)


def test_export_is_recorded_with_its_versions(policy):
    export = PolicyFolder.open(policy).evidence("build").results["export"]
    assert export["exporter"] == "torch.onnx.export(dynamo=True)"
    assert export["opset"] == 18
    assert {"torch", "onnx", "onnxscript"} <= set(export)


def test_the_exported_graph_has_the_shapes_that_were_asked_for(policy):
    onnx = pytest.importorskip("onnx")
    made = onnx.load_from_string(PolicyFolder.open(policy).graph())
    shapes = {each.name: [size.dim_value for size in each.type.tensor_type.shape.dim] for each in made.graph.input}
    assert shapes == {"image": [1, 3, 96, 96], "state": [1, 4], "tokens": [1, 8]}
    assert GRAPH in PolicyFolder.open(policy).lock.files


def test_no_absolute_path_stands_anywhere_in_the_folder(policy, arm_folder):
    for each in policy.rglob("*"):
        if each.is_file():
            content = each.read_bytes()
            assert str(arm_folder).encode() not in content, each
            assert str(ARM).encode() not in content, each
            assert b"interlock-child" not in content, each  # a stack trace of the exporter
            assert b"site-packages" not in content, each
