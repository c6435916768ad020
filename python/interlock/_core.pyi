"""Typed boundary to the Rust crates. Plan as JSON once, C-contiguous arrays in, owned arrays out, nanoseconds."""

from typing import Any, Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

__all__ = [
    "CoreError",
    "Engine",
    "Lockstep",
    "Pipeline",
    "Probes",
    "Ring",
    "Supervisor",
    "Tick",
    "Watched",
    "check_plan",
    "chunk_bytes",
    "code_word",
    "code_words",
    "command_bytes",
    "floor",
    "leave_with",
    "mode_names",
    "monotonic_ns",
    "observation_bytes",
    "request_words",
    "run_worker",
    "state_bytes",
    "try_realtime",
]

_F64: TypeAlias = NDArray[np.float64]
_U8: TypeAlias = NDArray[np.uint8]
_I64: TypeAlias = NDArray[np.int64]

class CoreError(Exception):
    """Raised by construction and start-up only, never on a tick. `code` is a stable word."""

    code: str
    hint: str

def monotonic_ns() -> int:
    """CLOCK_MONOTONIC now."""

def code_word(value: int) -> str:
    """The stable word of a recorded code number."""

def code_words() -> dict[int, str]:
    """Every code."""

def mode_names() -> dict[int, str]:
    """Every mode number with its name."""

def request_words() -> dict[int, str]:
    """Word of every request by the number that stands in recordings."""

def floor(rate_hz: float, seconds: float, priority: int = 0) -> _I64:
    """Lateness in nanoseconds of every wake-up of a bare absolute-deadline loop in a thread of its own.

    What the operating system alone costs, for comparison. `priority` above 0 asks for SCHED_FIFO.
    """

def try_realtime(priority: int, cpu: int | None = None) -> dict[str, Any]:
    """What the kernel would grant now, as `Supervisor.start` tells it: asked on a thread of its own and given back."""

def leave_with(parent_pidfd: int, grace_ns: int) -> None:
    """Ends this process `grace_ns` after the process behind the pidfd has ended, whatever this one does then.

    Acts also where a thread hangs and keeps the GIL. Raises CoreError `watch` for what is no process descriptor.
    """

def check_plan(plan_json: str) -> None:
    """Raises CoreError when the plan contradicts itself."""

@final
class Ring:
    """Single-producer ring in shared memory (memfd); readers take the newest slot without ever blocking the producer.

    Every slot carries a sequence number (from 1), a stamp in nanoseconds and up to `slot_bytes` of payload. The first
    process that publishes is the producer; another may follow once that one has ended.
    """

    @staticmethod
    def create(name: str, slots: int, slot_bytes: int) -> Ring: ...
    @staticmethod
    def attach(fd: int) -> Ring:
        """Maps an inherited file descriptor. Raises CoreError `ring-layout` when it is not such a ring."""
    @property
    def fd(self) -> int: ...
    @property
    def slot_bytes(self) -> int: ...
    def publish(self, payload: _F64 | _U8, stamp_ns: int) -> int:
        """Copies `payload` into the next slot, wakes waiters, returns its sequence number.

        Raises CoreError `ring-producer` while another live process publishes here, `ring-layout` for a payload that is
        longer than a slot, `array` for one that is not C-contiguous float64 or uint8.
        """
    def latest(self, out: _F64 | _U8) -> tuple[int, int] | None:
        """Copies the newest complete slot into `out`, as much as fits.

        Returns (sequence, stamp_ns), None before the first.
        """
    def wait(self, after_seq: int, timeout_ns: int) -> bool:
        """True once a slot newer than `after_seq` exists. Releases the GIL."""

@final
class Engine:
    """One ONNX Runtime session through its C API, on the shared library that the wheel ships."""

    def __new__(
        cls,
        graph: bytes | str,
        library: str,
        *,
        threads: int = 1,
        optimize: bool = True,
        provider: str = "CPUExecutionProvider",
    ) -> Self:
        """`graph`: the verified bytes, or a path when external data stands beside it.

        Raises CoreError: `engine-library` (missing, not ONNX Runtime, older than the API level), `engine-graph`,
        `engine-provider` (a node would run on a provider that was not asked for).
        """
    @property
    def runtime_version(self) -> str: ...
    def inputs(self) -> list[tuple[str, str, list[int]]]:
        """(name, dtype, shape); -1 for a symbolic size."""
    def outputs(self) -> list[tuple[str, str, list[int]]]: ...
    def effective_providers(self) -> dict[str, int]:
        """Provider -> number of nodes it runs."""
    def run(self, inputs: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]: ...

