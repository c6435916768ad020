"""build: the graph, checked against the contract, and the engine that will run it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.artifact.child import Progress, run_child
from interlock.artifact.environment import environment, version_of
from interlock.artifact.evidence import Evidence, Verdict, now_ns, plain
from interlock.artifact.files import sha256
from interlock.artifact.folder import CONTRACT, GRAPH, PolicyFolder
from interlock.artifact.onnx_file import read_graph, require_deterministic
from interlock.artifact.onnx_inline import inline_external
from interlock.contract.canonical import canonical_json, digest
from interlock.contract.expand_contract import expand_contract
from interlock.contract.expanded import ContractX
from interlock.contract.identity import identity
from interlock.contract.text import load_contract
from interlock.errors import InterlockError
from interlock.ports.reader import GraphFacts, Reader
from interlock.runtime.library import onnxruntime_library

from .framework import OPSET, child_export, framework_of
from .interface import require_same_tensors
from .refusal import next_command

GATE = "build"
ENGINE_CHECK = "interlock.release.engine_check"  # a program for a child process, never imported here
ENGINE_SCHEMA = "interlock.engine/1"
_RESPONSE = "contract: stop the build; look at the operator, the shape or the provider that is named"
_REBUILT = ("graph/", "engines/", "evidence/build.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What an engine is compiled for.

    Attributes:
        name: Folder below `engines/`.
        provider: ONNX Runtime's word for it.
        threads: Intra-op threads; they never spin.
        optimize: Graph optimisations of the runtime.
    """

    name: str = "onnxruntime-cpu"
    provider: str = "CPUExecutionProvider"
    threads: int = 1
    optimize: bool = True


