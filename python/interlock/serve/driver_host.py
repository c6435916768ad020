"""The loop of a driver's process: measure, publish, hand commands to the drives."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
from typing import Any

import numpy as np

from interlock import _core
from interlock.errors import InterlockError
from interlock.ports.driver import Command, CommandKind, Driver, State
from interlock.serve.links import DriverLinks

HEAD = 4  # mode, kind, running, reserved
LINGER_NS = 3_000_000_000  # after the supervisor's death: long enough for the drives' own behaviour to be seen
LOOK_NS = 50_000_000  # longest sleep: a slow robot's driver hears a signal, too
CLOSE_NS = 5_000_000_000  # and for `stop` and `close`; a driver that hangs in any of its methods ends here


def host(driver: Driver, links: DriverLinks, *, joints: int, parent_pid: int, admin: socket.socket | None) -> None:
    """Runs until the parent has been gone for `LINGER_NS`, or until it asks for the end.

    Args:
        driver: The robot.
        links: Shared memory.
        joints: Number of joints.
        parent_pid: The supervisor's process; its death ends this one.
        admin: Where a simulation is asked for things; None for real robots.
    """
    driver.connect()
    state = State(joints)
    packet = np.zeros(HEAD + 5 * joints)
    seen = 0
    next_ns = _core.monotonic_ns()
    gone_ns = 0
    try:
        while True:
            now = _core.monotonic_ns()
            if now < next_ns:
                if links.command.wait(seen, min(next_ns - now, LOOK_NS)):
                    seen = _write_newest(driver, links, packet, joints, seen)
                continue
            next_ns = max(next_ns + driver.period_ns, now)
            driver.read(state, now)
            links.state.publish(state.flat, state.capture_ns)
            for image in driver.images(now):
                links.images[image.camera].publish(np.ascontiguousarray(image.pixels).reshape(-1), image.capture_ns)
            if admin is not None and not _serve_admin(driver, admin):
                return
            if os.getppid() != parent_pid:
                gone_ns = gone_ns or now
                if now - gone_ns > LINGER_NS:
                    return
    finally:
        driver.stop()
        driver.close()


def _write_newest(driver: Driver, links: DriverLinks, packet: Any, joints: int, seen: int) -> int:
    newest = links.command.latest(packet)
    if newest is None or newest[0] == seen:
        return seen
    rows = packet[HEAD:].reshape(5, joints).copy()
    command = Command(CommandKind(int(packet[1])), bool(packet[2]), *rows)
    driver.write(command, _core.monotonic_ns())
    return newest[0]


def _serve_admin(driver: Driver, admin: socket.socket) -> bool:
    """Answers one request if there is one; False: asked to end."""
    if not select.select([admin], [], [], 0)[0]:
        return True
    try:
        line = admin.recv(65536)
    except ConnectionError:
        line = b""
    if not line:  # the supervisor is gone; the loop notices by itself and lingers
        return True
    request = json.loads(line)
    if request.get("do") == "end":
        admin.send(json.dumps({"id": request.get("id")}).encode())
        return False
    answer = getattr(driver, "admin", None)
    try:
        reply = {} if answer is None else answer(request, _core.monotonic_ns())
    except (InterlockError, ValueError, KeyError) as cause:
        reply = {"error": str(cause)}
    with contextlib.suppress(OSError):
        admin.send(json.dumps({**reply, "id": request.get("id")}).encode())
    return True
