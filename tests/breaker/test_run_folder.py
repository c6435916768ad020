"""The operator's socket: one run in a folder, however long its name, also after a run that was killed."""

from __future__ import annotations

import socket

import pytest

from interlock.errors import Exit, InterlockError
from interlock.serve.operator import Operator


def test_a_socket_that_a_killed_run_left_is_taken_away(tmp_path):
    path = tmp_path / "operator.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as killed:
        killed.bind(str(path))
        killed.listen()
    with Operator(socket_path=path) as operator, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(path))
        client.sendall(b"stop\n")
        operator.listen(1.0)
        assert [said.word for said in operator.listen(1.0)] == ["stop"]
    assert not path.exists()


def test_two_runs_in_one_folder_are_a_conflict_and_the_first_goes_on(tmp_path):
    path = tmp_path / "operator.sock"
    with Operator(socket_path=path):
        with pytest.raises(InterlockError) as refused, Operator(socket_path=path):
            pass
        assert refused.value.code == "run-busy"
        assert refused.value.exit is Exit.CONFLICT
        assert path.is_socket()


def test_a_folder_may_have_a_long_name(tmp_path):
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    with Operator(socket_path=folder / "operator.sock"):
        mode = (folder / "operator.sock").stat().st_mode
    assert mode & 0o077 == 0


def test_what_is_no_socket_is_left_alone(tmp_path):
    path = tmp_path / "operator.sock"
    path.write_text("mine")
    with pytest.raises(OSError, match="in use"), Operator(socket_path=path):
        pass
    assert path.read_text() == "mine"
