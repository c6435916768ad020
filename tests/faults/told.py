"""A run that a fault befalls, and what its recording tells afterwards: the claims that hold for every fault."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import faulty_policy as policy
import numpy as np

from interlock import _core
from interlock.serve.children import Child
from interlock.serve.paced import PacedOptions, PacedRun
from interlock.view.recording import Recording

MODES = {name: number for number, name in _core.mode_names().items()}
PRIORITY = 50  # as `interlock run` asks; where it is granted, a busy machine starves nobody
WITHIN_TICKS = 2
PATIENCE_S = 20.0
REST_TICKS = 20
SLACK = 1 + 1e-6
FOREVER = 2**63 - 1
STARTING = {"arm", "start", "recover"}


@contextmanager
def running(folder: Path, made: dict[str, Any], **options: Any) -> Iterator[PacedRun]:
    """Driver, worker and loop, with the policy in charge for a while."""
    options = {"realtime_priority": PRIORITY, **options}
    paced = PacedOptions(driver="faulty_robot:FaultyRobot", recording=folder / "run.mcap", simulated=True, **options)
    with PacedRun(policy.bound(made), paced) as run:
        run.set_velocity((policy.NONE, 0.0, 0.0))
        assert run.ask("arm", "Armed", timeout_s=PATIENCE_S) == "Armed", run.status()
        assert run.ask("start", "Running", timeout_s=PATIENCE_S) == "Running", run.status()
        run.wait(0.25)
        assert run.mode() == "Running", run.status()
        yield run


def switch(run: PacedRun, fault: str) -> int:
    """Switches a fault of the robot on; when, monotonic ns."""
    return int(run.ask_simulation({"do": "fault", "fault": fault})["at_ns"])


def kill(child: Child, number: int) -> tuple[int, int]:
    """Sends a signal that ends a process; monotonic ns before it was sent and after the process had ended."""
    sent_ns = _core.monotonic_ns()
    os.kill(child.process.pid, number)
    assert child.process.wait() == -number
    return sent_ns, _core.monotonic_ns()


def settle(run: PacedRun, *wanted: str) -> dict[str, Any]:
    """Waits until the fault was acted upon and asks for a start that nobody may get; the status before the end."""
    assert run.wait_mode(*wanted, timeout_s=PATIENCE_S) in wanted, run.status()
    run.request("start")
    run.wait(REST_TICKS * policy.TICK_NS / 1e9)
    status = run.status()
    assert status["mode_name"] in wanted, "a start without `recover` is refused"
    assert status["request_refused"] == "wrong-mode"
    return status


@dataclass
class Told:
    """The recording of one run and what must be true of it."""

    recording: Recording
    plan: dict[str, Any]
    first_safe: int = field(init=False)

    def __post_init__(self) -> None:
        ticks = self.recording.ticks
        ran = ticks.mode == MODES["Running"]
        assert ran.any()
        after = np.flatnonzero(~ran & (np.arange(len(ran)) > np.flatnonzero(ran)[0]))
        self.first_safe = int(after[0]) if len(after) else len(ran)

    @property
    def ticks(self) -> Any:
        return self.recording.ticks

    def last_sample_ns(self, before_ns: int = FOREVER) -> int:
        """Capture of the newest measurement before the policy was lost, and before the robot's fault where given.

        A recording holds what was read; what is older than something read before is read and not taken.
        """
        captured = self.ticks.captured_ns[: self.first_safe + 1]
        return int(captured[captured <= before_ns].max())

    def last_action_end_ns(self) -> int:
        """Until when the last accepted chunk had something to say."""
        used = [each for each in self.recording.chunks if not each.refused and each.tick < self._tick(self.first_safe)]
        timing = self.plan["timing"]
        rows_ns = (timing["chunk"] - 1) * timing["ticks_per_period"] * timing["tick_ns"]
        return used[-1].at_ns + timing["action_delay_ns"] + rows_ns + timing["action_valid_ns"]

    def oldest_unanswered_ns(self) -> int:
        """When the oldest observation was offered that nobody had answered as the policy was lost."""
        lost = self._tick(self.first_safe)
        answered = max((each.seq for each in self.recording.chunks if each.tick <= lost), default=0)
        ticks = self.ticks
        is_open = ticks.offered & (ticks.observation_seq > answered) & (ticks.mode == MODES["Running"])
        return int(ticks.due_ns[np.flatnonzero(is_open)[0]])

    def last_offer_ns(self) -> int:
        """When the observation was offered that the policy did wrong about: the last one before it was lost."""
        offered = np.flatnonzero(self.ticks.offered[: self.first_safe + 1])
        return int(self.ticks.due_ns[offered[-1]])

    def _tick(self, index: int) -> int:
        return int(self.ticks.tick[index])

    def is_safe_in_time(self, known_ns: int, *, earliest_ns: int | None = None) -> None:
        """The first safe command leaves within two ticks of the instant at which the contract lets the fault be known.

        Ticks that the operating system let pass are nobody else's fault: ages are judged that much milder.

        Args:
            known_ns: That instant, or the last at which it can have been.
            earliest_ns: The first at which it can have been; before that something else was noticed.
        """
        ticks, tick_ns = self.ticks, self.plan["timing"]["tick_ns"]
        begin = max(0, int(np.searchsorted(ticks.due_ns, known_ns - self.plan["timing"]["max_age_state_ns"])) - 1)
        overslept = int(ticks.missed[self.first_safe] - ticks.missed[begin])
        safe_ns = int(ticks.due_ns[self.first_safe])
        assert safe_ns > (known_ns if earliest_ns is None else earliest_ns) - tick_ns, "noticed before it was there"
        late_ns = safe_ns - known_ns
        assert late_ns <= (WITHIN_TICKS + overslept) * tick_ns, (late_ns / tick_ns, overslept)

    def is_inside_the_envelope(self) -> None:
        """Every command of the whole run, to the last: position, velocity, acceleration and jerk of what was sent."""
        ticks, limits = self.ticks, self.plan["limits"]
        sent = ticks.sent & (ticks.kind == 0)
        assert ticks.sent.sum() == sent.sum(), "nothing but positions was commanded"
        target = ticks.target[sent]
        assert np.isfinite(target).all()
        dt = self.plan["timing"]["tick_ns"] * 1e-9
        lo, hi = (np.array([each[end] for each in limits["pos"]]) for end in ("lo", "hi"))
        assert ((target >= lo - 1e-9) & (target <= hi + 1e-9)).all()
        for order, name in ((1, "vel"), (2, "acc"), (3, "jerk")):
            bound = np.array([each["limit"] for each in limits[name]])
            change = np.diff(target, n=order, axis=0) / dt**order
            assert (np.abs(change) <= bound * SLACK + 1e-9).all(), name

    def brakes_and_holds(self) -> None:
        """`stop_and_hold`: at rest after no longer than the limits need, and then the same target to the end."""
        ticks = self.ticks
        safe = ticks.target[self.first_safe :][ticks.sent[self.first_safe :]]
        limits, dt = self.plan["limits"], self.plan["timing"]["tick_ns"] * 1e-9
        vel, acc, jerk = (max(each["limit"] for each in limits[name]) for name in ("vel", "acc", "jerk"))
        brake = int(np.ceil((vel / acc + 2 * acc / jerk) / dt)) + WITHIN_TICKS
        assert len(safe) > brake, "the run was watched for long enough"
        held = safe[brake:]
        assert (held == held[-1]).all(), "it holds where it came to rest"

    def nothing_was_sent_after(self, index: int) -> None:
        assert not self.ticks.sent[index:].any()

    def nothing_started_again(self) -> None:
        """The run was armed and started once, and only one worker ever counted."""
        names = [each.request for each in self.recording.goals if each.request in STARTING]
        after = [each.after for each in self.recording.modes]
        assert after.count("Armed") == 1
        assert after.count("Running") == 1
        assert names.count("recover") == 0
        assert set(self.ticks.generation) <= {0, 1}

    def is_intact(self, *, complete: bool = True) -> None:
        """Every executed tick is there, in order, and the writer's last word says so."""
        recording = self.recording
        assert recording.complete is complete, recording.reason
        assert (np.diff(self.ticks.tick) > 0).all()
        if complete:
            assert recording.summary is not None
            assert recording.summary.replayable
            assert recording.summary.ticks == len(self.ticks)
            assert recording.summary.ticks_missed + len(self.ticks) == self.ticks.tick[-1]


def tell(folder: Path, made: dict[str, Any]) -> Told:
    """What every recording must tell, whatever happened."""
    told = Told(Recording.open(folder / "run.mcap"), made)
    told.nothing_started_again()
    return told


def is_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