CPU = Target()


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What build did.

    Attributes:
        folder: The policy folder.
        evidence: Evidence of the gate.
        is_unchanged: Nothing had changed and nothing was done.
        why: What made it run.
    """

    folder: PolicyFolder
    evidence: Evidence
    is_unchanged: bool
    why: str


def build(
    path: Path,
    *,
    readers: Sequence[Reader],
    target: Target = CPU,
    python: Path | None = None,
    progress: Progress | None = None,
) -> Built:
    """Exports the graph (or takes the given one), checks it, loads it into the engine.

    Args:
        path: The policy folder.
        readers: All readers.
        target: What to compile for.
        python: Interpreter that has the source framework and the exporter.
        progress: Called at least every second while something takes long.

    Raises:
        InterlockError: `tensor-…`, `shape-mismatch`, `dtype-mismatch`, `random-operator`, `engine-…`, `onnx-…`.
        NotEvaluated: The source framework is not installed.
    """
    with next_command(f"interlock build {path}"):
        return _build(path, readers, target, python, progress)


def _build(
    path: Path, readers: Sequence[Reader], target: Target, python: Path | None, progress: Progress | None
) -> Built:
    started = now_ns()
    folder = PolicyFolder.open(path, rebuilding=_REBUILT)
    contract = expand_contract(load_contract(folder.contract_text, CONTRACT))
    library = onnxruntime_library()
    inputs = _inputs(folder, contract, target, library)
    why = _due(folder, inputs)
    evidence = folder.evidence(GATE)
    if not why and evidence is not None:
        return Built(folder=folder, evidence=evidence, is_unchanged=True, why="")

    files, export = _graph(folder, contract, readers, python, progress)
    whole = inline_external(files[GRAPH], lambda name: files[f"graph/{name}"])
    facts = read_graph(whole)
    require_deterministic(facts, where=GRAPH)
    require_same_tensors(contract, facts)
    loaded = _load(whole, library, target, progress)
    record = f"engines/{target.name}/engine.json"
    files[record] = canonical_json(plain(_engine(whole, library, target, loaded)))
    made = Evidence(
        gate=GATE,
        verdict=Verdict.PASS,
        subject={"graph": sha256(whole), "engine": sha256(files[record])},
        inputs=inputs,
        budget={"random operators": 0, "nodes on another provider": 0},
        results=plain({"export": export, "graph": _report(facts), "engine": loaded}),
        environment=environment(),
        started_ns=started,
        ended_ns=now_ns(),
        failure_response=_RESPONSE,
    )
    folder = folder.commit(files, evidence=made, replacing=("graph/", f"engines/{target.name}/"))
    return Built(folder=folder, evidence=made, is_unchanged=False, why=why)


def _engine(graph: bytes, library: Path, target: Target, loaded: dict[str, Any]) -> dict[str, Any]:
    """What an engine is: the graph it was compiled from, with what, for what."""
    return {
        "schema": ENGINE_SCHEMA,
        "target": target.name,
        "graph": sha256(graph),
        "provider": target.provider,
        "options": {"threads": target.threads, "optimize": target.optimize, "spinning": False},
        "runtime": {
            "version": loaded["runtime_version"],
            "library": library.name,
            "library_sha256": sha256(library.read_bytes()),
        },
        "providers": loaded["providers"],
        "inputs": loaded["inputs"],
        "outputs": loaded["outputs"],
    }


def engine_record(folder: PolicyFolder, target: Target = CPU) -> dict[str, Any]:
    """What an engine was compiled from and with.

    Raises:
        InterlockError: `engine-missing`; `engine-stale` when the graph is another one.
    """
    name = f"engines/{target.name}/engine.json"
    if name not in folder.lock.files or GRAPH not in folder.lock.files:
        raise InterlockError(
            code="engine-missing",
            where=name,
            expected=f"an engine for {target.name}",
            got="none",
            hint="the policy was frozen and not built yet",
            next=f"interlock build {folder.path.name}",
        )
    record: dict[str, Any] = json.loads(folder.read(name))
    if record.get("graph") != sha256(folder.graph()):
        raise InterlockError(
            code="engine-stale",
            where=name,
            expected=f"an engine of graph {sha256(folder.graph())[:16]}…",
            got=f"one of graph {str(record.get('graph'))[:16]}…",
            hint="the graph changed after the engine was compiled",
            next=f"interlock build {folder.path.name}",
        )
    return record


def _inputs(folder: PolicyFolder, contract: ContractX, target: Target, library: Path) -> dict[str, str]:
    """Everything that graph and engine depend on."""
    exporter = "none"
    if folder.lock.framework.kind == "child":
        versions = {name: version_of(name) for name in ("torch", "onnx", "onnxscript")}
        exporter = digest({**versions, "opset": OPSET, "script": folder.lock.framework.script_sha256})
    return {
        "contract": identity(contract),
        "source": digest(folder.digest("source/")),
        "framework": digest(folder.lock.framework.model_dump(mode="json")),
        "exporter": exporter,
        "target": digest(
            {"name": target.name, "provider": target.provider, "threads": target.threads, "optimize": target.optimize}
        ),
        "runtime library": sha256(library.read_bytes()),
    }


def _due(folder: PolicyFolder, inputs: dict[str, str]) -> str:
    """Why build has to run; graph and engine are re-hashed, not believed."""
    evidence = folder.evidence(GATE)
    if evidence is None:
        return "never run"
    try:
        for name in (*folder.names("graph/"), *folder.names("engines/")):
            folder.read(name)
    except InterlockError as damage:
        return f"{damage.problems[0].where} is damaged"
    return folder.due(GATE, subject=evidence.subject, inputs=inputs)


def _graph(
    folder: PolicyFolder,
    contract: ContractX,
    readers: Sequence[Reader],
    python: Path | None,
    progress: Progress | None,
) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Files of `graph/`, and how they came to be."""
    locked = folder.lock.framework
    if locked.kind == "onnx":
        name = f"source/{locked.graph}"
        beside = name.rpartition("/")[0]
        content = folder.read(name)
        external = [each.name for each in read_graph(content).external]
        files = {GRAPH: content, **{f"graph/{each}": folder.read(f"{beside}/{each}") for each in external}}
        return files, {"exporter": "none: the given graph, checked"}
    framework = framework_of(folder, readers)
    source = {name.removeprefix("source/"): folder.read(name) for name in folder.names("source/")}
    content, facts = child_export(framework, source, contract, python=python, progress=progress)
    versions = {str(key): str(value) for key, value in facts.get("versions", {}).items()}
    return {GRAPH: content}, {"exporter": "torch.onnx.export(dynamo=True)", "opset": facts.get("opset"), **versions}


def _load(graph: bytes, library: Path, target: Target, progress: Progress | None) -> dict[str, Any]:
    answer = run_child(
        ENGINE_CHECK,
        request={
            "library": str(library),
            "threads": target.threads,
            "optimize": target.optimize,
            "provider": target.provider,
        },
        files={"policy.onnx": graph},
        progress=progress,
        what="compile",
    )
    providers = answer.facts.get("providers", {})
    if set(providers) - {target.provider}:
        raise InterlockError(
            code="engine-provider",
            where=GRAPH,
            expected=f"every node on {target.provider}",
            got=", ".join(f"{count} on {name}" for name, count in providers.items()),
            hint="an operator that this provider does not have would run somewhere else, unnoticed",
        )
    return answer.facts


def _report(facts: GraphFacts) -> dict[str, Any]:
    return {
        "opset": facts.opset,
        "domains": dict(facts.domains),
        "producer": facts.producer,
        "operators": dict(facts.operators),
        "external files": len(facts.external),
        "integers beyond 32 bits": facts.wide_integers,
    }
