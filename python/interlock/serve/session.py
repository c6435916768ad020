"""Episodes of a paced run, steered by an operator: arm, start, watch, stop, and why it ended."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from interlock import _core
from interlock.errors import InterlockError
from interlock.serve.operator import MARKS, Operator, Said
from interlock.serve.paced import PacedRun

ARM_TIMEOUT_S = 15.0
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 15.0
LISTEN_S = 0.02
REST_RAD_PER_S = 0.01
STILL_S = 0.25
ASK_S = 0.05
SIMULATION_S = 0.5  # longer than this nobody waits for a simulation that does not answer
SETTLE_TIMEOUT_S = 2.0
RESTING = ("Holding", "Faulted", "Idle")


class Ended(Enum):
    """Why an episode ended."""

    SUCCESS = "success"
    TIME = "time"
    OPERATOR = "operator"
    SIGNAL = "signal"
    TERMINAL = "terminal closed"
    FALLBACK = "guard or fallback"
    FALLEN = "fallen"
    FAILURE = "marked as failure"


@dataclass(slots=True)
class EpisodeResult:
    """How one episode went.

    Attributes:
        ended: Why it ended.
        cause: The core's word for it, where the core ended it; the operator's, where the operator did.
        seconds: From start to end.
        outcome: What the simulation says; empty on a real robot.
        task: What was asked.
    """

    ended: Ended
    cause: str = ""
    seconds: float = 0.0
    outcome: dict[str, Any] = field(default_factory=dict)
    task: str = ""

    @property
    def success(self) -> bool:
        """Whether the task was reached."""
        return self.ended is Ended.SUCCESS


@dataclass(slots=True)
class Signals:
    """Signals since the run began, by number."""

    received: list[int] = field(default_factory=list)


@contextmanager
def signals_noted() -> Iterator[Signals]:
    """Ctrl-C, termination and a closed terminal become causes of a stop, not exceptions."""
    noted = Signals()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda got, _frame: noted.received.append(got)) for number in numbers}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(slots=True)
class Session:
    """One operator, one run.

    Attributes:
        run: The processes.
        operator: Who steers.
        signals: Signals so far.
        on_status: Called with every status polled, for a display.
        on_refused: Called with what an operator asked for in vain; the run goes on as it was.
    """

    run: PacedRun
    operator: Operator
    signals: Signals
    on_status: Callable[[dict[str, Any]], None] | None = None
    on_refused: Callable[[InterlockError], None] | None = None
    _task: str = ""  # asked for now; an operator may have changed it since the start

    def __post_init__(self) -> None:
        self.operator.judge = self._judge

    def episode(
        self,
        *,
        task: str | None,
        goal: tuple[float, float, float] | None,
        seconds: float,
        simulated: bool,
        rest: bool = True,
    ) -> EpisodeResult:
        """Arms, starts, and watches until something ends it.

        Args:
            task: Task text, for a policy that takes one.
            goal: Velocity goal, for a policy that takes one.
            seconds: Longest duration.
            simulated: The driver can say how the episode stands.
            rest: Bring the robot to rest here; False leaves that to the orderly exit, `PacedRun.stop`. What was
                stopped, by whomever, ends here, where the robot came to rest: going elsewhere is for who asked for it.

        Raises:
            InterlockError: `arm-refused` or `start-refused`, with the core's reason.
        """
        began = _core.monotonic_ns()
        result = self.begin(task=task, goal=goal)
        if result is None:
            began = _core.monotonic_ns()
            result = self._watch(began, seconds, simulated=simulated)
        result.seconds = (_core.monotonic_ns() - began) / 1e9
        result.task = self._task
        why = f" ({result.cause})" if result.cause else ""
        self.run.say("operator", "info", f"episode ends after {result.seconds:.2f} s: {result.ended.value}{why}")
        if rest or _stays(result):
            self._rest(result)
        return result

    def reset(self, seed: int, task: str | None = None) -> str:
        """Puts a simulated robot back to its start, out of charge while it is moved; returns the task."""
        if self.run.mode() == "Holding":
            self.run.request("disarm")
            self.run.wait_mode("Idle", timeout_s=ARM_TIMEOUT_S)
        answer = self.run.ask_simulation({"do": "reset", "seed": seed, "task": task})
        return str(answer["task"])

    def begin(self, *, task: str | None, goal: tuple[float, float, float] | None) -> EpisodeResult | None:
        """Arms and starts; returns why not if somebody stopped it. Raises `InterlockError` when refused."""
        self.run.retask(task, goal)
        self._task = task or ""
        what = "recover" if self.run.mode() == "Holding" else "arm"
        ended = self._reach(what, "Armed", timeout_s=ARM_TIMEOUT_S)
        # Before the start the robot may be moving to its start pose; until it is there, starting is refused.
        return ended or self._reach("start", "Running", "Degraded", timeout_s=START_TIMEOUT_S)

    def _reach(self, what: str, *wanted: str, timeout_s: float) -> EpisodeResult | None:
        """Requests until one of the modes is reached; a stop, a signal or a closed terminal is heard at any time."""
        deadline = _core.monotonic_ns() + int(timeout_s * 1e9)
        before = self.run.mode()
        while (ended := self._asked_to_end(0.0, is_running=False)) is None:
            if self.run.ask(what, *wanted, timeout_s=ASK_S) is not None:
                return None
            if self.run.mode() != before or _core.monotonic_ns() >= deadline:
                raise self._refused(what)
        return ended

    def _refused(self, what: str) -> InterlockError:
        status = self.run.status()
        self.run.say("operator", "warning", f"{what} is not granted: {status['request_refused'] or status['cause']}")
        return InterlockError(
            code=f"{what}-refused",
            where=f"{what} in mode {status['mode_name']}",
            got=str(status["request_refused"] or status["cause"] or "no answer in time"),
            hint="the robot did not move; see `interlock show` for the code",
        )

    def _watch(self, began: int, seconds: float, *, simulated: bool) -> EpisodeResult:
        outcome: dict[str, Any] = {}
        while True:
            if (ended := self._asked_to_end(LISTEN_S, is_running=True)) is not None:
                return ended
            status = self.run.status()
            if self.on_status is not None:
                self.on_status(status)
            if status["mode_name"] in ("Stopping", *RESTING):
                return EpisodeResult(Ended.FALLBACK, cause=str(status.get("cause", "")))
            if simulated:
                with contextlib.suppress(InterlockError):  # what a silent driver means the core decides
                    outcome = self.run.ask_simulation({"do": "outcome"}, timeout_s=SIMULATION_S)
                if outcome.get("success"):
                    return EpisodeResult(Ended.SUCCESS, outcome=outcome)
                if outcome.get("fallen") or outcome.get("diverged"):
                    return EpisodeResult(Ended.FALLEN, outcome=outcome)
            if (_core.monotonic_ns() - began) / 1e9 >= seconds:
                return EpisodeResult(Ended.TIME, outcome=outcome)

    def _asked_to_end(self, listen_s: float, *, is_running: bool) -> EpisodeResult | None:
        """Hears operator, signals and terminal; an episode that does not run yet cannot be marked."""
        for said in self.operator.listen(listen_s):
            if said.word in MARKS and not is_running:
                continue
            if (result := self._obey(said)) is not None:
                return result
        if self.signals.received:
            names = ", ".join(signal.Signals(each).name for each in self.signals.received)
            self.run.say("operator", "warning", f"signal received: {names}")
            closed = signal.SIGHUP in self.signals.received
            return EpisodeResult(Ended.TERMINAL if closed else Ended.SIGNAL)
        return EpisodeResult(Ended.TERMINAL) if self.operator.closed else None

    def _obey(self, said: Said) -> EpisodeResult | None:
        if said.word == "success":
            return EpisodeResult(Ended.SUCCESS)
        if said.word == "failure":
            return EpisodeResult(Ended.FAILURE)
        if said.word in ("stop", "quit", "disarm"):
            return EpisodeResult(Ended.OPERATOR, cause=said.word)
        try:
            if said.word == "task":
                self._change_task(said.text)
            elif said.word == "goal":
                self.run.set_velocity(said.velocity)
            else:
                self.run.request(said.word)
        except InterlockError as refusal:
            self._tell(refusal)
        except _core.CoreError as refusal:
            self._tell(InterlockError(code=refusal.code, where=f"operator: {said.word}", got=str(refusal)))
        return None

    def _judge(self, said: Said) -> None:
        """Raises `InterlockError` for a task or goal that the policy does not take."""
        if said.word == "task":
            self.run.bound.tokens(said.text)
        elif said.word == "goal":
            self.run.bound.velocity(said.velocity)

    def _change_task(self, task: str) -> None:
        self.run.retask(task)
        self._task = task
        if self.run.options.simulated:  # what counts as success is what was asked for last
            with contextlib.suppress(InterlockError):
                self.run.ask_simulation({"do": "task", "task": task}, timeout_s=SIMULATION_S)

    def _tell(self, refusal: InterlockError) -> None:
        """What an operator asks for in vain changes nothing: a typing error stops no robot."""
        self.run.say("operator", "warning", f"refused: {refusal}")
        if self.on_refused is not None:
            self.on_refused(refusal)

    def _insist(self, what: str) -> None:
        """Requests even where the mailbox is full of what others ask."""
        deadline = _core.monotonic_ns() + int(STOP_TIMEOUT_S * 1e9)
        while _core.monotonic_ns() < deadline:
            try:
                self.run.request(what)
            except _core.CoreError:
                if not self.run.wait(LISTEN_S):
                    continue
            return

    def _rest(self, result: EpisodeResult) -> None:
        if result.ended is not Ended.FALLBACK:
            self._insist("terminal_closed" if result.ended is Ended.TERMINAL else "stop")
        self.run.wait_mode(*RESTING, timeout_s=STOP_TIMEOUT_S)
        # The command rests before the robot does; whoever ends the loop next must not cut that short.
        began = moved = _core.monotonic_ns()
        while (now := _core.monotonic_ns()) - moved < STILL_S * 1e9 and now - began < SETTLE_TIMEOUT_S * 1e9:
            if self.run.speed_si() > REST_RAD_PER_S:
                moved = now
            self.run.wait(LISTEN_S)
        if _stays(result):
            self._insist("disarm")
            self.run.wait_mode("Idle", timeout_s=STOP_TIMEOUT_S)


def _stays(result: EpisodeResult) -> bool:
    """Whether the robot stays where it came to rest: after any stop but `quit`, whoever or whatever it came from."""
    is_stop = result.ended is Ended.OPERATOR and result.cause != "quit"
    return is_stop or result.ended in (Ended.SIGNAL, Ended.TERMINAL, Ended.FALLBACK)
