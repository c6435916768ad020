"""`interlock run`: paced against a robot or its simulation, or stepped on a manual clock."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from interlock import _core
from interlock.artifact.environment import environment
from interlock.cli.asked import Asked
from interlock.cli.load import load_bound, load_verified, named, next_command
from interlock.cli.screen import Screen
from interlock.cli.wiring import make_plant, simulated_driver
from interlock.errors import Exit, InterlockError
from interlock.runtime.bound import Bound
from interlock.runtime.lockstep import Episode, run_lockstep
from interlock.serve.metrics import address, listen
from interlock.serve.operator import Operator
from interlock.serve.paced import PacedOptions, PacedRun
from interlock.serve.probes import Endpoint, require_probes
from interlock.serve.probes import listen as listen_for_probes
from interlock.serve.session import Ended, EpisodeResult, Session, signals_noted
from interlock.view.wilson import wilson

KEYS_IN = {"Idle": "a arm", "Armed": "Enter start · space stop", "Holding": "r recover"}
PRIORITY = 50  # SCHED_FIFO: above everything that is not the kernel's own


def run(policy: Path, robot: Path, asked: Asked, *, as_json: bool) -> int:
    """Runs; returns the exit code."""
    screen = Screen(as_json=as_json)
    asked.check()
    goal = asked.velocity()
    with named(policy, robot):
        bound = _loaded(policy, robot, asked, screen)
    folder = asked.output or Path("runs") / f"{datetime.now(timezone.utc):%Y-%m-%dT%H-%M-%S}-{bound.name}"
    with _run_folder(folder):
        if asked.lockstep:
            return _lockstep(bound, asked, goal, folder, screen)
        return _paced(bound, asked, goal, folder, screen)


@contextmanager
def _run_folder(folder: Path) -> Iterator[None]:
    """Makes the folder of a run; what is refused before anything was recorded leaves none behind."""
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except InterlockError:
        with suppress(OSError):  # not empty: something was recorded
            for each in made:
                each.rmdir()
        raise


def _loaded(policy: Path, robot: Path, asked: Asked, screen: Screen) -> Bound:
    """A robot that can hurt someone is driven by nothing that was not proved; in simulation it is said."""
    if not asked.sim:
        return load_verified(policy, robot)
    try:
        return load_verified(policy, robot)
    except InterlockError as refusal:
        if refusal.code != "not-verified":
            raise
        screen.detail("not verified: good enough for a simulation only (interlock verify)")
        return load_bound(policy, robot)


def header(bound: Bound, **facts: Any) -> dict[str, Any]:
    """Facts for a recording's header."""
    return {"policy": bound.name, "robot": bound.robot["type"], "environment": environment(), **facts}


def _lockstep(bound: Bound, asked: Asked, goal: tuple[float, float, float] | None, folder: Path, screen: Screen) -> int:
    import json

    plant = make_plant(simulated_driver(bound.robot), bound)
    successes, rows, worst = 0, [], Exit.DONE
    for number in range(asked.episodes):
        name = "run.mcap" if asked.episodes == 1 else f"episode-{number:03d}.mcap"
        episode = Episode(
            seconds=asked.seconds,
            seed=asked.seed + number,
            task=asked.task,
            goal=goal,
            recording=folder / name,
            record_images=asked.record,
            header=json.dumps(header(bound, clock="manual")),
        )
        result = run_lockstep(bound, plant, episode)
        success = bool(result.outcome.success)
        successes += success
        if result.outcome.fallen or result.outcome.diverged or "Stopping" in result.modes:
            worst = Exit.ENDED_BY_GUARD
        row = {
            "seed": episode.seed,
            "ticks": result.ticks,
            "success": result.outcome.success,
            "fallen": result.outcome.fallen,
            "forward_mps": result.forward_mps,
            "distance_m": result.outcome.distance_m,
            "limited": result.limited,
            "refused": result.refused,
            "codes": result.codes,
            "modes": result.modes,
        }
        rows.append(row)
        screen.say(_line(number, row))
    _finish(screen, bound, folder, rows, successes, asked, worst, {"clock": "manual"})
    return int(worst)


def _line(number: int, row: dict[str, Any]) -> str:
    said = [f"episode {number + 1}"]
    if row["success"] is not None:
        said.append(f"{'reached' if row['success'] else 'not reached'} ({row['distance_m'] * 1000:.0f} mm away)")
    if row["forward_mps"] == row["forward_mps"]:
        said.append(f"{row['forward_mps']:.3f} m/s forward · {'FELL' if row['fallen'] else 'upright'}")
    said.append(f"{row['ticks']} ticks · guard limited {row['limited']}, refused {row['refused']}")
    return " · ".join(said)


