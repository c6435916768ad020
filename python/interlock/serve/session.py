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
ANSWER_S = 0.3  # a request that is not granted by then is refused: nothing begins later than it was asked for
ENDS = ("stop", "quit", "disarm")
FROM = {"arm": "Idle", "start": "Armed", "recover": "Holding"}
CHANGES = {
    "arm": ("Armed",),
    "start": ("Running", "Degraded"),
    "recover": ("Armed",),
    "stop": ("Stopping", "Holding", "Idle"),
    "disarm": ("Idle",),
}


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
        interruptions: What it was stopped for and recovered from before, in order.
        quit: An operator asked for the orderly exit, whatever had ended it before.
    """

    ended: Ended
    cause: str = ""
    seconds: float = 0.0
    outcome: dict[str, Any] = field(default_factory=dict)
    task: str = ""
    interruptions: list[str] = field(default_factory=list)
    quit: bool = False

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
        on_held: Called with why the robot is held and waits for the operator.
    """

    run: PacedRun
    operator: Operator
    signals: Signals
    on_status: Callable[[dict[str, Any]], None] | None = None
    on_refused: Callable[[InterlockError], None] | None = None
    on_held: Callable[[EpisodeResult], None] | None = None
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
        hold: bool = False,
        wait: bool = False,
    ) -> EpisodeResult:
        """Arms, starts, and watches until something ends it.

        Args:
            task: Task text, for a policy that takes one.
            goal: Velocity goal, for a policy that takes one.
            seconds: Longest duration, from each start anew.
            simulated: The driver can say how the episode stands.
            rest: Bring the robot to rest here; False leaves that to the orderly exit, `PacedRun.stop`. What was
                stopped, by whomever, ends here, where the robot came to rest: going elsewhere is for who asked for it.
            hold: A stop or a lost policy does not end it while an operator is there: held at rest, the robot waits
                for `recover` and `start`, or for `quit`.
            wait: The operator arms and starts, not this; nobody being there is waited out.

        Raises:
            InterlockError: `arm-refused` or `start-refused`, with the core's reason.
        """
        result = self._first(task, goal, wait=wait) or self._timed_watch(seconds, simulated=simulated)
        interruptions: list[str] = []
        while hold and _can_be_held(result) and self._bring_to_rest(result) == "Holding":
            decided = self._held(result, wait=wait)
            if decided is None:
                interruptions.append(result.cause or result.ended.value)
                result = self._timed_watch(seconds, simulated=simulated)
                continue
            # Leaving does not make good what the run was lost for; a signal or another loss is told instead.
            result.quit = decided.quit
            if decided.ended is not Ended.OPERATOR:
                interruptions.append(result.cause or result.ended.value)
                result = decided
            break
        result.task = self._task
        result.interruptions = interruptions
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

    def _first(self, task: str | None, goal: tuple[float, float, float] | None, *, wait: bool) -> EpisodeResult | None:
        if not wait:
            return self.begin(task=task, goal=goal)
        self.run.retask(task, goal)
        self._task = task or ""
        return self._operated(wait=True)

    def _timed_watch(self, seconds: float, *, simulated: bool) -> EpisodeResult:
        began = _core.monotonic_ns()
        result = self._watch(began, seconds, simulated=simulated)
        result.seconds = (_core.monotonic_ns() - began) / 1e9
        return result

    def _held(self, result: EpisodeResult, *, wait: bool) -> EpisodeResult | None:
        """At rest until the operator decides; None when the policy runs again."""
        if not (wait or self.operator.present):
            return EpisodeResult(Ended.OPERATOR)
        self.run.say("operator", "info", "held: waits for recover and start, or for quit")
        if self.on_held is not None:
            self.on_held(result)
        return self._operated(wait=wait)

    def _operated(self, *, wait: bool) -> EpisodeResult | None:
        """The operator's requests, one by one, until the policy runs (None) or somebody wants the end.

        `Ended.OPERATOR`: the operator quit or went away.
        """
        while self.run.mode() not in ("Running", "Degraded"):
            for said in self.operator.listen(LISTEN_S):
                if said.word == "quit":
                    return EpisodeResult(Ended.OPERATOR, cause="quit", quit=True)
                if said.word in CHANGES:
                    self._change(said.word)
                elif said.word not in MARKS:
                    self._obey(said)
            if (ended := self._signalled()) is not None:
                return ended
            if (status := self.run.status())["mode_name"] == "Faulted":
                return EpisodeResult(Ended.FALLBACK, cause=str(status["cause"]))
            if self.run.wait(0) or not (wait or self.operator.present):
                return EpisodeResult(Ended.OPERATOR)
            if self.on_status is not None:
                self.on_status(status)
        return None

    def _change(self, word: str) -> None:
        """One request that the operator waits for; what is refused is told, and nothing happens later instead."""
        try:
            if word == "recover" and self._needs_worker():
                self.run.replace_worker()
            if self.run.ask(word, *CHANGES[word], timeout_s=ANSWER_S) is None:
                self._tell(self._refused(word))
        except InterlockError as refusal:
            self._tell(refusal)
        except _core.CoreError as refusal:
            self._tell(InterlockError(code=refusal.code, where=f"operator: {word}", got=str(refusal)))

    def _needs_worker(self) -> bool:
        """Whether the robot is held because its worker died or hung."""
        status = self.run.status()
        is_gone = self.run.worker.process.poll() is not None
        return status["mode_name"] == "Holding" and (is_gone or status["cause"] == "worker-late")

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
        return self._signalled()

    def _signalled(self) -> EpisodeResult | None:
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
        if said.word in ENDS:
            return EpisodeResult(Ended.OPERATOR, cause=said.word, quit=said.word == "quit")
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
        """Raises `InterlockError` for what the policy does not take, or a request that comes too early."""
        if said.word == "task":
            self.run.bound.tokens(said.text)
        elif said.word == "goal":
            self.run.bound.velocity(said.velocity)
        elif said.word in FROM and (mode := self.run.mode()) != FROM[said.word]:
            raise InterlockError(
                code="wrong-mode", where=f"operator: {said.word}", expected=f"mode {FROM[said.word]}", got=mode
            )

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
        self._bring_to_rest(result)
        if _stays(result):
            self._insist("disarm")
            self.run.wait_mode("Idle", timeout_s=STOP_TIMEOUT_S)

    def _bring_to_rest(self, result: EpisodeResult) -> str | None:
        """Returns the mode in which the robot rests; None when it did not get there in time."""
        if result.ended is not Ended.FALLBACK:
            self._insist("terminal_closed" if result.ended is Ended.TERMINAL else "stop")
        mode = self.run.wait_mode(*RESTING, timeout_s=STOP_TIMEOUT_S)
        # The command rests before the robot does; whoever ends the loop next must not cut that short.
        began = moved = _core.monotonic_ns()
        while (now := _core.monotonic_ns()) - moved < STILL_S * 1e9 and now - began < SETTLE_TIMEOUT_S * 1e9:
            if self.run.speed_si() > REST_RAD_PER_S:
                moved = now
            self.run.wait(LISTEN_S)
        return mode


def _can_be_held(result: EpisodeResult) -> bool:
    """Whether an operator may let it go on: after a stop or a lost policy, not after a fall."""
    return result.ended is Ended.FALLBACK or (result.ended is Ended.OPERATOR and result.cause == "stop")


def _stays(result: EpisodeResult) -> bool:
    """Whether the robot stays where it came to rest: after any stop but `quit`, whoever or whatever it came from."""
    return not result.quit and result.ended in (Ended.OPERATOR, Ended.SIGNAL, Ended.TERMINAL, Ended.FALLBACK)
