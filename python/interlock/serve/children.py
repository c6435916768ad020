"""Starts driver and worker as processes of their own. Configuration goes in on standard input, not in arguments."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Any

from interlock.errors import Exit, InterlockError, Problem

CHILD_MODULE = "interlock.cli.child"
LONGEST_REFUSAL = 1 << 20  # bytes
OUT_OF_MEMORY = re.compile(r"alloc|MemoryError|os error 1[12]\b")  # EAGAIN of a thread's stack, ENOMEM


@dataclass(slots=True)
class Child:
    """One running process.

    Attributes:
        process: The process.
        pidfd: Its handle in the kernel: readable once it has ended, and never another process's.
        admin: Our end of a simulation's side channel.
        asked: Requests sent over it.
        refusal: Memory in which it leaves why it refused to start.
        memory_bytes: What it may allocate; 0: no bound.
    """

    process: subprocess.Popen[bytes]
    pidfd: int
    admin: socket.socket | None = None
    asked: int = 0
    refusal: int = -1
    memory_bytes: int = 0

    def ask(self, request: dict[str, Any], timeout_s: float = 5.0) -> dict[str, Any]:
        """Asks a simulation for something. Raises `InterlockError` when it cannot answer."""
        if self.admin is None:
            raise InterlockError(code="not-simulated", where="driver", expected="a simulated robot", got="a real one")
        self.asked += 1
        self.admin.settimeout(timeout_s)
        try:
            self.admin.send(json.dumps({**request, "id": self.asked}).encode())
            reply: dict[str, Any] = {}
            while reply.pop("id", None) != self.asked:  # what comes late answers something that nobody waits for
                reply = json.loads(self.admin.recv(65536) or json.dumps({"error": "ended", "id": self.asked}))
        except (OSError, ValueError) as cause:
            raise InterlockError(code="driver-dead", where="driver", got=str(cause)) from None
        if "error" in reply:
            raise InterlockError(code="sim-request", where=f"driver: {request.get('do')}", got=str(reply["error"]))
        return reply

    def refused(self, role: str) -> InterlockError:
        """Why a child that ended while starting did so, in its own words where it left any."""
        written = os.pread(self.refusal, LONGEST_REFUSAL, 0)
        if not written:
            bound = f"; {self._bound()}" if self.memory_bytes else ""
            return InterlockError(
                code=f"{role}-dead",
                where=role,
                got=f"ended with {self.process.returncode} while starting",
                hint=f"what it said stands above{bound}",
            )
        said = json.loads(written)
        problems = [Problem(**each) for each in said["problems"]]
        if self.memory_bytes:
            lacks = [bool(OUT_OF_MEMORY.search(each.sentence())) for each in problems]
            problems = [
                replace(each, hint=self._bound()) if it else each for each, it in zip(problems, lacks, strict=True)
            ]
        return InterlockError(problems=problems, next=said["next"], exit=Exit(said["exit"]))

    def _bound(self) -> str:
        return f"it may allocate {self.memory_bytes >> 20} MiB; where that is too little, give --worker-memory more"

    def last_words(self, role: str) -> str:
        """How a process ended that had started, in its own words where it left any."""
        code = self.process.returncode
        how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with {code}"
        said = ""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # what it left may be anything
            if os.fstat(self.refusal).st_size:
                said = ": " + "; ".join(each.sentence() for each in self.refused(role).problems)
        return f"process {self.process.pid} {how}{said}"

    def end(self, timeout_s: float = 5.0) -> None:
        """Ends the process: asked first, by signal if it does not answer."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.admin is not None:
            self.admin.close()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        if self.refusal >= 0:
            os.close(self.refusal)
            self.refusal = -1


def start_child(
    role: str,
    configuration: dict[str, Any],
    descriptors: list[int],
    *,
    admin: bool = False,
    memory_bytes: int = 0,
) -> Child:
    """Starts `python -m interlock.cli.child ROLE` with inherited descriptors.

    Args:
        role: driver or worker.
        configuration: Written to its standard input as JSON.
        descriptors: Inherited by it.
        admin: Give it a side channel (simulations only).
        memory_bytes: What it may allocate; 0: no bound. In force before it loads anything.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) if admin else (None, None)
    if theirs is not None:
        configuration = {**configuration, "admin": theirs.fileno()}
        descriptors = [*descriptors, theirs.fileno()]
    refusal = os.memfd_create("refusal", os.MFD_CLOEXEC)
    configuration = {**configuration, "refusal": refusal, "memory_bytes": memory_bytes}
    process = subprocess.Popen(
        [sys.executable, "-m", CHILD_MODULE, role],
        stdin=subprocess.PIPE,
        pass_fds=[*descriptors, refusal],
        start_new_session=True,  # a terminal's Ctrl-C reaches the supervisor alone, which stops the robot in order
    )
    if theirs is not None:
        theirs.close()
    child = Child(
        process=process, pidfd=os.pidfd_open(process.pid), admin=ours, refusal=refusal, memory_bytes=memory_bytes
    )
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps({**configuration, "parent_pid": os.getpid()}).encode())
        process.stdin.close()
    except BrokenPipeError:
        process.wait()
        raise child.refused(role) from None
    return child
