"""freeze: facts with origins, everything unknown asked at once, nothing written unless all is well."""

import json
import pickle  # noqa: TID251  (makes hostile files)

import pytest

pytest.importorskip("onnx", reason="the onnx package makes the graphs of these tests")

from conftest import PLAIN, place, tiny_graph
from interlock.adapters.readers import READERS
from interlock.artifact.arrays import write_arrays
from interlock.artifact.folder import PolicyFolder
from interlock.errors import InterlockError, NeedsAnswer
from interlock.release.answers import read_answers
from interlock.release.freeze import freeze


@pytest.fixture
def source(tmp_path):
    return place(tmp_path / "checkpoint", tiny_graph())


def refused(source, target, **extra):
    """Freezes and expects a refusal that writes nothing."""
    with pytest.raises(InterlockError) as caught:
        freeze(source, target, readers=READERS, **extra)
    assert not target.exists()
    assert [each.name for each in target.parent.iterdir() if each.name.startswith(".")] == []
    assert all(each.code and each.hint for each in caught.value.problems)
    assert caught.value.next.startswith("interlock ")
    return caught.value


def test_a_given_contract_becomes_a_policy_folder(source, tmp_path):
    done = freeze(
        source, tmp_path / "p.policy", readers=READERS, contract=PLAIN, answered_by="N", answered_on="2026-11-30"
    )
    assert (done.folder.path / "contract.yaml").read_text() == PLAIN
    assert done.facts == {"person": 1}
    assert done.folder.evidence("freeze").subject["contract"]
    assert done.folder.lock.facts["contract"].detail == "N, 2026-11-30"


def test_the_same_again_does_nothing(source, tmp_path):
    target = tmp_path / "p.policy"
    freeze(source, target, readers=READERS, contract=PLAIN)
    before = {each: each.stat().st_mtime_ns for each in target.rglob("*")}
    assert freeze(source, target, readers=READERS, contract=PLAIN).is_unchanged
    assert {each: each.stat().st_mtime_ns for each in target.rglob("*")} == before


def test_one_changed_byte_of_the_checkpoint_freezes_again(source, tmp_path):
    target = tmp_path / "p.policy"
    freeze(source, target, readers=READERS, contract=PLAIN)
    (source / "small.onnx").write_bytes(tiny_graph(nudge=0.1))
    done = freeze(source, target, readers=READERS, contract=PLAIN)
    assert not done.is_unchanged
    assert done.folder.read("source/small.onnx") == tiny_graph(nudge=0.1)
    PolicyFolder.open(target)


def test_a_damaged_copy_of_the_checkpoint_is_mended(source, tmp_path):
    target = tmp_path / "p.policy"
    freeze(source, target, readers=READERS, contract=PLAIN)
    (target / "source" / "small.onnx").write_bytes(b"damaged")
    assert not freeze(source, target, readers=READERS, contract=PLAIN).is_unchanged
    PolicyFolder.open(target)


def test_everything_unknown_is_asked_at_once_and_nothing_is_written(source, tmp_path):
    refusal = refused(source, tmp_path / "p.policy")
    assert isinstance(refusal, NeedsAnswer)
    assert refusal.exit == 4
    assert len(refusal.problems) > 10
    assert {each.code for each in refusal.problems} == {"unanswered"}
    assert refusal.next


def test_an_unknown_fact_of_a_given_contract_is_asked_by_its_place(source, tmp_path):
    text = PLAIN.replace("scale: 0.05", "scale: ask").replace("action_delay_ms: 0", "action_delay_ms: ask")
    refusal = refused(source, tmp_path / "p.policy", contract=text)
    assert [each.where.partition(" ")[2] for each in refusal.problems] == [
        "timing.action_delay_ms",
        "inputs.obs.terms[1].scale",
    ]
    answers = {"timing.action_delay_ms": 0, "inputs.obs.terms[1].scale": 0.05}
    done = freeze(source, tmp_path / "p.policy", readers=READERS, contract=text, answers=answers, answered_by="N")
    assert "scale: 0.05" in done.folder.contract_text
    assert [(each.key, each.value, each.by) for each in done.folder.lock.answers] == [
        ("inputs.obs.terms[1].scale", 0.05, "N"),
        ("timing.action_delay_ms", 0, "N"),
    ]


