"""Rings between processes, through the Python boundary."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from interlock import _core

ONE_SECOND_NS = 1_000_000_000


def test_another_process_reads_what_was_published() -> None:
    ring = _core.Ring.create("state", 4, 80)
    ring.publish(np.arange(10.0), 42)
    script = (
        "import sys, numpy as np; from interlock import _core;"
        "out = np.zeros(10); seen = _core.Ring.attach(int(sys.argv[1])).latest(out); print(seen, out.sum())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(ring.fd)], pass_fds=[ring.fd], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "(1, 42) 45.0"


def test_a_reader_before_the_first_slot_gets_nothing() -> None:
    ring = _core.Ring.create("state", 2, 8)
    assert ring.latest(np.zeros(1)) is None
    assert not ring.wait(0, 1000)


def test_a_waiter_is_woken_by_another_process() -> None:
    ring = _core.Ring.create("state", 2, 8)
    script = (
        "import sys, numpy as np; from interlock import _core;"
        "_core.Ring.attach(int(sys.argv[1])).publish(np.zeros(1), 7)"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(ring.fd)], pass_fds=[ring.fd])
    assert ring.wait(0, 60 * ONE_SECOND_NS)
    assert child.wait() == 0


def test_a_producer_killed_while_publishing_leaves_the_last_complete_slot() -> None:
    pixels = 1 << 20
    ring = _core.Ring.create("image", 2, pixels)
    script = (
        "import sys, numpy as np; from interlock import _core\n"
        f"ring = _core.Ring.attach(int(sys.argv[1])); images = [np.full({pixels}, i, np.uint8) for i in range(251)]\n"
        "seq = 0\n"
        "while True: seq = ring.publish(images[(seq + 1) % 251], seq + 1)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script, str(ring.fd)], pass_fds=[ring.fd])
    assert ring.wait(100, 60 * ONE_SECOND_NS)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    out = np.zeros(pixels, np.uint8)
    seen = ring.latest(out)
    assert seen is not None
    assert seen[0] == seen[1]
    assert (out == seen[0] % 251).all()
    assert ring.publish(out, 0) == seen[0] + 1, "a dead producer can be replaced"


def test_two_live_producers_are_refused() -> None:
    ring = _core.Ring.create("state", 2, 8)
    ring.publish(np.zeros(1), 0)
    script = (
        "import sys, numpy as np; from interlock import _core\n"
        "try: _core.Ring.attach(int(sys.argv[1])).publish(np.zeros(1), 0)\n"
        "except _core.CoreError as refusal: print(refusal.code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(ring.fd)], pass_fds=[ring.fd], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "ring-producer"


@pytest.mark.parametrize("make", [lambda: -1, lambda: os.open(os.devnull, os.O_RDONLY), lambda: os.memfd_create("x")])
def test_what_is_no_ring_is_refused(make) -> None:
    with pytest.raises(_core.CoreError) as refusal:
        _core.Ring.attach(make())
    assert refusal.value.code == "ring-layout"
    assert refusal.value.hint


def test_a_payload_larger_than_a_slot_is_refused() -> None:
    with pytest.raises(_core.CoreError) as refusal:
        _core.Ring.create("state", 2, 8).publish(np.zeros(2), 0)
    assert refusal.value.code == "ring-layout"


def test_other_arrays_are_refused() -> None:
    ring = _core.Ring.create("state", 2, 800)
    for wrong in (np.zeros(4, np.float32), np.zeros((4, 4))[:, ::2], [1.0]):
        with pytest.raises(_core.CoreError) as refusal:
            ring.publish(wrong, 0)
        assert refusal.value.code == "array"
