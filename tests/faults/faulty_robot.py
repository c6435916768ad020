"""A driver whose robot does wrong once it is told to, over the side channel of a simulation. Two joints, no physics."""

from __future__ import annotations

import ctypes
import math
import threading
from typing import Any

import numpy as np

from interlock.ports.driver import Command, CommandKind, State

PERIOD_NS = 5_000_000
NEVER_NS = 10**15
LAG_S = 0.02  # of the drives behind their target
INERTIA = 0.5  # kg*m^2
OFFSET_RAD = 0.3
JUMP_RAD = 4.0
SLOW_EVERY = 2  # half the rate
TOO_SLOW_EVERY = 50  # a sample every 250 ms
DELAY_NS = 200_000_000
BURST_NS = 60_000_000  # shorter than the admissible age
LONG_BURST_NS = 250_000_000
AWAKE_NS = 40_000_000


class FaultyRobot:
    """Follows its targets. `admin` with `do: fault` and a `fault` switches one on, `none` switches it off.

    Faults: off, hang_read, hang_with_gil, hang_write, stuck_stamps, stuck_values, nan, infinite, huge, bytes, short,
    offset, swapped, jump, slow, too_slow, delayed, intermittent, bursts.
    """

    def __init__(self, *, robot: dict[str, Any], seed: int = 0) -> None:
        del robot
        self._random = np.random.default_rng(seed)
        self._fault = ""
        self._since_ns = 0
        self._pos = np.zeros(2)
        self._vel = np.zeros(2)
        self._command: Command | None = None
        self._moved_ns = 0
        self._rounds = 0
        self._held = (np.zeros(2), np.zeros(2), 0)

    @property
    def period_ns(self) -> int:
        return NEVER_NS if self._fault == "off" else PERIOD_NS

    def connect(self) -> None:
        pass

    def read(self, state: State, now_ns: int) -> None:
        self._move(now_ns)
        self._rounds += 1
        fault = self._fault
        if fault == "hang_read":
            threading.Event().wait()
        if fault == "hang_with_gil":
            while True:
                ctypes.PyDLL(None).sleep(3600)
        if self._is_silent(now_ns):
            return  # the documented way of a robot that says nothing: the state keeps its time
        pos, vel, stamp_ns = self._pos, self._vel, now_ns
        if fault in ("stuck_stamps", "stuck_values"):
            pos, vel, held_ns = self._held
            stamp_ns = held_ns if fault == "stuck_stamps" else now_ns
        self._held = (pos.copy(), vel.copy(), stamp_ns)
        state.pos[:], state.vel[:], state.torque[:] = pos, vel, 0.0
        state.capture_ns = stamp_ns
        self._spoil(state, now_ns)

    def images(self, now_ns: int) -> list[Any]:
        return []

    def write(self, command: Command, now_ns: int) -> None:
        if self._fault == "hang_write":
            threading.Event().wait()
        self._command = command

    def stop(self) -> None:
        self._command = None

    def close(self) -> None:
        pass

    def admin(self, request: dict[str, Any], now_ns: int) -> dict[str, Any]:
        self._fault = request["fault"] if request["fault"] != "none" else ""
        self._since_ns = now_ns
        return {"at_ns": now_ns}

    def _is_silent(self, now_ns: int) -> bool:
        since_ns = now_ns - self._since_ns
        if self._fault in ("slow", "too_slow"):
            return self._rounds % (SLOW_EVERY if self._fault == "slow" else TOO_SLOW_EVERY) != 0
        if self._fault == "intermittent":
            return since_ns % (BURST_NS + AWAKE_NS) >= AWAKE_NS
        if self._fault == "bursts":
            return since_ns % (LONG_BURST_NS + AWAKE_NS) >= AWAKE_NS
        return False

    def _spoil(self, state: State, now_ns: int) -> None:
        if self._fault == "nan":
            state.pos[0] = math.nan
        elif self._fault == "infinite":
            state.pos[:] = math.inf
        elif self._fault == "huge":
            state.pos[:], state.vel[:] = 1e30, 1e30
        elif self._fault == "bytes":
            state.flat[:] = np.frombuffer(self._random.bytes(state.flat.nbytes))
        elif self._fault == "short":
            state.flat = state.flat[:3].copy()  # a measurement that is cut off
        elif self._fault == "offset":
            state.pos += OFFSET_RAD
        elif self._fault == "swapped":
            state.pos[:], state.vel[:] = state.pos[::-1].copy(), state.vel[::-1].copy()
        elif self._fault == "jump":
            state.pos += JUMP_RAD
        elif self._fault == "delayed":
            state.capture_ns = now_ns - DELAY_NS

    def _move(self, now_ns: int) -> None:
        passed_s = min((now_ns - self._moved_ns) / 1e9, 0.05) if self._moved_ns else 0.0
        self._moved_ns = now_ns
        command = self._command
        if command is None or passed_s <= 0.0:
            self._vel[:] = 0.0
        elif command.kind is CommandKind.POSITION:
            step = (command.target - self._pos) * min(1.0, passed_s / LAG_S)
            self._pos += step
            self._vel[:] = step / passed_s
        elif command.kind is CommandKind.POSITION_PD:
            torque = command.kp * (command.target - self._pos) - command.kd * self._vel
            self._vel += torque / INERTIA * passed_s
            self._pos += self._vel * passed_s
