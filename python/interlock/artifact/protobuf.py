"""The protobuf wire format, just enough to look into an ONNX file: bounded, total, and without any generated code."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from interlock.errors import InterlockError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


class Field(NamedTuple):
    """One field of a message.

    Attributes:
        number: Field number.
        wire: Wire type.
        value: The number, or the content of a length-delimited field.
        start: Where the field's tag begins.
        end: One past its last byte.
    """

    number: int
    wire: int
    value: int | memoryview
    start: int
    end: int


def malformed(what: str) -> InterlockError:
    """A refusal of bytes that are no protobuf message of the expected kind."""
    return InterlockError(
        code="onnx-malformed",
        where="ONNX file",
        expected="a whole, well-formed ONNX model",
        got=what,
        hint="the file is damaged or is not ONNX; export it again",
    )


def varint(view: memoryview, at: int) -> tuple[int, int]:
    """Reads a base-128 number; returns it and where it ends."""
    value = 0
    for index in range(_LONGEST_VARINT):
        if at + index >= len(view):
            raise malformed("a number that is cut off")
        byte = view[at + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + index + 1
    raise malformed("a number of more than 64 bits")


def fields(view: memoryview) -> Iterator[Field]:
    """Walks the fields of one message."""
    at = 0
    while at < len(view):
        start = at
        tag, at = varint(view, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise malformed("a field with number 0")
        value: int | memoryview
        if wire == VARINT:
            value, at = varint(view, at)
        elif wire == BYTES:
            size, at = varint(view, at)
            if size > len(view) - at:
                raise malformed("a field that is longer than the file")
            value, at = view[at : at + size], at + size
        elif wire in {FIXED64, FIXED32}:
            size = 8 if wire == FIXED64 else 4
            if size > len(view) - at:
                raise malformed("a field that is longer than the file")
            value, at = int.from_bytes(view[at : at + size], "little"), at + size
        else:
            raise malformed(f"wire type {wire}")
        yield Field(number, wire, value, start, at)


def content(field: Field) -> memoryview:
    """Content of a length-delimited field."""
    if not isinstance(field.value, memoryview):
        raise malformed(f"a number where field {field.number} holds bytes")
    return field.value


def text(field: Field) -> str:
    """Content of a string field."""
    try:
        return bytes(content(field)).decode("utf-8")
    except UnicodeDecodeError:
        raise malformed("text that is not UTF-8") from None


def number(field: Field) -> int:
    """Value of an integer field, as a signed 64-bit number."""
    if isinstance(field.value, memoryview):
        raise malformed(f"bytes where field {field.number} holds a number")
    return field.value - (1 << 64) if field.value >= 1 << 63 else field.value


def numbers(field: Field) -> list[int]:
    """Values of a repeated integer field, packed or not."""
    if not isinstance(field.value, memoryview):
        return [number(field)]
    values, at = [], 0
    while at < len(field.value):
        value, at = varint(field.value, at)
        values.append(value - (1 << 64) if value >= 1 << 63 else value)
    return values


def encode_varint(value: int) -> bytes:
    """Writes a non-negative number."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_bytes(field_number: int, value: bytes | bytearray | memoryview) -> bytes:
    """Writes a length-delimited field."""
    return encode_varint(field_number << 3 | BYTES) + encode_varint(len(value)) + bytes(value)


def floats(field: Field) -> list[float]:
    """Values of a repeated float field, packed or not."""
    if isinstance(field.value, memoryview):
        raw = bytes(field.value)
    else:
        raw = field.value.to_bytes(8, "little")[:4] if field.wire == FIXED32 else b"?"
    if len(raw) % 4:
        raise malformed("packed floats that are cut off")
    return list(struct.unpack(f"<{len(raw) // 4}f", raw))
