"""A driver of an arm whose controller sends its state and takes targets as UDP datagrams."""

import socket
import struct
import time
from collections.abc import Iterable
from typing import Any

from interlock.errors import InterlockError
from interlock.ports.driver import Command, CommandKind, Image, State

JOINTS = 2
STATE = struct.Struct(f"<Q{2 * JOINTS}d")  # number of the measurement, positions (deg), velocities (deg/s)
TARGET = struct.Struct(f"<B{JOINTS}d")  # 1: hold these positions (deg), 0: let go


class BenchArm:
    """Talks to the controller that the robot file names: `driver: {use: "bench_arm:BenchArm", host: ..., port: ...}`."""

    def __init__(self, *, robot: dict[str, Any]) -> None:
        self.period_ns = round(robot["driver"]["period_ms"] * 1e6)
        self._controller = (robot["driver"]["host"], int(robot["driver"]["port"]))
        self._captured_ns = 0

    def connect(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.connect(self._controller)
        self._socket.settimeout(1.0)
        try:
            self._socket.send(b"hello")  # asks for measurements; nothing moves
            self._take(self._socket.recv(STATE.size))
        except OSError as cause:
            raise InterlockError(
                code="controller-silent", where=f"{self._controller}", got=str(cause), hint="is it switched on?"
            ) from None
        self._socket.setblocking(False)

    def read(self, state: State, now_ns: int) -> None:
        try:
            while True:  # what arrived since; where nothing did, the time of capture stays, and its age shows
                self._take(self._socket.recv(STATE.size))
        except (BlockingIOError, ConnectionError):
            state.pos[:], state.vel[:] = self._measured[:JOINTS], self._measured[JOINTS:]
            state.capture_ns = self._captured_ns

    def _take(self, datagram: bytes) -> None:
        _, *self._measured = STATE.unpack(datagram)
        self._captured_ns = time.monotonic_ns()

    def images(self, now_ns: int) -> Iterable[Image]:
        return ()

    def write(self, command: Command, now_ns: int) -> None:
        self._socket.send(TARGET.pack(command.kind is not CommandKind.OFF, *command.target))

    def stop(self) -> None:
        """Sends nothing more: 100 ms later the controller holds by itself, as the robot file declares."""

    def close(self) -> None:
        self._socket.close()
