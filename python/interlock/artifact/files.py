"""Reading and writing that cannot be led out of a folder, and that is whole or absent after a crash."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import shutil
import stat
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from interlock.errors import InterlockError

LARGEST_FILE = 2 << 30  # bytes; ONNX in memory is bounded by protobuf's 2 GiB
MOST_FILES = 10_000
DEEPEST = 16
_RENAME_EXCHANGE = 2  # linux/fs.h


def sha256(content: bytes) -> str:
    """Lower-case hex SHA-256 of the very bytes that are used."""
    return hashlib.sha256(content).hexdigest()


def safe_name(name: str, *, where: str) -> str:
    """Returns `name` when it is a plain relative path inside a folder.

    Raises:
        InterlockError: `path-escape` for absolute, climbing, backslashed, control or over-long names.
    """
    parts = name.split("/")
    bad = (
        not name
        or len(name) > 1024
        or "\\" in name
        or any(ord(character) < 32 or ord(character) == 127 for character in name)
        or any("\ud800" <= character <= "\udfff" for character in name)  # bytes that are no text
        or any(part in {"", ".", ".."} or len(part.encode()) > 255 for part in parts)
        or unicodedata.normalize("NFC", name) != name
    )
    if bad:
        raise InterlockError(
            code="path-escape",
            where=where,
            expected="a plain relative path inside the folder",
            got=repr(name[:120]),
            hint="nothing outside the folder is ever read; put the file inside and name it plainly",
        )
    return name


def read_file(root: Path, name: str, *, limit: int = LARGEST_FILE) -> bytes:
    """Reads a regular file below `root`, never through a link.

    Raises:
        InterlockError: `path-escape`, `file-missing`, `file-kind`, `file-size`.
    """
    *folders, last = safe_name(name, where=name).split("/")
    folder = -1
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for each in folders:
            inner = os.open(each, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = inner
        handle = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError as cause:
        raise _unreadable(name, cause) from None
    finally:
        if folder >= 0:
            os.close(folder)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise InterlockError(
                code="file-kind",
                where=name,
                expected="a regular file",
                got="a pipe, socket, device or folder",
                hint="copy the file itself into the folder",
            )
        if found.st_size > limit:
            raise InterlockError(
                code="file-size",
                where=name,
                expected=f"at most {limit} bytes",
                got=f"{found.st_size}",
                hint="it was changed, or it is not what its name says",
            )
        content = file.read(found.st_size + 1)  # a limit may be a stranger's claim
    if len(content) != found.st_size:
        raise InterlockError(
            code="file-size",
            where=name,
            expected=f"{found.st_size} bytes",
            got=f"{len(content)} while reading",
            hint="somebody writes to it at this moment; try again when they are done",
        )
    return content


def _unreadable(name: str, cause: OSError) -> InterlockError:
    if cause.errno in {errno.ELOOP, errno.ENOTDIR}:
        return InterlockError(
            code="file-kind",
            where=name,
            expected="a regular file",
            got="a link, or a link on the way to it",
            hint="links are never followed; copy the file to where it is named",
        )
    return InterlockError(
        code="file-missing",
        where=name,
        expected="a readable file",
        got=os.strerror(cause.errno or 0),
        hint="copy the whole folder again",
    )


def list_files(root: Path, *, links: Literal["refuse", "skip"] = "refuse") -> list[str]:
    """Relative names of all regular files below `root`, sorted.

    Args:
        root: The folder.
        links: What happens on a link, pipe, socket or device, or a name that could not be read back.

    Raises:
        InterlockError: `file-kind` for links and the like; `folder-size` beyond the bounds.
    """
    found: list[str] = []
    _collect(root, "", 0, found, skip=links == "skip")
    return sorted(found)


def _collect(folder: Path, prefix: str, depth: int, found: list[str], *, skip: bool) -> None:
    if depth > DEEPEST:
        raise InterlockError(
            code="folder-size",
            where=prefix,
            expected=f"at most {DEEPEST} folders deep",
            got="more",
            hint="point at the folder of one checkpoint",
        )
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as cause:
        raise _unreadable(prefix or str(folder), cause) from None
    for entry in entries:
        name = prefix + entry.name
        try:
            safe_name(name, where=name)
        except InterlockError:
            if skip:
                continue
            raise
        if entry.is_dir(follow_symlinks=False):
            _collect(folder / entry.name, f"{name}/", depth + 1, found, skip=skip)
        elif entry.is_file(follow_symlinks=False):
            found.append(name)
        elif not skip:
            raise InterlockError(
                code="file-kind",
                where=name,
                expected="a regular file",
                got="a link" if entry.is_symlink() else "a pipe, socket or device",
                hint="copy the file itself into the folder",
            )
        if len(found) > MOST_FILES:
            raise InterlockError(
                code="folder-size",
                where=str(folder),
                expected=f"at most {MOST_FILES} files",
                got="more",
                hint="point at the folder of one checkpoint",
            )


def write_file(root: Path, name: str, content: bytes) -> None:
    """Writes a file below `root`: the old content or the new one is there after a crash, never a mixture."""
    target = root / safe_name(name, where=name)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=".tmp-", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """A new folder that takes the place of `target` at the end of the block, at once, or vanishes on any error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.tmp-", dir=target.parent))
    staging.chmod(0o755)
    try:
        yield staging
        for folder in sorted((path for path in staging.rglob("*") if path.is_dir()), reverse=True):
            sync_folder(folder)
        sync_folder(staging)
        _take_place(staging, target)
        sync_folder(target.parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _take_place(staging: Path, target: Path) -> None:
    """Renames `staging` to `target`; an existing folder changes places with it and is left under `staging`."""
    if not target.exists():
        staging.rename(target)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    current = -100  # AT_FDCWD
    done: int = libc.renameat2(current, os.fsencode(staging), current, os.fsencode(target), _RENAME_EXCHANGE)
    if done == 0:
        return
    # A file system without exchange: for an instant only the old folder under another name exists.
    aside = staging.with_name(f"{staging.name}.old")
    target.rename(aside)
    staging.rename(target)
    shutil.rmtree(aside, ignore_errors=True)
