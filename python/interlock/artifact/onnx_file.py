"""Looks into an ONNX file without the onnx package and without running anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from interlock.errors import InterlockError
from interlock.ports.reader import ExternalFile, GraphFacts, TensorFacts

from . import protobuf as pb
from .files import safe_name

# onnx.proto3, TensorProto.DataType
DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 8: "string", 9: "bool",
    10: "float16", 11: "float64", 12: "uint32", 13: "uint64", 14: "complex64", 15: "complex128", 16: "bfloat16",
}  # fmt: skip
_FLOAT_VIEW = {1: "<f4", 10: "<f2", 11: "<f8"}
_BFLOAT16 = 16
_BFLOAT16_EXPONENT, _BFLOAT16_MANTISSA = 0x7F80, 0x007F
_INT64 = 7
_WIDE = 1 << 31  # beyond it a builder that narrows int64 to int32 changes the value
DEEPEST = 24
_MOST_NODES = 2_000_000
_EXTERNAL_KEYS = {"location", "offset", "length", "checksum"}  # any other key is an attempt to set attributes

# Operators that draw random numbers; noise has to be an explicit input.
RANDOM = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli"}


@dataclass(slots=True)
class _Walk:
    """What was seen so far."""

    operators: Counter[str] = field(default_factory=Counter)
    random: list[str] = field(default_factory=list)
    external: dict[str, tuple[int, int]] = field(default_factory=dict)
    initializers: set[str] = field(default_factory=set)
    false_constants: set[str] = field(default_factory=set)
    training_inputs: list[tuple[str, str]] = field(default_factory=list)
    wide: int = 0
    nodes: int = 0


def read_graph(content: bytes) -> GraphFacts:
    """Facts of a model.

    Raises:
        InterlockError: `onnx-malformed`; `onnx-external` for hostile external data; `weights-not-finite` for NaN.
    """
    walk = _Walk()
    opsets: dict[str, int] = {}
    metadata: dict[str, str] = {}
    producer = ["", ""]
    inputs: tuple[TensorFacts, ...] = ()
    outputs: tuple[TensorFacts, ...] = ()
    graphs = 0
    for each in pb.fields(memoryview(content)):
        if each.number == 7:  # graph
            graphs += 1
            inputs, outputs = _top_graph(pb.content(each), walk)
        elif each.number == 8:  # opset_import
            domain, version = _opset(pb.content(each))
            opsets["" if domain == "ai.onnx" else domain] = version
        elif each.number in {2, 3}:  # producer_name, producer_version
            producer[each.number - 2] = pb.text(each)
        elif each.number == 14:  # metadata_props
            key, value = pair(pb.content(each))
            if key in metadata:
                raise pb.malformed(f"metadata key {key!r} twice")
            metadata[key] = value
        elif each.number == 25:  # functions
            _function(pb.content(each), walk)
    if graphs != 1 or "" not in opsets or not outputs:
        raise pb.malformed("no single graph with an opset and outputs")
    for node, name in walk.training_inputs:
        if name not in walk.false_constants:
            walk.random.append(node)
    return GraphFacts(
        inputs=tuple(each for each in inputs if each.name not in walk.initializers),
        outputs=outputs,
        opset=opsets[""],
        domains=opsets,
        producer=" ".join(part for part in producer if part),
        metadata=metadata,
        operators=dict(sorted(walk.operators.items())),
        random_operators=tuple(sorted(walk.random)),
        external=tuple(
            ExternalFile(name=name, tensors=tensors, end=end) for name, (tensors, end) in sorted(walk.external.items())
        ),
        wide_integers=walk.wide,
    )


def require_deterministic(facts: GraphFacts, *, where: str) -> None:
    """Refuses a graph that draws random numbers or trains.

    Raises:
        InterlockError: `random-operator`.
    """
    if facts.random_operators:
        raise InterlockError(
            code="random-operator",
            where=where,
            expected="no operator that draws random numbers",
            got=", ".join(facts.random_operators[:8]),
            hint="export the network in evaluation mode, with its noise as an input of the graph",
        )


def _top_graph(view: memoryview, walk: _Walk) -> tuple[tuple[TensorFacts, ...], tuple[TensorFacts, ...]]:
    inputs: list[TensorFacts] = []
    outputs: list[TensorFacts] = []
    for each in pb.fields(view):
        if each.number == 11:
            inputs.append(_value_info(pb.content(each)))
        elif each.number == 12:
            outputs.append(_value_info(pb.content(each)))
    _graph(view, walk, 0)
    for kind, found in (("input", inputs), ("output", outputs)):
        names = [each.name for each in found]
        if len(set(names)) != len(names):
            raise pb.malformed(f"two {kind}s of one name")
    return tuple(inputs), tuple(outputs)


def _graph(view: memoryview, walk: _Walk, depth: int) -> None:
    if depth > DEEPEST:
        raise pb.malformed("graphs inside graphs without end")
    for each in pb.fields(view):
        if each.number == 1:
            _node(pb.content(each), walk, depth)
        elif each.number == 5:
            name = _tensor(pb.content(each), walk)
            if depth == 0:
                walk.initializers.add(name)
        elif each.number == 15:  # sparse_initializer: values, indices
            for part in pb.fields(pb.content(each)):
                if part.number in {1, 2}:
                    _tensor(pb.content(part), walk)


def _function(view: memoryview, walk: _Walk) -> None:
    for each in pb.fields(view):
        if each.number == 7:
            _node(pb.content(each), walk, 1)


def _node(view: memoryview, walk: _Walk, depth: int) -> None:
    walk.nodes += 1
    if walk.nodes > _MOST_NODES:
        raise pb.malformed("too many nodes")
    inputs: list[str] = []
    outputs: list[str] = []
    name = operator = domain = ""
    constant_false = False
    for each in pb.fields(view):
        if each.number == 1:
            inputs.append(pb.text(each))
        elif each.number == 2:
            outputs.append(pb.text(each))
        elif each.number == 3:
            name = pb.text(each)
        elif each.number == 4:
            operator = pb.text(each)
        elif each.number == 7:
            domain = pb.text(each)
        elif each.number == 5:
            constant_false |= _attribute(pb.content(each), walk, depth)
    if not operator:
        raise pb.malformed("a node without an operator")
    shown = f"{domain}::{operator}" if domain not in {"", "ai.onnx"} else operator
    walk.operators[shown] += 1
    label = f"{shown}({name or ', '.join(outputs)})"
    if operator in RANDOM or operator.startswith("Random"):
        walk.random.append(label)
    elif operator == "Dropout" and len(inputs) > 2 and inputs[2]:
        walk.training_inputs.append((label, inputs[2]))
    elif operator == "Constant" and constant_false and outputs:
        walk.false_constants.add(outputs[0])


def _attribute(view: memoryview, walk: _Walk, depth: int) -> bool:
    """Walks into an attribute; tells whether it holds a tensor that is one false boolean."""
    false = False
    for each in pb.fields(view):
        if each.number in {5, 10}:
            false |= _is_false(pb.content(each))
            _tensor(pb.content(each), walk)
        elif each.number in {6, 11}:
            _graph(pb.content(each), walk, depth + 1)
        elif each.number in {22, 23}:
            for part in pb.fields(pb.content(each)):
                if part.number in {1, 2}:
                    _tensor(pb.content(part), walk)
    return false


def _is_false(view: memoryview) -> bool:
    kind, values = 0, [1]
    for each in pb.fields(view):
        if each.number == 2:
            kind = pb.number(each)
        elif each.number == 5:
            values = pb.numbers(each)
        elif each.number == 9:
            values = list(pb.content(each))
    return kind == 9 and values == [0]


def _tensor(view: memoryview, walk: _Walk) -> str:
    name, kind, located = "", 0, False
    raw: memoryview | None = None
    pairs: list[tuple[str, str]] = []
    inline: list[float] = []
    for each in pb.fields(view):
        if each.number == 2:
            kind = pb.number(each)
        elif each.number in {4, 10}:
            inline.extend(pb.floats(each) if each.number == 4 else [])
        elif each.number == 7:
            walk.wide += sum(1 for value in pb.numbers(each) if abs(value) >= _WIDE)
        elif each.number == 8:
            name = pb.text(each)
        elif each.number == 9:
            raw = pb.content(each)
        elif each.number == 13:
            pairs.append(pair(pb.content(each)))
        elif each.number == 14:
            located = pb.number(each) == 1
    if located or pairs:
        _external(name, pairs, walk)
    elif raw is not None:
        _raw(name, kind, raw, walk)
    if inline and np.isnan(np.array(inline)).any():
        raise not_finite(name)
    if _is_false(view):
        walk.false_constants.add(name)
    return name


def _raw(name: str, kind: int, raw: memoryview, walk: _Walk) -> None:
    if has_nan(kind, raw):
        raise not_finite(name)
    if kind == _INT64 and len(raw) % 8 == 0:
        values = np.frombuffer(raw, dtype="<i8")
        walk.wide += int(np.count_nonzero((values >= _WIDE) | (values < -_WIDE)))


def has_nan(kind: int, raw: memoryview) -> bool:
    """Whether raw bytes of a floating type hold a NaN. Infinity is a legitimate mask and passes."""
    if kind in _FLOAT_VIEW:
        size = np.dtype(_FLOAT_VIEW[kind]).itemsize
        return len(raw) % size == 0 and bool(np.isnan(np.frombuffer(raw, dtype=_FLOAT_VIEW[kind])).any())
    if kind == _BFLOAT16 and len(raw) % 2 == 0:
        bits = np.frombuffer(raw, dtype="<u2")
        exponent = (bits & _BFLOAT16_EXPONENT) == _BFLOAT16_EXPONENT
        return bool((exponent & ((bits & _BFLOAT16_MANTISSA) != 0)).any())
    return False


def not_finite(tensor: str) -> InterlockError:
    """A refusal of weights that are not numbers."""
    return InterlockError(
        code="weights-not-finite",
        where=f"tensor {tensor!r}",
        expected="numbers",
        got="NaN",
        hint="training diverged or the file is damaged; take an earlier checkpoint",
    )


def external_place(name: str, pairs: list[tuple[str, str]]) -> tuple[str, int, int | None]:
    """Where a tensor's bytes lie: file, offset, length.

    Raises:
        InterlockError: `onnx-external` for unknown keys, climbing paths, senseless numbers.
    """
    keys = [key for key, _ in pairs]
    given = dict(pairs)
    strange = sorted(set(keys) - _EXTERNAL_KEYS)
    numbers = [given.get("offset", "0"), given.get("length", "0")]
    digits = all(text.isascii() and text.isdigit() and len(text) < 16 for text in numbers)
    if strange or len(set(keys)) != len(keys) or not given.get("location") or not digits:
        raise InterlockError(
            code="onnx-external",
            where=f"tensor {name!r}",
            expected="location, offset and length, each once",
            got=", ".join(f"{key}={value[:40]}" for key, value in pairs) or "nothing",
            hint="the file was not written by an exporter; do not trust it",
        )
    location = given["location"].removeprefix("./")
    safe_name(location, where=f"external data of tensor {name!r}")
    return location, int(numbers[0]), int(numbers[1]) if "length" in given else None


def _external(name: str, pairs: list[tuple[str, str]], walk: _Walk) -> None:
    location, offset, length = external_place(name, pairs)
    tensors, end = walk.external.get(location, (0, 0))
    walk.external[location] = (tensors + 1, max(end, offset + (length or 0)))


def _value_info(view: memoryview) -> TensorFacts:
    name, dtype = "", "unknown"
    shape: tuple[int | str | None, ...] = ()
    for each in pb.fields(view):
        if each.number == 1:
            name = pb.text(each)
        elif each.number == 2:
            for kind in pb.fields(pb.content(each)):
                if kind.number == 1:  # tensor_type
                    dtype, shape = _tensor_type(pb.content(kind))
    return TensorFacts(name=name, dtype=dtype, shape=shape)


def _tensor_type(view: memoryview) -> tuple[str, tuple[int | str | None, ...]]:
    dtype = "unknown"
    shape: list[int | str | None] = []
    for each in pb.fields(view):
        if each.number == 1:
            dtype = DTYPES.get(pb.number(each), "unknown")
        elif each.number == 2:
            shape = [_size(pb.content(part)) for part in pb.fields(pb.content(each)) if part.number == 1]
    return dtype, tuple(shape)


def _size(view: memoryview) -> int | str | None:
    for each in pb.fields(view):
        if each.number == 1:
            return pb.number(each)
        if each.number == 2:
            return pb.text(each)
    return None


def _opset(view: memoryview) -> tuple[str, int]:
    domain, version = "", 0
    for each in pb.fields(view):
        if each.number == 1:
            domain = pb.text(each)
        elif each.number == 2:
            version = pb.number(each)
    return domain, version


def pair(view: memoryview) -> tuple[str, str]:
    """Key and value of a StringStringEntryProto."""
    key = value = ""
    for each in pb.fields(view):
        if each.number == 1:
            key = pb.text(each)
        elif each.number == 2:
            value = pb.text(each)
    return key, value
