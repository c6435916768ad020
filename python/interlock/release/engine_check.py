"""Runs in a child process: loads a graph into the serving engine once and says what came of it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from interlock import _core
from interlock.artifact.child import answer_in_child, refuse_in_child


def main(folder: Path) -> None:
    """Answers one request."""
    request = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    graph = (folder / "policy.onnx").read_bytes()
    begun = time.monotonic_ns()
    try:
        engine = _core.Engine(
            graph,
            str(request["library"]),
            threads=int(request["threads"]),
            optimize=bool(request["optimize"]),
            provider=str(request["provider"]),
        )
        loaded = time.monotonic_ns()
        zeros = {
            name: np.zeros(shape, dtype=dtype) for name, dtype, shape in engine.inputs() if min(shape, default=1) > 0
        }
        outputs = engine.run(zeros)
    except _core.CoreError as refusal:
        refuse_in_child(folder, code=refusal.code, where="graph/policy.onnx", got=str(refusal)[:300], hint=refusal.hint)
        return
    answer_in_child(
        folder,
        {
            "runtime_version": engine.runtime_version,
            "providers": engine.effective_providers(),
            "inputs": [[name, dtype, shape] for name, dtype, shape in engine.inputs()],
            "outputs": [[name, dtype, shape] for name, dtype, shape in engine.outputs()],
            "load_ns": loaded - begun,
            "first_run_ns": time.monotonic_ns() - loaded,
            "ran": sorted(outputs),
        },
        {},
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
