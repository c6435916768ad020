"""Real processes killed with real signals: what the robot does then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from interlock import _core
from interlock.cli.load import load_bound
from interlock.serve.paced import PacedOptions, PacedRun
from interlock.view.recording import Recording

pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")

TASK = "reach the red block"
REST_RAD_PER_S = 0.02
HOME = np.array([0.0, -0.15, 1.71, 1.58])  # robot.yaml: poses.home, typed again
MODES = {name: number for number, name in _core.mode_names().items()}


@pytest.fixture
def bound(arm_policy):
    return load_bound(arm_policy, arm_policy.parent / "robot.yaml")


def started(bound, folder: Path, **options) -> PacedRun:
    return PacedRun(
        bound,
        PacedOptions(
            driver="sim:arm",
            driver_options={"seed": 3, "task": TASK, "log": str(folder / "plant.npz")},
            recording=folder / "run.mcap",
            simulated=True,
            **options,
        ),
    )


def into_motion(run: PacedRun) -> None:
    """Arms, starts and waits until the arm is well under way."""
    run.retask(TASK)
    assert run.ask("arm", "Armed", timeout_s=10) == "Armed"
    assert run.ask("start", "Running", timeout_s=10) == "Running"
    run.wait(0.6)
    assert run.mode() == "Running"


def ticks_until_safe(recording: Recording, since_ns: int) -> int:
    """Executed ticks that began after `since_ns` (monotonic) before the first that was not Running."""
    ticks = recording.ticks
    after = ticks.woke_ns > since_ns
    safe = ticks.mode != MODES["Running"]
    first_safe = int(np.flatnonzero(after & safe)[0])
    first_after = int(np.flatnonzero(after)[0])
    return first_safe - first_after


def ended_at_rest(recording: Recording) -> bool:
    return bool(np.all(np.abs(recording.ticks.vel[-20:]) < REST_RAD_PER_S))


def test_a_killed_worker_brings_the_arm_smoothly_to_rest(bound, tmp_path):
    with started(bound, tmp_path) as run:
        into_motion(run)
        os.kill(run.worker.process.pid, signal.SIGKILL)
        run.worker.process.wait(timeout=10)
        killed_ns = _core.monotonic_ns()  # before it has ended nobody can know
        assert run.wait_mode("Holding", timeout_s=10) == "Holding"
        run.wait(0.5)
        assert run.status()["cause"] == "worker-dead"
    recording = Recording.open(tmp_path / "run.mcap")
    assert recording.complete
    assert ticks_until_safe(recording, killed_ns) <= 2
    assert ended_at_rest(recording)
    limit = np.array([bound_["limit"] for bound_ in bound.plan["limits"]["acc"]])
    dt = bound.tick_ns * 1e-9
    target = recording.ticks.target[recording.ticks.sent]
    acceleration = np.diff(target, n=2, axis=0) / dt**2
    assert np.all(np.abs(acceleration) <= limit * (1 + 1e-6)), "braking stays inside the acceleration limit"


def test_after_a_killed_worker_nothing_starts_again_by_itself(bound, tmp_path):
    with started(bound, tmp_path) as run:
        into_motion(run)
        os.kill(run.worker.process.pid, signal.SIGKILL)
        assert run.wait_mode("Holding", timeout_s=10) == "Holding"
        run.request("start")
        run.wait(0.3)
        assert run.mode() == "Holding"
        run.replace_worker()
        run.wait(0.3)
        assert run.mode() == "Holding", "a new worker alone changes nothing"
        assert run.ask("recover", "Armed", timeout_s=10) == "Armed"


def test_a_hung_worker_is_lost_at_its_deadline(bound, tmp_path):
    with started(bound, tmp_path) as run:
        into_motion(run)
        os.kill(run.worker.process.pid, signal.SIGSTOP)
        try:
            assert run.wait_mode("Holding", timeout_s=10) == "Holding"
            cause = run.status()["cause"]
            if cause == "stale-state":
                pytest.skip("the machine starved the robot's driver first: too noisy to tell")
            assert cause == "worker-late"
        finally:
            os.kill(run.worker.process.pid, signal.SIGCONT)
    recording = Recording.open(tmp_path / "run.mcap")
    ticks = recording.ticks
    last_offer = ticks.due_ns[ticks.offered & (ticks.mode == MODES["Running"])][-1]
    deadline = last_offer + bound.plan["timing"]["inference_deadline_ns"]
    first_safe = ticks.due_ns[np.flatnonzero(ticks.mode == MODES["Stopping"])[0]]
    assert first_safe <= deadline + 2 * bound.tick_ns
    assert ended_at_rest(recording)


def test_a_killed_driver_ends_in_faulted(bound, tmp_path):
    with started(bound, tmp_path) as run:
        into_motion(run)
        os.kill(run.driver.process.pid, signal.SIGKILL)
        assert run.wait_mode("Faulted", timeout_s=10) == "Faulted"
        run.request("recover")
        run.wait(0.2)
        assert run.mode() == "Faulted"
    assert Recording.open(tmp_path / "run.mcap").complete


def command_line(folder: Path, *more: str, **options) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "interlock",
            "run",
            "reach-block.policy",
            "--sim",
            "--task",
            TASK,
            "--seed",
            "3",
            "--seconds",
            "60",
            "-o",
            str(folder),
            "--json",
            *more,
        ],
        **options,
    )


def running_child(parent: int, role: str) -> int | None:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat[1]) == parent and b"interlock.cli.child" in arguments and role.encode() in arguments:
            return int(entry.name)
    return None


def wait_for(condition, what: str, seconds: float = 30.0):
    ring = _core.Ring.create("wait", 2, 8)  # something to wait on that never comes
    for _ in range(int(seconds * 100)):
        found = condition()
        if found:
            return found
        ring.wait(0, 10_000_000)
    pytest.fail(f"not in time: {what}")


def moving(folder: Path) -> bool:
    """Whether the recording on disk already shows the arm under way."""
    return (folder / "run.mcap").exists() and (folder / "run.mcap").stat().st_size > 60_000


def test_when_the_supervisor_is_killed_the_drives_stop_by_themselves(arm_policy, tmp_path, monkeypatch):
    log = tmp_path / "plant.npz"
    process = command_line(tmp_path, cwd=arm_policy.parent, env={**os.environ, "INTERLOCK_PLANT_LOG": str(log)})
    wait_for(lambda: moving(tmp_path), "motion")
    driver = running_child(process.pid, "driver")
    assert driver is not None
    process.kill()
    process.wait()
    wait_for(log.exists, "the plant's log")
    rows = np.load(log)["rows"]
    alone = rows[:, 1] > 0
    assert alone.any(), "the drives acted by themselves"
    before = rows[~alone][-1]
    assert not before[2], "the arm was not hoisted any more"
    assert np.abs(rows[~alone][-200:, 3 + 4 : 3 + 8]).max() > REST_RAD_PER_S, "it was moving before"
    assert np.all(np.abs(rows[-20:, 3 + 4 : 3 + 8]) < REST_RAD_PER_S), "it came to rest"
    timeout_s = (rows[alone][0][0] - before[0]) / 1e9
    assert timeout_s < 1.0
    wait_for(lambda: not Path(f"/proc/{driver}").exists(), "the driver's end")


def test_ctrl_c_brings_the_arm_to_rest_and_exits_with_130(arm_policy, tmp_path):
    process = command_line(tmp_path, cwd=arm_policy.parent, stdout=subprocess.PIPE)
    wait_for(lambda: moving(tmp_path), "motion")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)  # a second one is the same, never a shortcut
    process.communicate(timeout=30)
    assert process.returncode == 130
    recording = Recording.open(tmp_path / "run.mcap")
    assert recording.complete
    assert ended_at_rest(recording)
    target = recording.ticks.target[recording.ticks.sent]
    assert np.abs(target[-1] - HOME).max() > 0.1, "a signal stops, it does not send the arm anywhere"


def test_a_closed_terminal_brings_the_arm_to_rest(arm_policy, tmp_path):
    master, slave = os.openpty()
    process = command_line(
        tmp_path,
        cwd=arm_policy.parent,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(slave)
    wait_for(lambda: moving(tmp_path), "motion")
    os.close(master)
    process.wait(timeout=30)
    recording = Recording.open(tmp_path / "run.mcap")
    assert recording.complete
    assert ended_at_rest(recording)
    assert "terminal-closed" in {mode.cause for mode in recording.modes}


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
