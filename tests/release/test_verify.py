"""verify: every wrong graph is found, the right one passes, and nothing is a pass by default."""

import json

import numpy as np
import pytest

pytest.importorskip("interlock._core", reason="the extension is not built")

from conftest import PLAIN, RECURRENT, tiny_graph
from interlock.artifact.evidence import Verdict
from interlock.artifact.files import sha256
from interlock.artifact.folder import GRAPH, PolicyFolder
from interlock.contract.bind import bind
from interlock.contract.canonical import canonical_json
from interlock.contract.text import load_contract
from interlock.errors import InterlockError
from interlock.release import leg_runs
from interlock.release import verify as module
from interlock.release.compare import Budget
from interlock.release.verified import golden_samples, require_verified


def swap_graph(path, graph):
    """What a wrong exporter or compiler would have left: another graph, its engine record, all hashes right."""
    folder = PolicyFolder.open(path)
    name = "engines/onnxruntime-cpu/engine.json"
    record = json.loads(folder.read(name))
    record["graph"] = sha256(graph)
    folder.commit({GRAPH: graph, name: canonical_json(record)})


def test_the_right_graph_passes_over_samples_and_a_rollout_of_200_steps(built_tiny, verify_tiny):
    done = verify_tiny(built_tiny())
    assert done.evidence.verdict is Verdict.PASS, done.evidence.results["failures"] + done.evidence.results["doubts"]
    results = done.evidence.results
    assert results["rollout"]["count"] == 200
    assert results["samples"]["count"] == 24
    assert results["samples"]["origin"] == "synthetic"
    assert set(results["rollout"]["served"]["dimensions"]) == {"pan", "lift", "bend"}
    assert "worst" in results["worst"]["text"]
    assert results["worst"]["error"] < 1e-6


def test_budget_and_units_are_part_of_the_evidence(built_tiny, verify_tiny):
    evidence = verify_tiny(built_tiny(), budget=Budget(atol=2e-4, rtol=0.0)).evidence
    assert evidence.budget["atol"] == 2e-4
    assert evidence.budget["form"] == "|d| <= atol + rtol*|ref|"
    assert evidence.results["units"] == {"pan": "rad", "lift": "rad", "bend": "rad"}
    assert evidence.started_ns.isdigit()
    assert len(evidence.started_ns) == 19


def test_an_unchanged_policy_is_not_verified_again(built_tiny, verify_tiny, monkeypatch):
    path = built_tiny()
    verify_tiny(path)
    monkeypatch.setattr(module, "measure", lambda *_, **__: pytest.fail("ran again"))
    assert verify_tiny(path).is_unchanged


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (1, 2, 0)])
def test_permuted_outputs_fail_and_are_named(built_tiny, verify_tiny, order):
    path = built_tiny()
    swap_graph(path, tiny_graph(order=order))
    # Scale and offset differ by joint only through the default pose, so make the comparison blind to nothing.
    evidence = verify_tiny(path).evidence
    assert evidence.verdict is Verdict.FAIL


def test_permuted_joints_of_equal_offset_are_named(built_tiny, verify_tiny):
    flat = PLAIN.replace("default: 0.1", "default: 0").replace("default: -0.2", "default: 0")
    path = built_tiny(contract=flat)
    swap_graph(path, tiny_graph(order=(1, 0, 2)))
    evidence = verify_tiny(path).evidence
    assert evidence.verdict is Verdict.FAIL
    assert sorted(map(tuple, evidence.results["samples"]["graph"]["permuted"])) == [("lift", "pan"), ("pan", "lift")]
    assert any("holds the numbers of" in each for each in evidence.results["failures"])


def test_one_changed_weight_fails(built_tiny, verify_tiny):
    path = built_tiny()
    swap_graph(path, tiny_graph(nudge=0.01))
    evidence = verify_tiny(path).evidence
    assert evidence.verdict is Verdict.FAIL
    assert evidence.results["samples"]["graph"]["worst"] == "pan"
    assert evidence.results["samples"]["graph"]["dimensions"]["lift"]["over"] == 0
    assert evidence.failure_response.startswith("parity")


