"""The port on which Prometheus reads a run: on loopback, off unless asked for, taken before anything starts."""

from __future__ import annotations

import socket
from importlib.util import find_spec

from interlock.errors import Exit, InterlockError

HOST = "127.0.0.1"
BACKLOG = 8


def listen(port: int) -> socket.socket:
    """Takes the port, so that what is refused is refused before anything starts.

    Args:
        port: On loopback; 0: any free one.

    Raises:
        InterlockError: `metrics-missing` without the library, `metrics-port` for a port that cannot be had.
    """
    if find_spec("prometheus_client") is None:
        raise InterlockError(
            code="metrics-missing",
            where="--metrics",
            expected="the Prometheus client library",
            got="not installed",
            hint="metrics need the extra `metrics`",
            next="pip install 'interlock[metrics]'",
        )
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(BACKLOG)
    except OSError as cause:
        listener.close()
        raise InterlockError(
            code="metrics-port",
            where=f"--metrics {port}",
            expected=f"a free port on {HOST}",
            got=cause.strerror or str(cause),
            hint="another run or program listens there; choose another port, or 0 for any",
            exit=Exit.CONFLICT,
        ) from None
    return listener


def address(listener: socket.socket) -> str:
    """Where the numbers are read."""
    return f"http://{HOST}:{listener.getsockname()[1]}/metrics"
