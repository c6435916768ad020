"""What was verified is a graph in an engine: another libonnxruntime is another engine."""

from __future__ import annotations

import json

import pytest

from interlock.artifact.evidence import Evidence, Verdict
from interlock.artifact.files import sha256
from interlock.artifact.folder import PolicyFolder
from interlock.cli.load import load_binding
from interlock.contract.canonical import digest
from interlock.contract.identity import identity
from interlock.errors import InterlockError
from interlock.release.build import engine_record
from interlock.release.verified import require_verified
from interlock.release.verify import GATE
from interlock.runtime.library import OVERRIDE, onnxruntime_library


def test_another_runtime_library_is_not_verified(arm_policy, tmp_path, monkeypatch):
    folder = PolicyFolder.open(arm_policy)
    binding = load_binding(folder, arm_policy.parent / "robot.yaml")
    passed = Evidence(
        gate=GATE,
        verdict=Verdict.PASS,
        subject={"graph": sha256(folder.graph()), "engine": digest(engine_record(folder))},
        inputs={
            "contract": identity(binding.contract),
            "binding": binding.identity,
            "runtime library": sha256(onnxruntime_library().read_bytes()),
        },
        budget={}, results={}, environment={}, started_ns="1", ended_ns="2", failure_response="stop",
    )  # fmt: skip
    monkeypatch.setattr(PolicyFolder, "evidence", lambda _folder, _gate: passed)
    assert require_verified(folder, binding) is passed
    other = tmp_path / "libonnxruntime.so"
    other.write_bytes(onnxruntime_library().read_bytes() + b"x")
    monkeypatch.setenv(OVERRIDE, str(other))
    with pytest.raises(InterlockError) as refused:
        require_verified(folder, binding)
    assert json.dumps(refused.value.problems[0].got).count("runtime library") == 1
