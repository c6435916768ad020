"""The steps of the release flow as the command line shows them: one line each, details below, nothing decided here."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from interlock.adapters.readers import READERS
from interlock.artifact.evidence import Evidence, Verdict
from interlock.artifact.folder import PolicyFolder
from interlock.cli.given import given_text
from interlock.cli.load import LARGEST_TEXT, edited_problems, load_binding, robot_text, tokenizer_of
from interlock.cli.rollout import SimRollout
from interlock.cli.screen import Screen
from interlock.cli.wiring import simulated_driver
from interlock.contract.text import load_robot
from interlock.errors import InterlockError
from interlock.release.answers import read_answers
from interlock.release.build import Built
from interlock.release.build import build as build_policy
from interlock.release.check import CheckReport, check_texts
from interlock.release.freeze import Frozen
from interlock.release.freeze import freeze as freeze_policy
from interlock.release.verify import Verified
from interlock.release.verify import verify as verify_policy

Progress = Callable[[str], None]


def freeze(
    screen: Screen,
    source: Path,
    output: Path,
    *,
    robot: Path | None = None,
    answers: Path | None = None,
    contract: Path | None = None,
    reader: str = "",
    samples: Path | None = None,
    python: Path | None = None,
    number: str = "",
) -> Frozen:
    """Checkpoint to policy folder."""
    with screen.step("freeze", number) as line:
        frozen = freeze_policy(
            source,
            output,
            readers=READERS,
            reader=reader,
            robot=None if robot is None else load_robot(robot_text(robot), robot.name),
            contract=None if contract is None else _text(contract, "contract"),
            answers=None if answers is None else read_answers(_text(answers, "answers"), where=answers.name),
            answered_by=getpass.getuser(),
            answered_on=f"{datetime.now(timezone.utc):%Y-%m-%d}",
            samples=samples,
            python=python,
            progress=screen.update,
        )
        timing = frozen.contract.timing
        line.text = (
            f"{frozen.contract.name} · {len(frozen.contract.joints.names)} joints · "
            f"{float(1 / timing.period_s):g} Hz · chunk {timing.chunk} · samples {frozen.samples or 'made by verify'}"
        )
        line.unchanged = frozen.is_unchanged
    screen.detail("facts " + " · ".join(f"{origin} {count}" for origin, count in sorted(frozen.facts.items())))
    for note in frozen.notes:
        screen.detail(f"! {note}")
    return frozen


def _text(path: Path, kind: str) -> str:
    return given_text(path, kind=kind, limit=LARGEST_TEXT, hint=f"check what was given with --{kind}")


def check(screen: Screen, policy: Path, robot: Path, *, number: str = "") -> CheckReport:
    """Does it fit? Raises `InterlockError` with everything that does not."""
    with screen.step("check", number) as line:
        folder = PolicyFolder.open(policy)
        report = check_texts(folder.contract_text, robot_text(robot), robot_name=robot.name)
        if report.binding is not None and (problems := edited_problems(folder, report.binding)):
            report = replace(report, binding=None, problems=tuple(problems))
        line.text = f"{report.policy} on {report.robot}: {'fits' if report.fits else 'does not fit'}"
    for text in report.lines() if report.fits else ():
        screen.detail(text)
    return report


def build(screen: Screen, policy: Path, *, python: Path | None = None, number: str = "") -> Built:
    """Graph and engine."""
    with screen.step("build", number) as line:
        built = build_policy(policy, readers=READERS, python=python, progress=screen.update)
        engine = built.evidence.results["engine"]
        size = len(built.folder.graph())
        providers = ", ".join(f"{name} {nodes} nodes" for name, nodes in engine["providers"].items())
        line.text = f"graph {size / 1e3:,.0f} kB · onnxruntime {engine['runtime_version']} · {providers}"
        line.unchanged = built.is_unchanged
    return built


def verify(screen: Screen, policy: Path, robot: Path, *, python: Path | None = None, number: str = "") -> Verified:
    """Source = graph = served engine, in physical units."""
    with screen.step("verify", number) as line:
        folder = PolicyFolder.open(policy, rebuilding=("evidence/verify.json",))
        binding = load_binding(folder, robot)
        verified = verify_policy(
            policy,
            binding,
            readers=READERS,
            python=python,
            rollout=_rollout(folder, binding, robot),
            progress=screen.update,
        )
        line.text = verdict_text(verified.evidence)
        line.unchanged = verified.is_unchanged
    for kind in ("failures", "doubts"):
        for text in verified.evidence.results.get(kind, ()):
            screen.detail(f"{'!' if kind == 'failures' else '?'} {text}")
    if verified.evidence.verdict is not Verdict.PASS:
        screen.detail(verified.evidence.failure_response)
    return verified


def verdict_text(evidence: Evidence) -> str:
    """Verdict and the numbers that matter."""
    worst = evidence.results.get("worst", {})
    said = [evidence.verdict.value]
    if worst:
        said.append(str(worst.get("text", worst)))
    return " · ".join(said)


def _rollout(folder: PolicyFolder, binding: Any, robot: Path) -> SimRollout | None:
    """The robot's simulation, where one can run; else the rollout is made up, and the evidence says so."""
    try:
        driver = simulated_driver(binding.robot.as_json())
        __import__("mujoco")
    except (InterlockError, ImportError):
        return None
    return SimRollout(driver, binding.robot.as_json(), robot.resolve().parent, tokenizer_of(folder, binding))
