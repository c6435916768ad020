"""`interlock show`: a policy, a robot, a run, or a code."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from interlock import _core
from interlock.artifact.folder import PolicyFolder
from interlock.cli.load import robot_text
from interlock.cli.screen import Screen, harmless_line
from interlock.contract.codes import HINTS
from interlock.contract.identity import expand, identity
from interlock.contract.text import load_contract, load_robot
from interlock.errors import Exit, InterlockError
from interlock.view.log import lines
from interlock.view.log_lines import LEVELS, MODULES, Line
from interlock.view.recording import Recording

CORE_CODES = {
    "none": "nothing to say",
    "retired-generation": "an answer of a worker that is no longer in charge; it was dropped",
    "old-sequence": "an answer older than one already in use; it was dropped",
    "not-finite": "the policy or a sensor gave NaN or infinity; see the chunk in the recording",
    "dimension": "the wrong number of values; verify the engine against its contract again",
    "stale-state": "the newest measurement is older than `max_age_ms`; look at driver and bus",
    "stale-image": "the newest image is older than `max_age_ms`; look at the camera",
    "skew": "capture times inside one observation lie further apart than `max_skew_ms`",
    "no-valid-action": "no action is valid now: the answer came too late or `action_valid_ms` is too short",
    "position": "the position limit acted",
    "velocity": "the velocity limit acted",
    "acceleration": "the acceleration limit acted",
    "jerk": "the jerk limit acted",
    "torque": "the torque limit acted: kp, kd and feed-forward together",
    "target-step": "a PD target moved too far within one policy period",
    "measured-velocity": "a joint is measured faster than its limit",
    "gain": "a gain above the robot's largest",
    "window-travel": "a joint would have travelled too far within 250 ms, braking included",
    "distance": "the command is too far from where the robot is measured; it is stuck, pushed or ignores commands",
    "torque-rate": "a torque would have changed too fast",
    "worker-dead": "the inference process ended; `recover` starts nothing by itself, a new worker must be there first",
    "worker-late": "no answer by the deadline; see the inference time in the report and `latency_budget_ms`",
    "worker-error": "the policy's answer was unusable (NaN, wrong shape); see the chunk's status in the recording",
    "driver-dead": "the process that talks to the robot ended; the drives act by themselves",
    "driver-stuck": "no new measurement; look at cable, bus and driver",
    "goal-lost": "the operator's goal is too old",
    "operator-stop": "somebody asked for it",
    "orderly-end": "the run was over, or somebody asked for its end: `on_exit` acted",
    "terminal-closed": "the terminal or the operator's connection closed",
    "frozen-image": "a camera repeats one picture while the robot moves",
    "outside-start": "the robot is not inside `start_within`; let it be moved there, or move it",
    "outside-limits": "the robot is measured outside its own limits; check units, zero and calibration",
    "not-ready": "the worker, the driver, the goal or the move to the start pose is not there yet",
    "wrong-mode": "this mode does not allow the request; see the table of modes",
    "no-recording": "the recording cannot be written; free disk space",
    "bad-plan": "contract and robot contradict each other; `interlock check` says where",
}

# It takes milliseconds and depends on the robot file as it is now, so no old answer is kept.
ALWAYS_ANEW = "runs anew, against the robot file, before every build, verify and run"


def show(thing: str, *, full: bool, as_json: bool) -> int:
    """Shows it; returns the exit code."""
    screen = Screen(as_json=as_json)
    path = Path(thing)
    words = set(_core.code_words().values())
    if not path.exists() and (thing in HINTS or thing in words):
        return _code(thing, screen)
    if path.is_dir() and (path / "contract.yaml").exists():
        return _policy(path, screen, full=full)
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return _robot(path, screen, full=full)
    recording = path / "run.mcap" if path.is_dir() else path
    if recording.suffix == ".mcap" and recording.is_file():
        return _run(recording, screen)
    raise InterlockError(
        code="show-unknown",
        where=thing,
        expected="a policy folder, a robot file, a run folder or a code",
        got="none of these",
        hint="codes are the words in error[...]",
        next="interlock --help",
    )


def require_heeded(*, log: bool, full: bool, module: str, level: str) -> None:
    """Refuses options that would not be heeded. Raises `InterlockError` `show-option`."""
    given = {"--module": bool(module) and not log, "--level": level != LEVELS[1] and not log, "--full": full and log}
    unheeded = [name for name, is_given in given.items() if is_given]
    if unheeded:
        raise InterlockError(
            code="show-option",
            where="show",
            expected="--module and --level with --log, --full without it",
            got=", ".join(unheeded),
            next="interlock show RUN --log",
            exit=Exit.USAGE,
        )


def show_log(thing: str, *, modules: str, level: str, as_json: bool) -> int:
    """Prints the timeline of a run; returns the exit code.

    Args:
        thing: A run folder or a recording.
        modules: Names with commas between them; empty for all.
        level: The least grave that is shown.
        as_json: One object a line.

    Raises:
        InterlockError: `log-no-run`, `log-module`, and as `view.log.lines`.
    """
    wanted = {each.strip() for each in modules.split(",") if each.strip()}
    seen: set[str] = set()
    write = _as_json if as_json else _coloured() if sys.stdout.isatty() else _plain
    for line in _chosen(lines(_recording(thing)), wanted, level, seen):
        write(line)
    sys.stdout.flush()
    if unheard := sorted(wanted - seen - set(MODULES)):
        raise InterlockError(
            code="log-module",
            where="--module",
            expected=f"some of {', '.join(sorted(seen | set(MODULES)))}",
            got=", ".join(unheard),
            exit=Exit.USAGE,
        )
    return int(Exit.DONE)


def _recording(thing: str) -> Path:
    path = Path(thing)
    recording = path / "run.mcap" if path.is_dir() else path
    if path.is_dir() and not recording.exists():  # of several episodes each has a file of its own
        found = sorted(path.glob("*.mcap"))
        if len(found) > 1:
            raise InterlockError(
                code="log-several",
                where=thing,
                expected="one recording",
                got=", ".join(each.name for each in found[:4]) + (", ..." if len(found) > 4 else ""),
                hint="name one of them",
                next=f"interlock show {found[0]} --log",
                exit=Exit.USAGE,
            )
        recording = found[0] if found else recording
    if recording.suffix != ".mcap":
        raise InterlockError(
            code="log-no-run",
            where=thing,
            expected="a run folder or an .mcap file",
            got="something else" if path.exists() else "nothing",
            hint="only runs have a timeline",
            exit=Exit.USAGE if path.exists() else Exit.REFUSED,
        )
    return recording


def _chosen(found: Iterator[Line], wanted: set[str], level: str, seen: set[str]) -> Iterator[Line]:
    least = LEVELS.index(level)
    for line in found:
        seen.add(line.module)
        if LEVELS.index(line.level) >= least and (not wanted or line.module in wanted):
            yield line


def _as_json(line: Line) -> None:
    sys.stdout.write(json.dumps(line.as_json(), default=str) + "\n")


def _plain(line: Line) -> None:
    sys.stdout.write(harmless_line(line.shown()) + "\n")


def _coloured() -> Callable[[Line], None]:
    console = Console(highlight=False, soft_wrap=True)
    styles = {"debug": "dim", "warning": "yellow", "error": "bold red"}
    return lambda line: console.print(Text(harmless_line(line.shown()), style=styles.get(line.level, "")))


def _code(word: str, screen: Screen) -> int:
    hint = HINTS.get(word) or CORE_CODES.get(word, "")
    screen.say(f"{word}: {hint}")
    screen.result({"code": word, "hint": hint})
    return int(Exit.DONE)


def _policy(path: Path, screen: Screen, *, full: bool) -> int:
    folder = PolicyFolder.open(path)
    contract = load_contract(folder.contract_text)
    expanded: Any = expand(contract)
    found: dict[str, Any] = {
        "name": contract.name,
        "trained_for": contract.trained_for,
        "identity": identity(contract),
        "files": {name: each.sha256 for name, each in sorted(folder.lock.files.items())},
        "evidence": {},
    }
    screen.say(f"{contract.name} · trained for {contract.trained_for} · identity {found['identity'][:12]}")
    for gate in ("check", "build", "verify"):
        evidence = folder.evidence(gate)
        absent = ALWAYS_ANEW if gate == "check" else "not evaluated"
        verdict = absent if evidence is None else str(evidence.verdict.value)
        found["evidence"][gate] = verdict
        screen.detail(f"{gate:<8} {verdict}")
    for name in sorted(folder.lock.files):
        screen.detail(f"{folder.lock.files[name].sha256[:12]}  {name}")
    if full:
        found["expanded"] = expanded.as_json()
        screen.say(json.dumps(found["expanded"], indent=1))
    screen.result(found)
    return int(Exit.DONE)


def _robot(path: Path, screen: Screen, *, full: bool) -> int:
    robot = load_robot(robot_text(path), path.name)
    expanded: Any = expand(robot)
    found = {"type": robot.type, "base": robot.base, "identity": identity(robot), "joints": list(expanded.names)}
    screen.say(f"{robot.type} · base {robot.base} · {len(expanded.names)} joints · identity {found['identity'][:12]}")
    if full:
        found["expanded"] = expanded.as_json()
        screen.say(json.dumps(found["expanded"], indent=1))
    screen.result(found)
    return int(Exit.DONE)


def _run(path: Path, screen: Screen) -> int:
    recording = Recording.open(path)
    ticks = recording.ticks
    modes = [f"{each.before} -> {each.after} {each.cause}".rstrip() for each in recording.modes]
    found = {"ticks": len(ticks.mode), "complete": recording.complete, "modes": modes}
    state = "complete" if recording.complete else f"ends early: {recording.reason}"
    screen.say(f"{path}: {len(ticks.mode)} ticks, {state}")
    for line in modes:
        screen.detail(line)
    screen.say(f"line by line: interlock show {path.parent} --log")
    screen.say(f"next: interlock report {path.parent}")
    screen.result(found)
    return int(Exit.DONE)
