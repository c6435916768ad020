"""Reads MCAP files that may be cut off, damaged or hostile: what is whole is given, then it says why it ended.

Format: https://mcap.dev/spec. The `mcap` package parses single records; lengths and sizes are checked here before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Chunk, Schema
from mcap.stream_reader import get_chunk_data_stream

from interlock.errors import InterlockError

MAGIC = b"\x89MCAP0\r\n"
FRAME = struct.Struct("<BQ")
# The writer ends a chunk at 4 MiB plus one message; beyond this a length is a lie.
MOST_BYTES = 64 * 1024 * 1024
NO_OPCODE = 0  # never written; a file that was enlarged without content is full of it
# Channel, sequence, log time, publish time of a message record; parsed here, since there is one per tick.
MESSAGE_HEAD = struct.Struct("<HIQQ")
COMPRESSIONS = ("", "zstd")


class DamagedError(Exception):
    """The file cannot be read beyond this point; the argument says why, for people."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a message lies: offset of its chunk in the file, offset of its content in the unpacked chunk, length."""

    chunk: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Raw:
    """One message, not decoded."""

    topic: str
    schema: str
    time_ns: int
    content: memoryview
    place: Place


class McapFile:
    """One file, read from its beginning.

    Attributes:
        schemas: Name of a schema -> its descriptor set, of those seen so far.
        ended: Why reading ended before the end of the file; empty where the file is whole.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.schemas: dict[str, bytes] = {}
        self.ended = ""
        self._by_id: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}
        self._unpacked: tuple[int, bytes] | None = None

    def messages(self) -> Iterator[Raw]:
        """Every message up to the end or up to where the file is cut off or damaged.

        Raises:
            InterlockError: `recording-missing`, or `recording-format` for what is no MCAP file at all.
        """
        with self._opened() as file:
            size = file.seek(0, 2)
            if size < len(MAGIC) or _read(file, 0, len(MAGIC)) != MAGIC:
                raise self._refuse(
                    "an MCAP file", "an empty file" if size == 0 else "a file that does not begin like one"
                )
            try:
                yield from self._records(file, size)
            except DamagedError as damage:
                self.ended = str(damage)

    def content(self, place: Place) -> bytes:
        """Reads one message again; the chunk read last is kept."""
        if self._unpacked is None or self._unpacked[0] != place.chunk:
            with self._opened() as file:
                _, length = FRAME.unpack(_read(file, place.chunk, FRAME.size))
                self._unpacked = (place.chunk, _unpack(_read(file, place.chunk + FRAME.size, length), place.chunk))
        return self._unpacked[1][place.offset : place.offset + place.length]

    def _opened(self) -> BinaryIO:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise InterlockError(
                code="recording-missing",
                where=str(self.path),
                expected="a recording",
                got=error.strerror or "nothing",
                hint="every `interlock run` writes one into runs/",
                next="interlock run NAME.policy --sim",
            ) from error

    def _refuse(self, expected: str, got: str) -> InterlockError:
        return InterlockError(
            code="recording-format",
            where=str(self.path),
            expected=expected,
            got=got,
            hint="recordings are the .mcap files that `interlock run` writes",
            next="interlock run NAME.policy --sim",
        )

    def _records(self, file: BinaryIO, size: int) -> Iterator[Raw]:
        at = len(MAGIC)
        while at + FRAME.size <= size:
            opcode, length = FRAME.unpack(_read(file, at, FRAME.size))
            begin, end = at + FRAME.size, at + FRAME.size + length
            if end > size:
                raise DamagedError(f"it is cut off inside a record at byte {at} of {size}")
            if opcode == NO_OPCODE:
                raise DamagedError(f"it holds no records from byte {at} of {size} on")
            if opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                self._declare(opcode, _checked(file, begin, length))
            elif opcode == Opcode.CHUNK:
                yield from self._chunk(_unpack(_checked(file, begin, length), at), at)
            elif opcode == Opcode.FOOTER:
                if _read(file, end, len(MAGIC)) != MAGIC:
                    raise DamagedError("its last bytes are missing")
                return
            at = end
        raise DamagedError(f"it is cut off after byte {at}: whoever wrote it was killed, or still runs")

    def _chunk(self, unpacked: bytes, place: int) -> Iterator[Raw]:
        view, at = memoryview(unpacked), 0
        while at < len(view):
            if at + FRAME.size > len(view):
                raise DamagedError(f"the chunk at byte {place} is damaged")
            opcode, length = FRAME.unpack_from(view, at)
            begin, end = at + FRAME.size, at + FRAME.size + length
            if end > len(view):
                raise DamagedError(f"the chunk at byte {place} is damaged")
            if opcode in (Opcode.SCHEMA, Opcode.CHANNEL):
                self._declare(opcode, bytes(view[begin:end]))
            elif opcode == Opcode.MESSAGE:
                yield self._message(view[begin:end], Place(place, begin, length))
            at = end

    def _declare(self, opcode: int, body: bytes) -> None:
        try:
            stream = ReadDataStream(BytesIO(body))
            if opcode == Opcode.SCHEMA:
                schema = Schema.read(stream)
                self._by_id[schema.id] = schema
                self.schemas[schema.name] = schema.data
            else:
                channel = Channel.read(stream)
                self._channels[channel.id] = channel
        except (McapError, struct.error, UnicodeDecodeError, OverflowError) as error:
            raise DamagedError("a schema or channel is damaged") from error

    def _message(self, body: memoryview, place: Place) -> Raw:
        if len(body) < MESSAGE_HEAD.size:
            raise DamagedError(f"a message in the chunk at byte {place.chunk} is damaged")
        number, _, time_ns, _ = MESSAGE_HEAD.unpack_from(body)
        channel = self._channels.get(number)
        schema = self._by_id.get(channel.schema_id) if channel else None
        if channel is None or schema is None:
            raise DamagedError(f"a message in the chunk at byte {place.chunk} belongs to no channel")
        inside = Place(place.chunk, place.offset + MESSAGE_HEAD.size, place.length - MESSAGE_HEAD.size)
        return Raw(channel.topic, schema.name, time_ns, body[MESSAGE_HEAD.size :], inside)


def _read(file: BinaryIO, offset: int, length: int) -> bytes:
    file.seek(offset)
    return file.read(length)


def _checked(file: BinaryIO, offset: int, length: int) -> bytes:
    if length > MOST_BYTES:
        raise DamagedError(f"a record at byte {offset - FRAME.size} declares {length} bytes, which no recording has")
    return _read(file, offset, length)


def _unpack(body: bytes, place: int) -> bytes:
    """The records inside a chunk, after checking what it says about itself."""
    damage = DamagedError(f"the chunk at byte {place} is damaged")
    try:
        chunk = Chunk.read(ReadDataStream(BytesIO(body)))
        if chunk.compression not in COMPRESSIONS or chunk.uncompressed_size > MOST_BYTES:
            raise damage
        # zstd allocates what its own frame declares, not what the chunk does.
        if chunk.compression == "zstd" and zstandard.frame_content_size(chunk.data) > chunk.uncompressed_size:
            raise damage
        stream, length = get_chunk_data_stream(chunk, validate_crc=True)
        return stream.read(length)
    except (McapError, struct.error, ValueError, OverflowError, zstandard.ZstdError) as error:
        raise damage from error
