"""A supervisor that is suspended as a whole (SIGSTOP, a debugger, a frozen container) is as good as dead while it is."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from test_signals import command_line, moving, wait_for

from interlock import _core
from interlock.view.recording import Recording

pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")

SUSPENDED_NS = 1_000_000_000
NEAR_RAD = 0.05


def test_while_it_is_suspended_the_drives_act_alone_and_afterwards_the_policy_is_lost(arm_policy, tmp_path):
    log = tmp_path / "plant.npz"
    process = command_line(tmp_path, cwd=arm_policy.parent, env={**os.environ, "INTERLOCK_PLANT_LOG": str(log)})
    wait_for(lambda: moving(tmp_path), "motion")
    process.send_signal(signal.SIGSTOP)
    _core.Ring.create("pause", 2, 8).wait(0, SUSPENDED_NS)
    process.send_signal(signal.SIGCONT)
    assert process.wait(timeout=30) == 6
    rows = np.load(log)["rows"]
    alone = np.flatnonzero(rows[:, 1] > 0)
    is_while_suspended = rows[alone, 0] < rows[alone[0], 0] + SUSPENDED_NS
    assert is_while_suspended.sum() > 50, "the drives acted by themselves"
    recording = Recording.open(tmp_path / "run.mcap")
    ticks = recording.ticks
    gap = int(np.argmax(np.diff(ticks.due_ns)))
    later = [recording.mode_name(int(mode)) for mode in ticks.mode[gap + 1 :]]
    assert "Running" not in later[1:], "nothing goes on by itself"
    assert "Holding" in later
    assert np.abs(ticks.target[gap + 2] - ticks.pos[gap + 2]).max() < NEAR_RAD, "commands begin where the arm is"