@final
class Pipeline:
    """preprocess -> infer -> decode of one policy: the very code the worker runs. Used by verify, replay and tests."""

    def __new__(cls, plan_json: str, graph: bytes | str | None, library: str) -> Self:
        """`graph` None: no engine; only `preprocess` and `decode` may be called."""
    def reset(self) -> None:
        """History, recurrent state, last action, phase and noise start afresh."""
    def preprocess(
        self,
        sample: _F64,
        images: list[_U8],
        *,
        goal_velocity: _F64 | None = None,
        tokens: _I64 | None = None,
        applied: _F64 | None = None,
    ) -> dict[str, NDArray[Any]]:
        """Tensors by input name. `sample`: flat (pos, vel, torque, quat_wxyz, ang_vel, lin_vel), SI, robot order.

        Advances history and phase by one policy period. Raises CoreError with the code by which a worker would refuse.
        """
    def decode(self, outputs: dict[str, NDArray[Any]]) -> _F64:
        """`[rows, n]` targets, SI, robot order, of the observation last preprocessed.

        Outputs that are not needed may be left out; a recurrent state that is given is carried. Raises CoreError
        `dimension` or `not-finite`.
        """
    def infer(
        self,
        sample: _F64,
        images: list[_U8],
        *,
        goal_velocity: _F64 | None = None,
        tokens: _I64 | None = None,
        applied: _F64 | None = None,
    ) -> _F64:
        """preprocess, engine, decode; carries recurrent state."""
    def last_outputs(self) -> dict[str, NDArray[Any]]:
        """Raw outputs of the last `infer`."""

@final
class Tick:
    """What one tick did. Frozen."""

    @property
    def tick(self) -> int: ...
    @property
    def due_ns(self) -> int: ...
    @property
    def mode(self) -> int: ...
    @property
    def level(self) -> int: ...
    @property
    def ruling(self) -> Literal[0, 1, 2]:
        """0 pass, 1 limited, 2 refused."""
    @property
    def codes(self) -> list[int]:
        """Codes that acted this tick."""
    @property
    def sent(self) -> bool:
        """False while nothing may be sent (Idle)."""
    @property
    def running(self) -> bool:
        """A simulation may let go of the robot: a floating base is kept where it stands until its policy commands."""
    @property
    def kind(self) -> int:
        """Command kind on the wire: 0 position, 1 position_pd, 2 velocity, 3 torque, 4 off."""
    @property
    def command(self) -> _F64:
        """`[5, n]`: target, velocity, torque, kp, kd; SI, robot order. Zeros when nothing was sent."""
    @property
    def offered(self) -> bool:
        """An observation was offered for inference in this tick."""

@final
class Lockstep:
    """All stages in one process on a manual clock. Inference takes the plan's declared latency."""

    def __new__(
        cls,
        plan_json: str,
        graph: bytes | str,
        library: str,
        recording: str | None = None,
        header_json: str = "{}",
        record_images: Literal["png", "raw", "none"] = "png",
        guard: bool = True,
    ) -> Self:
        """`guard` False: the simulation gate's comparison run; refused by everything that is not simulated."""
    def request(self, what: str) -> None:
        """arm, start, stop, recover, takeover, release, disarm, quit, driver_dead, worker_dead, terminal_closed."""
    def set_goal(self, velocity: _F64 | None, tokens: _I64 | None, text: str) -> None: ...
    def image(self, camera: int, pixels: _U8, capture_ns: int) -> None:
        """Gives a new image, `[h, w, 3]`."""
    def step(self, now_ns: int, sample: _F64, capture_ns: int) -> Tick:
        """One tick: observe -> align -> preprocess -> infer -> decode -> schedule -> guard -> send.

        `sample`: flat, SI, robot order, as in `Pipeline.preprocess`. Requests and goals given before take effect after
        the sample was seen. `worker_dead` and `driver_dead` pretend a death; a new worker is there at once.
        Raises CoreError `dimension` for another length or a time that does not increase.
        """
    def status(self) -> dict[str, Any]:
        """As `Supervisor.status`."""
    def close(self) -> None:
        """Ends the recording."""

