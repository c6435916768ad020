"""Turns the messages of a recording into objects, by the schemas that stand in the file itself."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from interlock.view.mcap_file import McapFile

SCHEMA = "interlock.recording/1"
# What a file from elsewhere may say: fields that are missing or of another type, numbers out of range.
FOREIGN = (DecodeError, AttributeError, TypeError, ValueError, OverflowError, RecursionError, KeyError)


class Messages:
    """Decodes messages of one file. Raises one of `FOREIGN` for what does not fit its schema."""

    def __init__(self, file: McapFile) -> None:
        self._file = file
        self._types: dict[str, Any] = {}

    def decode(self, schema: str, content: bytes) -> Any:
        """One message."""
        if schema not in self._types:
            found = descriptor_pb2.FileDescriptorSet.FromString(self._file.schemas[schema])
            pool = descriptor_pool.DescriptorPool()
            for file in found.file:
                pool.Add(file)
            self._types[schema] = message_factory.GetMessageClass(pool.FindMessageTypeByName(schema))
        message = self._types[schema]()
        message.ParseFromString(content)
        return message
