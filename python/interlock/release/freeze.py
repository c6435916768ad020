"""freeze: from a checkpoint to a policy folder that says what it was trained on, with samples of its own framework."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock.artifact.child import Progress
from interlock.artifact.environment import environment, version_of
from interlock.artifact.evidence import Evidence, Verdict, now_ns, plain
from interlock.artifact.files import read_file, sha256
from interlock.artifact.folder import CONTRACT, PolicyFolder, create
from interlock.artifact.lock import LOCK_FILE, Answered, Lock, LockedFact, LockedReader
from interlock.artifact.observations import Observations, read_observations
from interlock.artifact.onnx_file import require_deterministic
from interlock.artifact.safetensors import check_weights
from interlock.artifact.source import Source
from interlock.contract.canonical import digest
from interlock.contract.expand_contract import expand_contract
from interlock.contract.expanded import ContractX
from interlock.contract.identity import identity
from interlock.contract.model import Robot
from interlock.contract.text import draft_contract
from interlock.errors import Exit, InterlockError
from interlock.ports.reader import Origin, Reader, Reading, RobotNames

from .answers import answer_text, needs_answer, refuse_unknown
from .contract_text import origins, write_contract
from .detect import choose_reader
from .framework import child_references, locked
from .interface import require_same_tensors
from .references import OBSERVATIONS, REFERENCE, made_for

GATE = "freeze"
SAMPLES = 24
_REBUILT = ("source/", "samples/", "evidence/freeze.json")
_RESPONSE = "contract: stop the build; answer what is asked, or correct the checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """What freeze did.

    Attributes:
        folder: The policy folder.
        is_unchanged: Nothing had changed and nothing was done.
        contract: The contract written out.
        facts: Number of facts by origin.
        notes: Traps that were seen and how they were read.
        samples: Golden samples made; 0 where they wait for a robot (`verify` makes them).
        answered: Answers used.
    """

    folder: PolicyFolder
    is_unchanged: bool
    contract: ContractX
    facts: dict[str, int]
    notes: tuple[str, ...]
    samples: int
    answered: int


@dataclass(slots=True, kw_only=True)
class _Work:
    """What freeze is about to write."""

    files: dict[str, bytes] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)


def freeze(
    source: Path,
    target: Path,
    *,
    readers: Sequence[Reader],
    reader: str = "",
    robot: Robot | None = None,
    contract: str | None = None,
    answers: Mapping[str, Any] | None = None,
    answered_by: str = "",
    answered_on: str = "",
    samples: Path | None = None,
    python: Path | None = None,
    progress: Progress | None = None,
) -> Frozen:
    """Freezes a checkpoint. Everything is computed before the first byte is written.

    Args:
        source: Checkpoint folder or file.
        target: `NAME.policy`; new, or frozen from an earlier state of the same source.
        readers: All readers, the more knowing ones first.
        reader: Name of the one to use.
        robot: Robot whose joint names the reader may take.
        contract: Text of a contract that a person wrote.
        answers: What a person answers, by key.
        answered_by: Who.
        answered_on: When, as a date.
        samples: File of raw observations.
        python: Interpreter that has the source framework.
        progress: Called at least every second while something takes long.

    Raises:
        InterlockError: Whatever is wrong with the files.
        NeedsAnswer: All unknown facts at once.
        NotEvaluated: The source framework is not installed.
    """
    started = now_ns()
    opened = Source.open(source)
    given = dict(answers or {})
    names = RobotNames(type=robot.type, joints=_full_names(robot)) if robot else None
    view = opened.view(robot=names, contract=contract)
    chosen = choose_reader(view, readers, reader, source_path=str(source))
    reading = chosen.read(view, given)
    text, used = _contract_text(reading, given, person=f"{answered_by or 'operator'}, {answered_on or 'undated'}")
    draft = draft_contract(text, CONTRACT)
    if reading.asks or draft.asks:
        asked = tuple(ask.key for ask in reading.asks) or tuple(ask.path for ask in draft.asks)
        refuse_unknown(given, used, asked)
        raise needs_answer(reading.asks, [] if reading.asks else draft.unanswered(), source=str(source))
    refuse_unknown(given, used, ())
    expanded = expand_contract(draft.known())

    work = _Work()
    for name in reading.files:
        _check_source(opened, name, reading, expanded)
        work.files[f"source/{name}"] = opened.read(name)
    _check_language(expanded, work.files)
    work.inputs = {
        "source": digest({f"source/{name}": each for name, each in opened.digests(reading.files).items()}),
        "reader": f"{chosen.name}/{chosen.version}",
        "contract given": sha256(contract.encode()) if contract is not None else "none",
        "answers": digest(plain(given)),
        "robot": identity(robot) if robot else "none",
        "framework": digest(locked(reading.framework).model_dump(mode="json")),
    }
    observations = _observations(opened, reading, samples)
    work.inputs["samples"] = "none" if observations is None else sha256(observations.content())

    previous = _previous(target)
    if previous is not None:
        if not previous.due(GATE, subject=_subject(previous, work, text), inputs=work.inputs):
            return _unchanged(previous, expanded, reading)
        _refuse_edited(previous, contract)
    work.files[CONTRACT] = text.encode()
    made = _make_samples(work, reading, expanded, observations, opened, python, progress)
    facts = _facts(reading, person=f"{answered_by or 'operator'}, {answered_on or 'undated'}")
    work.results |= {
        "facts": dict(Counter(each.origin for each in facts.values())),
        "notes": list(reading.notes),
        "samples": made,
    }
    lock = Lock(
        name=expanded.name,
        reader=LockedReader(name=chosen.name, version=chosen.version),
        framework=locked(reading.framework),
        files={},
        facts=facts,
        answers=tuple(
            Answered(key=key, value=given[key], by=answered_by or "operator", on=answered_on or "undated")
            for key in sorted(given)
        ),
        notes=reading.notes,
        interlock_version=version_of("interlock"),
    )
    evidence = Evidence(
        gate=GATE,
        verdict=Verdict.PASS,
        subject={"contract": identity(expanded), "source": work.inputs["source"]},
        inputs=work.inputs,
        budget={"unknown facts": 0},
        results=plain(work.results),
        environment=environment(),
        started_ns=started,
        ended_ns=now_ns(),
        failure_response=_RESPONSE,
    )
    if previous is None:
        files = {**work.files, f"evidence/{GATE}.json": evidence.content()}
        folder = create(target, lock=lock, files=files)
    else:
        folder = previous.commit(work.files, evidence=evidence, replacing=("source/", "samples/"), lock=lock)
    return Frozen(
        folder=folder,
        is_unchanged=False,
        contract=expanded,
        facts=dict(Counter(each.origin for each in facts.values())),
        notes=reading.notes,
        samples=made,
        answered=len(given),
    )


def _full_names(robot: Robot) -> tuple[str, ...]:
    return tuple(f"{name}{robot.joints.name_suffix}" for name in robot.joints.order)


def _contract_text(reading: Reading, answers: Mapping[str, Any], *, person: str) -> tuple[str, tuple[str, ...]]:
    """The contract, with what a person answered, and the keys of the answers that were used."""
    if not reading.tree:
        text, used = answer_text(reading.text, answers, name=CONTRACT, by=person)
        return text, (*reading.answered, *used)
    return write_contract(reading.tree, person=person), reading.answered


def _check_source(opened: Source, name: str, reading: Reading, contract: ContractX) -> None:
    """Looks into every file that has a format."""
    if name.endswith(".safetensors"):
        check_weights(opened.read(name), where=name)
    if name == reading.framework.graph:
        facts = opened.graph(name)
        require_deterministic(facts, where=name)
        require_same_tensors(contract, facts)


def _check_language(contract: ContractX, files: Mapping[str, bytes]) -> None:
    if contract.language is None:
        return
    name, expected = str(contract.language["tokenizer"]), str(contract.language["sha256"])
    content = files.get(name)
    if content is None or sha256(content) != expected:
        raise InterlockError(
            code="tokenizer-hash",
            where=name,
            expected=f"sha256 {expected[:16]}…",
            got="no such file" if content is None else f"{sha256(content)[:16]}…",
            hint="take the tokenizer that the policy was trained with; another one gives other words other ids",
        )


def _observations(opened: Source, reading: Reading, samples: Path | None) -> Observations | None:
    if samples is not None:
        content = read_file(samples.resolve().parent, samples.name)
        return read_observations(content, where=samples.name).spread(SAMPLES)
    if reading.samples:
        return read_observations(
            opened.read(reading.samples),
            where=reading.samples,
            names=reading.sample_arrays,
            joints=reading.sample_joints,
        ).spread(SAMPLES)
    return None


def _make_samples(
    work: _Work,
    reading: Reading,
    contract: ContractX,
    observations: Observations | None,
    opened: Source,
    python: Path | None,
    progress: Progress | None,
) -> int:
    """Samples by the source framework. Where the source is the graph itself, `verify` runs it: it knows the robot."""
    if observations is None:
        return 0
    work.files[OBSERVATIONS] = observations.content()
    if reading.framework.kind != "child":
        return 0
    made = child_references(
        reading.framework,
        {name: opened.read(name) for name in reading.files},
        contract,
        observations,
        mistakes=True,
        python=python,
        progress=progress,
        what="samples",
    )
    key = made_for(work.inputs["source"], identity(contract), locked(reading.framework), observations)
    work.files[REFERENCE] = made.content(key)
    work.results["made by"] = made.made_by
    work.results["observations"] = observations.origin
    return len(made.action)


def _facts(reading: Reading, *, person: str) -> dict[str, LockedFact]:
    """Origin of every fact; a contract that was given is a person's word as a whole."""
    if not reading.tree:
        return {"contract": LockedFact(origin="person", detail=person)}
    found = {}
    for path, fact in origins(reading.tree):
        origin: Origin = fact.origin
        detail = (
            ": ".join(part for part in (person, origin.detail) if part) if origin.kind == "person" else origin.detail
        )
        found[path] = LockedFact(origin=origin.kind, detail=detail)
    return found


