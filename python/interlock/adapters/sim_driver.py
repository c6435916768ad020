"""A simulated plant as a driver: physics on its own clock, in its own process, with drives that can act alone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlock.ports.driver import Command, Image, State
from interlock.ports.plant import Plant

MOST_CATCH_UP_PERIODS = 50  # further behind than this, simulated time slips instead of the host stalling
GAIT_ONSET_NS = 2_000_000_000  # speed is averaged after the start from standstill
LOGGED_PERIODS = 400_000  # 33 minutes at 200 Hz


class SimDriver:
    """Runs a `Plant` in real time.

    The plant stays where it was reset to ("hoisted") until the first command that runs a policy. When commands stop
    for `command_timeout_ns`, the drives do `drives_then` by themselves, as the robot file declares.

    Args:
        plant: What is simulated.
        joints: Number of joints.
        camera_periods_ns: Time between two images of each camera.
        command_timeout_ns: 0 for drives without a timeout.
        drives_then: hold, damp, keep_last_target or limp.
        drives_kd: Damping of the drives, N*m*s/rad; for `damp`.
        log: File that receives what the plant did, written when the driver closes.
    """

    def __init__(
        self,
        plant: Plant,
        *,
        joints: int,
        camera_periods_ns: list[int],
        command_timeout_ns: int,
        drives_then: str,
        drives_kd: NDArray[np.float64] | None = None,
        log: Path | None = None,
    ) -> None:
        self._plant = plant
        self._camera_periods_ns = camera_periods_ns
        self._timeout_ns = command_timeout_ns
        self._drives_then = drives_then
        self._drives_kd = drives_kd
        self._log_path = log
        self._log: list[NDArray[np.float64]] = []
        self._scratch = State(joints)
        self._pending: list[Image] = []
        self._command: Command | None = None
        self._last_write_ns = 0
        self._by_themselves = False
        self._hoisted = True
        self._zero_ns = 0
        self._periods = 0
        self._frozen: set[int] = set()
        self._last_pixels: dict[int, NDArray[np.uint8]] = {}
        self._moved_periods = 0
        self._speeds_mps: list[float] = []

    @property
    def period_ns(self) -> int:
        """Servo period of the plant."""
        return self._plant.period_ns

    def connect(self) -> None:
        """Nothing to open; the plant stands reset."""

    def read(self, state: State, now_ns: int) -> None:
        """Advances physics to `now_ns` and measures."""
        if self._zero_ns == 0:
            self._zero_ns = now_ns
        due = (now_ns - self._zero_ns) // self.period_ns
        if due - self._periods > MOST_CATCH_UP_PERIODS:
            self._zero_ns += (due - self._periods - 1) * self.period_ns
            due = self._periods + 1
        while self._periods < due:
            self._advance()
        self._plant.read(state)
        state.capture_ns = self._time_ns()

    def images(self, now_ns: int) -> Iterable[Image]:
        """Images whose time has come since the last call."""
        del now_ns
        pending, self._pending = self._pending, []
        return pending

    def write(self, command: Command, now_ns: int) -> None:
        """Takes a command for the periods to come."""
        self._last_write_ns = now_ns
        self._by_themselves = False
        self._command = command
        if command.running:
            self._hoisted = False

    def stop(self) -> None:
        """The drives act by themselves from now on."""
        self._act_alone()

    def close(self) -> None:
        """Writes the log."""
        if self._log_path is not None and self._log:
            unfinished = self._log_path.with_name(f".{self._log_path.name}")
            np.savez(unfinished, rows=np.stack(self._log))
            unfinished.replace(self._log_path)

    def admin(self, request: dict[str, Any], now_ns: int) -> dict[str, Any]:
        """What only a simulation can be asked: reset, task, outcome, freeze or thaw a camera."""
        what = request.get("do")
        if what == "reset":
            task = self._plant.reset(int(request["seed"]), request.get("task"))
            self._hoisted, self._command, self._by_themselves = True, None, False
            self._zero_ns, self._periods, self._pending = now_ns, 0, []
            self._last_pixels.clear()
            self._moved_periods, self._speeds_mps = 0, []
            return {"task": task}
        if what == "task":
            self._plant.set_task(str(request["task"]))
            return {}
        if what == "freeze_camera":
            self._frozen.add(int(request["camera"]))
            return {}
        if what == "thaw_camera":
            self._frozen.discard(int(request["camera"]))
            return {}
        outcome = self._plant.outcome()
        facts = {name: getattr(outcome, name) for name in outcome.__slots__}
        if self._speeds_mps:
            facts["forward_mps"] = float(np.mean(self._speeds_mps))
        return facts

    def _time_ns(self) -> int:
        return self._zero_ns + self._periods * self.period_ns

    def _advance(self) -> None:
        is_overdue = self._time_ns() - self._last_write_ns > self._timeout_ns > 0
        if is_overdue and self._command is not None:
            self._act_alone()
        if not self._hoisted:
            self._plant.step(None if self._by_themselves else self._command)
            self._moved_periods += 1
            if self._moved_periods * self.period_ns >= GAIT_ONSET_NS:
                self._speeds_mps.append(self._plant.outcome().forward_mps)
        self._periods += 1
        self._take_images()
        if self._log_path is not None and len(self._log) < LOGGED_PERIODS:
            self._plant.read(self._scratch)
            head = [float(self._time_ns()), float(self._by_themselves), float(self._hoisted)]
            self._log.append(np.concatenate([head, self._scratch.flat]))

    def _act_alone(self) -> None:
        if not self._by_themselves:
            self._by_themselves = True
            self._plant.drives(self._drives_then, self._drives_kd)

    def _take_images(self) -> None:
        time_ns = self._periods * self.period_ns
        due = [camera for camera, period in enumerate(self._camera_periods_ns) if time_ns % period < self.period_ns]
        if not due:
            return
        pictures = self._plant.images()
        for camera in due:
            pixels = self._last_pixels.get(camera, pictures[camera]) if camera in self._frozen else pictures[camera]
            self._last_pixels[camera] = pixels
            self._pending.append(Image(camera=camera, capture_ns=self._time_ns(), pixels=pixels))
