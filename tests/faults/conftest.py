"""Where the recordings of faults go, and how the robot's driver is found by its process."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "core"))  # the small plan, written out by hand
KEEP = "INTERLOCK_FAULT_RECORDINGS"


@pytest.fixture(autouse=True)
def _driver_is_importable(monkeypatch):
    """`faulty_robot` is a user's module: the driver's process imports it by name."""
    before = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), *([before] if before else [])]))


@pytest.fixture
def folder(request, tmp_path) -> Path:
    """Where a test's recording goes: kept for others where the environment names a folder for it."""
    kept = os.environ.get(KEEP)
    if not kept:
        return tmp_path
    made = Path(kept) / re.sub(r"[^\w.-]+", "-", request.node.name)
    made.mkdir(parents=True, exist_ok=True)
    return made
