"""Wrong contracts of the published walkers: who notices, when, and what happens where nobody can."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from interlock.adapters.readers import READERS
from interlock.artifact.evidence import Verdict
from interlock.artifact.folder import PolicyFolder
from interlock.cli.load import load_binding, load_verified
from interlock.cli.rollout import SimRollout
from interlock.cli.wiring import make_plant
from interlock.contract.bind import bind, survey
from interlock.contract.text import load_contract, load_robot
from interlock.errors import InterlockError
from interlock.release.answers import read_answers
from interlock.release.build import build
from interlock.release.compare import Budget
from interlock.release.freeze import freeze
from interlock.release.verdict import CONTRACT, Findings, judge
from interlock.release.verify import verify
from interlock.runtime.bound import Bound
from interlock.runtime.library import onnxruntime_library
from interlock.runtime.lockstep import Episode, run_lockstep
from tests.policies.walkers import WALKERS
from tests.policies.wrong import WRONG, Wrong, action_scale, at_25_hz, right, robot, sides_swapped, velocity_scale

pytest.importorskip("mujoco", reason="the simulated robots need the extra `sim`")

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "wrong-contracts.md"
STEPS = 200
SOURCES = {each.name: each.source for each in WALKERS}
GOALS = {each.name: tuple(map(float, each.goal.split(","))) for each in WALKERS}
IDS = [f"{each.policy}: {each.what}" for each in WRONG]


@pytest.fixture
def facts(shared_policies):
    return lambda policy: json.loads((shared_policies / policy / "facts.json").read_text())


@pytest.fixture
def bound(shared_policies):
    """A contract and a robot file joined, with the policy's own graph."""

    def join(policy: str, contract: str, on: str = "") -> Bound:
        binding = bind(load_contract(contract), load_robot(robot(on or policy)))
        (graph,) = (shared_policies / policy).glob("*.onnx")
        return Bound(
            name=policy, plan=binding.plan(), graph=graph.read_bytes(), library=onnxruntime_library(), tokenizer=None,
            robot=binding.robot.as_json(), robot_folder=shared_policies / (on or policy),
        )  # fmt: skip

    return join


@pytest.fixture
def frozen(shared_policies, tmp_path):
    """Freezes a contract that a person wrote, with everything that stands beside the graph."""

    def do(policy: str, contract: str | None = None, name: str = "w.policy", **more) -> Path:
        source = shared_policies / SOURCES[policy]
        return freeze(
            source, tmp_path / name, readers=READERS, robot=load_robot(robot(policy)), contract=contract, **more
        ).folder.path

    return do


def walk(joined: Bound):
    """What verify's rollout on the simulated robot says of a policy."""
    rollout = SimRollout("sim:mujoco", joined.robot, joined.robot_folder, None)
    return rollout(joined.plan, joined.graph, steps=STEPS, seed=0, task="")


def codes(problems) -> set[str]:
    return {each.code for each in problems}


@pytest.mark.parametrize("wrong", WRONG, ids=IDS)
def test_each_is_noticed_where_the_table_says(wrong: Wrong, facts, bound, frozen):
    contract = wrong.change(right(wrong.policy), facts(wrong.policy))
    assert contract != right(wrong.policy)
    if wrong.noticed == "freeze":
        with pytest.raises(InterlockError) as refused:
            frozen(wrong.policy, contract)
        assert codes(refused.value.problems) == {wrong.code}
        return
    frozen(wrong.policy, contract)
    found = survey(load_contract(contract), load_robot(robot(wrong.policy)))
    if wrong.noticed == "check":
        assert codes(found.problems) == {wrong.code}
        return
    assert not found.problems
    walked = walk(bound(wrong.policy, contract))
    assert walked.ended.startswith(wrong.acts), walked.ended
    judged = judge(_as_verify_sees(walked), Budget())
    said = [*judged.failures, *judged.doubts]
    if wrong.noticed == "nobody":
        assert not walked.ended
        assert walked.acted == 0
        return
    assert any(wrong.code in each for each in said), said
    assert judged.verdict is not Verdict.PASS
    assert judged.response == CONTRACT


def _as_verify_sees(walked) -> Findings:
    return Findings(ended=walked.ended, acted=walked.acted, samples=24, steps=STEPS, wanted_steps=STEPS)


