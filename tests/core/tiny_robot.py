"""A driver and a worker as processes of their own, and a supervisor over them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import tiny_plan as tiny

from interlock import _core

MODES = {name: number for number, name in _core.mode_names().items()}
SECOND_NS = 1_000_000_000

DRIVER = """
import json, sys
import numpy as np
from interlock import _core
asked = json.load(sys.stdin)
state, command = _core.Ring.attach(asked["state"]), _core.Ring.attach(asked["command"])
cameras = [_core.Ring.attach(each) for each in asked["images"]]
n, seen, frames, rounds = asked["joints"], 0, 0, 0
flat = np.zeros(3 * n + 10); flat[3 * n] = 1.0
packet = np.zeros(4 + 5 * n)
due = _core.monotonic_ns()
while True:
    now = _core.monotonic_ns()
    if now < due:
        if command.wait(seen, due - now):
            seen = command.latest(packet)[0]
            flat[:n] = packet[4 : 4 + n]
        continue
    state.publish(flat, now)
    rounds += 1
    for camera in cameras if rounds % 4 == 0 else []:
        moving = flat[0] > asked["fault_after_rad"]
        if moving and asked["fault"] == "silent":
            continue
        frames += not (moving and asked["fault"] == "frozen")
        camera.publish(np.full(camera.slot_bytes, 100 + frames % 2, np.uint8), now)
    due += asked["tick_ns"] // 2
"""

WORKER = """
import json, os, sys
from interlock import _core
asked = json.load(sys.stdin)
_core.run_worker(
    json.dumps(asked["plan"]), bytes.fromhex(asked["graph"]), asked["library"],
    observation=_core.Ring.attach(asked["observation"]), chunk=_core.Ring.attach(asked["chunk"]),
    images=[_core.Ring.attach(each) for each in asked["images"]],
    generation=asked["generation"], parent_pidfd=os.pidfd_open(asked["parent"]),
)
"""


def start(script: str, asked: dict, descriptors: list[int]) -> subprocess.Popen:
    """A child with configuration on its standard input."""
    child = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, pass_fds=descriptors, start_new_session=True
    )
    assert child.stdin is not None
    child.stdin.write(json.dumps(asked).encode())
    child.stdin.close()
    return child


class Robot:
    """Everything of one run; kills what is left on exit."""

    def __init__(self, made: dict, graph: bytes, *, recording: Path | None = None, fault: str = "", **options) -> None:
        self.plan, self.graph = made, graph
        n, rows = tiny.JOINTS, made["timing"]["chunk"]
        self.state = _core.Ring.create("state", 64, _core.state_bytes(n))
        self.command = _core.Ring.create("command", 64, _core.command_bytes(n))
        self.children: list[subprocess.Popen] = []
        self.images = [
            _core.Ring.create("image", 8, camera["height"] * camera["width"] * 3) for camera in made["cameras"]
        ]
        driver = {
            "state": self.state.fd,
            "command": self.command.fd,
            "images": [each.fd for each in self.images],
            "joints": n,
            "tick_ns": made["timing"]["tick_ns"],
            "fault": fault,
            "fault_after_rad": 0.02,
        }
        self.driver = start(DRIVER, driver, [self.state.fd, self.command.fd, *driver["images"]])
        self.children.append(self.driver)
        self.generation = 0
        self.rows = rows
        self.worker, observation, chunk = self.new_worker()
        assert all(ring.wait(0, 30 * SECOND_NS) for ring in (self.state, *self.images))
        self.core = _core.Supervisor(
            tiny.text(made),
            state=self.state,
            command=self.command,
            images=self.images,
            observation=observation,
            chunk=chunk,
            worker_pidfd=os.pidfd_open(self.worker.pid),
            driver_pidfd=os.pidfd_open(self.driver.pid),
            generation=self.generation,
            recording=None if recording is None else str(recording),
            **options,
        )

    def new_worker(self):
        """A worker of the next generation, loaded and warm."""
        self.generation += 1
        observation = _core.Ring.create("observation", 16, _core.observation_bytes(tiny.JOINTS))
        chunk = _core.Ring.create("chunk", 16, _core.chunk_bytes(self.rows, tiny.JOINTS))
        asked = {
            "plan": self.plan,
            "graph": self.graph.hex(),
            "library": tiny.library(),
            "observation": observation.fd,
            "chunk": chunk.fd,
            "images": [each.fd for each in self.images],
            "generation": self.generation,
            "parent": os.getpid(),
        }
        child = start(WORKER, asked, [observation.fd, chunk.fd, *asked["images"]])
        self.children.append(child)
        assert chunk.wait(0, 30 * SECOND_NS)
        return child, observation, chunk

    def __enter__(self) -> Robot:
        self.granted = self.core.start()
        return self

    def __exit__(self, *_: object) -> None:
        for child in self.children:
            child.send_signal(signal.SIGKILL)
            child.wait()
        self.final = self.core.stop()

    def until(self, mode: str, request: str | None = None) -> None:
        """Asks, again if it was not granted yet, and waits for a mode; fails after half a minute."""
        asked = self.core.status()["requests"]
        deadline = _core.monotonic_ns() + 30 * SECOND_NS
        while (status := self.core.status())["mode"] != MODES[mode]:
            if request is not None and status["requests"] == asked:
                self.core.request(request)
                asked += 1
            assert _core.monotonic_ns() < deadline, status
            self.core.wait(1_000_000)

    def run(self) -> None:
        """Until the policy has commanded for a while."""
        self.until("Armed", "arm")
        self.until("Running", "start")
        self.until_status(lambda status: status["accepted"] >= 5)

    def until_status(self, holds) -> None:
        """Waits until the status says so."""
        deadline = _core.monotonic_ns() + 30 * SECOND_NS
        while not holds(self.core.status()):
            assert _core.monotonic_ns() < deadline, self.core.status()
            self.core.wait(1_000_000)

    def last_command(self) -> np.ndarray:
        """mode, kind, running, reserved, then five rows."""
        packet = np.zeros(4 + 5 * tiny.JOINTS)
        assert self.command.latest(packet) is not None
        return packet
