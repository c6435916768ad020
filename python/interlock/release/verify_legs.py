"""The legs of verification: how each is run, what they are compared in, what is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from interlock.artifact.arrays import Arrays
from interlock.artifact.child import Progress
from interlock.artifact.folder import PolicyFolder
from interlock.artifact.observations import Observations
from interlock.artifact.onnx_file import read_graph
from interlock.contract.binding import Binding
from interlock.contract.canonical import digest
from interlock.contract.identity import identity
from interlock.contract.units import UNITS
from interlock.ports.reader import Framework
from interlock.runtime.tokens import Tokenizer

from .compare import Budget, Comparison, compare, drift, effect, flips
from .framework import child_references
from .leg_runs import RIGHT, Leg, Run, Walk, run_legs, source_runner
from .mistakes import wrong_plans
from .observe import Walked, periods_per_inference
from .references import REFERENCE, ROLLOUT_REFERENCE, References, kept_references, made_for
from .verdict import Findings, mistakes_as_json

# What the source leg shares with the engine that serves, and what it does not.
_INDEPENDENCE = {
    "child": "the source preprocesses, infers and decodes by its own code in the framework that trained it",
    "onnx": (
        "the given graph is the source: preprocessing and decoding are the ones that serve, in every leg, so that only "
        "graph and engine are independent here; whether the contract is right is what mistakes and simulation show"
    ),
}


@dataclass(slots=True, kw_only=True)
class Case:
    """One policy on one robot, opened."""

    folder: PolicyFolder
    binding: Binding
    plan: dict[str, Any]
    framework: Framework
    graph: bytes
    budget: Budget
    library: Path
    tokenizer: Tokenizer | None
    template: str
    python: Path | None
    progress: Progress | None

    @property
    def names(self) -> tuple[str, ...]:
        """Dimensions, robot order."""
        return tuple(self.plan["joints"]["names"])

    @property
    def units(self) -> tuple[str, ...]:
        """SI unit of each dimension."""
        si = {"angle": "rad", "length": "m"}
        return tuple(si.get(UNITS[unit].quantity, "1") for unit in self.binding.robot.unit)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks that training knew."""
        return self.binding.contract.goals.tasks or ()

    def source(self) -> dict[str, bytes]:
        """The checkpoint's files, verified."""
        return {name.removeprefix("source/"): self.folder.read(name) for name in self.folder.names("source/")}

    def key(self, observations: Observations) -> str:
        """What references to these observations are made for."""
        source = digest(self.folder.digest("source/"))
        return made_for(source, identity(self.binding.contract), self.folder.lock.framework, observations)


def measure(
    case: Case, samples: Observations, walked: Walked, steps: int
) -> tuple[Findings, dict[str, Any], dict[str, References]]:
    """Runs every leg; returns findings, their record, and the reference actions."""
    walk = walked.observations
    found = Findings(
        expected_outputs=[(each.name, tuple(each.shape)) for each in case.binding.contract.outputs],
        samples=len(samples),
        steps=len(walk) * periods_per_inference(case.plan),
        wanted_steps=steps,
        made_up_images=bool(case.plan["cameras"]) and samples.origin == "synthetic",
        ended=walked.ended,
        acted=walked.acted,
    )
    sets = {"samples": samples, "rollout": walk}
    references = (_child_legs if case.framework.kind == "child" else _graph_legs)(case, found, sets)
    found.mistakes, found.jitter = references["samples"].mistakes, references["samples"].jitter
    results = _compare(case, found, references, sets)
    results["worst"] = _worst(case, found, results, sets)
    results |= {
        "closed loop": walked.as_json(),
        "mistakes": mistakes_as_json(found, case.budget, case.names),
        "jitter": None if found.jitter is None else float(np.max(found.jitter)),
        "legs": {
            name: {"runner": leg.runner, "troubles": leg.troubles, "first_trouble": leg.first_trouble}
            for name, leg in found.legs.items()
        },
        "inputs": found.inputs,
        "independence": _INDEPENDENCE[case.framework.kind],
        "units": dict(zip(case.names, case.units, strict=True)),
        "graph": {"operators": dict(read_graph(case.graph).operators)},
    }
    return found, results, references


def _compare(
    case: Case, found: Findings, references: Mapping[str, References], sets: Mapping[str, Observations]
) -> dict[str, Any]:
    results: dict[str, Any] = {}
    limits = case.plan["limits"]["pos"]
    for kind, observations in sets.items():
        reference = references[kind].action
        record: dict[str, Any] = {"count": len(observations), "origin": observations.origin}
        for leg, shown in (("graph", "graph"), ("served", "served engine")):
            action = found.legs[f"{kind} {leg}"].action
            compared: Comparison = compare(reference, action, case.budget, case.names)
            found.comparisons[f"{kind}: source against {shown}"] = compared
            record[leg] = compared.as_json()
            if kind == "rollout":
                record[leg]["drift by quarter"] = drift(reference, action)
            if limits and reference.shape == action.shape:
                boundaries = [(each["lo"], each["hi"]) for each in limits]
                record[leg]["decisions"] = flips(reference, action, case.budget, boundaries, case.names)
        results[kind] = record
    return results


