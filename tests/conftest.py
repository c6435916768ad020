"""What many tests need: the arm's policy, frozen and built once, and where shared policies lie."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ARM = ROOT / "python" / "interlock" / "adapters" / "arm"


def interlock(*arguments: object, cwd: Path | None = None, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs the command line as a user would."""
    return subprocess.run(
        [sys.executable, "-m", "interlock", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture(scope="session")
def shared_policies() -> Path:
    """The folder of published walking policies; skips where it is absent."""
    folder = Path(os.environ.get("INTERLOCK_POLICIES", ROOT.parent / "shared" / "policies"))
    if not folder.is_dir():
        pytest.skip(f"the published walking policies are not at hand (INTERLOCK_POLICIES={folder})")
    return folder


@pytest.fixture(scope="session")
def arm_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with robot.yaml, scene.xml and reach-block.policy, frozen and built from the checkpoint."""
    pytest.importorskip("torch", reason="exporting the checkpoint needs the extra `export`")
    folder = tmp_path_factory.mktemp("arm")
    shutil.copy(ARM / "robot.yaml", folder)
    shutil.copy(ARM / "scene.xml", folder)
    for step in (("freeze", ARM / "reach_block", "-o", "reach-block.policy"), ("build", "reach-block.policy")):
        done = interlock(*step, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="session")
def arm_policy(arm_folder: Path) -> Path:
    """The built policy folder; beside it lies its robot.yaml."""
    return arm_folder / "reach-block.policy"
