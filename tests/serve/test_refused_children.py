"""What driver or worker say when they cannot start reaches the person who started them, in one piece."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from interlock.cli.load import load_bound
from interlock.errors import InterlockError
from interlock.serve.paced import PacedOptions, PacedRun

DRIVER = """
class Unplugged:
    period_ns = 5_000_000
    def __init__(self, robot): pass
    def connect(self): raise OSError(2, "No such device", "/dev/ttyACM0")
    def stop(self): pass
    def close(self): pass
"""


@pytest.fixture
def bound(arm_policy):
    return load_bound(arm_policy, arm_policy.parent / "robot.yaml")


def refusal(bound, driver: str) -> InterlockError:
    with pytest.raises(InterlockError) as refused, PacedRun(bound, PacedOptions(driver=driver)):
        pass
    return refused.value


def test_a_driver_that_is_not_there_is_named(bound, capfd):
    refused = refusal(bound, "nobodys_driver:Nothing")
    assert refused.code == "driver-unknown"
    assert "nobodys_driver" in str(refused)
    assert "Traceback" not in capfd.readouterr().err


def test_a_driver_that_cannot_connect_says_why_without_a_traceback(bound, tmp_path, monkeypatch, capfd):
    (tmp_path / "unplugged.py").write_text(DRIVER)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    refused = refusal(bound, "unplugged:Unplugged")
    assert refused.code == "driver-fault"
    assert "/dev/ttyACM0" in str(refused)
    assert "Traceback" not in capfd.readouterr().err


def test_a_worker_without_its_engine_says_so(bound, capfd):
    refused = refusal(replace(bound, library=Path("/nowhere/libonnxruntime.so")), "sim:arm")
    assert refused.code == "engine-library"
    assert refused.problems[0].hint
    assert "Traceback" not in capfd.readouterr().err


def test_a_child_that_says_nothing_is_dead(bound, tmp_path, monkeypatch):
    (tmp_path / "gone.py").write_text("import os\n\nos._exit(3)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    refused = refusal(bound, "gone:Gone")
    assert refused.code == "driver-dead"
    assert "3" in str(refused)
