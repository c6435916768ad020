"""Reference actions on disk: kept with what they were made for, so that they are believed only for exactly that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlock.artifact.arrays import Arrays, read_arrays, write_arrays
from interlock.artifact.files import sha256
from interlock.artifact.folder import PolicyFolder
from interlock.artifact.lock import LockedFramework
from interlock.artifact.observations import Observations
from interlock.contract.canonical import digest

OBSERVATIONS, REFERENCE = "samples/observations.npz", "samples/reference.npz"
ROLLOUT, ROLLOUT_REFERENCE = "samples/rollout.npz", "samples/rollout_reference.npz"

F64 = NDArray[np.float64]
_MISTAKE, _INPUT = "mistake.", "input."


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """Actions of the source, in SI.

    Attributes:
        joints: Order of the last axis.
        action: Shape (T, rows, n).
        mistakes: How far each mistake moves the action: largest difference per dimension. Shape (n,).
        jitter: The same for a relative change of 1e-6 of every input. Shape (n,).
        inputs: Input tensors of the first observations, by name.
        made_by: What ran, with versions; empty when read back.
    """

    joints: tuple[str, ...]
    action: F64
    mistakes: dict[str, F64] = field(default_factory=dict)
    jitter: F64 | None = None
    inputs: dict[str, NDArray[Any]] = field(default_factory=dict)
    made_by: dict[str, Any] = field(default_factory=dict)

    def content(self, made_for: str) -> bytes:
        """As a file."""
        arrays: Arrays = {
            "joints": np.array(self.joints, dtype=np.str_),
            "made_for": np.array([made_for], dtype=np.str_),
            "action": self.action,
            **{f"{_MISTAKE}{name}": each for name, each in self.mistakes.items()},
            **{f"{_INPUT}{name}": each for name, each in self.inputs.items()},
        }
        if self.jitter is not None:
            arrays["jitter"] = self.jitter
        return write_arrays(arrays)

    def ordered(self, joints: tuple[str, ...]) -> References:
        """The same with the joints in another order."""
        take = np.array([self.joints.index(name) for name in joints])
        return References(
            joints=joints,
            action=np.ascontiguousarray(self.action[..., take]),
            mistakes={name: each[take] for name, each in self.mistakes.items()},
            jitter=None if self.jitter is None else self.jitter[take],
            inputs=self.inputs,
            made_by=self.made_by,
        )


def made_for(source: str, contract: str, framework: LockedFramework, observations: Observations) -> str:
    """What references depend on, as one hash.

    Args:
        source: Hash of the checkpoint's files.
        contract: Identity of the contract.
        framework: What runs the source.
        observations: What it was shown.
    """
    return digest(
        {
            "source": source,
            "contract": contract,
            "framework": framework.model_dump(mode="json"),
            "observations": sha256(observations.content()),
        }
    )


def kept_references(folder: PolicyFolder, name: str, wanted: str) -> References | None:
    """References that lie in the folder, where they were made for exactly what is wanted."""
    if name not in folder.lock.files:
        return None
    arrays = read_arrays(folder.read(name), where=name)
    if str(arrays.get("made_for", np.array([""]))[0]) != wanted:
        return None
    return References(
        joints=tuple(str(each) for each in arrays["joints"]),
        action=arrays["action"],
        mistakes={key.removeprefix(_MISTAKE): each for key, each in arrays.items() if key.startswith(_MISTAKE)},
        jitter=arrays.get("jitter"),
        inputs={key.removeprefix(_INPUT): each for key, each in arrays.items() if key.startswith(_INPUT)},
    )
