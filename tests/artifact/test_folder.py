"""The policy folder: verified bytes are the bytes that are used, and a crash leaves nothing that is believed."""

import os
import shutil
from pathlib import Path

import pytest

from interlock.artifact import folder as module
from interlock.artifact.evidence import Evidence, Verdict
from interlock.artifact.folder import CONTRACT, PolicyFolder, create
from interlock.artifact.lock import Lock, LockedFramework, LockedReader
from interlock.errors import InterlockError

FILES = {
    CONTRACT: b"schema: interlock.contract/1\n",
    "source/policy.onnx": b"graph",
    "source/deep/side.yaml": b"a: 1",
    "graph/policy.onnx": b"graph",
    "samples/observations.npz": b"samples",
}


def lock():
    return Lock(name="p", reader=LockedReader(name="onnx", version=1), framework=LockedFramework(kind="onnx"), files={})


def evidence(gate="verify", verdict=Verdict.PASS, **inputs):
    return Evidence(
        gate=gate, verdict=verdict, subject={"graph": "g"}, inputs=inputs or {"contract": "c"}, budget={}, results={},
        environment={}, started_ns="1", ended_ns="2", failure_response="stop",
    )  # fmt: skip


@pytest.fixture
def policy(tmp_path):
    return create(tmp_path / "a.policy", lock=lock(), files=FILES).path


def refused(path, code, **extra):
    with pytest.raises(InterlockError) as caught:
        PolicyFolder.open(path, **extra)
    assert caught.value.code == code
    return caught.value


def test_a_folder_opens_and_gives_its_bytes(policy):
    opened = PolicyFolder.open(policy)
    assert opened.read("source/policy.onnx") == b"graph"
    assert opened.names("source/") == ("source/deep/side.yaml", "source/policy.onnx")


def test_it_can_be_moved(policy, tmp_path):
    moved = tmp_path / "elsewhere" / "b.policy"
    shutil.move(policy, moved) if moved.parent.mkdir() is None else None
    assert str(tmp_path) not in (moved / "lock.json").read_text()
    PolicyFolder.open(moved)


def test_it_opens_through_a_link_to_itself(policy, tmp_path):
    (tmp_path / "current").symlink_to(policy)
    PolicyFolder.open(tmp_path / "current")


@pytest.mark.parametrize("name", [each for each in FILES if each != CONTRACT])
def test_one_flipped_bit_anywhere_is_refused(policy, name):
    content = bytearray((policy / name).read_bytes())
    content[0] ^= 1
    (policy / name).write_bytes(content)
    refusal = refused(policy, "file-changed")
    assert refusal.problems[0].where == name
    assert refusal.next


@pytest.mark.parametrize("name", [each for each in FILES if each != CONTRACT])
def test_a_truncated_or_longer_file_is_refused(policy, name):
    whole = (policy / name).read_bytes()
    (policy / name).write_bytes(whole[:-1])
    refused(policy, "file-changed")
    (policy / name).write_bytes(whole + b"x")
    refused(policy, "file-changed")


def test_a_missing_file_is_refused(policy):
    (policy / "graph" / "policy.onnx").unlink()
    refused(policy, "file-missing")


@pytest.mark.parametrize(
    "name", ["graph/extra.bin", "source/.hidden", "engines/x/y", "samples/empty", "evidence/a.html"]
)
def test_an_extra_file_is_refused_even_when_it_is_empty(policy, name):
    (policy / name).parent.mkdir(parents=True, exist_ok=True)
    (policy / name).touch()
    refused(policy, "file-unlisted")


def test_a_file_of_a_person_beside_the_contract_is_left_alone(policy):
    (policy / "README.md").write_text("notes")
    PolicyFolder.open(policy)


@pytest.mark.parametrize("make", [lambda p: p.symlink_to("/etc/hostname"), os.mkfifo])
def test_links_and_pipes_are_refused(policy, make):
    target = policy / "graph" / "policy.onnx"
    target.unlink()
    make(target)
    refused(policy, "file-kind")


def test_two_files_that_changed_places_are_refused(policy):
    one, other = policy / "source" / "deep" / "side.yaml", policy / "samples" / "observations.npz"
    swap = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(swap)
    refused(policy, "file-changed")


def test_a_file_replaced_after_the_folder_was_opened_is_never_used(policy):
    opened = PolicyFolder.open(policy)
    (policy / "graph" / "policy.onnx").write_bytes(b"other")
    with pytest.raises(InterlockError) as caught:
        opened.read("graph/policy.onnx")
    assert caught.value.code == "file-changed"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"schema": "interlock.lock/2"}', '{"a": 1, "a": 2}', "[" * 100_000, '{"schema": NaN}', "\ufeff{}"],
)
def test_a_damaged_lock_is_refused(policy, text):
    (policy / "lock.json").write_text(text)
    assert refused(policy, "lock-malformed").next


def test_a_lock_that_names_a_file_outside_is_refused(policy):
    text = (policy / "lock.json").read_text()
    (policy / "lock.json").write_text(text.replace("source/policy.onnx", "../outside"))
    refused(policy, "path-escape")


def test_what_is_no_policy_folder_says_what_to_type_next(tmp_path):
    assert refused(tmp_path, "policy-missing").next.startswith("interlock freeze")
    assert refused(tmp_path / "nothing", "policy-missing").next


