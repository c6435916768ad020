"""`freeze`, `check`, `build`, `verify`: one step each."""

from __future__ import annotations

import os
from pathlib import Path

from interlock.cli import steps
from interlock.cli.load import named
from interlock.cli.screen import Screen
from interlock.errors import Exit

DEFAULT_ROBOT = Path("robot.yaml")  # looked for, not asked for


def freeze(
    source: Path,
    *,
    robot: Path | None,
    answers: Path | None,
    contract: Path | None,
    reader: str,
    samples: Path | None,
    output: Path | None,
    python: Path | None,
    as_json: bool,
) -> int:
    """Freezes; returns the exit code."""
    screen = Screen(as_json=as_json)
    target = output or Path(f"{source.resolve().stem}.policy")
    frozen = steps.freeze(
        screen,
        source,
        target,
        robot=robot,
        answers=answers,
        contract=contract,
        reader=reader,
        samples=samples,
        python=python,
    )
    screen.say(f"next: interlock check {target} --robot {robot or 'robot.yaml'}")
    screen.result(
        {
            "policy": str(target),
            "name": frozen.contract.name,
            "unchanged": frozen.is_unchanged,
            "facts": frozen.facts,
            "notes": list(frozen.notes),
            "samples": frozen.samples,
        }
    )
    return int(Exit.DONE)


def check(policy: Path, robot: Path, *, as_json: bool) -> int:
    """Checks; returns the exit code."""
    screen = Screen(as_json=as_json)
    with named(policy, robot):
        report = steps.check(screen, policy, robot)
        if not as_json:
            report.bound()
    if report.fits:
        screen.say(f"next: interlock build {policy}")
        screen.result({**report.as_json(), "next": f"interlock build {policy}", "exit": int(Exit.DONE)})
        return int(Exit.DONE)
    code = Exit.REFUSED if report.problems else Exit.NEEDS_ANSWER
    following = f"interlock check {policy} --robot {robot}"
    first = (*report.problems, *report.unanswered)[0].code
    screen.result({"error": first, **report.as_json(), "next": following, "exit": int(code)})
    return int(code)


def build(policy: Path, robot: Path, *, python: Path | None, as_json: bool) -> int:
    """Builds, after fit where a robot file is at hand; returns the exit code."""
    screen = Screen(as_json=as_json)
    with named(policy, robot):
        if robot != DEFAULT_ROBOT or os.path.lexists(robot):
            steps.check(Screen(as_json=True), policy, robot).bound()
        built = steps.build(screen, policy, python=python)
    screen.say(f"next: interlock verify {policy} --robot {robot}")
    screen.result({"policy": str(policy), "unchanged": built.is_unchanged, **built.evidence.model_dump(mode="json")})
    return int(built.evidence.verdict.exit)


def verify(policy: Path, robot: Path, *, python: Path | None, as_json: bool) -> int:
    """Verifies; returns the exit code of the verdict."""
    screen = Screen(as_json=as_json)
    with named(policy, robot):
        verified = steps.verify(screen, policy, robot, python=python)
    if verified.evidence.verdict.exit is Exit.DONE:
        screen.say(f"next: interlock run {policy} --robot {robot} --sim")
    screen.result(
        {"policy": str(policy), "unchanged": verified.is_unchanged, **verified.evidence.model_dump(mode="json")}
    )
    return int(verified.evidence.verdict.exit)
