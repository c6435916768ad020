"""`freeze`, `check`, `build`, `verify`: one step each."""

from __future__ import annotations

from pathlib import Path

from interlock.cli import steps
from interlock.cli.screen import Screen
from interlock.errors import Exit


def freeze(
    source: Path,
    *,
    robot: Path | None,
    answers: Path | None,
    contract: Path | None,
    samples: Path | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Freezes; returns the exit code."""
    screen = Screen(as_json=as_json)
    target = output or Path(f"{source.resolve().stem}.policy")
    frozen = steps.freeze(screen, source, target, robot=robot, answers=answers, contract=contract, samples=samples)
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
    report = steps.check(screen, policy, robot)
    if not as_json:
        report.bound()
    screen.say(f"next: interlock build {policy}")
    screen.result(report.as_json())
    return int(Exit.DONE if report.fits else Exit.REFUSED if report.problems else Exit.NEEDS_ANSWER)


def build(policy: Path, robot: Path, *, as_json: bool) -> int:
    """Builds, after fit where a robot file is at hand; returns the exit code."""
    screen = Screen(as_json=as_json)
    if robot.exists():
        steps.check(Screen(as_json=True), policy, robot).bound()
    built = steps.build(screen, policy)
    screen.say(f"next: interlock verify {policy} --robot {robot}")
    screen.result({"policy": str(policy), "unchanged": built.is_unchanged, **built.evidence.model_dump(mode="json")})
    return int(built.evidence.verdict.exit)


def verify(policy: Path, robot: Path, *, as_json: bool) -> int:
    """Verifies; returns the exit code of the verdict."""
    screen = Screen(as_json=as_json)
    verified = steps.verify(screen, policy, robot)
    if verified.evidence.verdict.exit is Exit.DONE:
        screen.say(f"next: interlock run {policy} --robot {robot} --sim")
    screen.result(
        {"policy": str(policy), "unchanged": verified.is_unchanged, **verified.evidence.model_dump(mode="json")}
    )
    return int(verified.evidence.verdict.exit)
