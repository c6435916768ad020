"""Just enough of a .proto reader to write recordings in tests without protoc: messages, scalars, repeated, map."""

from __future__ import annotations

import re
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

ROOT = Path(__file__).parents[2] / "proto"
SCALARS = {
    name: getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in (
        "double",
        "float",
        "int64",
        "uint64",
        "int32",
        "uint32",
        "sint32",
        "sfixed64",
        "fixed32",
        "bool",
        "string",
        "bytes",
    )
}
FIELD = re.compile(r"(repeated\s+)?(map<\w+,\s*\w+>|[\w.]+)\s+(\w+)\s*=\s*(\d+);")


def descriptor_set(path: str) -> descriptor_pb2.FileDescriptorSet:
    """The descriptors of one file and of the timestamps it may import."""
    text = re.sub(r"//[^\n]*", "", (ROOT / path).read_text())
    file = descriptor_pb2.FileDescriptorProto(name=path, syntax="proto3")
    file.package = re.search(r"package ([\w.]+);", text)[1]
    file.dependency.extend(re.findall(r'import "([^"]+)";', text))
    for name, body in re.findall(r"message (\w+) \{([^}]*)\}", text):
        _message(file, file.message_type.add(name=name), body)
    stamps = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(stamps)
    return descriptor_pb2.FileDescriptorSet(file=[stamps, file])


def classes(path: str) -> dict[str, type]:
    """Message classes of a file by full name."""
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_set(path).file:
        pool.Add(file)
    last = descriptor_set(path).file[-1]
    return {
        f"{last.package}.{each.name}": message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"{last.package}.{each.name}")
        )
        for each in last.message_type
    }


def _message(file, message, body):
    kinds = descriptor_pb2.FieldDescriptorProto
    for repeated, kind, name, number in FIELD.findall(body):
        field = message.field.add(name=name, number=int(number), label=kinds.LABEL_OPTIONAL)
        if repeated:
            field.label = kinds.LABEL_REPEATED
        if kind.startswith("map<"):
            key, value = re.findall(r"\w+", kind)[1:]
            entry = message.nested_type.add(name="".join(part.title() for part in name.split("_")) + "Entry")
            entry.options.map_entry = True
            for place, (part, scalar) in enumerate((("key", key), ("value", value)), 1):
                entry.field.add(name=part, number=place, label=kinds.LABEL_OPTIONAL, type=SCALARS[scalar])
            field.label, field.type = kinds.LABEL_REPEATED, kinds.TYPE_MESSAGE
            field.type_name = f".{file.package}.{message.name}.{entry.name}"
        elif kind in SCALARS:
            field.type = SCALARS[kind]
        else:
            field.type = kinds.TYPE_MESSAGE
            field.type_name = f".{kind}" if "." in kind else f".{file.package}.{kind}"
