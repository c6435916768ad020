"""`interlock go demo`: from a PyTorch checkpoint to a guarded arm, and what happens when things break."""

from __future__ import annotations

import json
import os
import shutil
import signal
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from interlock import _core
from interlock.cli import report as report_verb
from interlock.cli import steps
from interlock.cli.load import load_bound
from interlock.cli.run import PRIORITY, header
from interlock.cli.screen import Screen
from interlock.errors import Exit, InterlockError
from interlock.serve.operator import Operator
from interlock.serve.paced import PacedOptions, PacedRun
from interlock.serve.session import EpisodeResult, Session, Signals, signals_noted
from interlock.view.wilson import wilson

EPISODE_S = 6.0
MOTION_RAD_PER_S = 0.3  # a joint faster than this is "in mid-motion"
FIRST_SEED = 20_000  # training and its evaluation never saw these
PATIENCE_S = 10.0
HOLD_S = 1.0
LEAST_REACHED = 0.9


def demo(folder: Path, *, episodes: int, as_json: bool) -> int:
    """Runs it all; returns the exit code."""
    screen = Screen(as_json=as_json)
    screen.say(
        "A small vision-language policy goes from its PyTorch checkpoint to a simulated robot arm.", style="bold"
    )
    screen.say(
        f"It was trained to reach a coloured block that it is told in words. Everything is written to {folder}.\n"
    )
    folder.mkdir(parents=True, exist_ok=True)
    policy, robot = folder / "reach-block.policy", folder / "robot.yaml"
    with as_file(files("interlock.adapters.arm")) as arm:
        for name in ("robot.yaml", "scene.xml"):
            shutil.copyfile(arm / name, folder / name)
        has_torch = find_spec("torch") is not None
        if has_torch:
            screen.say("Freeze writes down what the policy was trained on: names, units, rates. No guesses.")
            steps.freeze(screen, arm / "reach_block", policy, number="1/8")
        else:
            _copy_frozen(arm, policy)
            screen.say(
                "1/8 freeze   not evaluated here: PyTorch is not installed. Taken as frozen when this package was made;"
            )
            screen.detail("every file is checked by its hash. To see this step: pip install 'interlock[export]'")
    screen.say("Check joins it to the robot file by name and says what the guard will enforce.")
    steps.check(screen, policy, robot, number="2/8").bound()
    if has_torch:
        screen.say("Build exports the network and loads the engine that will run, without spinning threads.")
        steps.build(screen, policy, number="3/8")
    else:
        screen.say("3/8 build    not evaluated here: PyTorch is not installed. The graph is the one that was shipped.")
    if has_torch:
        screen.say(
            "Verify runs checkpoint, graph and engine on the same observations and compares the joints' targets."
        )
    else:
        screen.say("Verify compares graph and engine with what the checkpoint answered when this package was made;")
        screen.detail("the checkpoint itself is not run here: PyTorch is not installed.")
    verified = steps.verify(screen, policy, robot, number="4/8")
    if verified.evidence.verdict.exit is not Exit.DONE:
        screen.result({"verify": verified.evidence.verdict.value})
        return int(verified.evidence.verdict.exit)
    recording = folder / "run.mcap"
    with signals_noted() as noted:
        found = _robot_part(policy, robot, recording, episodes, screen, noted)
    if noted.received:
        screen.say("interrupted: the arm was brought to rest")
        return int(Exit.INTERRUPTED)
    with screen.step("report", "8/8") as line:
        page = report_verb.write(recording, folder / "report.html")
        line.text = str(page)
    screen.say(f"\nopen {page} · again: interlock run {policy} --robot {robot} --sim --task 'reach the blue block'")
    screen.result({**found, "report": str(page)})
    return int(Exit.DONE if found["reached"] >= LEAST_REACHED * episodes else Exit.FAIL)


def _copy_frozen(arm: Path, policy: Path) -> None:
    """The policy folder as it was frozen, built and verified when this package was made, its source put back."""
    shutil.rmtree(policy, ignore_errors=True)
    shutil.copytree(arm / "frozen", policy)
    lock = json.loads((policy / "lock.json").read_text(encoding="utf-8"))
    for name in lock["files"]:
        if name.startswith("source/"):
            target = policy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(arm / "reach_block" / name.removeprefix("source/"), target)


