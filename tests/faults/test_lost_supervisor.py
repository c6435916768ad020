"""The supervisor is killed while everybody else hangs: nothing of the run is left, and what was recorded is read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import faulty_policy as policy
import pytest
import told

from interlock import _core
from interlock.serve.driver_host import CLOSE_NS, LINGER_NS

PATIENCE_NS = LINGER_NS + CLOSE_NS + 10_000_000_000
SUPERVISOR = """
import json, sys
from pathlib import Path
import faulty_policy as policy, told
with told.running(Path(sys.argv[1]), policy.plan(synchronous=False)) as run:
    run.wait(0.5)
    run.set_velocity((policy.LOOP, 0.0, 0.0))
    told.switch(run, "hang_with_gil")
    run.wait_mode("Holding", timeout_s=20)
    run.wait(0.5)
    print(json.dumps([run.driver.process.pid, run.worker.process.pid]), flush=True)
    run.wait(600)
"""


@pytest.fixture
def orphans(folder):
    """A supervisor whose driver hangs with the GIL in its hand and whose worker loops, killed."""
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(here), str(here.parent / "core")])}
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, str(folder)], stdout=subprocess.PIPE, env=environment, text=True
    )
    assert process.stdout is not None
    pids = json.loads(process.stdout.readline())
    assert not any(told.is_ended(pid) for pid in pids)
    process.send_signal(signal.SIGKILL)
    process.wait()
    yield pids
    for pid in pids:
        if not told.is_ended(pid):
            os.kill(pid, signal.SIGKILL)


def test_nothing_outlives_a_killed_supervisor_and_its_recording_is_read(orphans, folder):
    deadline, nothing = _core.monotonic_ns() + PATIENCE_NS, _core.Ring.create("nothing", 2, 8)
    while not all(told.is_ended(pid) for pid in orphans):
        assert _core.monotonic_ns() < deadline, "a driver that hangs in `read` outlives its supervisor"
        nothing.wait(0, 50_000_000)
    made = policy.plan(synchronous=False)
    tale = told.tell(folder, made)
    tale.is_intact(complete=False)
    tale.is_inside_the_envelope()
    assert tale.recording.reason
    assert tale.first_safe < len(tale.ticks), "it had told that the policy was lost"
