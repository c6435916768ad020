"""What an operator may say, by socket and by keyboard, and what a running robot makes of it."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import termios
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock import _core
from interlock.errors import InterlockError
from interlock.serve.operator import KEYS, MARKS, MOST_CLIENTS, REQUESTS, STEP_MPS, Operator, Said, parse
from interlock.view.recording import Recording

RED, BLUE = "reach the red block", "reach the blue block"
REST_RAD_PER_S = 0.02
WORDS = (*REQUESTS, *MARKS)
spaces = st.text(" \t", max_size=3)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1, max_size=60).filter(str.strip)
speeds = st.floats(-99, 99).map(lambda value: round(value, 3))
lines = st.one_of(
    st.sampled_from(WORDS),
    texts.map(lambda text: f"task {text}"),
    st.tuples(speeds, speeds, speeds).map(lambda v: f"goal {v[0]} {v[1]} {v[2]}"),
)


# ---- words


@given(st.sampled_from(WORDS), texts)
def test_a_word_with_more_behind_it_is_not_taken_for_the_word(word, more):
    with pytest.raises(InterlockError, match="operator-word"):
        parse(f"{word} {more}")


@given(st.sampled_from(WORDS), spaces, spaces)
def test_a_word_is_itself_whatever_space_surrounds_it(word, before, after):
    assert parse(f"{before}{word}{after}") == Said(word)


@given(texts)
def test_a_task_is_its_text(text):
    assert parse(f"task {text}") == Said("task", text=text.strip())


@given(speeds, speeds, speeds, st.sampled_from([" ", ",", ", "]))
def test_a_goal_is_three_numbers(x, y, z, between):
    assert parse(f"goal {x}{between}{y}{between}{z}") == Said("goal", velocity=(x, y, z))


@given(st.text(max_size=200))
def test_whatever_is_typed_is_understood_or_refused_with_what_would_be(line):
    refused, said = None, None
    try:
        said = parse(line)
    except InterlockError as refusal:
        refused = refusal
    if said is None:
        assert refused.code == "operator-word"
        assert "stop" in str(refused)
    else:
        assert said.word in {*WORDS, "task", "goal"}
        assert all(abs(each) < 100 for each in said.velocity)


# ---- socket


@contextmanager
def connected(folder: Path, **options):
    path = folder / "operator.sock"
    with (
        Operator(socket_path=path, **options) as operator,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client,
    ):
        client.connect(str(path))
        client.settimeout(5)
        operator.listen(1.0)  # accepts
        yield operator, client


@settings(max_examples=30, deadline=None)
@given(st.lists(lines, min_size=1, max_size=5), st.data())
def test_lines_are_heard_whole_however_they_arrive(tmp_path_factory, said, data):
    content = "".join(f"{line}\n" for line in said).encode()
    heard, begin = [], 0
    with connected(tmp_path_factory.mktemp("socket")) as (operator, client):
        while begin < len(content):
            end = data.draw(st.integers(begin + 1, len(content)))
            client.sendall(content[begin:end])
            heard += operator.listen(1.0)
            begin = end
    assert heard == [parse(line) for line in said]


def test_whoever_says_it_is_told_whether_it_was_understood(tmp_path):
    with connected(tmp_path) as (operator, client):
        client.sendall(b"stop\ndance\n")
        assert operator.listen(1.0) == [Said("stop")]
        ok, refusal = client.recv(4096).split(b"\n", 1)
        assert ok == b"ok"
        assert refusal.startswith(b"error[operator-word]: operator: expected arm, start, stop")


def test_whoever_asks_for_what_the_policy_does_not_take_is_told(tmp_path):
    def judge(said):
        if said.word == "goal":
            raise InterlockError(code="goal-range", where="goal", got="too fast")

    with connected(tmp_path, judge=judge) as (operator, client):
        client.sendall(b"goal 9 0 0\n")
        assert operator.listen(1.0) == [Said("goal", velocity=(9, 0, 0))], "the session records that it was asked"
        assert client.recv(4096).startswith(b"error[goal-range]")


def test_a_client_that_goes_away_takes_nobody_with_it(tmp_path):
    with connected(tmp_path) as (operator, client):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
            other.connect(str(tmp_path / "operator.sock"))
            operator.listen(1.0)
            other.sendall(b"half a li")
        assert operator.listen(1.0) == []
        client.sendall(b"stop\n")
        assert operator.listen(1.0) == [Said("stop")]


def test_one_client_too_many_is_told_and_the_others_are_heard(tmp_path):
    with connected(tmp_path) as (operator, client), contextlib.ExitStack() as stack:
        for _ in range(MOST_CLIENTS):
            last = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            last.connect(str(tmp_path / "operator.sock"))
            operator.listen(1.0)
        last.settimeout(5)
        assert last.recv(4096).startswith(b"error[operator-busy]")
        assert last.recv(4096) == b""
        client.sendall(b"stop\n")
        assert operator.listen(1.0) == [Said("stop")]


# ---- keyboard


class Keyboard:
    """A terminal at which a test types; `away` takes it from whoever reads it."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal

    def type(self, keys: bytes) -> None:
        os.write(self._terminal, keys)

    def ignore_signals(self) -> None:
        attributes = termios.tcgetattr(self._terminal)
        attributes[3] &= ~termios.ISIG
        termios.tcsetattr(self._terminal, termios.TCSANOW, attributes)

    def away(self) -> None:
        if self._terminal >= 0:
            os.close(self._terminal)
        self._terminal = -1