def test_an_edited_contract_is_used_and_known_as_edited(policy):
    (policy / CONTRACT).write_text("schema: interlock.contract/1\n# mine\n")
    opened = PolicyFolder.open(policy)
    assert opened.edited
    assert opened.contract_text.endswith("# mine\n")
    after = opened.commit({}, evidence=evidence())
    assert after.lock.contract_edited
    assert not PolicyFolder.open(policy).edited


def test_a_step_that_rebuilds_a_part_may_find_it_damaged(policy):
    (policy / "graph" / "policy.onnx").write_bytes(b"damaged")
    (policy / "graph" / "leftover").touch()
    opened = PolicyFolder.open(policy, rebuilding=("graph/",))
    opened.commit({"graph/policy.onnx": b"new"}, replacing=("graph/",))
    assert not (policy / "graph" / "leftover").exists()
    assert PolicyFolder.open(policy).read("graph/policy.onnx") == b"new"


def test_a_commit_replaces_files_and_lists_evidence(policy):
    after = PolicyFolder.open(policy).commit({"graph/b.onnx": b"b"}, evidence=evidence(), replacing=("graph/",))
    assert after.names("graph/") == ("graph/b.onnx",)
    assert not (policy / "graph" / "policy.onnx").exists()
    assert PolicyFolder.open(policy).evidence("verify") == evidence()


@pytest.mark.parametrize("fails_at", range(3))
def test_a_commit_that_is_cut_off_leaves_a_folder_that_is_old_or_refused(policy, monkeypatch, fails_at):
    opened = PolicyFolder.open(policy)
    calls = 0
    real = module.write_file

    def cut(*args):
        nonlocal calls
        calls += 1
        if calls > fails_at:
            raise OSError("power cut")
        real(*args)

    monkeypatch.setattr(module, "write_file", cut)
    with pytest.raises(OSError, match="power cut"):
        opened.commit({"graph/policy.onnx": b"new", "graph/more": b"more"})
    monkeypatch.undo()
    if fails_at == 0:
        assert PolicyFolder.open(policy).read("graph/policy.onnx") == b"graph"
    else:
        refused(policy, "file-unlisted" if fails_at == 2 else "file-changed")


def test_two_commands_that_write_at_once_do_not_mix(policy):
    one, other = PolicyFolder.open(policy), PolicyFolder.open(policy)
    one.commit({"graph/policy.onnx": b"one"})
    with pytest.raises(InterlockError) as caught:
        other.commit({"graph/policy.onnx": b"other"})
    assert (caught.value.code, caught.value.exit) == ("policy-busy", 7)
    assert PolicyFolder.open(policy).read("graph/policy.onnx") == b"one"


def test_making_a_folder_is_all_or_nothing(tmp_path, monkeypatch):
    real = module.write_file

    def fail(root: Path, name, content):
        if name == "samples/observations.npz":
            raise OSError("disk full")
        real(root, name, content)

    monkeypatch.setattr(module, "write_file", fail)
    with pytest.raises(OSError, match="disk full"):
        create(tmp_path / "b.policy", lock=lock(), files=FILES)
    assert list(tmp_path.iterdir()) == []


def test_evidence_holds_only_for_exactly_its_hashes(policy):
    after = PolicyFolder.open(policy).commit({}, evidence=evidence(contract="c", budget="b"))
    same = {"subject": {"graph": "g"}, "inputs": {"contract": "c", "budget": "b"}}
    assert after.due("verify", **same) == ""
    assert after.due("verify", subject={"graph": "h"}, inputs=same["inputs"]) == "graph changed"
    assert after.due("verify", subject=same["subject"], inputs={"contract": "c"}) == "budget is gone"
    assert after.due("verify", subject=same["subject"], inputs={**same["inputs"], "x": "y"}) == "x is new"
    assert after.due("bench", **same) == "never run"


@pytest.mark.parametrize("verdict", [each for each in Verdict if each is not Verdict.PASS])
def test_a_verdict_that_is_no_pass_never_holds(policy, verdict):
    after = PolicyFolder.open(policy).commit({}, evidence=evidence(verdict=verdict))
    assert after.due("verify", subject={"graph": "g"}, inputs={"contract": "c"}) == f"was {verdict.value}"


def test_evidence_edited_by_hand_is_refused(policy):
    PolicyFolder.open(policy).commit({}, evidence=evidence(verdict=Verdict.FAIL))
    path = policy / "evidence" / "verify.json"
    path.write_bytes(path.read_bytes().replace(b"FAIL", b"PASS"))
    refused(policy, "file-changed")


@pytest.mark.parametrize(
    "change",
    [(b'"PASS"', b'"OK"'), (b'"started_ns":"1"', b'"started_ns":1'), (b'{"budget"', b'{ "budget"'), (b"}", b""),
     (b'"gate":"verify"', b'"gate":"../x"'), (b'"results":{}', b'"results":{},"more":1')],
)  # fmt: skip
def test_evidence_in_another_shape_is_refused(change):
    content = evidence().content().replace(*change, 1)
    with pytest.raises(InterlockError) as caught:
        Evidence.parse(content, where="evidence/verify.json")
    assert caught.value.code == "evidence-malformed"


def test_exit_codes_follow_from_verdicts():
    assert {each.value: int(each.exit) for each in Verdict} == {
        "PASS": 0, "FAIL": 1, "INCONCLUSIVE": 3, "ERROR": 1, "ABORTED": 130,
    }  # fmt: skip