def test_the_smallest_budget_that_would_pass_is_told(built_tiny, verify_tiny):
    path = built_tiny()
    swap_graph(path, tiny_graph(nudge=0.01))
    dimension = verify_tiny(path).evidence.results["rollout"]["served"]["dimensions"]["pan"]
    assert 1e-4 < dimension["needed_atol"] <= dimension["max"]


def test_nan_fails_even_where_most_samples_are_numbers(built_tiny, verify_tiny):
    path = built_tiny()
    swap_graph(path, tiny_graph(nan=True))
    evidence = verify_tiny(path).evidence
    assert evidence.verdict is Verdict.FAIL
    assert any("no action for" in each for each in evidence.results["failures"])
    assert evidence.results["samples"]["graph"]["worst_error"] == "inf"


@pytest.mark.parametrize("graph", [{"output": "renamed"}, {"extra": True}])
def test_renamed_and_extra_outputs_never_pass(built_tiny, verify_tiny, graph):
    path = built_tiny()
    swap_graph(path, tiny_graph(**graph))
    try:
        evidence = verify_tiny(path).evidence
    except InterlockError as refusal:
        assert refusal.code.startswith(("engine", "tensor", "plan"))  # noqa: PT017
    else:
        assert evidence.verdict is Verdict.FAIL


def test_a_recurrent_policy_passes_with_its_state_carried(built_tiny, verify_tiny):
    evidence = verify_tiny(built_tiny(tiny_graph(recurrent=True), contract=RECURRENT)).evidence
    assert evidence.verdict is Verdict.PASS, evidence.results["failures"] + evidence.results["doubts"]


def test_a_state_that_is_not_carried_passes_every_sample_and_fails_the_rollout(built_tiny, verify_tiny):
    path = built_tiny(tiny_graph(recurrent=True), contract=RECURRENT)
    swap_graph(path, tiny_graph(recurrent=True, stuck=True))
    results = verify_tiny(path).evidence.results
    assert results["samples"]["graph"]["passes"]
    assert not results["rollout"]["graph"]["passes"]
    assert max(results["rollout"]["graph"]["drift by quarter"]) > 1e-3


def test_a_policy_that_ignores_what_it_sees_is_inconclusive(built_tiny, verify_tiny):
    onnx = pytest.importorskip("onnx")
    deaf = onnx.load_from_string(tiny_graph())
    for each in deaf.graph.initializer:
        if each.name == "w1":
            each.CopyFrom(onnx.numpy_helper.from_array(np.zeros((18, 8), np.float32), "w1"))
    evidence = verify_tiny(built_tiny(deaf.SerializeToString())).evidence
    assert evidence.verdict is Verdict.INCONCLUSIVE
    assert any("would not have been noticed" in each for each in evidence.results["doubts"])
    assert evidence.verdict.exit == 3


def test_a_budget_below_the_effect_of_jitter_is_inconclusive(built_tiny, verify_tiny):
    evidence = verify_tiny(built_tiny(), budget=Budget(atol=1e-9, rtol=1e-2)).evidence
    assert evidence.verdict in {Verdict.INCONCLUSIVE, Verdict.FAIL}
    assert any("1e-6" in each for each in evidence.results["doubts"])


def test_a_rollout_that_is_too_short_is_inconclusive(built_tiny, verify_tiny):
    from interlock.release.observe import Walked, made_up_rollout

    def short(plan, graph, *, steps, seed, task):
        return Walked(observations=made_up_rollout(plan, 30, tasks=(), seed=seed))

    evidence = verify_tiny(built_tiny(), rollout=short).evidence
    assert evidence.verdict is Verdict.INCONCLUSIVE
    assert any("30 control periods" in each for each in evidence.results["doubts"])


def test_a_child_that_dies_is_an_error_and_never_a_pass(built_tiny, verify_tiny, monkeypatch):
    monkeypatch.setattr(leg_runs, "LEGS", "interlock.release.no_such_program")
    done = verify_tiny(built_tiny())
    assert done.evidence.verdict is Verdict.ERROR
    assert done.evidence.verdict.exit == 1


def test_an_evidence_that_is_not_a_pass_never_holds(built_tiny, verify_tiny):
    path = built_tiny()
    swap_graph(path, tiny_graph(nudge=0.01))
    assert verify_tiny(path).evidence.verdict is Verdict.FAIL
    assert not verify_tiny(path).is_unchanged


