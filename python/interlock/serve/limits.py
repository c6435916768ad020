"""What a run may have of the machine: how much memory a worker gets, what real-time treatment the kernel grants."""

from __future__ import annotations

import contextlib
import os
import resource
from typing import Any

from interlock import _core
from interlock.errors import InterlockError, Problem

BASE_BYTES = 1 << 30  # interpreter, ONNX Runtime and small models: 0.1 GiB measured (2026-12), the rest is room
GRAPH_COPIES = 8  # as read, as parsed, as initialised, prepacked for the processor; and as much again
INPUT_COPIES = 32  # input, intermediate results and what the engine keeps of them between two runs
F32_BYTES = 4
POLICIES = {
    os.SCHED_OTHER: "other",
    os.SCHED_FIFO: "fifo",
    os.SCHED_RR: "rr",
    os.SCHED_BATCH: "batch",
    os.SCHED_IDLE: "idle",
}
HINTS = {
    "scheduler": (
        "allow it to the user: `USER - rtprio {priority}` in /etc/security/limits.conf and a new login (`ulimit -r` "
        "shows it); or CAP_SYS_NICE: setcap cap_sys_nice,cap_ipc_lock+ep on the interpreter; or run as root"
    ),
    "memory": (
        "allow it to the user: `USER - memlock unlimited` in /etc/security/limits.conf and a new login (`ulimit -l` "
        "shows it); or CAP_IPC_LOCK; or run as root"
    ),
    "affinity": "name one of the processors that this process may run on (`taskset -pc $$`), or widen its cpuset",
    "timer-slack": "something keeps this process from PR_SET_TIMERSLACK, such as a seccomp filter: allow prctl",
}
NO_SHARE = "the control group {path} leaves real-time threads no time: set its cpu.rt_runtime_us above 0"


def worker_memory_bytes(plan: dict[str, Any], graph: bytes) -> int:
    """Memory that a worker of this policy gets where nobody says otherwise: a multiple of its weights and inputs."""
    values = 0
    for each in plan["inputs"]:
        if each["kind"] == "image":
            camera = plan["cameras"][each["camera"]]
            values += 3 * (each["height"] * each["width"] + camera["height"] * camera["width"])
        elif each["kind"] in ("state", "noise"):
            size = 1
            for length in each["shape"]:
                size *= length
            values += size
    return BASE_BYTES + GRAPH_COPIES * len(graph) + INPUT_COPIES * F32_BYTES * values


def limit_memory(pid: int, limit_bytes: int) -> None:
    """Bounds what a process may allocate from now on, for good: it cannot raise the bound itself.

    `RLIMIT_DATA` counts what was allocated, not what was merely mapped or reserved as `RLIMIT_AS` does, of which an
    accelerator's driver takes hundreds of GiB. What is refused to the process is an error there and nowhere else.
    """
    _, hard = resource.prlimit(pid, resource.RLIMIT_DATA)
    bound = limit_bytes if hard == resource.RLIM_INFINITY else min(limit_bytes, hard)
    resource.prlimit(pid, resource.RLIMIT_DATA, (bound, bound))


def read_back(pid: int) -> dict[str, Any]:
    """What the kernel says of a process: `scheduler`, `priority`, `cpus`, `memory_limit_bytes` (-1: none).

    Empty for a process that has ended.
    """
    with contextlib.suppress(OSError):
        limit = resource.prlimit(pid, resource.RLIMIT_DATA)[0]
        return {
            "scheduler": POLICIES.get(os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK, "unknown"),
            "priority": os.sched_getparam(pid).sched_priority,
            "cpus": sorted(os.sched_getaffinity(pid)),
            "memory_limit_bytes": -1 if limit == resource.RLIM_INFINITY else limit,
        }
    return {}


def require_realtime(priority: int, cpu: int | None) -> None:
    """Asks the kernel before anything starts.

    Raises:
        InterlockError: `realtime-refused`, a problem for each thing that would not be granted.
    """
    granted = _core.try_realtime(priority, cpu)
    if not granted["complete"]:
        raise refusal(granted, priority)


def require_process(role: str, pid: int, priority: int) -> None:
    """The same for a process that has asked by itself. Raises `InterlockError`."""
    found = read_back(pid)
    if (found.get("scheduler"), found.get("priority")) != ("fifo", priority):
        got = f"{found.get('scheduler', 'ended')} {found.get('priority', '')}".rstrip()
        hint = HINTS["scheduler"].format(priority=priority)
        raise InterlockError(
            code="realtime-refused", where=f"--require-rt: {role}", expected=f"fifo {priority}", got=got, hint=hint
        )


def refusal(granted: dict[str, Any], priority: int) -> InterlockError:
    """What was not granted, as the refusal of a run that needs it."""
    problems = []
    for what, text in zip(granted["missing"], granted["refused"], strict=True):
        hint = HINTS[what].format(priority=priority)
        share = [group["path"] for group in granted["cgroups"] if ["cpu.rt_runtime_us", "0"] in group["allows"]]
        if what == "scheduler" and share:
            hint = NO_SHARE.format(path=share[0])
        problems.append(Problem(code="realtime-refused", where=f"--require-rt: {what}", got=text, hint=hint))
    return InterlockError(problems=problems)
