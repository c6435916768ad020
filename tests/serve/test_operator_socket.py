"""The operator's socket is the owner's alone, and what comes over it is words from a short list."""

import os
import socket
import stat

import pytest

from interlock.errors import InterlockError
from interlock.serve.operator import Operator, parse


def test_only_its_owner_can_reach_it(tmp_path):
    path = tmp_path / "operator.sock"
    umask = os.umask(0)
    try:
        with Operator(socket_path=path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(umask)
    assert not path.exists()


@pytest.mark.parametrize("line", ["", "go", "goal 1 2", "goal nan 0 0", "goal 1e9 0 0", "task ", "ARM", "\x00"])
def test_anything_else_is_refused(line):
    with pytest.raises(InterlockError) as refusal:
        parse(line)
    assert refusal.value.code == "operator-word"


def test_a_line_that_never_ends_loses_its_sender(tmp_path):
    path = tmp_path / "operator.sock"
    with Operator(socket_path=path) as operator, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(path))
        operator.listen(1.0)
        client.sendall(b"x" * 2000)
        assert operator.listen(1.0) == []
        client.settimeout(1.0)
        assert client.recv(64) == b""
