"""An operator is heard at any time, and what an operator types wrongly stops no robot."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from interlock import _core
from interlock.cli.load import load_bound
from interlock.serve.operator import Operator
from interlock.serve.paced import PacedOptions, PacedRun
from interlock.serve.session import Ended, Session, signals_noted
from interlock.view.recording import Recording

pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")

TASK = "reach the red block"


@pytest.fixture
def steered(arm_policy, tmp_path):
    """Session, noted signals and a client's socket."""
    bound = load_bound(arm_policy, arm_policy.parent / "robot.yaml")
    options = PacedOptions(
        driver="sim:arm",
        driver_options={"seed": 3, "task": TASK},
        recording=tmp_path / "run.mcap",
        simulated=True,
        realtime_priority=50,  # as `interlock run` asks; without it a busy machine starves the simulated robot
    )
    with (
        signals_noted() as noted,
        Operator(socket_path=tmp_path / "operator.sock") as operator,
        PacedRun(bound, options) as run,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client,
    ):
        client.connect(str(tmp_path / "operator.sock"))
        yield Session(run, operator, noted), client


def episode(session, seconds=10.0):
    return session.episode(task=TASK, goal=None, seconds=seconds, simulated=True)


def modes(folder):
    names = _core.mode_names()
    return {names[int(number)] for number in set(Recording.open(folder / "run.mcap").ticks.mode)}


@pytest.mark.parametrize("how", [signal.SIGINT, "stop"], ids=str)
def test_a_stop_before_the_start_is_a_stop(steered, tmp_path, how):
    session, client = steered
    if how == "stop":
        client.sendall(b"stop\n")
        session.operator.listen(1.0)  # accepts
    else:
        os.kill(os.getpid(), how)
    assert episode(session).ended is (Ended.OPERATOR if how == "stop" else Ended.SIGNAL)
    session.run.stop()
    assert "Running" not in modes(tmp_path)


@pytest.mark.parametrize("said", ["task reach the purple banana", "goal 0.5 0 0", "goal 99 0 0", "dance"])
def test_what_cannot_be_done_is_said_and_the_run_goes_on(steered, said):
    session, client = steered
    refused = []
    session.on_refused = refused.append
    client.sendall(f"{said}\n".encode())
    assert episode(session).ended is Ended.SUCCESS
    assert len(refused) == (said != "dance")  # no word at all is answered at once


def test_a_flood_of_requests_neither_ends_the_run_nor_drowns_a_stop(steered):
    session, client = steered
    rounds = iter(range(20))

    def flood(_status):
        client.sendall(b"arm\n" * 1000)
        if next(rounds, None) is None:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
                other.connect(str(session.operator.socket_path))
                other.sendall(b"stop\n")

    session.on_status = flood
    assert episode(session).ended is Ended.OPERATOR
    assert session.run.mode() == "Idle"


def test_a_stopped_driver_neither_hides_a_stop_nor_ends_in_an_error(steered):
    session, _ = steered
    stopped = []

    def stop_driver(status):
        if not stopped and status["mode_name"] == "Running":
            stopped.append(session.run.driver.process.pid)
            os.kill(stopped[0], signal.SIGSTOP)

    session.on_status = stop_driver
    try:
        result = episode(session)
    finally:
        os.kill(stopped[0], signal.SIGCONT)
    assert result.ended is Ended.FALLBACK
    assert result.cause in ("driver-stuck", "stale-state")
    assert result.seconds < 3
    assert "success" in session.run.ask_simulation({"do": "outcome"}), "late answers are not taken for this one"


def test_quitting_a_held_run_does_not_make_the_loss_before_it_good(steered):
    session, client = steered
    killed = []

    def act(status):
        if not killed and status["mode_name"] == "Running":
            killed.append(session.run.worker.process.pid)
            os.kill(killed[0], signal.SIGKILL)

    session.on_status = act
    session.on_held = lambda _result: client.sendall(b"quit\n")
    result = session.episode(task=TASK, goal=None, seconds=10, simulated=True, rest=False, hold=True)
    assert (result.ended, result.cause) == (Ended.FALLBACK, "worker-dead")
    assert session.run.mode() == "Holding", "the orderly exit is still to come"


def test_recover_replaces_a_worker_that_hangs(steered):
    session, client = steered
    hung = []

    def act(status):
        if not hung and status["mode_name"] == "Running":
            hung.append(session.run.worker.process.pid)
            os.kill(hung[0], signal.SIGSTOP)
        elif hung and status["mode_name"] == "Armed":
            client.sendall(b"start\n")

    session.on_status = act
    session.on_held = lambda _result: client.sendall(b"recover\n")
    result = session.episode(task=TASK, goal=None, seconds=10, simulated=True, hold=True)
    assert (result.ended, result.interruptions) == (Ended.SUCCESS, ["worker-late"])
    assert session.run.worker.process.pid != hung[0]
