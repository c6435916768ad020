"""The process that publishes snapshots of a policy's probes over ZeroMQ, from a ring that the worker fills.

The worker copies a snapshot after its answer is on its way and never waits for this process, which never waits for its
subscribers: what one of them is too slow for is dropped for that one. Imported by that process alone; it needs the
extra `probe`.
"""

from __future__ import annotations

import contextlib
import os

import zmq

from interlock import _core

HIGH_WATER = 4  # snapshots that wait for a slow subscriber
LOOK_NS = 200_000_000  # between two looks at whether the supervisor lives
NICE = 10
TOPIC = "probe/"


def publish(snapshots: _core.Probes, endpoint: str, listener: int, parent_pid: int) -> None:
    """Publishes until the supervisor is gone: two frames, `probe/NAME` and an `interlock.v1.Probe`.

    Args:
        snapshots: What is published.
        endpoint: ZeroMQ address.
        listener: Descriptor of the socket that listens there, as `probes.listen` made it.
        parent_pid: The supervisor.
    """
    with contextlib.suppress(OSError):
        os.nice(NICE)
    with zmq.Context() as context, context.socket(zmq.PUB) as publisher:
        publisher.setsockopt(zmq.SNDHWM, HIGH_WATER)
        publisher.setsockopt(zmq.LINGER, 0)
        publisher.setsockopt(zmq.USE_FD, listener)
        publisher.bind(endpoint)
        while os.getppid() == parent_pid:
            snapshot = snapshots.take(LOOK_NS)
            if snapshot is not None:
                name, message = snapshot
                # A PUB socket drops for whoever does not keep up; it never blocks.
                publisher.send_multipart([f"{TOPIC}{name}".encode(), message], zmq.NOBLOCK)
