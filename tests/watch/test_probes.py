"""What a policy computes and nobody acts on is published beside the run, and nothing that reads it can slow the run."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny_plan as tiny
import zmq
from onnx import TensorProto, helper, numpy_helper
from proto_text import classes

from interlock import _core
from interlock.errors import Exit, InterlockError
from interlock.runtime.bound import Bound
from interlock.runtime.library import onnxruntime_library
from interlock.serve.paced import PacedOptions, PacedRun
from interlock.serve.probes import listen, require_probes
from interlock.view.log import lines
from interlock.view.mcap_file import McapFile
from interlock.view.probe import read

PROBE = classes("interlock/v1/probe.proto")["interlock.v1.Probe"]
TICK_NS, INFERENCE_NS, PERIOD_NS = 5_000_000, 10_000_000, 50_000_000  # the default period, typed again
WAIT_MS = 30_000
NOISE = 0.02


def graph():
    """action = 0; z = 2 * obs, repeated to three rows."""
    nodes = [
        helper.make_node("Mul", ["obs", "zero"], ["nothing"]),
        helper.make_node("Reshape", ["nothing", "rows"], ["action"]),
        helper.make_node("Mul", ["obs", "two"], ["double"]),
        helper.make_node("Expand", ["double", "three"], ["z"]),
    ]
    made = helper.make_graph(
        nodes,
        "thinking",
        [helper.make_tensor_value_info("obs", TensorProto.FLOAT, [1, 2])],
        [
            helper.make_tensor_value_info("action", TensorProto.FLOAT, [1, 1, 2]),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, [3, 2]),
        ],
        [
            numpy_helper.from_array(np.float32(0.0).reshape(()), "zero"),
            numpy_helper.from_array(np.float32(2.0).reshape(()), "two"),
            numpy_helper.from_array(np.array([1, 1, 2], dtype=np.int64), "rows"),
            numpy_helper.from_array(np.array([3, 2], dtype=np.int64), "three"),
        ],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def thinking(**probe):
    """The tiny plan with one probe, `z`."""
    made = tiny.plan(tick_ns=TICK_NS, inference_deadline_ns=4_500_000, action_valid_ns=500_000_000)
    made["timing"]["max_age_state_ns"] = 1_000_000_000
    made["start"]["within_pos"] = [1.0, 1.0]
    made["outputs"].append({"name": "z", "shape": [3, 2], "role": "probe", "action": None, **probe})
    return made


@contextlib.contextmanager
def running(folder, endpoint=None, made=None):
    """The tiny robot, its policy in charge."""
    bound = Bound(
        name="thinking", plan=made or thinking(), graph=graph(), library=onnxruntime_library(), tokenizer=None,
        robot={"type": "two_joints"}, robot_folder=folder,
    )  # fmt: skip
    options = PacedOptions(
        driver="still_robot:StillRobot", recording=folder / "run.mcap", realtime_priority=50, probe=endpoint
    )
    with PacedRun(bound, options) as run:
        run.retask(None)
        assert run.ask("arm", "Armed", timeout_s=10) == "Armed"
        assert run.ask("start", "Running", timeout_s=10) == "Running", run.status()
        yield run


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]))
    return tmp_path


@pytest.fixture
def context():
    with zmq.Context() as made:
        yield made


def subscribed(context, endpoint, **options):
    subscriber = context.socket(zmq.SUB)
    subscriber.setsockopt(zmq.LINGER, 0)
    for name, value in options.items():
        subscriber.setsockopt(getattr(zmq, name), value)
    subscriber.subscribe(b"probe/")
    subscriber.connect(endpoint.text)
    return subscriber


def received(subscriber, count):
    """The next snapshots."""
    found = []
    for _ in range(count):
        assert subscriber.poll(WAIT_MS), "nothing came"
        topic, message = subscriber.recv_multipart()
        found.append((topic.decode(), PROBE.FromString(message), message))
    return found


def kept_going(run, count=200):
    before = run.status()
    while (after := run.status())["executed"] - before["executed"] < count:
        assert not run.wait(0.02), after
    assert after["planned"] == after["executed"] + after["missed"]
    assert after["mode_name"] == "Running", after
    if before["missed"] > NOISE * before["planned"]:
        pytest.skip("the machine misses ticks by itself: too noisy to tell")
    assert after["missed"] - before["missed"] <= max(NOISE * count, 2)
    assert after["chunks"] > before["chunks"], "the policy goes on answering"


def test_a_snapshot_is_what_the_policy_computed_and_says_of_which_observation(path, context):
    endpoint = listen(f"ipc://{path}/probe.sock")
    with subscribed(context, endpoint) as subscriber, running(path, endpoint) as run:
        found = received(subscriber, 6)
        offset_ns = run.supervisor.epoch_minus_monotonic_ns
    for topic, probe, _ in found:
        assert (topic, probe.name, probe.dtype, list(probe.shape)) == ("probe/z", "z", "float32", [3, 2])
        value = np.frombuffer(probe.data, dtype="<f4").reshape(3, 2)
        # The policy's order of the joints is the other way round.
        np.testing.assert_allclose(value, np.tile([-1.0, 0.5], (3, 1)))
        assert probe.generation == 1
        assert 0 < probe.captured_ns <= probe.observed_ns < probe.inferred_ns
        assert probe.epoch_minus_monotonic_ns == offset_ns
    sequence = [probe.observation_seq for _, probe, _ in found]
    assert sequence == sorted(set(sequence))


@pytest.mark.parametrize(("asked", "period_ns"), [({}, PERIOD_NS), ({"period_ns": 100_000_000}, 100_000_000)])
def test_it_is_published_at_its_own_period(path, context, asked, period_ns):
    endpoint = listen(f"ipc://{path}/probe.sock")
    with subscribed(context, endpoint) as subscriber, running(path, endpoint, thinking(**asked)):
        times = np.array([probe.observed_ns for _, probe, _ in received(subscriber, 12)])
    gaps = np.diff(times)
    assert np.all(gaps >= period_ns - INFERENCE_NS), gaps
    assert np.median(gaps) < period_ns + 2 * INFERENCE_NS, gaps


def test_it_stands_in_the_recording_on_the_same_timeline(path, context):
    endpoint = listen(f"ipc://{path}/probe.sock")
    with subscribed(context, endpoint) as subscriber, running(path, endpoint):
        published = {probe.observation_seq: message for _, probe, message in received(subscriber, 5)}
    recorded = {}
    for raw in McapFile(path / "run.mcap").messages():
        if raw.topic == "/interlock/probe":
            probe = PROBE.FromString(bytes(raw.content))
            recorded[probe.observation_seq] = bytes(raw.content)
            assert raw.time_ns == probe.inferred_ns + probe.epoch_minus_monotonic_ns
    assert {seq: recorded[seq] for seq in published} == published
    told = [line for line in lines(path / "run.mcap") if line.module == "probe"]
    assert len(told) == len(recorded)


def test_the_python_of_the_page_reads_it(path, capsys):
    page = (Path(__file__).parents[2] / "docs" / "watching.md").read_text()
    snippet = page.split("```python\n")[1].split("```")[0]
    endpoint = listen(f"ipc://{path}/probe.sock")
    with running(path, endpoint):
        exec(compile(snippet.replace("ipc:///tmp/z.sock", endpoint.text), "watching.md", "exec"), {})
    assert "z (3, 2) of observation" in capsys.readouterr().out


@pytest.mark.parametrize("message", [b"", b"\xff\xff", b"probe/z"])
def test_what_is_no_snapshot_is_refused(message):
    with pytest.raises(InterlockError) as caught:
        read(message)
    assert caught.value.code == "probe-message"


def test_probes_are_recorded_without_being_published(path):
    with running(path) as run:
        kept_going(run, 40)
        assert run.probes is None
    assert sum(raw.topic == "/interlock/probe" for raw in McapFile(path / "run.mcap").messages()) >= 3


def test_a_subscriber_that_never_reads_delays_nobody(path, context):
    endpoint = listen(f"ipc://{path}/probe.sock")
    made = thinking(period_ns=INFERENCE_NS)
    with (
        subscribed(context, endpoint, RCVHWM=1, RCVBUF=4096),
        subscribed(context, endpoint) as reader,
        running(path, endpoint, made) as run,
    ):
        received(reader, 3)
        kept_going(run)
        sequence = [probe.observation_seq for _, probe, _ in received(reader, 30)]
    assert np.median(np.diff(sequence)) == np.min(np.diff(sequence)), "the other subscriber misses nothing"


STALLING = """
import sys, zmq
subscriber = zmq.Context().socket(zmq.SUB)
subscriber.subscribe(b"")
subscriber.connect(sys.argv[1])
subscriber.recv_multipart()
print("here", flush=True)
subscriber.recv_multipart()
sys.stdin.read()
"""


def test_a_subscriber_that_is_stopped_delays_nobody(path, context):
    endpoint = listen("tcp://127.0.0.1:0")
    with subscribed(context, endpoint) as reader, running(path, endpoint, thinking(period_ns=INFERENCE_NS)) as run:
        stalled = subprocess.Popen(
            [sys.executable, "-c", STALLING, endpoint.text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            assert stalled.stdout.readline().strip() == "here"
            stalled.send_signal(signal.SIGSTOP)
            kept_going(run)
            assert len(received(reader, 50)) == 50
        finally:
            stalled.send_signal(signal.SIGCONT)
            stalled.kill()
            stalled.communicate()


def test_the_process_that_publishes_may_be_stopped_or_killed(path, context):
    endpoint = listen(f"ipc://{path}/probe.sock")
    with subscribed(context, endpoint) as reader, running(path, endpoint) as run:
        received(reader, 1)
        run.probes.process.send_signal(signal.SIGSTOP)
        kept_going(run)
        run.probes.process.send_signal(signal.SIGCONT)
        run.probes.process.kill()
        run.probes.process.wait(10)
        kept_going(run)


def test_after_another_worker_took_over_its_snapshots_are_published(path, context):
    endpoint = listen(f"ipc://{path}/probe.sock")
    with subscribed(context, endpoint) as reader, running(path, endpoint) as run:
        received(reader, 1)
        os.kill(run.worker.process.pid, signal.SIGKILL)
        assert run.wait_mode("Holding", timeout_s=10) == "Holding"
        run.replace_worker()
        assert run.ask("recover", "Armed", timeout_s=10) == "Armed"
        assert run.ask("start", "Running", timeout_s=10) == "Running"
        generations = {probe.generation for _, probe, _ in received(reader, 20)}
    assert 2 in generations


@pytest.mark.parametrize(
    "text",
    [
        "tcp://0.0.0.0:5555", "tcp://*:5555", "tcp://192.168.1.5:5555", "tcp://localhost:5555", "tcp://127.0.0.2:5555",
        "tcp://127.0.0.1:99999", "tcp://127.0.0.1", "tcp://127.0.0.1:5555;0.0.0.0:5555", "tcp://[::]:5555",
        "udp://127.0.0.1:5555", "pgm://eth0;239.0.0.1:5555", "inproc://a", "ws://127.0.0.1:5555", "ipc://relative",
        "ipc://", f"ipc:///{'x' * 120}", "5555", "",
    ],
)  # fmt: skip
def test_what_is_not_on_this_machine_alone_is_refused(text):
    with pytest.raises(InterlockError) as caught:
        listen(text).close()
    assert (caught.value.code, caught.value.exit) == ("probe-address", Exit.USAGE)


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("interlock.serve.probes.find_spec", lambda _: None)
    with pytest.raises(InterlockError) as caught:
        listen("tcp://127.0.0.1:0")
    assert (caught.value.code, caught.value.next) == ("probe-missing", "pip install 'interlock[probe]'")


def test_an_address_in_use_is_refused_and_what_a_killed_run_left_is_not(tmp_path):
    first = listen(f"ipc://{tmp_path}/one.sock")
    with pytest.raises(InterlockError) as caught:
        listen(first.text)
    assert caught.value.code == "probe-busy"
    first.socket.close()
    listen(first.text).close()
    assert list(tmp_path.iterdir()) == []
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(InterlockError) as caught:
        listen(f"tcp://127.0.0.1:{other.getsockname()[1]}")
    assert caught.value.code == "probe-busy"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InterlockError):
        listen(f"ipc://{tmp_path}/file")
    assert (tmp_path / "file").read_text() == "mine"


def test_only_its_user_can_subscribe_to_a_file(tmp_path):
    endpoint = listen(f"ipc://{tmp_path}/probe.sock")
    assert stat.S_IMODE(endpoint.path.stat().st_mode) == 0o600
    endpoint.close()


def test_a_policy_without_probes_is_refused_before_anything_starts(arm_copy, tmp_path, interlock):
    pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")
    done = interlock(
        "run", arm_copy, "--robot", arm_copy.parent / "robot.yaml", "--sim",
        "--probe", f"ipc://{tmp_path}/probe.sock", "-o", tmp_path / "r",
    )  # fmt: skip
    assert done.returncode == int(Exit.USAGE)
    assert "error[probe-none]" in done.stderr
    assert not (tmp_path / "r").exists()


def test_the_probes_of_a_plan_are_named():
    assert require_probes(thinking()) == ["z"]
    plain = copy.deepcopy(thinking())
    plain["outputs"].pop()
    assert _core.Probes.ring(json.dumps(plain)) is None
