"""Help, misuse and completion of every verb."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from command_line import CommandLine

VERBS = ("go", "robot import", "freeze", "check", "build", "verify", "run", "watch", "report", "show")
USAGE = 2
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def interlock():
    with CommandLine() as line:
        yield line


def help_of(interlock, verb: str, folder: Path) -> str:
    done = interlock(*verb.split(), "--help", cwd=folder, env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert done.code == 0, done.said
    return done.out


@pytest.mark.parametrize("verb", VERBS)
def test_help_says_what_it_does_with_examples_and_json(interlock, tmp_path, verb):
    shown = help_of(interlock, verb, tmp_path)
    assert "Examples" in shown
    assert "--json" in shown
    first = shown.split("Usage:")[1].splitlines()[2].strip()
    assert len(first) > 30, f"one line that says what it does: {first!r}"
    assert re.search(rf"\$ interlock {verb} ", shown), "an example of this very verb"


@pytest.mark.parametrize("verb", VERBS)
def test_examples_name_options_that_exist(interlock, tmp_path, verb):
    shown = help_of(interlock, verb, tmp_path)
    for line in re.findall(r"\$ (interlock .+?)\s*$", shown, re.MULTILINE):
        for word in shlex.split(line):
            if word.startswith("--"):
                assert re.search(rf"{word}\b", help_of(interlock, verb, tmp_path).split("Examples")[0]), (
                    f"{word} in {line}"
                )


def test_the_list_of_verbs_is_this_one(interlock, tmp_path):
    shown = help_of(interlock, "", tmp_path)
    for verb in VERBS:
        assert re.search(rf"\b{verb.split()[0]}\b", shown)
    assert "interlock go demo" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["check"],
        ["check", "a", "b"],
        ["run", "a", "--nonsense"],
        ["run", "a", "--seconds", "soon"],
        ["run", "a", "--seconds", "-1"],
        ["run", "a", "--realtime", "maybe"],
        ["run", "a", "--sim", "--goal", "fast"],
        ["run", "a", "--lockstep"],
        ["run", "a", "--sim", "--lockstep", "--metrics", "0"],
        ["run", "a", "--sim", "--lockstep", "--probe", "ipc:///tmp/a"],
        ["run", "a", "--sim", "--lockstep", "--wait"],
        ["run", "a", "--metrics", "65536"],
        ["show", "a", "--module", "guard"],
        ["show", "a", "--log", "--full"],
        ["watch", "a", "b"],
        ["go", "somewhere", "--until", "nonsense"],
        ["robot", "nonsense"],
        ["freeze", "a", "-o"],
    ],
    ids=" ".join,
)
def test_misuse_exits_with_2_and_without_a_traceback(interlock, tmp_path, arguments):
    done = interlock(*arguments, cwd=tmp_path)
    assert done.code == USAGE, done.said
    assert "Traceback" not in done.said
    assert done.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments", [["run", "a", "--lockstep"], ["check"], ["nonsense"], ["run", "a", "--seconds", "x"]]
)
def test_misuse_is_json_too(interlock, tmp_path, arguments):
    done = interlock(*arguments, "--json", cwd=tmp_path)
    assert done.code == USAGE
    answer = done.json()
    assert answer["exit"] == USAGE
    assert answer["error"]
    assert answer["next"].startswith("interlock ")


def test_the_version_is_printed(interlock, tmp_path):
    done = interlock("--version", cwd=tmp_path)
    assert done.code == 0
    assert re.fullmatch(r"interlock \d+\.\d+\.\d+\S*\n", done.out)


def test_no_arguments_show_the_verbs(interlock, tmp_path):
    done = interlock(cwd=tmp_path)
    assert done.code == USAGE
    assert "go demo" in done.said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_offered(interlock, tmp_path, shell):
    # Named rather than detected: a job of a build server has no shell above it.
    environment = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "True"}
    done = interlock("--show-completion", shell, cwd=tmp_path, env=environment)
    assert done.code == 0, done.said
    assert "interlock" in done.out.lower()


def test_completion_knows_the_verbs(interlock, tmp_path):
    environment = {"_INTERLOCK_COMPLETE": "complete_bash", "COMP_WORDS": "interlock ", "COMP_CWORD": "1"}
    done = interlock(cwd=tmp_path, env=environment)
    assert set(done.out.split()) >= {verb.split()[0] for verb in VERBS}


@pytest.mark.parametrize("topic", ["worker-dead", "joint-missing", "yaml-tag"])
def test_a_code_can_be_looked_up(interlock, tmp_path, topic):
    done = interlock("show", topic, "--json", cwd=tmp_path)
    assert done.code == 0, done.said
    assert json.loads(done.out)["hint"]


def test_a_pipe_that_was_closed_is_no_fault(tmp_path):
    import subprocess
    import sys

    done = subprocess.run(
        f"{sys.executable} -m interlock --help | true",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr


def test_a_real_robot_is_never_started_again_by_a_count_of_episodes(interlock, tmp_path):
    done = interlock("run", "any.policy", "--episodes", "2", "--json", cwd=tmp_path)
    assert done.code == USAGE
    assert json.loads(done.out)["error"] == "episodes-need-sim"
    done = interlock("run", "any.policy", "--episodes", "2", "--sim", "--json", cwd=tmp_path)
    assert json.loads(done.out)["error"] != "episodes-need-sim", "in simulation it may"
