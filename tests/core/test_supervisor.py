"""The paced loop with real processes and real signals. Accounting is asserted, never a wall time."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
import tiny_plan as tiny
from tiny_robot import MODES, Robot

from interlock import _core

CODES = {word: number for number, word in _core.code_words().items()}


def synchronous() -> tuple[dict, bytes]:
    """On a busy machine the worker must still be in time: slow ticks, long validity."""
    made = tiny.plan(tick_ns=10_000_000, inference_deadline_ns=9_000_000, action_valid_ns=200_000_000)
    made["timing"]["max_age_state_ns"] = 500_000_000
    return made, tiny.graph(step=(0.002, 0.001))


def asynchronous() -> tuple[dict, bytes]:
    """Chunks of eight."""
    made = tiny.asynchronous_plan()
    made["timing"].update(tick_ns=10_000_000, manual_latency_ns=0, inference_deadline_ns=400_000_000)
    made["timing"]["action_valid_ns"] = 400_000_000
    made["timing"]["max_age_state_ns"] = 500_000_000
    return made, tiny.graph(8, step=(0.002, 0.001))


BOTH = pytest.mark.parametrize("make", [synchronous, asynchronous])


def accounted(status: dict) -> None:
    """Nothing is lost between the lines."""
    assert status["planned"] == status["executed"] + status["missed"]
    assert status["chunks"] >= status["accepted"]
    assert status["offered"] >= status["accepted"]


@BOTH
def test_a_run_moves_the_robot_and_accounts_for_every_tick(make, tmp_path) -> None:
    made, graph = make()
    with Robot(made, graph, recording=tmp_path / "run.mcap", header_json='{"who": "test"}') as robot:
        robot.run()
        robot.until_status(lambda status: status["accepted"] >= 20)
        packet = robot.last_command()
        assert packet[2] == 1.0
        assert packet[4] > 0.0
        robot.until("Holding", "stop")
        final = robot.core.stop()
    accounted(final)
    assert final["ended"] == 1
    assert final["control_allocations"] == 0
    assert final["recording"]["ticks"] == final["executed"]
    assert final["recording"]["replayable"]
    timings = robot.core.timings()
    assert len(timings["work_ns"]) == final["executed"]
    assert len(timings["lateness_ns"]) == final["planned"]
    assert len(timings["handoff_ns"]) == final["offered"]


@BOTH
def test_a_killed_worker_stops_the_robot_and_a_new_one_needs_recover_and_start(make) -> None:
    with Robot(*make()) as robot:
        robot.run()
        robot.worker.send_signal(signal.SIGKILL)
        robot.worker.wait()
        robot.until("Holding")
        status = robot.core.status()
        assert status["cause"] == CODES["worker-dead"]
        robot.core.request("recover")
        robot.until_status(lambda status: status["requests_refused"] == 1)
        assert robot.core.status()["request_code"] == CODES["not-ready"]
        robot.worker, observation, chunk = robot.new_worker()
        robot.core.set_worker(observation, chunk, os.pidfd_open(robot.worker.pid), robot.generation)
        robot.until_status(lambda status: status["generation"] == 2)
        assert robot.core.status()["mode"] == MODES["Holding"]
        accepted = robot.core.status()["accepted"]
        robot.until("Armed", "recover")
        robot.until("Running", "start")
        robot.until_status(lambda status: status["accepted"] > accepted + 5)
        accounted(robot.core.status())


@BOTH
def test_a_hung_worker_stops_the_robot(make) -> None:
    with Robot(*make()) as robot:
        robot.run()
        robot.worker.send_signal(signal.SIGSTOP)
        robot.until("Holding")
        assert robot.core.status()["cause"] in (CODES["worker-late"], CODES["no-valid-action"])
        held = robot.last_command()[4:6]
        executed = robot.core.status()["executed"]
        robot.until_status(lambda status: status["executed"] > executed + 20)
        np.testing.assert_allclose(robot.last_command()[4:6], held)


def test_a_killed_driver_is_a_fault_and_nothing_more_is_sent() -> None:
    with Robot(*synchronous()) as robot:
        robot.run()
        robot.driver.send_signal(signal.SIGKILL)
        robot.driver.wait()
        robot.until("Faulted")
        status = robot.core.status()
        assert status["cause"] == CODES["driver-dead"]
        robot.until_status(lambda now: now["executed"] > status["executed"] + 20)
        assert robot.core.status()["sent"] == status["sent"]


def test_a_hung_driver_loses_the_policy() -> None:
    with Robot(*synchronous()) as robot:
        robot.run()
        robot.driver.send_signal(signal.SIGSTOP)
        robot.until("Holding")
        assert robot.core.status()["cause"] in (CODES["driver-stuck"], CODES["stale-state"])


def test_a_closed_terminal_stops_the_robot_and_the_loop_goes_on_until_it_is_ended() -> None:
    with Robot(*synchronous()) as robot:
        robot.run()
        robot.core.request("terminal_closed")
        robot.until("Holding")
        assert robot.core.status()["cause"] == CODES["terminal-closed"]
        assert not robot.core.wait(1_000_000)
        robot.core.request("quit")
        assert robot.core.wait(30_000_000_000)
        assert robot.core.status()["ended"] == 1


def test_quit_while_idle_ends_at_once_and_requests_after_it_are_refused_in_the_end() -> None:
    with Robot(*synchronous()) as robot:
        robot.core.request("quit")
        assert robot.core.wait(30_000_000_000)
        assert robot.core.status()["sent"] == 0
        with pytest.raises(_core.CoreError) as refusal:
            [robot.core.request("arm") for _ in range(100)]
        assert refusal.value.code == "not-running"


def test_a_dry_run_reads_and_infers_but_sends_nothing() -> None:
    with Robot(*synchronous(), dry=True) as robot:
        robot.run()
        assert robot.command.latest(np.zeros(4 + 5 * tiny.JOINTS)) is None
        assert robot.core.status()["sent"] == 0


def test_what_the_kernel_granted_is_read_back() -> None:
    with Robot(*synchronous(), realtime_priority=99_999) as robot:
        assert not robot.granted["complete"]
        assert robot.granted["scheduler"] != "fifo"
        assert robot.granted["refused"]


def test_a_supervisor_starts_once() -> None:
    with Robot(*synchronous()) as robot, pytest.raises(_core.CoreError) as refusal:
        robot.core.start()
    assert refusal.value.code == "started"


def test_rings_of_other_sizes_are_refused() -> None:
    made, graph = synchronous()
    robot = Robot(made, graph)
    try:
        small = _core.Ring.create("state", 4, 8)
        with pytest.raises(_core.CoreError) as refusal:
            _core.Supervisor(
                tiny.text(made),
                state=small,
                command=_core.Ring.create("command", 4, _core.command_bytes(tiny.JOINTS)),
                images=[],
                observation=_core.Ring.create("observation", 4, _core.observation_bytes(tiny.JOINTS)),
                chunk=_core.Ring.create("chunk", 4, _core.chunk_bytes(1, tiny.JOINTS)),
                worker_pidfd=os.pidfd_open(robot.worker.pid),
                driver_pidfd=os.pidfd_open(robot.driver.pid),
                generation=1,
                recording=None,
            )
        assert refusal.value.code == "ring-layout"
    finally:
        robot.__exit__()
