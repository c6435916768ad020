"""The command line, run many times without paying for its imports each time.

A server process imports everything once and forks for every call; the child then runs the very entry point of the
installed command, with arguments, folder and streams of its own. Run as a program, this file is that server.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

LONGEST_S = 60
# What others import at their first use; here once for all calls.
LAZY = ("pydantic.type_adapter", "rich._emoji_codes", "rich.markdown", "typer._adapters", "typer.rich_utils", "pwd")


@dataclass(frozen=True)
class Done:
    """How one call ended."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err

    def lines(self, start: str) -> list[str]:
        return [line for line in self.said.splitlines() if line.startswith(start)]

    def json(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.out)
        return answer


class CommandLine:
    """Calls `interlock ARGUMENTS`; use as a context."""

    def __enter__(self) -> CommandLine:
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(10)

    def __call__(self, *arguments: object, cwd: Path, env: dict[str, str] | None = None, plain: bool = False) -> Done:
        """`plain`: without the rights by which root reads everything."""
        request = {"arguments": [str(each) for each in arguments], "cwd": str(cwd), "env": env or {}, "plain": plain}
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        answer = json.loads(self._server.stdout.readline())
        return Done(answer["code"], answer["out"], answer["err"])


def serve() -> None:
    """Answers one request a line until its input ends."""
    for module in ("go", "release", "report", "robot", "run", "show", "watch", "verbs", "main"):
        import_module(f"interlock.cli.{module}")
    for module in LAZY:
        with contextlib.suppress(ImportError):
            import_module(module)
    gc.collect()
    gc.freeze()  # what every child has in common is neither looked at nor copied again
    for line in sys.stdin:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                _run(json.loads(line), out.fileno(), err.fileno())
            _, status = os.waitpid(child, 0)
            code = os.waitstatus_to_exitcode(status)
            answer = {"code": code, "out": _text(out.fileno()), "err": _text(err.fileno())}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _text(descriptor: int) -> str:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")


def _drop_rights() -> None:
    """Gives up every capability: files without read permission become unreadable, for root too."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this process
    nothing = (ctypes.c_uint32 * 6)()
    if ctypes.CDLL(None, use_errno=True).capset(header, nothing) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def _run(request: dict[str, Any], out: int, err: int) -> None:
    """Becomes the command; never returns."""
    from interlock.cli.main import run

    signal.alarm(LONGEST_S)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    for descriptor, stream in ((nowhere, 0), (out, 1), (err, 2)):
        os.dup2(descriptor, stream)
    os.chdir(request["cwd"])
    os.environ.update(request["env"])
    if request["plain"]:
        _drop_rights()
    sys.argv = ["interlock", *request["arguments"]]
    code = 99  # what escapes the entry point itself
    with contextlib.suppress(BaseException):
        try:
            run()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
            raise
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve()
