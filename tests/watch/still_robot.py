"""A driver of two joints that stay where they are; hosted by a real driver process."""

from __future__ import annotations

from interlock import _core


class StillRobot:
    """Measures 0.25 and -0.5 rad, twice per tick."""

    period_ns = 2_500_000

    def __init__(self, *, robot):
        self.robot = robot

    def connect(self):
        pass

    def read(self, state, now_ns):
        state.pos[:], state.vel[:] = (0.25, -0.5), 0.0
        state.capture_ns = _core.monotonic_ns()

    def images(self, now_ns):
        return ()

    def write(self, command, now_ns):
        pass

    def stop(self):
        pass

    def close(self):
        pass
