"""`interlock go`: the release flow in order. It skips nothing that is due and ends at the first question or FAIL."""

from __future__ import annotations

from pathlib import Path

from interlock.cli import steps
from interlock.cli.asked import Asked
from interlock.cli.demo import demo
from interlock.cli.load import named
from interlock.cli.run import run
from interlock.cli.screen import Screen
from interlock.errors import Exit, InterlockError

__all__ = ["demo", "go", "require_plain_demo"]

OWN_ROBOT = Path("robot.yaml")
STEPS = ("freeze", "check", "build", "verify", "run")


def require_plain_demo(
    *, robot: Path, answers: Path | None, output: Path | None, until: str, task: str | None, goal: str | None
) -> None:
    """Refuses options that `go demo` would not heed. Raises `InterlockError` `demo-option`."""
    given = {
        "--robot": robot != OWN_ROBOT,
        "--answers": answers is not None,
        "--output": output is not None,
        "--until": until != STEPS[-1],
        "--task": task is not None,
        "--goal": goal is not None,
    }
    unheeded = [name for name, is_given in given.items() if is_given]
    if unheeded:
        raise InterlockError(
            code="demo-option",
            where="go demo",
            expected="--folder, --episodes and --json only",
            got=", ".join(unheeded),
            hint="the demo brings its own robot, policy and tasks",
            next="interlock go demo",
            exit=Exit.USAGE,
        )


def go(
    source: Path,
    *,
    robot: Path,
    answers: Path | None,
    output: Path | None,
    until: str,
    task: str | None,
    goal: str | None,
    as_json: bool,
) -> int:
    """Runs what is due; returns the exit code of the step that ended it."""
    if until not in STEPS:
        raise InterlockError(
            code="step-unknown", where="--until", expected=", ".join(STEPS), got=until, exit=Exit.USAGE
        )
    screen = Screen(as_json=as_json)
    last = STEPS.index(until) + 1
    target = output or Path(f"{source.resolve().stem}.policy")
    done: dict[str, object] = {"policy": str(target)}
    steps.freeze(screen, source, target, robot=robot, answers=answers, number=f"1/{last}")
    if last >= 2:
        with named(target, robot):
            steps.check(screen, target, robot, number=f"2/{last}").bound()
    if last >= 3:
        steps.build(screen, target, number=f"3/{last}")
    if last >= 4:
        verified = steps.verify(screen, target, robot, number=f"4/{last}")
        done["verify"] = verified.evidence.verdict.value
        if verified.evidence.verdict.exit is not Exit.DONE:
            screen.result(done)
            return int(verified.evidence.verdict.exit)
    if last < 5:
        screen.say(f"next: interlock run {target} --robot {robot} --sim")
        screen.result(done)
        return int(Exit.DONE)
    screen.say(f"5/{last} run      in simulation, paced, behind the guard")
    return run(target, robot, Asked(sim=True, task=task, goal=goal), as_json=as_json)
