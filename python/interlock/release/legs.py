"""Runs in a child process: the same observations through the source, the graph and the served engine.

A leg is preprocess -> run -> decode from reset, every leg with its own history, last action and recurrent state. The
stages are the very ones that serve; only what runs the graph differs. A graph that brings a native parser down takes
this process and not the caller's.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from interlock import _core
from interlock.artifact.arrays import Arrays, read_arrays
from interlock.artifact.child import answer_in_child, refuse_in_child
from interlock.errors import InterlockError

PROBES = 2  # observations whose input tensors are returned
JITTER = 1e-6  # relative, on every floating-point input tensor

Tensors = dict[str, NDArray[Any]]
Run = Callable[[Tensors], Tensors]


def main(folder: Path) -> None:
    """Answers one request."""
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    arrays = read_arrays((folder / "arrays.npz").read_bytes(), where="arrays.npz")
    facts: dict[str, Any] = {}
    answers: Arrays = {}
    try:
        for each in request["runs"]:
            prefix = f"{each['set']}."
            shown = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            leg = _Leg(folder, request, each, shown)
            leg.walk()
            name = f"{prefix}{each['name']}"
            facts[name] = leg.facts
            answers[f"{name}.action"] = leg.actions
            answers.update({f"{name}.input.{tensor}": np.stack(seen) for tensor, seen in leg.probes.items()})
            print(f"progress: {each['name']}: {len(leg.actions)} observations ({each['set']})", flush=True)
    except (InterlockError, _core.CoreError) as refusal:
        code = str(getattr(refusal, "code", "leg-failed"))
        refuse_in_child(
            folder, code=code, where="graph", got=str(refusal)[:300], hint=str(getattr(refusal, "hint", ""))
        )
        return
    answer_in_child(folder, facts, answers)


class _Leg:
    """One way from raw observations to targets."""

    def __init__(self, folder: Path, request: dict[str, Any], run: dict[str, Any], arrays: Arrays) -> None:
        self._plan = request["plans"][run["plan"]]
        self._graph = (folder / run["graph"]).read_bytes()
        self._library = str(request["library"])
        self._runner = str(run["runner"])
        self._each = bool(run["each"])
        self._jitter = np.random.default_rng(0) if run.get("jitter") else None
        self._arrays = arrays
        timing = self._plan["timing"]
        shape = (len(arrays["state"]), int(timing["chunk"]), len(self._plan["joints"]["names"]))
        self.actions = np.full(shape, np.nan)
        self.probes: dict[str, list[NDArray[Any]]] = {}
        self.facts: dict[str, Any] = {"outputs": [], "troubles": 0, "first_trouble": "", "runner": self._runner}

    def walk(self) -> None:
        """Fills `actions`; a row that could not be made stays NaN."""
        served = self._runner == "served"
        pipeline = _core.Pipeline(json.dumps(self._plan), self._graph if served else None, self._library)
        run = None if served else _runner(self._runner, self._graph)
        begun = time.monotonic_ns()
        for index in range(len(self.actions)):
            if index == 0 or self._each:
                pipeline.reset()
            try:
                rows = self._step(pipeline, run, index)
                self.actions[index] = rows
            except (_core.CoreError, ValueError, RuntimeError, KeyError) as cause:
                self.facts["troubles"] += 1
                self.facts["first_trouble"] = self.facts["first_trouble"] or f"observation {index}: {cause}"[:300]
        self.facts["nanoseconds_each"] = (time.monotonic_ns() - begun) // max(1, len(self.actions))

    def _step(self, pipeline: _core.Pipeline, run: Run | None, index: int) -> NDArray[np.float64]:
        state = np.ascontiguousarray(self._arrays["state"][index])
        images = [
            np.ascontiguousarray(self._arrays[f"image{camera}"][index]) for camera in range(len(self._plan["cameras"]))
        ]
        asked: dict[str, Any] = {}
        if "goal" in self._arrays:
            asked["goal_velocity"] = np.ascontiguousarray(self._arrays["goal"][index])
        if "tokens" in self._arrays:
            count = int(self._arrays["token_count"][index])
            asked["tokens"] = np.ascontiguousarray(self._arrays["tokens"][index, :count])
        if run is None:
            rows = pipeline.infer(state, images, **asked)
            if not self.facts["outputs"]:
                self.facts["outputs"] = _described(pipeline.last_outputs())
            return rows
        tensors = pipeline.preprocess(state, images, **asked)
        if index < PROBES:
            for name, tensor in tensors.items():
                self.probes.setdefault(name, []).append(tensor.copy())
        if self._jitter is not None:
            tensors = {name: _shaken(tensor, self._jitter) for name, tensor in tensors.items()}
        outputs = run(tensors)
        if not self.facts["outputs"]:
            self.facts["outputs"] = _described(outputs)
        return pipeline.decode(outputs)


def _described(outputs: Tensors) -> list[list[Any]]:
    return [[name, str(each.dtype), list(each.shape)] for name, each in outputs.items()]


def _shaken(tensor: NDArray[Any], draw: np.random.Generator) -> NDArray[Any]:
    if tensor.dtype.kind != "f":
        return tensor
    factor = 1.0 + JITTER * draw.choice([-1.0, 1.0], size=tensor.shape)
    return (tensor.astype(np.float64) * factor).astype(tensor.dtype)


def _runner(kind: str, graph: bytes) -> Run:
    """What runs a graph: the reference evaluator of the onnx package, or ONNX Runtime without any optimisation."""
    if kind == "reference":
        import onnx  # noqa: PLC0415
        from onnx.reference import ReferenceEvaluator  # noqa: PLC0415

        evaluator = ReferenceEvaluator(onnx.load_from_string(graph))
        names = list(evaluator.output_names)
        return lambda tensors: dict(zip(names, map(np.asarray, evaluator.run(names, tensors)), strict=True))
    import onnxruntime  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    outputs = [each.name for each in session.get_outputs()]
    return lambda tensors: dict(zip(outputs, map(np.asarray, session.run(outputs, tensors)), strict=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
