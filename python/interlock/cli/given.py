"""Files that a person names on the command line: read once, within bounds, whatever stands there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from interlock.errors import InterlockError


def given_bytes(path: Path, *, kind: str, limit: int, hint: str, next: str = "") -> bytes:
    """Content of a regular file; a pipe or a device is never waited on.

    Args:
        path: As it was named; links are followed, since a person named it.
        kind: First part of the codes, and the word for it: `robot`, `contract`, `answers`, `model`.
        limit: Largest size in bytes.
        hint: What to do where there is no such file.
        next: Next command where there is no such file.

    Raises:
        InterlockError: `KIND-missing`, `KIND-size`.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as cause:
        got = getattr(cause, "strerror", None) or str(cause)
        raise _missing(path, kind, got, hint, next) from None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            got = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe, socket or device"
            raise _missing(path, kind, got, hint, next)
        content = b"" if found.st_size > limit else file.read(limit + 1)
    if max(found.st_size, len(content)) > limit:
        raise InterlockError(
            code=f"{kind}-size",
            where=str(path),
            expected=f"at most {limit} bytes",
            got="more",
            hint=f"no {kind} file is this large; check that it is the right file",
        )
    return content


def given_text(path: Path, *, kind: str, limit: int, hint: str, next: str = "") -> str:
    """The same as UTF-8 text.

    Raises:
        InterlockError: `KIND-encoding`, and as `given_bytes`.
    """
    try:
        return given_bytes(path, kind=kind, limit=limit, hint=hint, next=next).decode("utf-8")
    except UnicodeDecodeError as cause:
        raise InterlockError(
            code=f"{kind}-encoding",
            where=str(path),
            expected="UTF-8 text",
            got=f"other bytes at byte {cause.start}",
            hint="save it as UTF-8 in your editor, or check that it is the right file",
        ) from None


def _missing(path: Path, kind: str, got: str, hint: str, next: str) -> InterlockError:
    article = "an" if kind[0] in "aeiou" else "a"
    return InterlockError(
        code=f"{kind}-missing", where=str(path), expected=f"{article} {kind} file", got=got, hint=hint, next=next
    )