def _paced(bound: Bound, asked: Asked, goal: tuple[float, float, float] | None, folder: Path, screen: Screen) -> int:
    driver = simulated_driver(bound.robot) if asked.sim else str(bound.robot["driver"]["use"])
    simulated = driver.startswith("sim:")
    terminal = screen.console.is_terminal and not screen.as_json
    options = PacedOptions(
        driver=driver,
        driver_options={"seed": asked.seed, "task": asked.task} if simulated else {},
        recording=folder / "run.mcap",
        record_images=asked.record,
        header=header(bound, clock="monotonic", simulated=simulated),
        realtime_priority=0 if asked.realtime == "off" else PRIORITY,
        realtime_required=asked.require_rt,
        cpu=asked.cpu,
        worker_memory_bytes=None if asked.worker_memory is None else asked.worker_memory << 20,
        dry=asked.dry,
        simulated=simulated,
    )
    results: list[EpisodeResult] = []
    with (
        _served(asked, screen) as metrics,
        _published(bound, asked, screen) as probe,
        signals_noted() as noted,
        Operator(socket_path=folder / "operator.sock", keyboard=terminal and _stdin_is_terminal()) as operator,
        PacedRun(bound, replace(options, metrics=metrics, probe=probe)) as paced,
    ):
        _say_granted(screen, paced, asked)
        session = Session(
            paced,
            operator,
            noted,
            on_status=lambda status: screen.update(_status_line(status)),
            on_refused=lambda refusal: screen.detail(" · ".join(refusal.lines())),
            on_held=lambda result: screen.detail(_held_text(result)),
        )
        if not simulated:
            with operator.line_mode():
                _confirm(bound, asked)
        if asked.wait:
            screen.detail(f"waits for the operator: arm (a), then start (Enter); socket {folder / 'operator.sock'}")
        for number in range(asked.episodes):
            task = asked.task
            if simulated:
                task = session.reset(asked.seed + number, asked.task) or asked.task
            with screen.step("running", f"{number + 1}/{asked.episodes}") as line:
                result = session.episode(
                    task=task,
                    goal=goal,
                    seconds=asked.seconds,
                    simulated=simulated,
                    rest=number + 1 < asked.episodes,
                    hold=asked.episodes == 1 or asked.wait,
                    wait=asked.wait,
                )
                line.text = _episode_text(result)
            results.append(result)
            if result.ended in (Ended.SIGNAL, Ended.TERMINAL, Ended.OPERATOR):
                break
        final = paced.stop(go_to_rest=not noted.received and not operator.closed)
    return _paced_result(bound, asked, folder, screen, results, final, noted.received)


@contextmanager
def _served(asked: Asked, screen: Screen) -> Iterator[socket.socket | None]:
    """The port for metrics, taken before anything starts."""
    if asked.metrics is None:
        yield None
        return
    with listen(asked.metrics) as listener:
        screen.detail(f"metrics: {address(listener)}")
        yield listener


@contextmanager
def _published(bound: Bound, asked: Asked, screen: Screen) -> Iterator[Endpoint | None]:
    """The address for snapshots of probes, likewise."""
    if asked.probe is None:
        yield None
        return
    names = require_probes(bound.plan)
    with closing(listen_for_probes(asked.probe)) as endpoint:
        screen.detail(f"probe: {', '.join(names)} at {endpoint.text}")
        yield endpoint


def _paced_result(
    bound: Bound,
    asked: Asked,
    folder: Path,
    screen: Screen,
    results: list[EpisodeResult],
    final: dict[str, Any],
    signals: list[int],
) -> int:
    code = Exit.DONE
    if any(each.ended in (Ended.FALLBACK, Ended.FALLEN) for each in results):
        code = Exit.ENDED_BY_GUARD
    if signals or any(each.ended is Ended.TERMINAL for each in results):
        code = Exit.INTERRUPTED
    rows = [
        {
            "ended": each.ended.value,
            "cause": each.cause,
            "seconds": each.seconds,
            "task": each.task,
            "interruptions": each.interruptions,
            **each.outcome,
        }
        for each in results
    ]
    successes = sum(each.success for each in results)
    counters = {key: value for key, value in final.items() if isinstance(value, (int, float, str, dict))}
    screen.say(
        f"ticks: {final.get('executed', 0)} executed, {final.get('missed', 0)} missed of {final.get('planned', 0)} · "
        f"guard limited {final.get('limited', 0)}, refused {final.get('refused', 0)}"
    )
    lost = str((final.get("recording") or {}).get("error") or "")
    if not (folder / "run.mcap").exists():
        lost = lost or "its file is gone"
    if lost:
        screen.say(f"the recording is not whole: {lost}")
    more = {"clock": "monotonic", "counters": counters, "recording_lost": lost or None}
    _finish(screen, bound, folder, rows, successes, asked, code, more)
    return int(code)


