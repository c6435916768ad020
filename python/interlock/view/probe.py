"""Reads what `interlock run --probe` publishes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from numpy.typing import NDArray

from interlock import _core
from interlock.errors import InterlockError
from interlock.view.messages import FOREIGN

MESSAGE = "interlock.v1.Probe"
TYPES = ("float32", "float64", "int64", "int32", "uint8", "bool")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One tensor that a policy computed. Times in monotonic ns of the machine that runs it.

    Attributes:
        name: As in the contract.
        value: The tensor.
        observation_seq: Which observation it belongs to.
        generation: Which worker computed it.
        captured_ns: Capture of the joint sample in that observation.
        observed_ns: Time of that observation.
        inferred_ns: The engine had returned.
        epoch_minus_monotonic_ns: Added to a time it makes nanoseconds since the epoch, as in the run's recording.
    """

    name: str
    value: NDArray[Any]
    observation_seq: int
    generation: int
    captured_ns: int
    observed_ns: int
    inferred_ns: int
    epoch_minus_monotonic_ns: int


def read(message: bytes) -> Snapshot:
    """Reads the second frame of what is published. Raises `InterlockError` `probe-message` for anything else."""
    try:
        probe = _type()()
        probe.ParseFromString(message)
        if probe.dtype not in TYPES:
            raise ValueError(f"type {probe.dtype[:20]!r}")
        value = np.frombuffer(probe.data, np.dtype(probe.dtype).newbyteorder("<")).reshape(tuple(probe.shape))
    except FOREIGN as error:
        got = f"{type(error).__name__}: {str(error)[:120]}"
        raise InterlockError(
            code="probe-message",
            where="probe",
            expected=MESSAGE,
            got=got,
            hint="the first frame is the topic, the second the message",
        ) from error
    facts = {name: getattr(probe, name) for name in Snapshot.__slots__ if name != "value"}
    return Snapshot(value=value, **facts)


@cache
def _type() -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(_core.Probes.schema()).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(MESSAGE))