@pytest.mark.parametrize("policy", list(SOURCES))
def test_the_right_contracts_are_noticed_by_nobody(policy, frozen, bound):
    frozen(policy, right(policy))
    walked = walk(bound(policy, right(policy)))
    assert not walked.ended
    assert walked.acted == 0


@pytest.mark.parametrize(
    ("wrong", "verdict"),
    [
        (next(each for each in WRONG if each.policy == "hs_g1_ppo" and "terms" in each.what), Verdict.FAIL),
        (next(each for each in WRONG if each.policy == "pg_go1" and "25 Hz" in each.what), Verdict.PASS),
    ],
    ids=["terms", "rate"],
)
def test_verify_judges_by_what_its_own_rollout_showed(wrong, verdict, facts, frozen, bound):
    contract = wrong.change(right(wrong.policy), facts(wrong.policy))
    path = frozen(wrong.policy, contract)
    build(path, readers=READERS)
    joined = bound(wrong.policy, contract)
    evidence = verify(
        path, bind(load_contract(contract), load_robot(robot(wrong.policy))), readers=READERS,
        rollout=SimRollout("sim:mujoco", joined.robot, joined.robot_folder, None),
    ).evidence  # fmt: skip
    assert evidence.verdict is verdict, evidence.results["failures"]
    assert evidence.results["closed loop"]["ended"].startswith(wrong.acts)
    if verdict is Verdict.FAIL:
        assert evidence.verdict.exit == 1
        assert evidence.failure_response == CONTRACT
        assert any("on its simulated robot: stopped" in each for each in evidence.results["failures"])


@pytest.mark.parametrize("policy", ["pg_go1", "hs_g1_ppo"])
def test_a_wrong_rate_still_walks_and_no_behaviour_shows_it(policy, bound):
    result = run_lockstep(
        joined := bound(policy, at_25_hz(right(policy), {})), make_plant("sim:mujoco", joined),
        Episode(seconds=10, goal=GOALS[policy]),
    )  # fmt: skip
    assert not result.outcome.fallen
    assert (result.limited, result.refused) == (0, 0)
    assert result.forward_mps > 0.35


def test_an_unusual_answer_is_taken_and_noted(shared_policies, tmp_path):
    answers = read_answers((HERE / "hs_g1_ppo" / "answers.yaml").read_text(), where="answers.yaml")
    unusual = {**answers, "control_rate_hz": 25, "observations": {**answers["observations"], "dof_vel": 1.0}}
    made = freeze(
        shared_policies / "hs_g1_ppo", tmp_path / "w.policy", readers=READERS, answers=unusual,
        robot=load_robot(robot("hs_g1_ppo")),
    )  # fmt: skip
    noted = [each for each in made.notes if "differs from" in each]
    assert [each.split()[0] for each in noted] == ["observations", "control_rate_hz"]
    assert "50" in noted[1]


def test_answers_in_the_order_of_the_configuration_are_read_in_the_order_of_the_network(shared_policies, tmp_path):
    answers = read_answers((HERE / "hs_g1_ppo" / "answers.yaml").read_text(), where="answers.yaml")
    assert next(iter(answers["observations"])) == "base_ang_vel", "listed as the configuration lists them"
    made = freeze(
        shared_policies / "hs_g1_ppo", tmp_path / "w.policy", readers=READERS, answers=answers,
        robot=load_robot(robot("hs_g1_ppo")),
    )  # fmt: skip
    known = load_contract(right("hs_g1_ppo")).inputs["actor_obs"].terms
    read = load_contract(made.folder.contract_text).inputs["actor_obs"].terms
    assert [_word(each) for each in read] == [_word(each) for each in known]


