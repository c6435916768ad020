"""verify: the source, the graph and the engine that serves act alike, in physical units, or it says where not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from interlock.artifact.child import ChildFailed, Progress
from interlock.artifact.environment import environment
from interlock.artifact.evidence import Evidence, Verdict, now_ns, plain
from interlock.artifact.files import sha256
from interlock.artifact.folder import PolicyFolder
from interlock.artifact.observations import Observations, read_observations
from interlock.contract.binding import Binding
from interlock.contract.canonical import digest
from interlock.contract.identity import identity
from interlock.ports.reader import Reader
from interlock.runtime.library import onnxruntime_library
from interlock.runtime.tokens import Tokenizer

from .build import CPU, Target, engine_record
from .compare import Budget
from .framework import framework_of
from .freeze_read import SAMPLES
from .leg_runs import source_runner
from .observe import Rollout, Walked, made_up_rollout, made_up_samples, periods_per_inference
from .references import (
    OBSERVATIONS,
    REFERENCE,
    ROLLOUT,
    ROLLOUT_REFERENCE,
)
from .refusal import next_command
from .verdict import PARITY, judge
from .verify_legs import Case, measure

GATE = "verify"
STEPS = 200

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What verify did.

    Attributes:
        folder: The policy folder.
        evidence: Evidence of the gate; its verdict decides the exit code.
        is_unchanged: The evidence held for exactly these bytes and nothing was run.
        why: What made it run.
    """

    folder: PolicyFolder
    evidence: Evidence
    is_unchanged: bool
    why: str


