"""Every refusal ends with the next command to type; deep down nobody knows which step is being taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from interlock.errors import InterlockError


@contextmanager
def next_command(command: str) -> Iterator[None]:
    """Gives refusals from inside the block this next command, unless they know a better one."""
    try:
        yield
    except InterlockError as refusal:
        refusal.next = refusal.next or command
        raise
