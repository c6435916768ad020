"""One run in real time: driver, worker and supervisor as three processes, and the handle that steers them."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import numpy as np

from interlock import _core
from interlock.errors import InterlockError
from interlock.runtime.beacon import Beacon
from interlock.runtime.bound import Bound
from interlock.serve.children import Child, start_child
from interlock.serve.limits import read_back, refusal, require_process, require_realtime, worker_memory_bytes
from interlock.serve.links import DriverLinks, WorkerLinks, flat_descriptors
from interlock.serve.probes import Endpoint

READY_TIMEOUT_NS = 60_000_000_000  # loading a large engine takes this long at most before we say so
BELOW_CONTROL = (
    5  # priorities between control thread, driver and worker: a busy worker cannot starve the robot's driver
)
RETRY_S = 0.05
END_S = 2.0  # for a simulation to close by itself
POLL_NS = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedOptions:
    """How to run.

    Attributes:
        driver: Adapter name, such as `sim:arm` or `package.module:Class`.
        driver_options: Passed to the adapter: seed, task, log, start pose.
        recording: MCAP file; None for no recording.
        record_images: How images are recorded.
        header: Facts for the recording's header.
        realtime_priority: SCHED_FIFO priority asked for the control thread, and a little less for driver and worker;
            0: the normal scheduler.
        realtime_required: Start nothing unless all of that is granted.
        cpu: Core for the control thread.
        dry: Read the robot, send nothing.
        threads: Inference threads of the worker.
        worker_memory_bytes: What a worker may allocate; None: by its model's size, 0: no bound.
        simulated: The driver is a simulation and answers admin requests.
        metrics: Where numbers are served for Prometheus, see `serve.metrics.listen`; None: nowhere.
        probe: Where snapshots of probes are published, see `serve.probes.listen`; None: nowhere.
    """

    driver: str
    driver_options: dict[str, Any] = field(default_factory=dict)
    recording: Path | None = None
    record_images: Literal["png", "raw", "none"] = "png"
    header: dict[str, Any] = field(default_factory=dict)
    realtime_priority: int = 0
    realtime_required: bool = False
    cpu: int | None = None
    dry: bool = False
    threads: int = 1
    worker_memory_bytes: int | None = None
    simulated: bool = False
    metrics: socket.socket | None = None
    probe: Endpoint | None = None


class PacedRun:
    """Starts everything on entry, brings the robot to rest and ends everything on exit.

    Nothing moves until `request("arm")` and `request("start")`.
    """

    def __init__(self, bound: Bound, options: PacedOptions) -> None:
        self.bound = bound
        self.options = options
        self.granted: dict[str, Any] = {}
        self._modes = _core.mode_names()
        self._generation = 1
        self._driver_links: DriverLinks | None = None
        self._supervisor: _core.Supervisor | None = None
        self._final: dict[str, Any] | None = None
        self._beacon: Beacon | None = None
        self._noted: set[int] = set()  # processes whose end was said
        self.driver: Child
        self.worker: Child
        self.metrics: Child | None = None
        self.probes: Child | None = None
        self._probe_ring = _core.Probes.ring(bound.plan_json)
        self._worker_links: WorkerLinks

    def __enter__(self) -> PacedRun:
        try:
            self._start()
        except BaseException:
            self._end_children()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            if self._beacon is not None:
                self._beacon.put_out()
            self._end_children()

    @property
    def supervisor(self) -> _core.Supervisor:
        """The control loop."""
        assert self._supervisor is not None, "used inside `with` only"
        return self._supervisor

    def request(self, what: str) -> None:
        """Asks for arm, start, stop, recover, takeover, release, disarm or quit."""
        self.supervisor.request(what)

    def say(self, module: str, level: Literal["debug", "info", "warning", "error"], text: str) -> None:
        """A line for people on the recording's timeline."""
        self.supervisor.log(module, level, text)

    def retask(self, task: str | None, goal: tuple[float, float, float] | None = None) -> None:
        """Gives the running policy another task or goal. Raises `InterlockError` when the policy does not take it."""
        tokens = self.bound.tokens(task)
        velocity = self.bound.velocity(goal)
        self.supervisor.set_goal(velocity, tokens, task or "")

    def set_velocity(self, goal: tuple[float, float, float]) -> None:
        """Gives the running policy another velocity goal. Raises `InterlockError` when the policy does not take it."""
        self.supervisor.set_goal(self.bound.velocity(goal), None, "")

    def status(self) -> dict[str, Any]:
        """The loop's counters; `mode_name`, `cause` and `request_refused` in words."""
        status = self.supervisor.status()
        self._note_ends()
        return {
            **status,
            "mode_name": self._modes[status["mode"]],
            "cause": _word(status["cause"]),
            "request_refused": _word(status["request_code"]),
        }

    def mode(self) -> str:
        """The mode's name now."""
        return str(self.status()["mode_name"])

    def wait_mode(self, *wanted: str, timeout_s: float) -> str | None:
        """Waits for one of the modes; None when the time is up or the loop has ended."""
        deadline = _core.monotonic_ns() + int(timeout_s * 1e9)
        while True:
            mode = self.mode()
            if mode in wanted:
                return mode
            if _core.monotonic_ns() >= deadline or self.supervisor.wait(POLL_NS):
                return None

    def ask(self, what: str, *wanted: str, timeout_s: float) -> str | None:
        """Requests until one of the modes is reached: just after start-up the first sample or image may not be there.

        Returns the mode, or None when the time is up, the loop has ended, or the mode changed to something else.
        """
        deadline = _core.monotonic_ns() + int(timeout_s * 1e9)
        before = self.mode()
        while _core.monotonic_ns() < deadline:
            self.request(what)
            if (mode := self.wait_mode(*wanted, timeout_s=RETRY_S)) is not None:
                return mode
            if self.mode() != before or self.supervisor.wait(0):
                return None
        return None

    def wait(self, seconds: float) -> bool:
        """Lets time pass; True when the control loop has ended."""
        return self.supervisor.wait(int(seconds * 1e9))

    def speed_si(self) -> float:
        """Largest measured joint speed now, rad/s; NaN where the robot gives none."""
        assert self._driver_links is not None
        flat = np.empty(3 * self.bound.joints + 10)
        if self._driver_links.state.latest(flat) is None:
            return float("nan")
        speeds = self.bound.to_si(flat)[self.bound.joints : 2 * self.bound.joints]
        return float(np.max(np.abs(speeds)))

    def ask_simulation(self, request: dict[str, Any], timeout_s: float = 5.0) -> dict[str, Any]:
        """Reset, outcome, frozen camera: simulations only."""
        return self.driver.ask(request, timeout_s)

    def replace_worker(self) -> None:
        """Starts a worker of the next generation. It takes over only after an explicit `recover`."""
        self.worker.end()
        self._generation += 1
        self._start_worker()
        self._await_worker()
        self.supervisor.set_worker(
            self._worker_links.observation, self._worker_links.chunk, self.worker.pidfd, self._generation
        )
        self._show_facts()
        self.say("worker", "info", f"worker {self._generation} is loaded: process {self.worker.process.pid}")

    def stop(self, *, go_to_rest: bool = True) -> dict[str, Any]:
        """Ends the loop and closes the recording; returns the final counters.

        Args:
            go_to_rest: Do what `safe.on_exit` says first. False ends where the robot was brought to rest.
        """
        if self._final is None and self._supervisor is not None:
            if not go_to_rest and self.mode() == "Holding":
                self.request("disarm")
                self.wait_mode("Idle", timeout_s=1.0)
            self._final = self._supervisor.stop()
        return self._final or {}

    def _start(self) -> None:
        options, bound = self.options, self.bound
        if options.realtime_required:
            require_realtime(options.realtime_priority, options.cpu)
        self._driver_links = DriverLinks.create(bound.plan)
        descriptors = self._driver_links.descriptors()
        configuration = {
            "driver": options.driver,
            "driver_options": options.driver_options,
            "robot": bound.robot,
            "robot_folder": str(bound.robot_folder),
            "plan": bound.plan,
            "rings": descriptors,
            "realtime_priority": self._priority(1),
        }
        self.driver = start_child("driver", configuration, flat_descriptors(descriptors), admin=options.simulated)
        self._start_worker()
        self._await_worker()
        self._await_state()
        processes = self._processes_granted()
        self._supervisor = _core.Supervisor(
            bound.plan_json,
            state=self._driver_links.state,
            command=self._driver_links.command,
            images=self._driver_links.images,
            observation=self._worker_links.observation,
            chunk=self._worker_links.chunk,
            worker_pidfd=self.worker.pidfd,
            driver_pidfd=self.driver.pidfd,
            generation=self._generation,
            recording=None if options.recording is None else str(options.recording),
            header_json=json.dumps({**options.header, "processes": processes}),
            record_images=options.record_images,
            realtime_priority=options.realtime_priority,
            cpu=options.cpu,
            dry=options.dry,
            probes=self._probe_ring,
        )
        self.granted = {**self._supervisor.start(), "processes": processes}
        if options.realtime_required and not self.granted["complete"]:  # granted a moment ago, and no longer
            self._supervisor.stop()
            raise refusal(self.granted, options.realtime_priority)
        self._show_facts()
        for role, child in (("driver", self.driver), ("worker", self.worker)):
            self.say(role, "info", f"process {child.process.pid} is ready")
        self._start_viewers()
        if options.recording is not None:
            with contextlib.suppress(OSError):  # who cannot be watched runs all the same
                self._beacon = Beacon.light(options.recording.parent, self._supervisor.status_fd)

    def _priority(self, steps: int) -> int:
        """Real-time priority so many steps below the control thread's; 0 where none was asked for."""
        return max(self.options.realtime_priority - steps * BELOW_CONTROL, 0)

    def _processes_granted(self) -> dict[str, Any]:
        """What the kernel granted driver and worker, read back from it; refused here where all of it is required."""
        for steps, (role, child) in enumerate((("driver", self.driver), ("worker", self.worker)), 1):
            if self.options.realtime_required and self._priority(steps) > 0:
                require_process(role, child.process.pid, self._priority(steps))
        return {"driver": read_back(self.driver.process.pid), "worker": read_back(self.worker.process.pid)}

    def _note_ends(self) -> None:
        """Says once of each process how it ended; that it ended the control thread knows first."""
        children = {"driver": self.driver, "worker": self.worker, "metrics": self.metrics, "probe": self.probes}
        for module, child in children.items():
            if child is not None and child.process.poll() is not None and child.process.pid not in self._noted:
                self._noted.add(child.process.pid)
                is_needed = module in ("driver", "worker")
                self.say(module, "error" if is_needed else "warning", child.last_words(module))

    def _start_viewers(self) -> None:
        """Processes that read what the loop shows; nobody waits for them."""
        if self.options.metrics is not None:
            descriptors = {"board": self.supervisor.status_fd, "listener": self.options.metrics.fileno()}
            self.metrics = start_child("metrics", descriptors, [*descriptors.values()])
            self.options.metrics.close()  # its own now: where it ends, nobody listens any more
        if self.options.probe is not None and self._probe_ring is not None:
            endpoint = self.options.probe
            descriptors = {"ring": self._probe_ring.fd, "listener": endpoint.socket.fileno()}
            configuration = {
                **descriptors,
                "plan": self.bound.plan,
                "endpoint": endpoint.text,
                "epoch_minus_monotonic_ns": self.supervisor.epoch_minus_monotonic_ns,
            }
            self.probes = start_child("probes", configuration, [*descriptors.values()])
            endpoint.socket.close()

    def _show_facts(self) -> None:
        """What a watcher cannot know from numbers."""
        facts = {
            "policy": self.bound.name,
            "robot": self.bound.robot["type"],
            "driver": self.options.driver,
            "simulated": self.options.simulated,
            "dry": self.options.dry,
            "tick_ns": self.bound.tick_ns,
            "latency_budget_ns": self.bound.plan["timing"]["latency_budget_ns"],
            "driver_pid": self.driver.process.pid,
            "worker_pid": self.worker.process.pid,
            "granted": self.granted,
        }
        self.supervisor.show_facts(json.dumps(facts))

    def _start_worker(self) -> None:
        assert self._driver_links is not None
        self._worker_links = WorkerLinks.create(self.bound.plan)
        descriptors = {
            **self._worker_links.descriptors(),
            "images": [each.fd for each in self._driver_links.images],
        }
        if self._probe_ring is not None:
            descriptors["probe"] = self._probe_ring.fd
        graph = _in_memory(self.bound.graph)
        configuration = {
            "plan": self.bound.plan,
            "graph": graph,
            "library": str(self.bound.library),
            "rings": descriptors,
            "generation": self._generation,
            "threads": self.options.threads,
            "realtime_priority": self._priority(2),
        }
        try:
            memory_bytes = self.options.worker_memory_bytes
            if memory_bytes is None:
                memory_bytes = worker_memory_bytes(self.bound.plan, self.bound.graph)
            inherited = [*flat_descriptors(descriptors), graph]
            self.worker = start_child("worker", configuration, inherited, memory_bytes=memory_bytes)
        finally:
            os.close(graph)

    def _await_worker(self) -> None:
        # The worker's first slot says that it is loaded and warm.
        self._await("worker", self.worker, self._worker_links.chunk)

    def _await_state(self) -> None:
        assert self._driver_links is not None
        self._await("driver", self.driver, self._driver_links.state)

    def _await(self, role: str, child: Child, ring: _core.Ring) -> None:
        deadline = _core.monotonic_ns() + READY_TIMEOUT_NS
        while not ring.wait(0, POLL_NS):
            if child.process.poll() is not None:
                raise child.refused(role)
            if _core.monotonic_ns() > deadline:
                raise InterlockError(
                    code=f"{role}-silent", where=role, got=f"nothing after {READY_TIMEOUT_NS // 10**9} s"
                )

    def _end_children(self) -> None:
        for name in ("metrics", "probes", "worker", "driver"):
            child: Child | None = getattr(self, name, None)
            if child is None:
                continue
            if child.admin is not None and child.process.poll() is None:
                with contextlib.suppress(InterlockError, subprocess.TimeoutExpired):
                    child.ask({"do": "end"}, timeout_s=1.0)
                    child.process.wait(END_S)  # a signal now would interrupt what it does last
            with contextlib.suppress(OSError):
                child.end()


def _word(code: int) -> str:
    return _core.code_word(code) if code else ""


def _in_memory(content: bytes) -> int:
    """A sealed file in memory: the worker loads the very bytes that were verified here, whatever happens on disk."""
    descriptor = os.memfd_create("graph", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return descriptor
