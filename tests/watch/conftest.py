"""A run in another process, and watchers of it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interlock import _core
from interlock.runtime.beacon import Attached

for folder in ("core", "view"):
    sys.path.append(str(Path(__file__).parents[1] / folder))

A_RUN = Path(__file__).parent / "a_run.py"
ARM = Path(__file__).parents[2] / "python" / "interlock" / "adapters" / "arm"


def run_command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`interlock ARGUMENTS`, without a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "interlock", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


class ARun:
    """One run: its process, its folder, its children."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, str(A_RUN), str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.children = json.loads(self.process.stdout.readline())["pids"]
        self.watchers: list[subprocess.Popen] = []

    def end(self) -> None:
        """In order."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)

    def kill(self) -> None:
        """Without a word."""
        self.process.kill()
        self.process.wait(30)

    def watch(self, *arguments: str) -> subprocess.Popen:
        """`interlock watch` in a process of its own."""
        watcher = subprocess.Popen(
            [sys.executable, "-m", "interlock", "watch", str(self.folder), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.watchers.append(watcher)
        with Attached.open(self.folder) as attached:
            while "interlock-status" not in Path(f"/proc/{watcher.pid}/maps").read_text():
                if watcher.poll() is not None or attached.wait(0.01):
                    break
        return watcher

    def numbers(self) -> dict:
        """What it shows now, read in this process."""
        with Attached.open(self.folder) as attached:
            seen = attached.watched.look()
        assert seen is not None
        return seen

    def ticks(self, count: int) -> tuple[dict, dict]:
        """Lets this many ticks be executed; the numbers before and after."""
        before = after = self.numbers()
        deadline = _core.monotonic_ns() + 30_000_000_000
        with Attached.open(self.folder) as attached:
            while after["executed"] - before["executed"] < count:
                assert _core.monotonic_ns() < deadline, after
                attached.wait(0.02)
                after = attached.watched.look() or after
        return before, after

    def clean(self) -> None:
        for watcher in self.watchers:
            watcher.send_signal(signal.SIGCONT)
            watcher.kill()
            watcher.communicate()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()
        for child in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


@pytest.fixture
def a_run(tmp_path):
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    run = ARun(folder)
    yield run
    run.clean()


@pytest.fixture(scope="session")
def arm_copy(tmp_path_factory):
    """The arm's policy as the package ships it, its source put back, beside its robot file."""
    folder = tmp_path_factory.mktemp("arm")
    policy = folder / "reach-block.policy"
    shutil.copytree(ARM / "frozen", policy)
    for name in json.loads((policy / "lock.json").read_text())["files"]:
        if name.startswith("source/"):
            (policy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ARM / "reach_block" / name.removeprefix("source/"), policy / name)
    for name in ("robot.yaml", "scene.xml"):
        shutil.copy(ARM / name, folder)
    return policy


@pytest.fixture
def interlock():
    """The command line."""
    return run_command