def _worst(case: Case, found: Findings, results: Mapping[str, Any], sets: Mapping[str, Observations]) -> dict[str, Any]:
    """The largest difference of the served engine, and the line that a person reads."""
    kind = max(sets, key=lambda each: float(results[each]["served"]["worst_error"]))
    joint, error = str(results[kind]["served"]["worst"]), float(results[kind]["served"]["worst_error"])
    unit = dict(zip(case.names, case.units, strict=True)).get(joint, "")
    effects = {name: float(np.max(each)) for name, each in found.mistakes.items()}
    least = min(effects, key=effects.__getitem__) if effects else ""
    told = f"; {least.replace('_', ' ')} would be {effects[least]:.2g}" if least else ""
    looked = ", ".join(f"{len(each)} {each.origin} {name}" for name, each in sets.items())
    return {
        "joint": joint,
        "error": error,
        "unit": unit,
        "text": f"{looked}: worst {joint} {error:.2g} {unit} (budget {case.budget.atol:g}{told})",
    }


def _legs(case: Case, walks: Mapping[str, Walk], **extra: Any) -> dict[str, dict[str, Leg]]:
    return run_legs(
        walks,
        graphs={"graph": case.graph, **extra.get("graphs", {})},
        plans={RIGHT: case.plan, **extra.get("plans", {})},
        library=case.library,
        tokenizer=case.tokenizer,
        template=case.template,
        progress=case.progress,
    )


def _walk(kind: str, observations: Observations, runs: Sequence[Run]) -> Walk:
    return Walk(observations=observations, runs=runs, from_reset_each=kind == "samples")


_BOTH = (Run(name="graph", graph="graph", runner="plain"), Run(name="served", graph="graph", runner="served"))


def _child_legs(case: Case, found: Findings, sets: Mapping[str, Observations]) -> dict[str, References]:
    """References by the framework that trained the policy, with its own preprocessing; kept ones are reused."""
    references: dict[str, References] = {}
    for kind, observations in sets.items():
        place = REFERENCE if kind == "samples" else ROLLOUT_REFERENCE
        made = kept_references(case.folder, place, case.key(observations)) or child_references(
            case.framework,
            case.source(),
            case.binding.contract,
            observations,
            mistakes=kind == "samples",
            python=case.python,
            progress=case.progress,
            what=f"reference {kind}",
        )
        references[kind] = made.ordered(case.names)
    legs = _legs(case, {kind: _walk(kind, each, _BOTH) for kind, each in sets.items()})
    found.legs = {f"{kind} {name}": leg for kind, each in legs.items() for name, leg in each.items()}
    found.inputs = input_differences(references["samples"].inputs, legs["samples"]["graph"].inputs)
    return references


def _graph_legs(case: Case, found: Findings, sets: Mapping[str, Observations]) -> dict[str, References]:
    """The given graph is the source: run by an independent implementation, fed by the same preprocessing."""
    wrong = wrong_plans(case.plan)
    both = (Run(name="source", graph="source", runner=source_runner()), *_BOTH)
    tried = [Run(name=f"mistake.{each}", graph="source", runner="plain", plan=each) for each in wrong]
    tried.append(Run(name="jitter", graph="source", runner="plain", jitter=True))
    legs = _legs(
        case,
        {kind: _walk(kind, each, (*both, *tried) if kind == "samples" else both) for kind, each in sets.items()},
        graphs={"source": case.folder.graph(f"source/{case.folder.lock.framework.graph}")},
        plans=wrong,
    )
    right = {kind: each["source"].action for kind, each in legs.items()}
    shown = legs["samples"]
    found.legs = {f"{kind} {each.name}": legs[kind][each.name] for kind in sets for each in both}
    return {
        "samples": References(
            joints=case.names,
            action=right["samples"],
            jitter=effect(right["samples"], shown["jitter"].action),
            mistakes={each: effect(right["samples"], shown[f"mistake.{each}"].action) for each in wrong},
        ),
        "rollout": References(joints=case.names, action=right["rollout"]),
    }


def input_differences(reference: Arrays, ours: Arrays) -> dict[str, float]:
    """Largest difference of each input tensor: where it is large, the difference stands before the graph."""
    differences = {}
    for name, each in reference.items():
        mine = ours.get(name)
        same = mine is not None and mine.shape == each.shape
        differences[name] = (
            float(np.abs(each.astype(np.float64) - mine.astype(np.float64)).max())
            if same and mine is not None
            else float("inf")
        )
    return differences