def _robot_part(
    policy: Path, robot: Path, recording: Path, episodes: int, screen: Screen, noted: Signals
) -> dict[str, Any]:
    bound = load_bound(policy, robot)
    recording.unlink(missing_ok=True)
    recording.with_name("report.html").unlink(missing_ok=True)
    options = PacedOptions(
        driver="sim:arm",
        driver_options={"seed": FIRST_SEED},
        recording=recording,
        header=header(bound, clock="monotonic", simulated=True),
        realtime_priority=PRIORITY,
        simulated=True,
    )
    screen.say("\nRun: robot, inference and control are three processes; losing one cannot take another with it.")
    screen.say(
        f"The control loop is a Rust thread that ticks every {bound.tick_ns / 1e6:g} ms and never waits for Python."
    )
    with Operator() as operator, PacedRun(bound, options) as paced:
        stage = _Stage(paced, Session(paced, operator, noted), screen, noted)
        reached, ran = stage.episodes(episodes)
        found: dict[str, Any] = {"reached": reached, "episodes": ran}
        if not noted.received:
            found |= stage.kill_worker(FIRST_SEED + episodes)
        if not noted.received:
            found |= stage.freeze_camera(FIRST_SEED + episodes + 1)
        screen.say("The arm goes to its rest pose (3 s), as the robot file asks for an orderly exit.")
        counters = paced.stop()
    screen.detail(
        f"ticks: {counters['executed']} executed, {counters['missed']} missed of {counters['planned']} · "
        f"guard limited {counters['limited']}, refused {counters['refused']}"
    )
    return {**found, "planned": counters["planned"], "executed": counters["executed"], "missed": counters["missed"]}


class _Stage:
    """The three scenes with the arm."""

    def __init__(self, paced: PacedRun, session: Session, screen: Screen, noted: Signals) -> None:
        self._paced = paced
        self._session = session
        self._screen = screen
        self._noted = noted

    def episodes(self, count: int) -> tuple[int, int]:
        """Episodes with success counted; returns (reached, ran)."""
        results: list[EpisodeResult] = []
        with self._screen.step("episodes", "5/8") as line:
            for number in range(count):
                task = self._session.reset(FIRST_SEED + number)
                result = self._session.episode(task=task, goal=None, seconds=EPISODE_S, simulated=True)
                if self._noted.received:
                    break
                results.append(result)
                reached = sum(each.success for each in results)
                self._screen.update(f"5/8 episode {number + 1} of {count} · {task} · {reached} reached so far")
            reached = sum(each.success for each in results)
            low, high = wilson(reached, len(results))
            line.text = f"{reached} of {len(results)} reached (95 % interval {low:.0%} to {high:.0%})"
        return reached, len(results)

    def kill_worker(self, seed: int) -> dict[str, Any]:
        """The inference process is killed in mid-motion."""
        self._screen.say("\nNow its inference process is killed (SIGKILL) while the arm moves.")
        with self._screen.step("kill -9", "6/8") as line:
            task = self._into_motion(seed)
            killed = _core.monotonic_ns()
            os.kill(self._paced.worker.process.pid, signal.SIGKILL)
            self._expect("Holding")
            stopped_s = (_core.monotonic_ns() - killed) / 1e9
            cause = str(self._paced.status()["cause"])
            self._paced.wait(HOLD_S)
            line.text = f"{cause}: braked inside its limits; the command came to rest and holds after {stopped_s:.2f} s"
        self._screen.detail(
            "nothing starts by itself: a new inference process, then an explicit `recover`, then `start`"
        )
        self._paced.replace_worker()
        recovered = self._session.episode(task=task, goal=None, seconds=EPISODE_S, simulated=True)
        self._screen.detail(f"recovered: {recovered.task} · {recovered.ended.value}")
        return {"kill_cause": cause, "kill_to_rest_s": stopped_s, "recovered": recovered.success}

    def freeze_camera(self, seed: int) -> dict[str, Any]:
        """The camera repeats one picture."""
        self._screen.say("\nNow the camera freezes: it goes on sending the same picture with fresh time stamps.")
        with self._screen.step("camera", "7/8") as line:
            self._into_motion(seed)
            frozen = _core.monotonic_ns()
            self._paced.ask_simulation({"do": "freeze_camera", "camera": 0})
            self._expect("Holding")
            stopped_s = (_core.monotonic_ns() - frozen) / 1e9
            cause = str(self._paced.status()["cause"])
            self._paced.wait(HOLD_S)
            line.text = (
                f"{cause}: noticed while the arm moved; holding {stopped_s:.2f} s after the first repeated picture"
            )
        self._paced.ask_simulation({"do": "thaw_camera", "camera": 0})
        return {"freeze_cause": cause, "freeze_to_rest_s": stopped_s}

    def _into_motion(self, seed: int) -> str:
        task = self._session.reset(seed)
        if self._session.begin(task=task, goal=None) is not None:
            raise KeyboardInterrupt
        deadline = _core.monotonic_ns() + int(PATIENCE_S * 1e9)
        while _core.monotonic_ns() < deadline:
            if self._paced.speed_si() > MOTION_RAD_PER_S:
                return task
            self._paced.wait(0.02)
        raise InterlockError(code="demo-still", where="demo", got="the arm did not move", exit=Exit.INTERNAL)

    def _expect(self, mode: str) -> None:
        if self._paced.wait_mode(mode, timeout_s=PATIENCE_S) is None:
            raise InterlockError(
                code="demo-mode", where="demo", expected=mode, got=self._paced.mode(), exit=Exit.INTERNAL
            )
