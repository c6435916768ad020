"""Sends observations through legs in a child process and brings the actions back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlock.artifact.arrays import Arrays
from interlock.artifact.child import Progress, run_child
from interlock.artifact.observations import Observations
from interlock.errors import InterlockError
from interlock.runtime.tokens import Tokenizer

LEGS = "interlock.release.legs"  # a program for a child process, never imported here
RIGHT = "right"  # the plan without a mistake

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One leg.

    Attributes:
        name: For the answer.
        graph: `source` or `graph`.
        runner: `reference` (onnx package), `plain` (ONNX Runtime without optimisation), `served` (the engine that
            serves).
        plan: `right`, or a mistake.
        jitter: Shakes every input tensor by 1e-6.
    """

    name: str
    graph: str
    runner: str
    plan: str = RIGHT
    jitter: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """What a leg gave.

    Attributes:
        action: Robot order, SI; NaN where there was none. Shape (T, rows, n).
        outputs: Name, dtype and shape of what the graph put out.
        troubles: Observations without an action.
        first_trouble: Why.
        runner: What ran the graph.
        nanoseconds_each: Mean time of one step, for information.
        inputs: Input tensors of the first observations.
    """

    action: F64
    outputs: tuple[tuple[str, str, tuple[int, ...]], ...]
    troubles: int
    first_trouble: str
    runner: str
    nanoseconds_each: int
    inputs: dict[str, NDArray[Any]] = field(default_factory=dict)


def source_runner() -> str:
    """What runs a graph that is itself the source: an implementation independent of ONNX Runtime where there is one."""
    return "reference" if find_spec("onnx") is not None else "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """Observations and the legs that walk over them.

    Attributes:
        observations: What every leg sees.
        runs: The legs.
        from_reset_each: Every observation starts from reset; otherwise they are one sequence.
    """

    observations: Observations
    runs: Sequence[Run]
    from_reset_each: bool


def run_legs(
    walks: Mapping[str, Walk],
    *,
    graphs: Mapping[str, bytes],
    plans: Mapping[str, dict[str, Any]],
    library: Path,
    tokenizer: Tokenizer | None,
    template: str,
    progress: Progress | None,
) -> dict[str, dict[str, Leg]]:
    """Runs every leg of every walk; returns them by walk and name.

    Raises:
        ChildFailed: The child died.
        InterlockError: What it refused, such as `engine-graph`.
    """
    answer = run_child(
        LEGS,
        request={
            "library": str(library),
            "plans": dict(plans),
            "runs": [
                {
                    "set": name,
                    "name": each.name,
                    "graph": f"{each.graph}.onnx",
                    "runner": each.runner,
                    "plan": each.plan,
                    "jitter": each.jitter,
                    "each": walk.from_reset_each,
                }
                for name, walk in walks.items()
                for each in walk.runs
            ],
        },
        arrays={
            f"{name}.{key}": array
            for name, walk in walks.items()
            for key, array in leg_arrays(walk.observations, plans[RIGHT], tokenizer, template).items()
        },
        files={f"{name}.onnx": content for name, content in graphs.items()},
        progress=progress,
        what="verify",
    )
    return {
        name: {
            each.name: _leg(answer.arrays, answer.facts[f"{name}.{each.name}"], f"{name}.{each.name}")
            for each in walk.runs
        }
        for name, walk in walks.items()
    }


def leg_arrays(observations: Observations, plan: dict[str, Any], tokenizer: Tokenizer | None, template: str) -> Arrays:
    """Observations as the legs read them: robot order, cameras by index, token ids.

    Raises:
        InterlockError: `samples-images` for a missing picture or one of another size.
    """
    ordered = observations.ordered(plan["joints"]["names"])
    arrays: Arrays = {"state": ordered.state}
    for index, camera in enumerate(plan["cameras"]):
        pictures = ordered.images.get(str(camera["name"]))
        size = (int(camera["height"]), int(camera["width"]))
        if pictures is None or pictures.shape[1:3] != size:
            raise InterlockError(
                code="samples-images",
                where=f"samples: camera {camera['name']}",
                expected=f"pictures of {size[0]} x {size[1]}",
                got="none" if pictures is None else f"{pictures.shape[1]} x {pictures.shape[2]}",
                hint="samples hold what the camera of this robot gives",
            )
        arrays[f"image{index}"] = pictures
    if plan["goal"]["velocity"] is not None:
        arrays["goal"] = np.zeros((len(ordered), 3)) if ordered.goal is None else ordered.goal
    if tokenizer is not None:
        ids = [tokenizer.ids(template.replace("{task}", ordered.text(index))) for index in range(len(ordered))]
        tokens = np.zeros((len(ids), max(map(len, ids))), dtype=np.int64)
        for row, each in zip(tokens, ids, strict=True):
            row[: len(each)] = each
        arrays["tokens"] = tokens
        arrays["token_count"] = np.array([len(each) for each in ids], dtype=np.int64)
    return arrays


def _leg(arrays: Arrays, facts: Mapping[str, Any], name: str) -> Leg:
    prefix = f"{name}.input."
    return Leg(
        action=np.asarray(arrays[f"{name}.action"], dtype=np.float64),
        outputs=tuple((str(tensor), str(dtype), tuple(shape)) for tensor, dtype, shape in facts["outputs"]),
        troubles=int(facts["troubles"]),
        first_trouble=str(facts["first_trouble"]),
        runner=str(facts["runner"]),
        nanoseconds_each=int(facts["nanoseconds_each"]),
        inputs={key.removeprefix(prefix): each for key, each in arrays.items() if key.startswith(prefix)},
    )
