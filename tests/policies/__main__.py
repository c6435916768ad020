"""`make policies`: each walker from its files to ten seconds of walking, through the command line. Exit 1 if one fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from interlock.cli.load import load_bound
from interlock.cli.wiring import make_plant
from interlock.runtime.lockstep import Episode, LockstepResult, run_lockstep
from tests.policies.walkers import NO_WORSE, SPEED_TOLERANCE, WALK_S, WALKERS, Walker, freeze_arguments, stage

ROOT = Path(__file__).parents[2]


def interlock(place: Path, *arguments: str) -> dict[str, Any]:
    """One command; its JSON answer with the exit code under `rc`."""
    done = subprocess.run(
        [sys.executable, "-m", "interlock", *arguments],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        answer = {"error": done.stderr.strip() or done.stdout.strip()}
    return {**answer, "rc": done.returncode}


def without_guard(walker: Walker, place: Path) -> LockstepResult:
    """The same run with nothing between policy and drives: in this process, since no command line offers it."""
    joined = load_bound(place / "walker.policy", place / "robot.yaml")
    goal = tuple(map(float, walker.goal.split(",")))
    return run_lockstep(joined, make_plant("sim:mujoco", joined), Episode(seconds=WALK_S, goal=goal, guard=False))


def walk(walker: Walker, policies: Path, folder: Path) -> tuple[bool, str]:
    """(passed, line) for one policy."""
    place = stage(walker, policies, folder)
    for step in (
        freeze_arguments(walker, policies),
        ["check", "walker.policy", "--json"],
        ["build", "walker.policy", "--json"],
        ["verify", "walker.policy", "--json"],
    ):
        answer = interlock(place, *step)
        if answer["rc"] != 0:
            return False, f"{walker.name}: {step[0]} ended with {answer['rc']}: {answer.get('problems', answer)}"
    parity = answer["results"].get("worst", {}).get("text", "") or answer["verdict"]
    run = ["run", "walker.policy", "--sim", f"--goal={walker.goal}", f"--seconds={WALK_S}", "--json"]
    lockstep = interlock(place, *run, "--lockstep")
    paced = interlock(place, *run)
    if "episodes" not in lockstep or "episodes" not in paced:
        return False, f"{walker.name}: run: {lockstep.get('problems')} {paced.get('problems')}"
    stepped, real = lockstep["episodes"][0], paced["episodes"][0]
    speed = stepped["forward_mps"]
    bare = without_guard(walker, place)
    passed = (
        lockstep["rc"] == 0
        and not stepped["fallen"]
        and abs(speed - walker.speed_mps) <= SPEED_TOLERANCE * walker.speed_mps
        and stepped["refused"] == 0
        and (bare.outcome.fallen or speed >= bare.forward_mps * (1 - NO_WORSE))
    )
    acted = ", ".join(f"{code} {count}" for code, count in stepped["codes"].items()) or "nothing"
    counters = paced.get("counters", {})
    return passed, (
        f"{'PASS' if passed else 'FAIL'} {walker.name:<14} goal {walker.goal:<8} {speed:.3f} m/s "
        f"({speed / walker.speed_mps - 1:+.1%} of {walker.speed_mps}) · {'FELL' if stepped['fallen'] else 'upright'} · "
        f"without guard {bare.forward_mps:.3f} m/s{' FELL' if bare.outcome.fallen else ''} · "
        f"parity {parity} · guard limited {stepped['limited']} of {stepped['ticks']} ({acted}), refused {stepped['refused']}"
        f" · paced: {real.get('forward_mps', float('nan')):.3f} m/s, {real['ended']}, "
        f"{counters.get('missed', '?')} of {counters.get('planned', '?')} ticks missed"
    )


def main() -> int:
    """Runs all four."""
    policies = Path(os.environ.get("INTERLOCK_POLICIES", ROOT.parent / "shared" / "policies"))
    if not policies.is_dir():
        print(f"not evaluated: the published policies are not at hand (INTERLOCK_POLICIES={policies})")
        return 3
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for walker in WALKERS:
            passed, line = walk(walker, policies.resolve(), Path(folder))
            print(line, flush=True)
            results.append(passed)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
