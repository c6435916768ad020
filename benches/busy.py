"""A Python thread that never rests: the neighbour that a control loop must not notice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_thread(*, is_busy: bool) -> Iterator[None]:
    """Spins in pure Python, under the normal scheduler, for as long as the body runs."""
    if not is_busy:
        yield
        return
    ended = threading.Event()

    def spin() -> None:
        count = 0
        while not ended.is_set():
            for _ in range(1000):
                count += 1

    thread = threading.Thread(target=spin, name="busy", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
