"""Named arrays as `.npz`: deterministic writing, and reading that can neither run code nor blow up."""

from __future__ import annotations

import ast
import io
import math
import re
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlock.errors import InterlockError

Arrays = dict[str, NDArray[Any]]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,119}")
_DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f[248]|U[0-9]{1,5})")  # no objects, no records
_MAGIC = b"\x93NUMPY"
LARGEST = 2 << 30  # bytes, all arrays together


def write_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The same arrays give the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in sorted(arrays):
            if not _NAME.fullmatch(name):
                raise ValueError(f"array name: expected letters, digits, . _ -, got {name!r}")
            inner = io.BytesIO()
            np.lib.format.write_array(inner, np.ascontiguousarray(arrays[name]), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, inner.getvalue())
    return out.getvalue()


def read_arrays(content: bytes, *, where: str, limit: int = LARGEST) -> Arrays:
    """Reads every array.

    Raises:
        InterlockError: `npz-malformed`, `npz-size` (more than `limit` bytes unpacked), `pickle-refused`.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            entries = archive.infolist()
            total = sum(entry.file_size for entry in entries)
            if total > limit or len(entries) > 1000:
                raise InterlockError(
                    code="npz-size",
                    where=where,
                    expected=f"at most {limit} bytes unpacked",
                    got=f"{total}",
                    hint="give fewer observations; two dozen are looked at",
                )
            found: Arrays = {}
            for entry in entries:
                name = entry.filename.removesuffix(".npy")
                if name == entry.filename or not _NAME.fullmatch(name) or name in found or entry.flag_bits & 1:
                    raise _malformed(where, f"an entry called {entry.filename[:80]!r}")
                with archive.open(entry) as file:
                    found[name] = _array(file.read(entry.file_size + 1), f"{where}: {name}")
            return found
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, struct.error, OSError) as cause:
        raise _malformed(where, str(cause)) from None
    except (ValueError, RuntimeError, MemoryError, zipfile.zlib.error) as cause:  # type: ignore[attr-defined]
        raise _malformed(where, type(cause).__name__) from None


def _array(content: bytes, where: str) -> NDArray[Any]:
    """One `.npy`, its header read as data."""
    version = content[6:7]
    if content[:6] != _MAGIC or version not in {b"\x01", b"\x02"}:
        raise _malformed(where, "something that is no array")
    wide = 2 if version == b"\x01" else 4
    size = int.from_bytes(content[8 : 8 + wide], "little")
    start = 8 + wide + size
    try:
        header = ast.literal_eval(content[8 + wide : start].decode("latin1").strip()) if size < 10_000 else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        header = None
    if not isinstance(header, dict) or set(header) != {"descr", "fortran_order", "shape"}:
        raise _malformed(where, "a header that is damaged")
    descr, shape = header["descr"], header["shape"]
    if not isinstance(descr, str) or not _DTYPE.fullmatch(descr):
        raise InterlockError(
            code="pickle-refused",
            where=where,
            expected="plain numbers or text",
            got=f"dtype {descr!r}"[:120],
            hint="object arrays hold pickles, which can run code; save plain arrays",
        )
    if not isinstance(shape, tuple) or not all(type(each) is int and each >= 0 for each in shape):
        raise _malformed(where, "a shape that is damaged")
    dtype = np.dtype(descr)
    if len(content) - start != math.prod(shape) * dtype.itemsize:
        raise _malformed(where, "fewer or more bytes than its shape says")
    flat = np.frombuffer(content, dtype=dtype, offset=start) if math.prod(shape) else np.empty(0, dtype)
    shaped: NDArray[Any] = flat.reshape(shape, order="F" if header["fortran_order"] is True else "C").copy()
    return shaped


def _malformed(where: str, what: str) -> InterlockError:
    return InterlockError(
        code="npz-malformed",
        where=where,
        expected="a whole .npz file of plain arrays",
        got=what,
        hint="write it again with numpy.savez",
    )