def test_an_answer_that_nobody_asked_for_is_refused(source, tmp_path):
    refusal = refused(source, tmp_path / "p.policy", contract=PLAIN, answers={"timing.action_delay": 0})
    assert refusal.code == "answer-unknown"
    assert refusal.problems[0].hint


@pytest.mark.parametrize(
    "text", ["- a", "a: &x 1", "a: 1\na: 2", "!!python/object/apply:os.system ['true']", "a: [", ""]
)
def test_answers_that_are_no_plain_mapping_are_refused(text):
    with pytest.raises(InterlockError):
        read_answers(text, where="answers.yaml")


def test_an_edited_contract_is_kept_while_the_checkpoint_is_the_same(source, tmp_path):
    target = tmp_path / "p.policy"
    freeze(source, target, readers=READERS, contract=PLAIN)
    (target / "contract.yaml").write_text(PLAIN + "# mine\n")
    assert freeze(source, target, readers=READERS, contract=PLAIN).is_unchanged
    assert (target / "contract.yaml").read_text().endswith("# mine\n")


def test_a_target_that_is_something_else_is_never_overwritten(source, tmp_path):
    (tmp_path / "p.policy").mkdir()
    (tmp_path / "p.policy" / "mine").write_text("x")
    with pytest.raises(InterlockError) as caught:
        freeze(source, tmp_path / "p.policy", readers=READERS, contract=PLAIN)
    assert caught.value.code == "target-exists"
    assert (tmp_path / "p.policy" / "mine").read_text() == "x"


@pytest.mark.parametrize(
    ("contract", "code"),
    [
        (PLAIN.replace("obs:", "observation:"), "tensor-missing"),
        (PLAIN.replace("actions:", "action:"), "tensor-missing"),
        (PLAIN.replace("steps: 2", "steps: 3"), "shape-mismatch"),
        (PLAIN.replace("default: 0.1", "default: .nan"), "yaml-number"),
        (PLAIN.replace("unit: rad, scale: 1}", "scale: 1}"), "missing-key"),
        ("", "yaml-empty"),
        (PLAIN[:200], "missing-key"),
        (PLAIN + "more: 1\n", "unknown-key"),
        ("a: &a [1]\nb: *a\n", "yaml-anchor"),
        ("a: !!python/object/apply:os.system ['true']\n", "yaml-tag"),
    ],
)
def test_a_contract_that_does_not_fit_or_is_hostile_is_refused(source, tmp_path, contract, code):
    refusal = refused(source, tmp_path / "p.policy", contract=contract)
    assert code in {each.code for each in refusal.problems}
    assert all(each.hint for each in refusal.problems)


def test_a_truncated_graph_is_refused(source, tmp_path):
    whole = (source / "small.onnx").read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        (source / "small.onnx").write_bytes(whole[:size])
        refusal = refused(source, tmp_path / "p.policy", contract=PLAIN)
        assert refusal.code in {"onnx-malformed", "file-empty"}
        assert refusal.problems[0].hint


