"""The controller that `examples/driver/bench_arm.py` talks to: moves towards its target, holds when none comes."""

from __future__ import annotations

import socket
import struct
import threading

import numpy as np

from interlock import _core

JOINTS = 2
PERIOD_S = 0.005
TIMEOUT_NS = 100_000_000  # without a target it holds
SPEED_DEG_PER_S = 150.0


class BenchController(threading.Thread):
    """Use as a context.

    Attributes:
        pos: Joint positions, deg.
        is_mute: Sends nothing although it lives.
        is_let_go: The last datagram asked it to let go.
        commanded: Datagrams with a target so far.
    """

    def __init__(self, pos=(12.0, 30.0), port=0):
        super().__init__(daemon=True)
        self.pos = np.array(pos)
        self.is_mute = self.is_let_go = False
        self.commanded = 0
        self._ended = threading.Event()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", port))
        self._socket.setblocking(False)
        self.port = self._socket.getsockname()[1]

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self.join()
        self._socket.close()

    def run(self):
        number, client, target, target_ns = 0, None, self.pos.copy(), 0
        while not self._ended.wait(PERIOD_S):
            now = _core.monotonic_ns()
            try:
                while True:
                    datagram, client = self._socket.recvfrom(64)
                    if datagram != b"hello":
                        holds, *positions = struct.unpack(f"<B{JOINTS}d", datagram)
                        self.is_let_go, target, target_ns = not holds, np.array(positions), now
                        self.commanded += 1
            except BlockingIOError:
                pass
            is_followed = now - target_ns < TIMEOUT_NS and not self.is_let_go
            step = np.clip(target - self.pos, -SPEED_DEG_PER_S * PERIOD_S, SPEED_DEG_PER_S * PERIOD_S) * is_followed
            self.pos = self.pos + step
            number += 1
            if client is not None and not self.is_mute:
                self._socket.sendto(struct.pack(f"<Q{2 * JOINTS}d", number, *self.pos, *(step / PERIOD_S)), client)