def _word(term) -> tuple[str, object]:
    return term.term, getattr(term, "of", None)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (at_25_hz, "timing"),
        (velocity_scale(1), "joint_vel"),
        (sides_swapped, "joints.order"),
        (action_scale(1), "outputs.actions.scale"),
    ],
    ids=["rate", "velocity", "sides", "action"],
)
def test_an_edit_that_contradicts_the_source_is_refused_before_anything_else(frozen, change, path):
    folder = frozen("url_g1")
    contract = folder / "contract.yaml"
    text = contract.read_text()
    edited = change(text, {})
    if edited == text:  # the reader writes one fact a line
        edited = re.sub(r"scale: 0.25", "scale: 1", text)
    assert edited != text
    contract.write_text(edited)
    robot_file = folder.parent / "robot.yaml"
    robot_file.write_text(robot("url_g1"))
    with pytest.raises(InterlockError) as refused:
        load_binding(PolicyFolder.open(folder), robot_file)
    assert codes(refused.value.problems) == {"contract-contradiction"}
    assert path in refused.value.problems[0].where


def test_a_choice_may_be_edited(frozen):
    folder = frozen("url_g1")
    contract = folder / "contract.yaml"
    contract.write_text(contract.read_text().replace("latency_budget_ms: 10", "latency_budget_ms: 8"))
    robot_file = folder.parent / "robot.yaml"
    robot_file.write_text(robot("url_g1"))
    assert load_binding(PolicyFolder.open(folder), robot_file).plan()["timing"]["latency_budget_ns"] == 8_000_000


# ---- one machine type, contracts that do not go together


def test_the_contract_of_another_policy_for_the_same_robot_is_refused(frozen, shared_policies):
    with pytest.raises(InterlockError) as refused:
        frozen("url_g1", right("hs_g1_ppo"), reader="onnx")
    assert {"tensor-missing", "tensor-unknown"} <= codes(refused.value.problems)
    folder = frozen("url_g1")
    (folder / "contract.yaml").write_text(right("hs_g1_ppo"))
    robot_file = folder.parent / "robot.yaml"
    robot_file.write_text(robot("hs_g1_ppo"))
    with pytest.raises(InterlockError) as refused:
        load_binding(PolicyFolder.open(folder), robot_file)
    assert {"tensor-missing", "tensor-unknown", "contract-contradiction"} <= codes(refused.value.problems)


def test_the_reference_contract_asks_more_damping_than_the_other_robot_file_allows():
    found = survey(load_contract(right("hs_g1_ppo")), load_robot(robot("url_g1")))
    assert codes(found.problems) == {"gain-above-maximum"}


def test_the_other_way_round_is_stopped_in_simulation(bound):
    walked = walk(bound("url_g1", right("url_g1"), on="hs_g1_ppo"))
    assert walked.ended.startswith("stopped 0.0"), walked.ended


def test_another_network_under_the_same_contract_is_refused(frozen, shared_policies, tmp_path):
    answers = read_answers((HERE / "hs_g1_ppo" / "answers.yaml").read_text(), where="answers.yaml")
    paths = {}
    for policy in ("hs_g1_ppo", "hs_g1_fastsac"):
        paths[policy] = frozen(policy, name=f"{policy}.policy", answers=answers)
        build(paths[policy], readers=READERS)
    robot_file = tmp_path / "robot.yaml"
    robot_file.write_text(robot("hs_g1_ppo"))
    graph, engine = "graph/policy.onnx", "engines/onnxruntime-cpu/engine.json"
    shutil.copy(paths["hs_g1_fastsac"] / graph, paths["hs_g1_ppo"] / graph)
    with pytest.raises(InterlockError) as refused:
        PolicyFolder.open(paths["hs_g1_ppo"])
    assert refused.value.code in {"file-changed", "file-size"}
    # Hashes written again, as somebody would who means it: what was never compared with its source moves no robot.
    shutil.copy(paths["hs_g1_ppo"] / "source/ppo_g1_29dof.onnx", paths["hs_g1_ppo"] / graph)
    folder, other = PolicyFolder.open(paths["hs_g1_ppo"]), PolicyFolder.open(paths["hs_g1_fastsac"])
    folder.commit({graph: other.read(graph), engine: other.read(engine)})
    with pytest.raises(InterlockError) as refused:
        load_verified(paths["hs_g1_ppo"], robot_file)
    assert refused.value.code == "not-verified"


# ---- the page


def test_the_page_lists_every_row():
    page = DOCS.read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| ")
    ]
    listed = {(row[0], row[1].strip("`")): row for row in rows if len(row) == 5}
    for each in WRONG:
        row = listed[each.what, each.policy]
        assert row[2] == each.noticed, row
        assert each.code.removesuffix(" 9") in row[3], row
