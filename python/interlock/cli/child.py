"""Entry of driver and worker processes: `python -m interlock.cli.child ROLE`, configuration on standard input."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from typing import Any

from interlock import _core
from interlock.cli.wiring import make_driver
from interlock.errors import InterlockError
from interlock.serve.driver_host import CLOSE_NS, LINGER_NS, host
from interlock.serve.limits import limit_memory
from interlock.serve.links import DriverLinks, WorkerLinks


def main() -> int:
    """Runs the role named on the command line; returns the process's exit code."""
    role, configuration = sys.argv[1], json.load(sys.stdin)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _ask_realtime(int(configuration.get("realtime_priority", 0)))
    if configuration["memory_bytes"]:
        limit_memory(os.getpid(), configuration["memory_bytes"])
    try:
        # Whatever hangs in here, the GIL in its hand or not, does not outlive the run for long.
        _core.leave_with(os.pidfd_open(configuration["parent_pid"]), LINGER_NS + CLOSE_NS)
        ROLES[role](configuration)
    except InterlockError as refusal:
        return _refuse(refusal, configuration)
    except _core.CoreError as refusal:
        return _refuse(InterlockError(code=refusal.code, where=f"{role}: {refusal}", hint=refusal.hint), configuration)
    except Exception as fault:  # noqa: BLE001 - whatever a driver raises: its process ends, no traceback is shown
        ended = _fault(role, fault)
        sys.stderr.write("\n".join(ended.lines()) + "\n")  # also when nobody waits for it any more
        return _refuse(ended, configuration)
    return 0


def _fault(role: str, fault: Exception) -> InterlockError:
    with tempfile.NamedTemporaryFile("w", prefix="interlock-fault-", suffix=".txt", delete=False) as details:
        details.write("".join(traceback.format_exception(fault)))
    return InterlockError(
        code=f"{role}-fault",
        where=role,
        got=f"{type(fault).__name__}: {fault}".splitlines()[0],
        hint=f"where it happened stands in {details.name}",
    )


def _refuse(refusal: InterlockError, configuration: dict[str, Any]) -> int:
    """Leaves the refusal where the parent reads it; a child that was started by hand says it."""
    place = configuration.get("refusal")
    if place is None:
        sys.stderr.write("\n".join(refusal.lines()) + "\n")
    else:
        os.pwrite(place, json.dumps(refusal.as_json()).encode(), 0)
    return int(refusal.exit)


def _driver(configuration: dict[str, Any]) -> None:
    descriptor = configuration.get("admin")
    admin = None if descriptor is None else socket.socket(fileno=descriptor)
    ended = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, _end)
    driver = make_driver(configuration)
    joints = len(configuration["plan"]["joints"]["names"])
    with contextlib.suppress(SystemExit):
        host(
            driver,
            DriverLinks.attach(configuration["rings"]),
            joints=joints,
            parent_pid=configuration["parent_pid"],
            admin=admin,
        )
    signal.signal(signal.SIGTERM, ended)


def _worker(configuration: dict[str, Any]) -> None:
    rings = configuration["rings"]
    links = WorkerLinks.attach(rings)
    _core.run_worker(
        json.dumps(configuration["plan"]),
        _content(configuration["graph"]),
        configuration["library"],
        observation=links.observation,
        chunk=links.chunk,
        images=[_core.Ring.attach(each) for each in rings["images"]],
        generation=configuration["generation"],
        threads=configuration["threads"],
        parent_pidfd=os.pidfd_open(configuration["parent_pid"]),
        probe=_core.Ring.attach(rings["probe"]) if "probe" in rings else None,
    )


def _metrics(configuration: dict[str, Any]) -> None:
    from interlock.serve.metrics_server import serve

    serve(configuration["board"], configuration["listener"], configuration["parent_pid"])


def _probes(configuration: dict[str, Any]) -> None:
    from interlock.serve.probes_server import publish

    snapshots = _core.Probes(
        json.dumps(configuration["plan"]),
        _core.Ring.attach(configuration["ring"]),
        configuration["epoch_minus_monotonic_ns"],
    )
    publish(snapshots, configuration["endpoint"], configuration["listener"], configuration["parent_pid"])


ROLES = {"driver": _driver, "worker": _worker, "metrics": _metrics, "probes": _probes}


def _ask_realtime(priority: int) -> None:
    """Real-time scheduling where the user may have it; the supervisor reads back what came of it."""
    if priority > 0:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _end(signum: int, frame: object) -> None:
    del frame
    raise SystemExit(128 + signum)


if __name__ == "__main__":
    sys.exit(main())
