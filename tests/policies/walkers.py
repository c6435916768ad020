"""The four published ONNX walkers: how each is frozen, what it must do, and the folder that a run needs."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SPEED_TOLERANCE = 0.05  # of the speed in the policies' own table
NO_WORSE = 0.01  # of the speed without the guard
WALK_S = 10.0


@dataclass(frozen=True)
class Walker:
    """One policy. Speeds are body-frame forward, m/s, averaged after two seconds of gait onset."""

    name: str
    source: str  # inside the policies' folder
    goal: str
    speed_mps: float
    options: tuple[str, ...]  # of freeze, relative to `HERE/name`


WALKERS = (
    Walker("pg_go1", "pg_go1/go1_policy.onnx", "1.0,0,0", 1.02, ("--contract", "contract.yaml")),
    Walker("url_g1", "url_g1", "0.5,0,0", 0.48, ()),
    Walker("hs_g1_ppo", "hs_g1_ppo", "0.5,0,0", 0.39, ("--answers", "answers.yaml")),
    Walker("hs_g1_fastsac", "hs_g1_fastsac", "0.5,0,0", 0.42, ("--answers", "answers.yaml")),
)


def stage(walker: Walker, policies: Path, folder: Path) -> Path:
    """A working folder with robot.yaml, the model beside it, and what freeze is answered with."""
    place = folder / walker.name
    place.mkdir(parents=True)
    for file in (HERE / walker.name).glob("*.yaml"):
        shutil.copy(file, place / file.name)
    (place / "model.xml").symlink_to(policies / walker.name / "model.xml")
    return place


def freeze_arguments(walker: Walker, policies: Path) -> list[str]:
    """Arguments of `interlock freeze`, run inside the staged folder."""
    return [
        "freeze",
        str(policies / walker.source),
        "--robot",
        "robot.yaml",
        *walker.options,
        "-o",
        "walker.policy",
        "--json",
    ]
