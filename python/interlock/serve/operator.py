"""What an operator may say, in words. The same words come from the command line, the keyboard and a local socket."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from interlock.errors import Exit, InterlockError

REQUESTS = ("arm", "start", "stop", "recover", "takeover", "release", "disarm", "quit")
MARKS = ("success", "failure")
KEYS = {
    "a": "arm",
    "\r": "start",
    "\n": "start",
    " ": "stop",
    "r": "recover",
    "t": "takeover",
    "l": "release",
    "S": "success",
    "F": "failure",
    "q": "quit",
    "\x03": "stop",
}
STEP_MPS = 0.1
KEY_STEPS = {
    "w": (STEP_MPS, 0.0, 0.0),
    "s": (-STEP_MPS, 0.0, 0.0),
    "d": (0.0, 0.0, -STEP_MPS),
    "e": (0.0, 0.0, STEP_MPS),
}
LONGEST_LINE = 1024
MOST_CLIENTS = 4


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that the operator said.

    Attributes:
        word: A request, a mark, `task` or `goal`.
        text: The task's text.
        velocity: (lin_vel_x m/s, lin_vel_y m/s, ang_vel_z rad/s).
    """

    word: str
    text: str = ""
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)


def parse(line: str) -> Said:
    """Reads one line: `stop`, `task reach the red block`, `goal 0.5 0 0`. Raises `InterlockError` otherwise."""
    word, _, rest = line.strip().partition(" ")
    if (word in REQUESTS or word in MARKS) and not rest.strip():
        return Said(word)
    if word == "task" and rest.strip():
        return Said("task", text=rest.strip())
    if word == "goal":
        try:
            parts = [float(each) for each in rest.replace(",", " ").split()]
        except ValueError:
            parts = []
        if len(parts) == 3 and all(abs(each) < 100 for each in parts):
            return Said("goal", velocity=(parts[0], parts[1], parts[2]))
    raise InterlockError(
        code="operator-word",
        where="operator",
        expected=f"{', '.join((*REQUESTS, *MARKS))}, `task TEXT` or `goal VX VY WZ`",
        got=line.strip()[:80] or "an empty line",
    )


def _listener(path: Path) -> socket.socket:
    """A socket that this user alone may speak to. Raises `InterlockError` while another run listens there."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    mask = os.umask(0o177)
    try:
        # By its folder's descriptor: a socket's address holds 107 bytes only.
        near = f"/proc/self/fd/{folder}/{path.name}"
        if path.is_socket():
            _clear(near, path)
        listener.bind(near)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(mask)
        os.close(folder)
    return listener


def _clear(near: str, path: Path) -> None:
    """Takes away what a killed run left."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(near)
        except ConnectionRefusedError:
            path.unlink()
            return
    raise InterlockError(
        code="run-busy",
        where=str(path.parent),
        expected="one run in a folder",
        got="another one that listens there",
        hint="end it first, or choose another folder with -o",
        exit=Exit.CONFLICT,
    )


@dataclass(slots=True)
class Operator:
    """Listens to the keyboard (when standard input is a terminal) and to a local socket.

    Attributes:
        socket_path: Where the socket is made, readable by this user alone; None for none.
        keyboard: Whether keys are read.
        closed: The terminal went away.
        judge: Refuses what the policy does not take, so that whoever says it is told at once.
    """

    socket_path: Path | None = None
    keyboard: bool = False
    closed: bool = False
    judge: Callable[[Said], None] | None = None
    velocity: tuple[float, float, float] = (0.0, 0.0, 0.0)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    _listener: socket.socket | None = None
    _buffers: dict[int, bytes] = field(default_factory=dict)
    _terminal: list[object] | None = None

    def __enter__(self) -> Operator:
        if self.socket_path is not None:
            listener = _listener(self.socket_path)
            listener.listen(MOST_CLIENTS)
            listener.setblocking(False)
            self._listener = listener
            self._selector.register(listener, selectors.EVENT_READ)
        if self.keyboard:
            self._terminal = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin)
            self._selector.register(sys.stdin, selectors.EVENT_READ)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._terminal is not None and not self.closed:
            with contextlib.suppress(termios.error):  # it went away unheard
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._terminal)  # type: ignore[arg-type]
        if self._listener is not None and self.socket_path is not None:
            self._listener.close()
            self.socket_path.unlink(missing_ok=True)
        self._selector.close()

    @property
    def present(self) -> bool:
        """Whether somebody could say something: a terminal that is open, or a connected client."""
        return (self.keyboard and not self.closed) or bool(self._buffers)

    @contextmanager
    def line_mode(self) -> Iterator[None]:
        """Typed lines are shown and can be corrected, as in any prompt; single keys are not heard meanwhile."""
        if self._terminal is None:
            yield
            return
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._terminal)  # type: ignore[arg-type]
        try:
            yield
        finally:
            tty.setcbreak(sys.stdin)

    def listen(self, timeout_s: float) -> list[Said]:
        """Everything said within `timeout_s`; returns at once when something was."""
        heard: list[Said] = []
        for key, _ in self._selector.select(timeout_s):
            source = key.fileobj
            if source is self._listener:
                self._accept()
            elif source is sys.stdin:
                heard.extend(self._read_keys())
            elif isinstance(source, socket.socket):
                heard.extend(self._read_client(source))
        return heard

    def _accept(self) -> None:
        assert self._listener is not None
        client, _ = self._listener.accept()
        if len(self._buffers) >= MOST_CLIENTS:
            with contextlib.suppress(OSError):
                client.send(f"error[operator-busy]: operator: {MOST_CLIENTS} are connected already\n".encode())
            client.close()
            return
        client.setblocking(False)
        self._buffers[client.fileno()] = b""
        self._selector.register(client, selectors.EVENT_READ)

    def _read_keys(self) -> list[Said]:
        try:
            keys = os.read(sys.stdin.fileno(), 64)
        except OSError:
            keys = b""
        if not keys:
            self._selector.unregister(sys.stdin)
            self.closed = True
            return []
        return [said for key in keys.decode(errors="ignore") if (said := self._key(key)) is not None]

    def _key(self, key: str) -> Said | None:
        if key in KEYS:
            return Said(KEYS[key])
        if key in KEY_STEPS:
            x, y, z = (round(a + b, 3) for a, b in zip(self.velocity, KEY_STEPS[key], strict=True))
            said = Said("goal", velocity=(x, y, z))
            with contextlib.suppress(InterlockError):  # a step that is refused is not taken; the session says so
                self._judged(said)
                self.velocity = said.velocity
            return said
        return None

    def _judged(self, said: Said) -> Said:
        if self.judge is not None:
            self.judge(said)
        return said

    def _read_client(self, client: socket.socket) -> list[Said]:
        descriptor = client.fileno()
        try:
            received = client.recv(4096)
        except OSError:
            received = b""
        *lines, rest = (self._buffers[descriptor] + received).split(b"\n")
        if not received or len(rest) > LONGEST_LINE:
            self._selector.unregister(client)
            del self._buffers[descriptor]
            client.close()
            return []
        self._buffers[descriptor] = rest
        heard = []
        for line in lines:
            try:
                heard.append(parse(line.decode(errors="replace")))
                self._judged(heard[-1])
                reply = b"ok\n"
            except InterlockError as refusal:
                reply = ("\n".join(refusal.lines()) + "\n").encode()
            try:
                client.send(reply)
            except OSError:
                continue
        return heard
