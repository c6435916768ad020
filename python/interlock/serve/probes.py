"""Where snapshots of a policy's probes are published: on this machine alone, off unless asked for, taken first."""

from __future__ import annotations

import os
import re
import socket
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from interlock.errors import Exit, InterlockError

LOOPBACK = re.compile(r"tcp://127\.0\.0\.1:(\d{1,5})")
IPC = "ipc://"
LONGEST_PATH = 107  # bytes of a socket's address
BACKLOG = 8


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A ZeroMQ address that is already ours.

    Attributes:
        text: `ipc:///PATH` or `tcp://127.0.0.1:PORT`.
        socket: Listens there; closed by whoever hands it on.
        path: The socket's file; None for TCP.
    """

    text: str
    socket: socket.socket
    path: Path | None = None

    def close(self) -> None:
        """Lets go of it and takes its file away."""
        self.socket.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def require_probes(plan: dict[str, Any]) -> list[str]:
    """Names of the plan's probes. Raises `InterlockError` `probe-none` where it has none."""
    found = [str(each["name"]) for each in plan["outputs"] if each["role"] == "probe"]
    if not found:
        raise InterlockError(
            code="probe-none",
            where="--probe",
            expected="an output with `role: probe` in the contract",
            got=", ".join(f"{each['name']} ({each['role']})" for each in plan["outputs"]),
            hint="declare the tensor under `outputs`, freeze and verify again; nothing else is published",
            exit=Exit.USAGE,
        )
    return found


def listen(text: str) -> Endpoint:
    """Takes the address, so that what is refused is refused before anything starts.

    Args:
        text: `ipc:///PATH`, readable and writable by this user alone, or `tcp://127.0.0.1:PORT`, by everyone on this
            machine; port 0: any free one.

    Raises:
        InterlockError: `probe-missing` without the library, `probe-address` for what is no address on this machine,
            `probe-busy` for one that cannot be had.
    """
    if find_spec("zmq") is None:
        raise InterlockError(
            code="probe-missing",
            where="--probe",
            expected="ZeroMQ",
            got="not installed",
            hint="publishing probes needs the extra `probe`",
            next="pip install 'interlock[probe]'",
        )
    if (match := LOOPBACK.fullmatch(text)) is not None and int(match[1]) < 65536:
        return _tcp(text, int(match[1]))
    path = Path(text.removeprefix(IPC))
    if text.startswith(IPC) and path.is_absolute() and len(os.fsencode(path)) <= LONGEST_PATH:
        return _ipc(text, path)
    raise InterlockError(
        code="probe-address",
        where=f"--probe {text}",
        expected=f"{IPC}/PATH (at most {LONGEST_PATH} bytes) or tcp://127.0.0.1:PORT",
        got="another address",
        hint="what a policy thinks is published on this machine only; forward it yourself where it must go further",
        exit=Exit.USAGE,
    )


def _tcp(text: str, port: int) -> Endpoint:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(BACKLOG)
    except OSError as cause:
        listener.close()
        raise _busy(text, cause) from None
    return Endpoint(f"tcp://127.0.0.1:{listener.getsockname()[1]}", listener)


def _ipc(text: str, path: Path) -> Endpoint:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    mask = os.umask(0o177)
    try:
        if path.is_socket() and not _is_heard(path):
            path.unlink()  # a killed run left it
        listener.bind(str(path))
        listener.listen(BACKLOG)
    except OSError as cause:
        listener.close()
        raise _busy(text, cause) from None
    finally:
        os.umask(mask)
    return Endpoint(text, listener, path)


def _is_heard(path: Path) -> bool:
    """Whether somebody listens at a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(path))
        except ConnectionRefusedError:
            return False
    return True


def _busy(text: str, cause: OSError) -> InterlockError:
    return InterlockError(
        code="probe-busy",
        where=f"--probe {text}",
        expected="an address that is free",
        got=cause.strerror or str(cause),
        hint="another run publishes there, or the folder cannot be written; choose another address",
        exit=Exit.CONFLICT,
    )
