"""Puts the external data of an ONNX file inside it: the bytes that were verified are the bytes that are loaded."""

from __future__ import annotations

from collections.abc import Callable

from interlock.errors import InterlockError

from . import protobuf as pb
from .onnx_file import DEEPEST, external_place, has_nan, not_finite, pair


def inline_external(content: bytes, read: Callable[[str], bytes]) -> bytes:
    """The same model with all external data inside, so that one verified buffer is all that is loaded.

    Args:
        content: The model.
        read: Verified bytes of an external file, by its name relative to the model.

    Raises:
        InterlockError: `onnx-external` when a file is shorter than the model says, `weights-not-finite` for NaN.
    """
    return _rewrite(memoryview(content), _MODEL, read, 0)


_MODEL, _GRAPH, _NODE, _ATTRIBUTE, _FUNCTION, _SPARSE, _TENSOR = range(7)
_INNER = {
    _MODEL: {7: _GRAPH, 25: _FUNCTION},
    _GRAPH: {1: _NODE, 5: _TENSOR, 15: _SPARSE},
    _NODE: {5: _ATTRIBUTE},
    _ATTRIBUTE: {5: _TENSOR, 6: _GRAPH, 10: _TENSOR, 11: _GRAPH, 22: _SPARSE, 23: _SPARSE},
    _FUNCTION: {7: _NODE},
    _SPARSE: {1: _TENSOR, 2: _TENSOR},
}


def _rewrite(view: memoryview, message: int, read: Callable[[str], bytes], depth: int) -> bytes:
    if depth > 4 * DEEPEST:
        raise pb.malformed("graphs inside graphs without end")
    if message == _TENSOR:
        return _inline_tensor(view, read)
    out: list[bytes] = []
    for each in pb.fields(view):
        inner = _INNER[message].get(each.number)
        if inner is None:
            out.append(bytes(view[each.start : each.end]))
        else:
            out.append(pb.encode_bytes(each.number, _rewrite(pb.content(each), inner, read, depth + 1)))
    return b"".join(out)


def _inline_tensor(view: memoryview, read: Callable[[str], bytes]) -> bytes:
    kept: list[bytes] = []
    pairs: list[tuple[str, str]] = []
    name, kind = "", 0
    for each in pb.fields(view):
        if each.number == 13:
            pairs.append(pair(pb.content(each)))
        elif each.number != 14:
            kept.append(bytes(view[each.start : each.end]))
        if each.number == 8:
            name = pb.text(each)
        elif each.number == 2:
            kind = pb.number(each)
    if not pairs:
        return bytes(view)
    location, offset, length = external_place(name, pairs)
    whole = read(location)
    end = len(whole) if length is None else offset + length
    if offset > len(whole) or end > len(whole):
        raise InterlockError(
            code="onnx-external",
            where=location,
            expected=f"at least {end} bytes, for tensor {name!r}",
            got=f"{len(whole)}",
            hint="the graph and its external data are not of the same export",
        )
    raw = memoryview(whole)[offset:end]
    if has_nan(kind, raw):
        raise not_finite(name)
    return b"".join([*kept, pb.encode_bytes(9, raw)])
