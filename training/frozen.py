"""Freezes, builds and verifies the committed checkpoint into the folder that is shipped for users without torch."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ARM = Path(__file__).parents[1] / "python" / "interlock" / "adapters" / "arm"


def main() -> None:
    """Replaces `adapters/arm/frozen`; the source files stay where they are, beside it."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("robot.yaml", "scene.xml"):
            shutil.copyfile(ARM / name, folder / name)
        policy = folder / "reach-block.policy"
        for step in (("freeze", ARM / "reach_block", "-o", policy), ("build", policy), ("verify", policy)):
            subprocess.run([sys.executable, "-m", "interlock", *map(str, step)], cwd=folder, check=True)
        target = ARM / "frozen"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(policy, target, ignore=shutil.ignore_patterns("source"))


if __name__ == "__main__":
    main()
