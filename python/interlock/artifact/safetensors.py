"""Checks a safetensors file byte by byte before anything reads weights from it."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from interlock.errors import InterlockError

_ITEM = {
    "F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1, "U16": 2,
    "U32": 4, "U64": 8, "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip
_VIEW = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
_LARGEST_HEADER = 100_000_000  # bytes, the bound of the format's own reader
_METADATA = "__metadata__"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFacts:
    """What a safetensors file holds.

    Attributes:
        tensors: Name to (dtype, shape).
        metadata: Free text of the exporter.
        parameters: Number of elements.
    """

    tensors: dict[str, tuple[str, tuple[int, ...]]]
    metadata: dict[str, str]
    parameters: int


def check_weights(content: bytes, *, where: str) -> WeightFacts:
    """Checks the layout and every value.

    Raises:
        InterlockError: `safetensors-malformed` (truncated, oversized header, duplicate or climbing names, overlapping
            or uncovered bytes), `weights-not-finite` (NaN or infinity).
    """
    header, start = _header(content, where)
    metadata = header.pop(_METADATA, {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise _malformed(where, "metadata that is not text")
    tensors: dict[str, tuple[str, tuple[int, ...]]] = {}
    spans: list[tuple[int, int, str]] = []
    for name, entry in header.items():
        dtype, shape, begin, end = _entry(name, entry, where)
        tensors[name] = (dtype, shape)
        spans.append((begin, end, name))
    at = 0
    for begin, end, name in sorted(spans):
        if begin != at:
            raise _malformed(where, f"{'overlapping' if begin < at else 'unused'} bytes before tensor {name!r}")
        at = end
    if start + at != len(content):
        raise _malformed(where, f"{len(content) - start} bytes of weights where the header names {at}")
    for begin, end, name in spans:
        if not _is_finite(tensors[name][0], memoryview(content)[start + begin : start + end]):
            raise InterlockError(
                code="weights-not-finite",
                where=f"{where}: tensor {name!r}",
                expected="finite numbers",
                got="NaN or infinity",
                hint="training diverged or the file is damaged; take an earlier checkpoint",
            )
    return WeightFacts(
        tensors=tensors,
        metadata=metadata,
        parameters=sum(math.prod(shape) for _, shape in tensors.values()),
    )


def _header(content: bytes, where: str) -> tuple[dict[str, Any], int]:
    size = int.from_bytes(content[:8], "little") if len(content) >= 8 else -1
    if size < 2 or size > _LARGEST_HEADER or 8 + size > len(content):
        raise _malformed(where, "a header that is cut off or too long")
    try:
        header = json.loads(content[8 : 8 + size].decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as cause:
        raise _malformed(where, f"a header that is no JSON object with unique names ({cause})") from None
    if not isinstance(header, dict):
        raise _malformed(where, "a header that is no JSON object")
    return header, 8 + size


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate name")
    return found


def _entry(name: str, entry: Any, where: str) -> tuple[str, tuple[int, ...], int, int]:
    climbing = any(part in {"", ".", ".."} for part in name.replace("\\", "/").split("/"))
    if climbing or len(name) > 1024 or any(ord(character) < 32 for character in name):
        raise _malformed(where, f"a tensor called {name[:80]!r}")
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise _malformed(where, f"a strange entry for tensor {name!r}")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    numbers = [*shape, *offsets] if isinstance(shape, list) and isinstance(offsets, list) else [-1]
    whole = all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 1 << 48 for each in numbers)
    if dtype not in _ITEM or not whole or len(offsets) != 2 or len(shape) > 16:
        raise _malformed(where, f"a strange dtype, shape or place of tensor {name!r}")
    if offsets[1] - offsets[0] != math.prod(shape) * _ITEM[dtype]:
        raise _malformed(where, f"tensor {name!r} of another size than its shape says")
    return dtype, tuple(shape), offsets[0], offsets[1]


def _is_finite(dtype: str, raw: memoryview) -> bool:
    if dtype in _VIEW:
        return bool(np.isfinite(np.frombuffer(raw, dtype=_VIEW[dtype])).all())
    if dtype == "BF16":
        return not bool(((np.frombuffer(raw, dtype="<u2") & 0x7F80) == 0x7F80).any())
    return True


def _malformed(where: str, what: str) -> InterlockError:
    return InterlockError(
        code="safetensors-malformed",
        where=where,
        expected="a whole safetensors file",
        got=what,
        hint="copy the checkpoint again; if it stays so, it was not written by safetensors",
    )
