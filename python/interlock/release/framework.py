"""The source framework at work, always in a child process: reference actions and export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlock.artifact.child import Limits, Progress, run_child
from interlock.artifact.files import sha256
from interlock.artifact.folder import PolicyFolder
from interlock.artifact.lock import LockedFramework
from interlock.artifact.observations import Observations
from interlock.contract.expanded import ContractX, ImageX
from interlock.errors import InterlockError, NotEvaluated
from interlock.ports.reader import Framework, Reader

from .interface import declared_inputs, declared_outputs
from .references import References

OPSET = 18  # the exporter's own; anything else goes through a converter that nothing here needs
_PACKAGE_OF_CHILD = "interlock[export]"


def locked(framework: Framework) -> LockedFramework:
    """A framework as lock.json keeps it."""
    return LockedFramework(
        kind=framework.kind,
        graph=framework.graph,
        model_sha256=sha256(framework.model.read_bytes()) if framework.model else "",
        script_sha256=sha256(framework.script.read_bytes()) if framework.script else "",
    )


def framework_of(folder: PolicyFolder, readers: Sequence[Reader]) -> Framework:
    """The framework that a policy was frozen with.

    Raises:
        InterlockError: `reader-unknown`; `framework-changed` when this version ships another definition.
    """
    name = folder.lock.reader.name
    reader = next((each for each in readers if each.name == name), None)
    if reader is None:
        raise InterlockError(
            code="reader-unknown",
            where="lock.json reader",
            expected=f"one of {', '.join(each.name for each in readers)}",
            got=name,
            hint="this policy was frozen by another version of interlock",
        )
    found = locked(reader.framework)
    if found.model_sha256 != folder.lock.framework.model_sha256:
        raise InterlockError(
            code="framework-changed",
            where="lock.json framework",
            expected=f"the network definition {folder.lock.framework.model_sha256[:16]}…",
            got=f"{found.model_sha256[:16]}…",
            hint="this version of interlock ships another definition of the network; freeze again with it",
            next="interlock freeze SOURCE",
        )
    return reader.framework


def child_references(
    framework: Framework,
    source: Mapping[str, bytes],
    contract: ContractX,
    observations: Observations,
    *,
    mistakes: bool,
    python: Path | None,
    progress: Progress | None,
    what: str,
) -> References:
    """Reference actions by the framework that trained the policy.

    Raises:
        InterlockError: What the child refuses; `not-served` for a network with several cameras.
        NotEvaluated: `framework-missing`.
    """
    cameras = [each for each in contract.inputs if isinstance(each, ImageX)]
    if len(cameras) != 1 or cameras[0].camera not in observations.images:
        raise InterlockError(
            code="samples-images",
            where=what,
            expected=f"pictures of {', '.join(each.camera for each in cameras) or 'one camera'}",
            got=", ".join(observations.images) or "none",
            hint="samples need a picture of every camera that the policy reads",
        )
    ordered = observations.ordered(contract.joints.names)
    answer = _child(
        framework,
        source,
        request={
            "do": "reference",
            "texts": [ordered.text(index) for index in range(len(ordered))],
            "input_names": [each.name for each in contract.inputs],
            "mistakes": mistakes,
        },
        arrays={"joint_pos": ordered.joint_pos, "image": ordered.images[cameras[0].camera]},
        wanted=(),
        python=python,
        progress=progress,
        what=what,
    )
    found = answer.arrays
    prefix, shown = "mistake.", "input."
    return References(
        joints=contract.joints.names,
        action=np.asarray(found["action"], dtype=np.float64),
        mistakes={name.removeprefix(prefix): each for name, each in found.items() if name.startswith(prefix)},
        jitter=found.get("jitter"),
        inputs={name.removeprefix(shown): each for name, each in found.items() if name.startswith(shown)},
        made_by={"runner": "source framework in a child process", **dict(answer.facts.get("versions", {}))},
    )


def child_export(
    framework: Framework,
    source: Mapping[str, bytes],
    contract: ContractX,
    *,
    python: Path | None,
    progress: Progress | None,
) -> tuple[bytes, dict[str, Any]]:
    """Exports the network with fixed shapes; returns the graph and what exported it.

    Raises:
        InterlockError: What the child refuses.
        NotEvaluated: `framework-missing`.
    """
    answer = _child(
        framework,
        source,
        request={
            "do": "export",
            "opset": OPSET,
            "inputs": [[name, dtype, list(shape)] for name, dtype, shape in declared_inputs(contract)],
            "outputs": [name for name, _, _ in declared_outputs(contract)],
        },
        arrays={},
        wanted=("policy.onnx",),
        python=python,
        progress=progress,
        what="export",
    )
    return answer.files["policy.onnx"], answer.facts


def _child(
    framework: Framework,
    source: Mapping[str, bytes],
    *,
    request: dict[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    wanted: tuple[str, ...],
    python: Path | None,
    progress: Progress | None,
    what: str,
) -> Any:
    assert framework.script is not None
    assert framework.model is not None
    try:
        return run_child(
            framework.script,
            request=request,
            arrays=arrays,
            files={**source, "model.py": framework.model.read_bytes()},
            wanted=wanted,
            python=python,
            limits=Limits(),
            progress=progress,
            what=what,
        )
    except InterlockError as refusal:
        if refusal.code != "framework-missing":
            raise
        raise NotEvaluated(
            code="framework-missing",
            where=refusal.problems[0].where,
            hint=refusal.problems[0].hint,
            next=f"pip install '{_PACKAGE_OF_CHILD}'",
        ) from None