def _previous(target: Path) -> PolicyFolder | None:
    """What was frozen there before."""
    if not target.exists():
        return None
    if not (target / LOCK_FILE).is_file():
        raise InterlockError(
            code="target-exists",
            where=str(target),
            expected="a new name, or a policy folder",
            got="something else",
            hint="name another folder with -o",
        )
    return PolicyFolder.open(target, rebuilding=_REBUILT)


def _subject(folder: PolicyFolder, work: _Work, text: str) -> dict[str, str]:
    """What the evidence would be about if nothing had changed; a damaged file makes it differ."""
    intact = all(
        name in folder.lock.files and folder.lock.files[name].sha256 == sha256(each) and (folder.path / name).is_file()
        for name, each in work.files.items()
    )
    try:
        for name in (*folder.names("source/"), *folder.names("samples/")):
            folder.read(name)
    except InterlockError:
        intact = False
    contract = identity(expand_contract(draft_contract(text, CONTRACT).known()))
    return {"contract": contract, "source": work.inputs["source"] if intact else "damaged"}


def _unchanged(folder: PolicyFolder, contract: ContractX, reading: Reading) -> Frozen:
    evidence = folder.evidence(GATE)
    results = evidence.results if evidence is not None else {}
    return Frozen(
        folder=folder,
        is_unchanged=True,
        contract=contract,
        facts={str(key): int(value) for key, value in results.get("facts", {}).items()},
        notes=reading.notes,
        samples=int(results.get("samples", 0)),
        answered=len(folder.lock.answers),
    )


def _refuse_edited(folder: PolicyFolder, contract: str | None) -> None:
    """A person's edits are never overwritten."""
    if contract is None and (folder.edited or folder.lock.contract_edited):
        raise InterlockError(
            code="contract-edited",
            where=str(folder.path / CONTRACT),
            expected="the contract that freeze wrote",
            got="one that was edited since, while the checkpoint changed too",
            hint="pass the edited contract with --contract, or move it away",
            exit=Exit.CONFLICT,
        )