class Canary:
    """Unpickling it writes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("name", ["model.pt", "policy.pth", "agent.pkl", "x.ckpt", "pytorch_model.bin", "sb3.zip"])
def test_a_pickle_is_refused_and_never_runs(tmp_path, name):
    canary = tmp_path / "canary"
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / name).write_bytes(pickle.dumps(Canary(canary)))
    (folder / "config.json").write_text(json.dumps({"type": "act"}))
    refusal = refused(folder, tmp_path / "p.policy")
    assert refusal.code == "pickle-refused"
    assert refusal.next
    assert not canary.exists()


def test_a_pickle_given_directly_is_refused(tmp_path):
    canary = tmp_path / "canary"
    (tmp_path / "model.pt").write_bytes(pickle.dumps(Canary(canary)))
    assert refused(tmp_path / "model.pt", tmp_path / "p.policy").code == "pickle-refused"
    assert not canary.exists()


@pytest.mark.parametrize(
    ("content", "code"), [({"type": "act"}, "reader-missing"), ("not json", "reader-missing"), ([], "reader-missing")]
)
def test_a_checkpoint_that_nobody_reads_is_refused_with_what_it_says_it_is(tmp_path, content, code):
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text(content if isinstance(content, str) else json.dumps(content))
    refusal = refused(folder, tmp_path / "p.policy")
    assert refusal.code == code
    assert refusal.next


def test_two_kinds_of_checkpoint_in_one_folder_are_ambiguous(tmp_path):
    folder = place(tmp_path / "checkpoint", tiny_graph())
    (folder / "config.json").write_text(json.dumps({"type": "interlock-vla"}))
    (folder / "deploy.yaml").write_text("joint_ids_map: [0]")
    refusal = refused(folder, tmp_path / "p.policy")
    assert refusal.code == "reader-ambiguous"
    assert "--reader" in refusal.next


def test_an_unknown_reader_is_a_usage_error(source, tmp_path):
    assert refused(source, tmp_path / "p.policy", reader="lerobot").exit == 2


@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.mkdir(), lambda p: p.write_text("x")])
def test_a_source_that_is_not_there_or_empty_or_something_else_is_refused(tmp_path, make):
    make(tmp_path / "s")
    assert refused(tmp_path / "s", tmp_path / "p.policy").code in {"source-missing", "source-empty", "source-kind"}


def test_a_linked_file_is_not_followed(tmp_path):
    real = place(tmp_path / "real", tiny_graph())
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "small.onnx").symlink_to(real / "small.onnx")
    assert refused(folder, tmp_path / "p.policy", contract=PLAIN).code == "source-empty"


def test_samples_that_hold_a_pickle_are_refused_and_never_run(source, tmp_path):
    import io

    import numpy as np

    canary = tmp_path / "canary"
    out = io.BytesIO()
    np.savez(out, joints=np.array([Canary(canary)], dtype=object))
    canary.unlink(missing_ok=True)
    (tmp_path / "s.npz").write_bytes(out.getvalue())
    assert refused(source, tmp_path / "p.policy", contract=PLAIN, samples=tmp_path / "s.npz").code == "pickle-refused"
    assert not canary.exists()


def test_observations_of_a_person_are_kept_and_spread(source, tmp_path):
    import numpy as np

    path = tmp_path / "mine.npz"
    path.write_bytes(write_arrays({"joints": np.array(["pan", "lift", "bend"]), "joint_pos": np.zeros((500, 3))}))
    done = freeze(source, tmp_path / "p.policy", readers=READERS, contract=PLAIN, samples=path)
    assert "samples/observations.npz" in done.folder.lock.files


def test_a_source_that_draws_random_numbers_is_refused(tmp_path):
    onnx = pytest.importorskip("onnx")
    made = onnx.load_from_string(tiny_graph())
    made.graph.node.insert(0, onnx.helper.make_node("RandomUniformLike", ["obs"], ["noise"]))
    source = place(tmp_path / "checkpoint", made.SerializeToString())
    assert refused(source, tmp_path / "p.policy", contract=PLAIN).code == "random-operator"


def test_external_data_outside_the_checkpoint_is_never_read(tmp_path):
    onnx = pytest.importorskip("onnx")
    made = onnx.load_from_string(tiny_graph())
    (tmp_path / "secret").write_bytes(bytes(10_000))
    weight = made.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    entry = weight.external_data.add()
    entry.key, entry.value = "location", "../secret"
    source = place(tmp_path / "checkpoint", made.SerializeToString())
    assert refused(source, tmp_path / "p.policy", contract=PLAIN).code == "path-escape"
    entry.value = "weights.bin"
    (source / "small.onnx").write_bytes(made.SerializeToString())
    assert refused(source, tmp_path / "p.policy", contract=PLAIN).code == "file-missing"
    (source / "weights.bin").symlink_to(tmp_path / "secret")
    assert refused(source, tmp_path / "p.policy", contract=PLAIN).code == "file-kind"


def test_the_folder_that_isaac_lab_exports_into_is_read_with_its_side_files(tmp_path):
    from interlock.artifact.source import Source

    run = tmp_path / "run"
    place(run / "exported", tiny_graph())
    (run / "params").mkdir()
    (run / "params" / "deploy.yaml").write_text("joint_ids_map: [0]")
    opened = Source.open(run / "exported")
    assert opened.names == ("exported/small.onnx", "params/deploy.yaml")
    assert opened.label == "run"
