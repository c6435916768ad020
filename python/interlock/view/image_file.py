"""Images of a recording, unpacked only when asked: raw ones, and the PNG that the writer makes (8-bit RGB)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

U8 = NDArray[np.uint8]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
HEADER = struct.Struct(">IIBBBBB")
RGB8 = (8, 2, 0, 0, 0)  # bit depth, colour type, compression, filter, no interlace
CHANNELS = 3
MOST_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Image:
    """One image of one camera.

    Attributes:
        captured_ns: Capture, monotonic ns.
        read: Reads its message from the file.
    """

    captured_ns: int
    read: Callable[[], Any]

    @property
    def data(self) -> bytes:
        """The bytes as recorded: a PNG, or raw pixels."""
        return bytes(self.read().data)

    def pixels(self) -> U8:
        """Shape `(height, width, 3)`, red first. Raises ValueError for what is no image of the recording's kinds."""
        message = self.read()
        if hasattr(message, "encoding"):
            return _raw(message)
        return unpack_png(message.data)


def _raw(message: Any) -> U8:
    shape = (message.height, message.width, CHANNELS)
    if message.encoding not in ("rgb8", "bgr8") or message.step != CHANNELS * message.width:
        raise ValueError(f"an image of encoding {message.encoding[:20]!r}")
    if len(message.data) != message.height * message.step:
        raise ValueError(f"an image of {message.width}x{message.height} with {len(message.data)} bytes")
    pixels = np.frombuffer(message.data, dtype=np.uint8).reshape(shape)
    return pixels if message.encoding == "rgb8" else np.ascontiguousarray(pixels[:, :, ::-1])


def unpack_png(data: bytes) -> U8:
    """Pixels of an 8-bit RGB PNG, shape `(height, width, 3)`. Raises ValueError for any other."""
    parts = _parts(data)
    head = parts.get(b"IHDR", b"")
    if len(head) != HEADER.size:
        raise ValueError("a PNG without a header")
    width, height, *kind = HEADER.unpack(head)
    stride = CHANNELS * width
    size = height * (stride + 1)
    if tuple(kind) != RGB8 or width == 0 or not 0 < size <= MOST_BYTES:
        raise ValueError(f"a PNG of {width}x{height} that is not 8-bit RGB")
    # No more is unpacked than the image needs, whatever the stream holds.
    try:
        flat = zlib.decompressobj().decompress(parts.get(b"IDAT", b""), size)
    except zlib.error as error:
        raise ValueError("a PNG that does not unpack") from error
    if len(flat) != size:
        raise ValueError("a PNG that ends early")
    lines = np.frombuffer(flat, dtype=np.uint8).reshape(height, stride + 1)
    return _unfiltered(lines[:, 0], lines[:, 1:]).reshape(height, width, CHANNELS)


def _parts(data: bytes) -> dict[bytes, bytes]:
    """The PNG's parts by name, those of one name joined."""
    if not data.startswith(SIGNATURE):
        raise ValueError("an image that is no PNG")
    parts: dict[bytes, list[bytes]] = {}
    at = len(SIGNATURE)
    while at + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, at)
        parts.setdefault(name, []).append(data[at + 8 : at + 8 + length])
        at += length + 12
    return {name: b"".join(each) for name, each in parts.items()}


def _unfiltered(filters: U8, lines: U8) -> U8:
    """Undoes the row filters: 0 none, 1 left, 2 up, 3 average, 4 Paeth."""
    out = np.zeros_like(lines)
    above = np.zeros(lines.shape[1], dtype=np.uint8)
    for row, (filter_, line) in enumerate(zip(filters.tolist(), lines, strict=True)):
        if filter_ == 0:
            out[row] = line
        elif filter_ == 1:
            out[row] = np.add.accumulate(line.reshape(-1, CHANNELS), axis=0, dtype=np.uint8).ravel()
        elif filter_ == 2:
            out[row] = line + above
        elif filter_ in (3, 4):
            out[row] = _by_pixel(filter_, line, above)
        else:
            raise ValueError("a PNG with an unknown filter")
        above = out[row]
    return out


def _by_pixel(filter_: int, line: U8, above: U8) -> U8:
    """Filters that need the pixel to the left; slow, and not used by the writer."""
    done, up = [0] * len(line), above.tolist()
    for at, value in enumerate(line.tolist()):
        left, corner = (done[at - CHANNELS], up[at - CHANNELS]) if at >= CHANNELS else (0, 0)
        if filter_ == 3:
            guess = (left + up[at]) // 2
        else:
            near = left + up[at] - corner
            guess = min((left, up[at], corner), key=lambda each: abs(near - each))
        done[at] = (value + guess) & 0xFF
    return np.array(done, dtype=np.uint8)
