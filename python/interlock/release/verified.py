"""What verification left behind: golden samples, the right to run, a line for a person."""

from __future__ import annotations

from interlock.artifact.arrays import Arrays, read_arrays
from interlock.artifact.evidence import Evidence, Verdict
from interlock.artifact.files import sha256
from interlock.artifact.folder import PolicyFolder
from interlock.artifact.observations import Observations, read_observations
from interlock.contract.binding import Binding
from interlock.contract.canonical import digest
from interlock.contract.identity import identity
from interlock.errors import InterlockError
from interlock.runtime.library import onnxruntime_library

from .build import engine_record
from .references import OBSERVATIONS, REFERENCE
from .verify import GATE


def golden_samples(folder: PolicyFolder) -> tuple[Observations, Arrays]:
    """Observations and reference actions that `verify` left, for a check before an engine is put in charge.

    Raises:
        InterlockError: `file-missing` before `verify` ran.
    """
    observations = read_observations(folder.read(OBSERVATIONS), where=OBSERVATIONS)
    return observations, read_arrays(folder.read(REFERENCE), where=REFERENCE)


def require_verified(folder: PolicyFolder, binding: Binding) -> Evidence:
    """The evidence that lets a policy run: a PASS for exactly this graph, engine, runtime library, contract and robot.

    Raises:
        InterlockError: `not-verified`.
    """
    evidence = folder.evidence(GATE)
    record = engine_record(folder)
    got = "never verified" if evidence is None else evidence.verdict.value
    if evidence is not None and evidence.verdict is Verdict.PASS:
        expected = {
            "graph": sha256(folder.graph()),
            "engine": digest(record),
            "contract": identity(binding.contract),
            "binding": binding.identity,
            "runtime library": sha256(onnxruntime_library().read_bytes()),
        }
        known = {**evidence.subject, **evidence.inputs}
        changed = [key for key, value in expected.items() if known.get(key) != value]
        if not changed:
            return evidence
        got = f"{', '.join(changed)} changed since"
    raise InterlockError(
        code="not-verified",
        where=folder.path.name,
        expected="a PASS of verify for exactly these bytes and this robot",
        got=got,
        hint="only the engine that was compared with its source may move a robot",
        next=f"interlock verify {folder.path.name}",
    )
