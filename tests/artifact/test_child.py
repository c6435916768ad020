"""A child process: what it may not do, and what becomes of it."""

import os
import select
from pathlib import Path

import numpy as np
import pytest

from interlock.artifact.child import ChildFailed, Limits, run_child
from interlock.errors import InterlockError

HEAD = "import json, os, sys, pathlib\nfolder = pathlib.Path(sys.argv[1])\n"
DONE = "\n(folder / 'answer.json').write_text(json.dumps(facts))\n"


@pytest.fixture
def program(tmp_path):
    def write(body):
        path = tmp_path / "program.py"
        path.write_text(HEAD + "facts = {}\n" + body + DONE)
        return path

    return write


def run(path, **extra):
    return run_child(path, request={"a": 1}, what="test", **extra)


def test_request_arrays_and_files_reach_it_and_its_answer_comes_back(program):
    path = program(
        "import numpy as np\n"
        "arrays = np.load(folder / 'arrays.npz', allow_pickle=False)\n"
        "np.savez(folder / 'answer.npz', twice=2 * arrays['x'])\n"
        "(folder / 'made').write_bytes((folder / 'given').read_bytes() * 2)\n"
        "facts = json.loads((folder / 'request.json').read_text())\n"
    )
    answer = run(path, arrays={"x": np.arange(3.0)}, files={"given": b"ab"}, wanted=("made",))
    assert answer.facts == {"a": 1}
    assert answer.arrays["twice"].tolist() == [0, 2, 4]
    assert answer.files == {"made": b"abab"}


def test_one_that_hangs_is_ended(program):
    with pytest.raises(ChildFailed) as caught:
        run(program("import threading\nthreading.Event().wait()\n"), limits=Limits(seconds=0.5))
    assert (caught.value.code, caught.value.exit) == ("child-timeout", 3)


def test_it_is_ended_with_all_its_children_when_the_caller_gives_up(program, tmp_path):
    note = tmp_path / "pid"
    path = program(
        "import subprocess, threading\n"
        "p = subprocess.Popen(['sleep', '600'])\n"
        f"pathlib.Path({str(note)!r}).write_text(str(p.pid))\n"
        "print('progress: started', flush=True)\n"
        "threading.Event().wait()\n"
    )

    grandchild = []

    def interrupt(text):
        if text == "started":
            grandchild.append(os.pidfd_open(int(note.read_text())))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(path, progress=interrupt)
    ended, _, _ = select.select(grandchild, [], [], 30)
    os.close(grandchild[0])
    assert ended


def test_one_that_crashes_is_a_failure_with_its_last_words(program):
    with pytest.raises(ChildFailed) as caught:
        run(program("raise RuntimeError('the weights are gone')"))
    assert "the weights are gone" in caught.value.problems[0].got


def test_one_that_is_killed_is_a_failure(program):
    with pytest.raises(ChildFailed) as caught:
        run(program("os.kill(os.getpid(), 9)"))
    assert "SIGKILL" in caught.value.problems[0].got


def test_one_that_takes_too_much_memory_is_a_failure(program):
    with pytest.raises(ChildFailed):
        run(program("x = bytearray(1 << 30)"), limits=Limits(memory_bytes=512 << 20))


def test_one_that_writes_too_much_is_a_failure(program):
    with pytest.raises(ChildFailed):
        run(program("open(folder / 'x', 'wb').write(bytes(1 << 20))"), limits=Limits(file_bytes=1 << 16))


def test_the_environment_and_the_terminal_are_not_passed_on(program, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    answer = run(
        program("facts = {'env': sorted(os.environ), 'stdin': sys.stdin.read(), 'here': os.getcwd() == str(folder)}")
    )
    assert "SECRET_TOKEN" not in answer.facts["env"]
    assert "PYTHONPATH" not in answer.facts["env"]
    assert answer.facts["stdin"] == ""
    assert answer.facts["here"]


def test_a_refusal_of_the_child_keeps_its_code(program):
    with pytest.raises(InterlockError) as caught:
        run(program("facts = {'refusal': {'code': 'weights-mismatch', 'where': 'model', 'got': 'x', 'hint': 'y'}}"))
    assert (caught.value.code, caught.value.problems[0].hint) == ("weights-mismatch", "y")


@pytest.mark.parametrize("answer", ["[1]", "not json", "[" * 100_000])
def test_an_answer_that_is_no_answer_is_a_failure(program, answer):
    with pytest.raises(ChildFailed):
        run(program(f"(folder / 'answer.json').write_text({answer!r}); os._exit(0)"))


def test_an_interpreter_that_does_not_exist_is_a_refusal(program):
    with pytest.raises(InterlockError) as caught:
        run(program(""), python=Path("/nowhere/python"))
    assert caught.value.code == "child-start"


def test_what_it_says_reaches_the_progress_callback(program):
    said = []
    run(program("print('progress: half', flush=True)"), progress=said.append)
    assert "half" in said


def test_its_folder_is_gone_afterwards(program):
    answer = run(program("facts = {'folder': str(folder)}"))
    assert not os.path.exists(answer.facts["folder"])  # noqa: PTH110