@final
class Supervisor:
    """The paced loop: control thread on absolute deadlines, writer thread, watcher threads. Never takes the GIL."""

    def __new__(
        cls,
        plan_json: str,
        *,
        state: Ring,
        command: Ring,
        images: list[Ring],
        observation: Ring,
        chunk: Ring,
        worker_pidfd: int,
        driver_pidfd: int,
        generation: int,
        recording: str | None,
        header_json: str = "{}",
        record_images: Literal["png", "raw", "none"] = "png",
        realtime_priority: int = 0,
        cpu: int | None = None,
        dry: bool = False,
        probes: Ring | None = None,
    ) -> Self: ...
    def start(self) -> dict[str, Any]:
        """Starts the threads and the recording; returns what the kernel granted, read back from it.

        scheduler, priority, asked_priority, memory_locked, locked_bytes, memlock_limit (-1: none), rtprio_limit (-1:
        none), asked_cpu, cpus, timer_slack_ns, realtime_us_per_s (-1: all, 0: unknown), cgroups (controller, path,
        allows: pairs of file and value), complete (everything asked for was given), missing (affinity, memory,
        scheduler, timer-slack: what was not), refused (the same in words). It stands in the recording's header, too.
        """
    def request(self, what: str) -> None: ...
    def set_goal(self, velocity: _F64 | None, tokens: _I64 | None, text: str) -> None: ...
    def set_worker(self, observation: Ring, chunk: Ring, worker_pidfd: int, generation: int) -> None:
        """A new worker after a lost one; it takes over only after an explicit `recover` and `start`."""
    def status(self) -> dict[str, Any]:
        """One consistent look at the loop.

        Numbers: mode, level, cause, tick, planned (= executed + missed), executed, missed, limited, refused,
        violations, sent, offered, chunks, accepted, dropped, late, requests, requests_refused, request_code
        (0: granted), generation, goal_seq, sample_seq, control_allocations, at_ns (release of the last tick), ruling
        (of that tick), commanded (in that tick), record_waiting and record_chunks_waiting (not yet written), unanswered
        (observations), actions_left (of the chunk in use), worker_alive, driver_alive, ended, failed (by a defect).
        Counts per code word, at most 64 ticks old: limited_by, refused_by, dropped_by, lost_by. `recording`: None or
        its own numbers.
        """
    def log(self, module: str, level: Literal["debug", "info", "warning", "error"], text: str) -> None:
        """A line for people on the recording's timeline; lost where nothing is recorded, never waited for."""
    @property
    def status_fd(self) -> int:
        """Descriptor of the memory in which the loop shows itself; whoever opens it can only read. See `Watched`."""
    @property
    def epoch_minus_monotonic_ns(self) -> int:
        """What makes nanoseconds since the epoch of monotonic ones, as in the recording; 0 before the start."""
    def show_facts(self, facts_json: str) -> None:
        """Shows watchers what the caller knows of the run; at most 16 KiB, a longer text is left out."""
    def timings(self) -> dict[str, _I64]:
        """Nanoseconds of the first 200,000 ticks.

        lateness_ns (release to running; every missed tick is a sample too), work_ns (everything but the hand-off to the
        worker), handoff_ns (per offer: synchronous until the chunk was seen, asynchronous publishing alone), record_ns,
        capture_to_sent_ns.
        """
    def wait(self, timeout_ns: int) -> bool:
        """True once the control thread has ended. Releases the GIL."""
    def stop(self) -> dict[str, Any]:
        """Ends the control thread after the exit behaviour, flushes the recording, returns the final status."""

@final
class Probes:
    """Snapshots of a policy's probes, each once and in order, for whoever publishes them.

    Args:
        plan_json: The plan.
        ring: As `Probes.ring` made it.
        epoch_minus_monotonic_ns: Stands in every message.
    """

    def __new__(cls, plan_json: str, ring: Ring, epoch_minus_monotonic_ns: int) -> Self: ...
    @staticmethod
    def ring(plan_json: str) -> Ring | None:
        """A ring for the plan's probes; None where it has none."""
    @staticmethod
    def schema() -> bytes:
        """Descriptor set of `interlock.v1.Probe`."""
    @staticmethod
    def is_recorded(plan_json: str) -> bool:
        """Whether the plan's probes are small enough to be recorded as well: 64 KiB together."""
    def take(self, timeout_ns: int) -> tuple[str, bytes] | None:
        """Name and `interlock.v1.Probe` of the next one; None when the time is up. Releases the GIL."""

@final
class Watched:
    """What the loop of another process shows. Nothing here can be noticed by it, whatever the caller does."""

    @staticmethod
    def attach(fd: int) -> Watched:
        """By `Supervisor.status_fd`, opened by anyone; the descriptor stays the caller's.

        Raises:
            CoreError: `board-layout` for what is no such memory or comes from another version.
        """
    def look(self) -> dict[str, Any] | None:
        """The numbers of `Supervisor.status`, with the writer's numbers under `recording`.

        None where the writer was stopped or killed in the middle of writing.
        """
    def durations(self) -> dict[str, dict[str, Any]]:
        """Per name as in `Supervisor.timings`: `sum_ns` and `buckets` of all samples, `samples` the newest 8192.

        Bucket k counts samples up to 2^(10 + k) ns; the last, those beyond 2^32 ns. Samples in nanoseconds, unordered.
        """
    def facts(self) -> str:
        """What `show_facts` was given last; empty before."""
    def goal(self) -> str:
        """The operator's last goal: seq, stamp_ns, velocity, text as JSON; empty before."""

def run_worker(
    plan_json: str,
    graph: bytes | str,
    library: str,
    *,
    observation: Ring,
    chunk: Ring,
    images: list[Ring],
    generation: int,
    threads: int = 1,
    parent_pidfd: int = -1,
    probe: Ring | None = None,
) -> None:
    """The worker's loop; returns when the parent ends. Releases the GIL for good."""

def state_bytes(n: int) -> int:
    """Slot size of a state ring: (3n + 10) float64: pos, vel, torque, quat_wxyz, ang_vel, lin_vel; ROBOT units."""

def command_bytes(n: int) -> int:
    """Slot size of a command ring: (4 + 5n) float64.

    mode, kind, running, reserved, then target, velocity, torque, kp, kd. ROBOT units for positions and velocities, N*m
    for torques, N*m/rad and N*m*s/rad for gains. Kind: 0 position, 1 position_pd, 2 velocity, 3 torque, 4 off.
    running: 1 once a simulation may let go of the robot.
    """

def observation_bytes(n: int) -> int: ...
def chunk_bytes(rows: int, n: int) -> int: ...