def test_without_a_build_the_next_command_is_build(freeze_tiny, verify_tiny):
    with pytest.raises(InterlockError) as caught:
        verify_tiny(freeze_tiny())
    assert caught.value.code == "engine-missing"
    assert caught.value.next.startswith("interlock build")


def test_a_changed_graph_file_is_refused_before_anything_runs(built_tiny, verify_tiny):
    path = built_tiny()
    content = bytearray((path / GRAPH).read_bytes())
    content[len(content) // 2] ^= 1
    (path / GRAPH).write_bytes(bytes(content))
    with pytest.raises(InterlockError) as caught:
        verify_tiny(path)
    assert caught.value.code == "file-changed"


def test_only_a_pass_for_these_bytes_and_this_robot_lets_a_policy_run(built_tiny, verify_tiny, robot):
    path = built_tiny()
    binding = bind(load_contract((path / "contract.yaml").read_text()), robot)
    with pytest.raises(InterlockError, match="never verified"):
        require_verified(PolicyFolder.open(path), binding)
    done = verify_tiny(path)
    assert require_verified(done.folder, binding).verdict is Verdict.PASS
    swap_graph(path, tiny_graph(nudge=0.5))
    with pytest.raises(InterlockError, match="changed since"):
        require_verified(PolicyFolder.open(path), binding)


def test_golden_samples_are_left_for_a_check_before_an_engine_is_put_in_charge(built_tiny, verify_tiny):
    done = verify_tiny(built_tiny())
    observations, reference = golden_samples(done.folder)
    assert len(observations) == len(reference["action"]) == 24
    assert reference["action"].shape == (24, 1, 3)
    assert any(name.startswith("mistake.") for name in reference)


def test_the_evidence_says_what_is_not_independent(built_tiny, verify_tiny):
    results = verify_tiny(built_tiny()).evidence.results
    assert "preprocessing and decoding are the ones that serve" in results["independence"]
    assert results["legs"]["samples source"]["runner"] == "reference"
    assert results["legs"]["samples served"]["runner"] == "served"


def test_damaged_evidence_is_made_again(built_tiny, verify_tiny):
    path = built_tiny()
    verify_tiny(path)
    (path / "evidence" / "verify.json").write_text("damaged")
    with pytest.raises(InterlockError):
        PolicyFolder.open(path)
    done = verify_tiny(path)
    assert (done.why, done.evidence.verdict) == ("never run", Verdict.PASS)
    PolicyFolder.open(path)


@pytest.mark.parametrize("count", [0, 60])
def test_a_policy_that_its_simulation_ends_fails_and_the_contract_is_named(built_tiny, verify_tiny, count):
    from interlock.release.observe import Walked, made_up_rollout

    def ends(plan, graph, *, steps, seed, task):
        return Walked(
            observations=made_up_rollout(plan, count, tasks=(), seed=seed), ended="fell 1.20 s after its start"
        )

    evidence = verify_tiny(built_tiny(), rollout=ends).evidence
    assert evidence.verdict is Verdict.FAIL
    assert evidence.results["failures"] == ["on its simulated robot: fell 1.20 s after its start"]
    assert evidence.failure_response.startswith("contract")


def test_a_policy_that_the_guard_must_hold_back_is_inconclusive(built_tiny, verify_tiny):
    from interlock.release.observe import Walked, made_up_rollout

    def held(plan, graph, *, steps, seed, task):
        return Walked(observations=made_up_rollout(plan, 200, tasks=(), seed=seed), acted=0.5)

    evidence = verify_tiny(built_tiny(), rollout=held).evidence
    assert evidence.verdict is Verdict.INCONCLUSIVE
    assert any("50%" in each for each in evidence.results["doubts"])
    assert evidence.failure_response.startswith("contract")


def test_how_a_kept_rollout_went_is_kept_with_it(built_tiny, verify_tiny):
    from interlock.release.observe import Walked, made_up_rollout

    def ends(plan, graph, *, steps, seed, task):
        return Walked(observations=made_up_rollout(plan, 200, tasks=(), seed=seed), ended="fell")

    path = built_tiny()
    assert verify_tiny(path, rollout=ends).evidence.verdict is Verdict.FAIL
    again = verify_tiny(path, rollout=lambda *_, **__: pytest.fail("rolled out again"))
    assert again.evidence.verdict is Verdict.FAIL