def _finish(
    screen: Screen,
    bound: Bound,
    folder: Path,
    rows: list[dict[str, Any]],
    successes: int,
    asked: Asked,
    code: Exit,
    more: dict[str, Any],
) -> None:
    if bound.tokenizer is not None and len(rows) > 1:
        low, high = wilson(successes, len(rows))
        screen.say(f"{successes} of {len(rows)} reached (95 % interval {low:.0%} to {high:.0%})")
    screen.say(f"recording: {folder}")
    if asked.episodes == 1 or not asked.lockstep:
        screen.say(next_command(f"interlock report {folder}"))
    screen.result(
        {
            "policy": bound.name,
            "folder": str(folder),
            "episodes": rows,
            "successes": successes,
            "exit": int(code),
            **more,
        }
    )


def _say_granted(screen: Screen, paced: PacedRun, asked: Asked) -> None:
    granted = paced.granted
    refused = [str(each) for each in granted.get("refused", [])]
    if refused:
        screen.detail(f"the kernel refused: {'; '.join(refused)}")
    what = "SIMULATION" if paced.options.simulated else "ROBOT"
    dry = " · DRY: the robot is read, nothing is sent" if asked.dry else ""
    screen.detail(f"{what} {paced.bound.robot['type']} · driver {paced.options.driver}{dry}")
    memory = "locked" if granted.get("memory_locked") else "not locked"
    screen.detail(
        f"real-time: {granted.get('scheduler')} {granted.get('priority') or ''} granted · memory {memory} · "
        f"tick {paced.bound.tick_ns / 1e6:g} ms · stop: space or Ctrl-C (brings the robot to rest)"
    )
    if paced.options.recording is not None:
        screen.detail(f"seen from another terminal: interlock watch {paced.options.recording.parent}")


def _confirm(bound: Bound, asked: Asked) -> None:
    import sys

    if asked.dry:
        return
    kind = str(bound.robot["type"])
    if not _stdin_is_terminal():
        raise InterlockError(
            code="arm-needs-terminal",
            where="arming",
            expected=f"a person who types {kind}",
            got="no terminal",
            hint="arming a real robot is never automatic",
            exit=Exit.NEEDS_ANSWER,
        )
    sys.stdout.write(f"Your stop is the robot's own emergency stop, not this program.\n? arm: type {kind}: ")
    sys.stdout.flush()
    if sys.stdin.readline().strip() != kind:
        raise InterlockError(
            code="arm-declined", where="arming", expected=kind, got="something else", exit=Exit.NEEDS_ANSWER
        )


def _stdin_is_terminal() -> bool:
    import sys

    return sys.stdin is not None and sys.stdin.isatty()


def _status_line(status: dict[str, Any]) -> str:
    return (
        f"[{status['mode_name']}] tick {status.get('tick', 0)} · missed {status.get('missed', 0)} · "
        f"limits acted {status.get('limited', 0)} · {KEYS_IN.get(status['mode_name'], 'space stop')} · q quit"
    )


def _held_text(result: EpisodeResult) -> str:
    why = f"{result.ended.value} ({result.cause})" if result.cause else result.ended.value
    return f"held: {why} · recover (r), then start (Enter), or quit (q)"


def _episode_text(result: EpisodeResult) -> str:
    distance = result.outcome.get("distance_m")
    far = f" · {distance * 1000:.0f} mm from it" if isinstance(distance, float) and distance == distance else ""  # noqa: PLR0124
    why = f" ({result.cause})" if result.cause else ""
    return f"{result.task or 'goal'} · {result.ended.value}{why}{far} · {result.seconds:.1f} s"


def monotonic_s() -> float:
    """Seconds on the monotonic clock."""
    return _core.monotonic_ns() / 1e9