@pytest.fixture
def keyboard(monkeypatch):
    """(operator, keyboard)."""
    terminal, line = pty.openpty()
    keys = Keyboard(terminal)
    with os.fdopen(line, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with Operator(keyboard=True) as operator:
            yield operator, keys
    keys.away()


def test_the_terminal_is_left_as_it_was(monkeypatch):
    terminal, line = pty.openpty()
    with os.fdopen(line, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        before = termios.tcgetattr(stdin)
        with Operator(keyboard=True):
            assert termios.tcgetattr(stdin) != before
        assert termios.tcgetattr(stdin) == before
    os.close(terminal)


def test_a_prompt_shows_what_is_typed_and_keys_act_again_after_it(keyboard):
    operator, _ = keyboard
    shown = termios.ICANON | termios.ECHO
    assert not termios.tcgetattr(sys.stdin)[3] & shown
    with operator.line_mode():
        assert termios.tcgetattr(sys.stdin)[3] & shown == shown
    assert not termios.tcgetattr(sys.stdin)[3] & shown


@pytest.mark.parametrize(("key", "word"), KEYS.items())
def test_a_key_is_a_word(keyboard, key, word):
    operator, keys = keyboard
    keys.ignore_signals()
    keys.type(key.encode())
    assert operator.listen(1.0) == [Said(word)]


def test_space_stops_and_unknown_keys_do_nothing(keyboard):
    operator, keys = keyboard
    keys.type(b"zZ?\x1b[A ")
    assert operator.listen(1.0) == [Said("stop")]


def test_keys_step_the_velocity_and_a_step_that_is_refused_is_not_taken(keyboard):
    operator, keys = keyboard

    def judge(said):
        if said.velocity[0] > 2.5 * STEP_MPS:
            raise InterlockError(code="goal-range", where="goal", got=str(said.velocity))

    operator.judge = judge
    keys.type(b"wwwwwws")
    heard = [round(each.velocity[0] / STEP_MPS) for each in operator.listen(1.0)]
    assert heard == [1, 2, 3, 3, 3, 3, 1]
    assert operator.velocity == (STEP_MPS, 0.0, 0.0)


def test_a_terminal_that_goes_away_is_noticed(keyboard):
    operator, keys = keyboard
    keys.away()
    assert operator.listen(1.0) == []
    assert operator.closed


def test_a_terminal_that_went_away_unheard_breaks_nothing_at_the_end(keyboard):
    _, keys = keyboard
    keys.away()


# ---- a running robot


def wait_for(condition, what: str, seconds: float = 60.0, every_s: float = 0.01):
    ring = _core.Ring.create("wait", 2, 8)  # something to wait on that never comes
    deadline = _core.monotonic_ns() + int(seconds * 1e9)
    while _core.monotonic_ns() < deadline:
        if condition():
            return
        ring.wait(0, int(every_s * 1e9))
    pytest.fail(f"not in time: {what}")


def command(folder: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "interlock", "run", "reach-block.policy", "--sim", "--task", RED, "--seed", "3",
        "--seconds", "60", "-o", str(folder), *more,
    ]  # fmt: skip


def is_moving(folder: Path) -> bool:
    return (folder / "run.mcap").exists() and (folder / "run.mcap").stat().st_size > 60_000


def ask(client: socket.socket, line: str) -> str:
    client.sendall(f"{line}\n".encode())
    return client.recv(4096).decode()


def test_a_running_policy_takes_another_task_and_goes_there(arm_policy, tmp_path):
    pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")
    process = subprocess.Popen(command(tmp_path, "--json"), cwd=arm_policy.parent, stdout=subprocess.PIPE, text=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        wait_for(lambda: is_moving(tmp_path), "motion")
        client.settimeout(20)
        client.connect(str(tmp_path / "operator.sock"))
        assert ask(client, "dance").startswith("error[operator-word]")
        assert ask(client, "task reach the purple block").startswith("error[task-unknown-word]")
        assert ask(client, "goal 0.5 0 0").startswith("error[goal-not-taken]")
        assert ask(client, f"task {BLUE}") == "ok\n"
        out, _ = process.communicate(timeout=60)
    answer = json.loads(out)
    (episode,) = answer["episodes"]
    assert (episode["ended"], episode["task"]) == ("success", BLUE)
    recording = Recording.open(tmp_path / "run.mcap")
    assert recording.complete
    tasks = [goal for goal in recording.goals if goal.text]
    assert [goal.text for goal in tasks] == [RED, BLUE]
    assert tasks[0].tokens != tasks[1].tokens
    assert [goal.request for goal in recording.goals if goal.request][:2] == ["arm", "start"]
    ticks = recording.ticks
    running = ticks.mode == {name: number for number, name in _core.mode_names().items()}["Running"]
    assert len(set(ticks.goal_seq[running])) == 2, "one uninterrupted run under two goals"
    assert np.all(np.diff(np.flatnonzero(running)) == 1)


@pytest.fixture
def arm_run(arm_policy, tmp_path):
    """Starts `interlock run --json` on the simulated arm; returns (process, client of its socket)."""
    pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")
    with contextlib.ExitStack() as stack:

        def start(*more: str):
            process = subprocess.Popen(
                command(tmp_path, "--json", *more), cwd=arm_policy.parent, stdout=subprocess.PIPE, text=True
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            client = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            wait_for((tmp_path / "operator.sock").exists, "the socket")
            client.settimeout(20)
            client.connect(str(tmp_path / "operator.sock"))
            return process, client

        yield start


def watched(folder: Path) -> dict:
    """What anybody may watch of the run that writes into the folder."""
    watch = [sys.executable, "-m", "interlock", "watch", str(folder), "--once", "--json"]
    shown = subprocess.run(watch, capture_output=True, text=True, check=False)
    return json.loads(shown.stdout.splitlines()[0]) if shown.returncode == 0 else {}


def seen(folder: Path, mode: str) -> bool:
    return watched(folder).get("mode") == mode


def changes(folder: Path) -> list[str]:
    """The modes of a run in their order, after what it was before anybody armed it."""
    modes = [change.after for change in Recording.open(folder / "run.mcap").modes]
    return modes[1:] if modes[0] == "Idle" else modes


def test_an_operator_stops_recovers_and_starts_the_same_run_again(arm_run, tmp_path):
    process, client = arm_run()
    wait_for(lambda: is_moving(tmp_path), "motion")
    assert ask(client, "recover").startswith("error[wrong-mode]")
    assert ask(client, "stop") == "ok\n"
    wait_for(lambda: seen(tmp_path, "Holding"), "the hold")
    assert ask(client, "start").startswith("error[wrong-mode]"), "only an armed robot is started"
    assert ask(client, "recover") == "ok\n"
    wait_for(lambda: seen(tmp_path, "Armed"), "arming")
    start_until_running(client)
    out, _ = process.communicate(timeout=90)
    answer = json.loads(out)
    (episode,) = answer["episodes"]
    assert (episode["ended"], episode["interruptions"]) == ("success", ["stop"])
    assert answer["recording_lost"] is None
    assert process.returncode == 0
    assert changes(tmp_path)[:6] == ["Armed", "Running", "Stopping", "Holding", "Armed", "Running"]


def start_until_running(client: socket.socket) -> None:
    """Armed may still be on its way to the start pose, where `start` is refused and nothing happens later instead."""

    def runs() -> bool:
        try:
            return ask(client, "start") != "ok\n"
        except OSError:  # it ran, and has reached its block already
            return True

    wait_for(runs, "the policy", every_s=0.2)


def test_a_dead_worker_is_replaced_only_when_the_operator_recovers(arm_run, tmp_path):
    process, client = arm_run()
    wait_for(lambda: watched(tmp_path).get("facts"), "the loop")
    worker = watched(tmp_path)["facts"]["worker_pid"]
    wait_for(lambda: is_moving(tmp_path), "motion")
    os.kill(worker, signal.SIGKILL)
    wait_for(lambda: seen(tmp_path, "Holding"), "the hold")
    assert ask(client, "recover") == "ok\n"
    wait_for(lambda: seen(tmp_path, "Armed"), "arming")
    start_until_running(client)
    out, _ = process.communicate(timeout=90)
    (episode,) = json.loads(out)["episodes"]
    assert (episode["ended"], episode["interruptions"]) == ("success", ["worker-dead"])
    generations = set(Recording.open(tmp_path / "run.mcap").ticks.generation)
    assert {1, 2} <= generations


def test_a_held_run_ends_when_the_operator_quits_or_goes_away(arm_run, tmp_path):
    process, client = arm_run()
    wait_for(lambda: is_moving(tmp_path), "motion")
    assert ask(client, "stop") == "ok\n"
    wait_for(lambda: seen(tmp_path, "Holding"), "the hold")
    client.close()
    out, _ = process.communicate(timeout=60)
    (episode,) = json.loads(out)["episodes"]
    assert (episode["ended"], episode["cause"], episode["interruptions"]) == ("operator", "stop", [])
    assert changes(tmp_path)[-1] == "Idle"


def test_a_recording_that_is_lost_while_the_robot_moves_is_told(arm_run, tmp_path):
    process, client = arm_run()
    wait_for(lambda: is_moving(tmp_path), "motion")
    (tmp_path / "run.mcap").unlink()
    assert ask(client, "quit") == "ok\n"
    out, _ = process.communicate(timeout=60)
    assert json.loads(out)["recording_lost"] == "its file is gone"


def test_with_wait_nothing_is_armed_or_started_but_by_the_operator(arm_run, tmp_path):
    process, client = arm_run("--wait")
    wait_for(lambda: seen(tmp_path, "Idle"), "the loop")
    assert ask(client, "start").startswith("error[wrong-mode]")
    assert ask(client, "arm") == "ok\n"
    wait_for(lambda: seen(tmp_path, "Armed"), "arming")
    assert ask(client, "disarm") == "ok\n"
    wait_for(lambda: seen(tmp_path, "Idle"), "disarming")
    assert ask(client, "arm") == "ok\n"
    wait_for(lambda: seen(tmp_path, "Armed"), "arming")
    start_until_running(client)
    out, _ = process.communicate(timeout=60)
    assert len(json.loads(out)["episodes"]) == 1
    assert changes(tmp_path)[:4] == ["Armed", "Idle", "Armed", "Running"]


def test_space_at_the_terminal_brings_the_robot_to_rest_where_it_waits_until_q(arm_policy, tmp_path):
    pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")
    terminal, line = pty.openpty()
    process = subprocess.Popen(
        command(tmp_path), cwd=arm_policy.parent, stdin=line, stdout=line, stderr=line, start_new_session=True
    )
    os.close(line)
    shown = bytearray()

    def moving_while_read() -> bool:
        with contextlib.suppress(OSError):  # nobody at the other end any more
            while select.select([terminal], [], [], 0)[0]:
                shown.extend(os.read(terminal, 65536))
        return is_moving(tmp_path)

    wait_for(moving_while_read, "motion")
    os.write(terminal, b" ")
    wait_for(lambda: moving_while_read() and b"held: operator (stop)" in shown, "the hold")
    assert process.poll() is None
    os.write(terminal, b"q")
    wait_for(lambda: moving_while_read() and process.poll() is not None, "the end")
    os.close(terminal)
    assert process.returncode == 0, shown.decode(errors="replace")
    assert b"operator" in shown
    recording = Recording.open(tmp_path / "run.mcap")
    assert recording.complete
    assert "operator-stop" in {mode.cause for mode in recording.modes}
    assert np.all(np.abs(recording.ticks.vel[-20:]) < REST_RAD_PER_S)
    assert [goal.request for goal in recording.goals if goal.request][:3] == ["arm", "start", "stop"]
