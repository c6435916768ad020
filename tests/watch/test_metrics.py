"""Numbers for Prometheus: on loopback alone, only when asked for, and from a process that cannot slow the loop."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from interlock import _core
from interlock.cli.load import load_bound
from interlock.errors import Exit, InterlockError
from interlock.serve.metrics import HOST, address, listen
from interlock.serve.paced import PacedOptions, PacedRun

pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")

TICKS = 200
NOISE = 0.02


@contextlib.contextmanager
def running(policy, folder, **options):
    """The simulated arm, armed."""
    bound = load_bound(policy, policy.parent / "robot.yaml")
    asked = PacedOptions(
        driver="sim:arm", driver_options={"seed": 3}, recording=folder / "run.mcap", simulated=True,
        realtime_priority=50, **options,
    )  # fmt: skip
    with PacedRun(bound, asked) as run:
        run.retask("reach the red block")
        assert run.ask("arm", "Armed", timeout_s=10) == "Armed"
        yield run


@pytest.fixture
def served(arm_copy, tmp_path):
    listener = listen(0)
    where = address(listener)
    with running(arm_copy, tmp_path, metrics=listener) as run:
        yield run, where


def scraped(where):
    """Every sample by name and labels."""
    with urllib.request.urlopen(where, timeout=30) as answer:
        text = answer.read().decode()
    families = list(text_string_to_metric_families(text))
    return {(each.name, *sorted(each.labels.items())): each.value for family in families for each in family.samples}


class Waiting:
    """Lets time pass, half a minute at most."""

    def __enter__(self):
        self._ring = _core.Ring.create("time", 2, 8)
        self._until_ns = _core.monotonic_ns() + 30_000_000_000
        return self

    def __exit__(self, *_):
        pass

    def wait(self, seconds):
        assert _core.monotonic_ns() < self._until_ns
        self._ring.wait(0, int(seconds * 1e9))


def answered(run, where):
    """Whether a client is answered within half a minute."""
    deadline = _core.monotonic_ns() + 30_000_000_000
    while _core.monotonic_ns() < deadline:
        with contextlib.suppress(OSError):
            return scraped(where)[("interlock_up",)] == 1.0
        run.wait(0.1)
    return False


def processes(root):
    """A process and all below it."""
    found = [root]
    for task in Path(f"/proc/{root}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += processes(int(child))
    return found


def listening(root):
    """Local addresses (hexadecimal, as the kernel writes them) on which a process or one below it listens."""
    sockets = set()
    for pid in processes(root):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                sockets.add(str(descriptor.readlink()))
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            is_open = fields[3] == "0A" or table.startswith("udp")
            if is_open and f"socket:[{fields[9]}]" in sockets:
                found.append(fields[1])
    return found


def kept_going(run):
    before = run.status()
    while (after := run.status())["executed"] - before["executed"] < TICKS:
        assert not run.wait(0.02), after
    assert after["planned"] == after["executed"] + after["missed"]
    if before["missed"] > NOISE * before["planned"]:
        pytest.skip("the machine misses ticks by itself: too noisy to tell")
    assert after["missed"] - before["missed"] <= max(NOISE * TICKS, 2)


def test_nothing_listens_unless_asked_for(arm_copy, tmp_path):
    with running(arm_copy, tmp_path) as run:
        assert listening(os.getpid()) == []
        assert len(processes(os.getpid())) >= 3, "driver and worker are looked at too"
        assert run.metrics is None


def test_it_listens_on_loopback_and_nowhere_else(served):
    _, where = served
    port = int(where.split(":")[2].split("/")[0])
    scraped(where)
    assert listening(os.getpid()) == [f"0100007F:{port:04X}"]


def test_what_is_served_is_what_the_loop_counts(served):
    run, where = served
    before, seen, after = run.status(), scraped(where), run.status()
    assert before["executed"] <= seen[("interlock_ticks_executed_total",)] <= after["executed"]
    assert seen[("interlock_up",)] == 1.0
    assert seen[("interlock_mode", ("mode", "Armed"))] == 1.0
    assert seen[("interlock_mode", ("mode", "Running"))] == 0.0
    assert seen[("interlock_driver_alive",)] == 1.0
    assert seen[("interlock_tick_lateness_seconds_count",)] <= after["planned"]
    assert seen[("interlock_tick_lateness_seconds_bucket", ("le", "+Inf"))] >= before["executed"]
    mean = seen[("interlock_tick_work_seconds_sum",)] / seen[("interlock_tick_work_seconds_count",)]
    assert 1e-7 < mean < 0.1, "seconds"
    assert seen[("interlock_recording_size_bytes",)] >= 0.0


def test_whoever_asks_for_openmetrics_gets_it(served):
    _, where = served
    kind = "application/openmetrics-text; version=1.0.0"
    asked = urllib.request.Request(where, headers={"Accept": kind})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
        names = {family.name for family in openmetrics(answer.read().decode())}
    assert {"interlock_ticks_executed", "interlock_tick_lateness_seconds"} <= names


def test_every_metric_stands_on_the_page(served):
    _, where = served
    page = (Path(__file__).parents[2] / "docs" / "watching.md").read_text()
    for name, *_ in scraped(where):
        family = re.sub(r"_(bucket|sum|count)$", "", name)
        assert f"`{family}`" in page


def test_names_carry_base_units_and_counters_end_in_total(served):
    _, where = served
    with urllib.request.urlopen(where, timeout=30) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    assert len(families) > 30
    for family in families:
        assert family.name.startswith("interlock_")
        assert family.documentation
        assert not family.name.endswith(("_ns", "_ms", "_us"))
        if family.type == "counter":
            assert all(each.name.endswith("_total") for each in family.samples)
        if family.type == "histogram":
            assert family.name.endswith("_seconds")


def test_a_client_that_connects_and_never_asks_or_reads_does_not_slow_the_loop(served):
    run, where = served
    port = int(where.split(":")[2].split("/")[0])
    with contextlib.ExitStack() as stack:
        stalled = [stack.enter_context(socket.create_connection((HOST, port))) for _ in range(20)]
        for each in stalled[::2]:
            each.sendall(b"GET /metrics HTTP/1.1\r\n" * 50 + b"\r\n")  # asks again and again, and never reads
        kept_going(run)
    assert answered(run, where), "once they are gone the next is answered"


def test_the_process_that_serves_may_be_stopped_or_killed(served):
    run, where = served
    scraped(where)
    run.metrics.process.send_signal(signal.SIGSTOP)
    kept_going(run)
    run.metrics.process.send_signal(signal.SIGCONT)
    run.metrics.process.kill()
    run.metrics.process.wait(10)
    kept_going(run)
    assert run.mode() == "Armed"
    with pytest.raises(urllib.error.URLError):
        scraped(where)


def test_it_ends_with_its_supervisor_however_that_ends(arm_copy, tmp_path):
    run = subprocess.Popen(
        [
            sys.executable, "-m", "interlock", "run", str(arm_copy), "--robot", str(arm_copy.parent / "robot.yaml"),
            "--sim", "--task", "reach the red block", "--seconds", "60", "--metrics", "0", "-o", str(tmp_path / "run"),
        ],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    where = next(found[0] for line in run.stdout if (found := re.findall(r"http://\S+", line)))
    with Waiting() as wait:
        assert answered(wait, where)
        everybody = processes(run.pid)
        run.kill()
        run.communicate()
        while any(Path(f"/proc/{each}").exists() for each in everybody):
            wait.wait(0.1)
    with pytest.raises(urllib.error.URLError):
        scraped(where)


def test_a_port_in_use_is_refused_before_anything_starts(arm_copy, tmp_path, interlock):
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(InterlockError) as caught:
            listen(port)
        assert (caught.value.code, caught.value.exit) == ("metrics-port", Exit.CONFLICT)
        done = interlock(
            "run", arm_copy, "--robot", arm_copy.parent / "robot.yaml", "--sim", "--metrics", port, "-o", tmp_path / "r"
        )
    assert done.returncode == int(Exit.CONFLICT), done.stdout + done.stderr
    assert "error[metrics-port]" in done.stderr
    assert "next: " in done.stderr
    assert not (tmp_path / "r").exists(), "nothing was recorded, since nothing was started"


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("interlock.serve.metrics.find_spec", lambda _: None)
    with pytest.raises(InterlockError) as caught:
        listen(0)
    assert (caught.value.code, caught.value.next) == ("metrics-missing", "pip install 'interlock[metrics]'")


def test_a_manual_clock_serves_none(arm_copy, interlock):
    done = interlock("run", arm_copy, "--sim", "--lockstep", "--metrics", "0")
    assert done.returncode == int(Exit.USAGE)
    assert "error[lockstep-not-live]" in done.stderr