def verify(
    path: Path,
    binding: Binding,
    *,
    readers: Sequence[Reader],
    budget: Budget | None = None,
    rollout: Rollout | None = None,
    steps: int = STEPS,
    seed: int = 0,
    target: Target = CPU,
    python: Path | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Compares source, graph and served engine.

    Args:
        path: The policy folder.
        binding: Its contract joined to a robot.
        readers: All readers.
        budget: What may differ; fixed before anything is measured.
        rollout: Runs the simulated robot; without it a rollout is made up and marked so.
        steps: Control periods of the rollout.
        seed: Of the rollout.
        target: Which engine.
        python: Interpreter that has the source framework.
        progress: Called at least every second.

    Raises:
        InterlockError: The folder is damaged, not built, or bound to another contract.
        NotEvaluated: The source framework is not installed and no samples of it are kept.
    """
    with next_command(f"interlock verify {path}"):
        folder = PolicyFolder.open(path, rebuilding=("evidence/verify.json",))
        case = _open(folder, binding, readers, budget or Budget(), target, python, progress)
        return _verify(case, rollout, steps, seed, target)


def _verify(case: Case, rollout: Rollout | None, steps: int, seed: int, target: Target) -> Verified:
    started = now_ns()
    folder = case.folder
    subject = {"graph": sha256(case.graph), "engine": digest(engine_record(folder, target))}
    inputs = {**_inputs(case, steps, seed), "rollout by": "simulation" if rollout else "nobody"}
    why = _due(folder, subject, inputs)
    evidence = folder.evidence(GATE)
    if not why and evidence is not None:
        return Verified(folder=folder, evidence=evidence, is_unchanged=True, why="")

    walked = _kept_rollout(folder, inputs) or _rollout(case, rollout, steps, seed)
    walk = walked.observations
    samples = _samples(case, walk)
    files: dict[str, bytes] = {OBSERVATIONS: samples.content(), ROLLOUT: walk.content()}
    response = PARITY
    try:
        found, results, references = measure(case, samples, walked, steps)
        files[REFERENCE] = references["samples"].content(case.key(samples))
        files[ROLLOUT_REFERENCE] = references["rollout"].content(case.key(walk))
        judged = judge(found, case.budget)
        verdict, response = judged.verdict, judged.response
        results |= {"failures": list(judged.failures), "doubts": list(judged.doubts)}
    except ChildFailed as failure:
        verdict, results = Verdict.ERROR, {"failures": [str(failure)], "doubts": []}
    made = Evidence(
        gate=GATE,
        verdict=verdict,
        subject=subject,
        inputs={**inputs, "observations": sha256(files[OBSERVATIONS]), "rollout": sha256(files[ROLLOUT])},
        budget={**case.budget.as_json(), "samples": SAMPLES, "steps": steps},
        results=plain(results),
        environment=environment(),
        started_ns=started,
        ended_ns=now_ns(),
        failure_response=response,
    )
    return Verified(folder=folder.commit(files, evidence=made), evidence=made, is_unchanged=False, why=why)


def _open(
    folder: PolicyFolder,
    binding: Binding,
    readers: Sequence[Reader],
    budget: Budget,
    target: Target,
    python: Path | None,
    progress: Progress | None,
) -> Case:
    engine_record(folder, target)
    language = binding.contract.language
    tokenizer = None
    if language is not None:
        name = str(language["tokenizer"])
        tokenizer = Tokenizer(folder.read(name).decode("utf-8"), where=name, length=int(language["length"]))
    return Case(
        folder=folder,
        binding=binding,
        plan=binding.plan(),
        framework=framework_of(folder, readers),
        graph=folder.graph(),
        budget=budget,
        library=onnxruntime_library(),
        tokenizer=tokenizer,
        template="{task}" if language is None else str(language["template"]),
        python=python,
        progress=progress,
    )


def _inputs(case: Case, steps: int, seed: int) -> dict[str, str]:
    """Everything besides graph and engine that the verdict depends on."""
    return {
        "contract": identity(case.binding.contract),
        "binding": case.binding.identity,
        "source": digest(case.folder.digest("source/")),
        "framework": digest(case.folder.lock.framework.model_dump(mode="json")),
        "source runner": source_runner() if case.framework.kind == "onnx" else "child",
        "budget": digest(case.budget.as_json()),
        "extent": f"{steps} steps, seed {seed}",
        "runtime library": sha256(case.library.read_bytes()),
    }


def _due(folder: PolicyFolder, subject: Mapping[str, str], inputs: dict[str, str]) -> str:
    """Why verify has to run."""
    kept = {"observations": OBSERVATIONS, "rollout": ROLLOUT}
    hashes = {key: folder.lock.files[name].sha256 for key, name in kept.items() if name in folder.lock.files}
    return folder.due(GATE, subject=subject, inputs={**inputs, **hashes})


def _kept_rollout(folder: PolicyFolder, inputs: Mapping[str, str]) -> Walked | None:
    """The rollout of the last time, where it was recorded for the same robot, extent and policy."""
    evidence = folder.evidence(GATE)
    if evidence is None or ROLLOUT not in folder.lock.files:
        return None
    if any(evidence.inputs.get(key) != inputs[key] for key in ("binding", "source", "extent", "rollout by")):
        return None
    how = evidence.results.get("closed loop")
    if not isinstance(how, dict):
        return None
    return Walked(observations=read_observations(folder.read(ROLLOUT), where=ROLLOUT), **how)


def _rollout(case: Case, rollout: Rollout | None, steps: int, seed: int) -> Walked:
    """What a policy sees from reset on: recorded on the simulated robot, else made up."""
    count = -(-steps // periods_per_inference(case.plan))
    made_up = made_up_rollout(case.plan, count, tasks=case.tasks, seed=seed)
    if rollout is None:
        return Walked(observations=made_up)
    if case.progress is not None:
        case.progress("rollout on the simulated robot")
    task = case.tasks[0] if case.tasks else ""
    walked = rollout(case.plan, case.graph, steps=steps, seed=seed, task=task)
    return walked if len(walked.observations) else replace(walked, observations=made_up)


def _samples(case: Case, walk: Observations) -> Observations:
    """A person's observations where there are any, else some of the rollout, else made-up ones."""
    if OBSERVATIONS in case.folder.lock.files:
        kept = read_observations(case.folder.read(OBSERVATIONS), where=OBSERVATIONS)
        if kept.origin in {"dataset", "recording"}:
            return kept
    if walk.origin == "synthetic":
        return made_up_samples(case.plan, SAMPLES, tasks=case.tasks)
    return walk.spread(SAMPLES)
