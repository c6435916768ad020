"""freeze: from a checkpoint to a policy folder that says what it was trained on, with samples of its own framework."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.artifact.child import Progress
from interlock.artifact.environment import environment, version_of
from interlock.artifact.evidence import Evidence, Verdict, now_ns, plain
from interlock.artifact.files import sha256
from interlock.artifact.folder import CONTRACT, PolicyFolder, create
from interlock.artifact.lock import LOCK_FILE, Answered, Lock, LockedFact, LockedReader
from interlock.contract.canonical import digest
from interlock.contract.expanded import ContractX
from interlock.contract.identity import identity
from interlock.contract.model import Robot
from interlock.errors import Exit, InterlockError
from interlock.ports.reader import Origin, Reader, Reading

from .contract_text import origins
from .framework import child_references, locked
from .freeze_read import Asked, Read, checked_files, read_checkpoint
from .references import OBSERVATIONS, REFERENCE, made_for
from .refusal import next_command

GATE = "freeze"
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
    with next_command(f"interlock freeze {source} -o {target}"):
        return _freeze(
            Asked(
                source=source,
                target=target,
                readers=readers,
                reader=reader,
                robot=robot,
                contract=contract,
                answers=dict(answers or {}),
                by=answered_by or "operator",
                on=answered_on or "undated",
                samples=samples,
                python=python,
                progress=progress,
            )
        )


def _freeze(asked: Asked) -> Frozen:
    started = now_ns()
    # What the files say, completed by what a person says; every file that has a format is looked into.
    read = read_checkpoint(asked)
    files = checked_files(read)
    inputs = _inputs(asked, read)

    # What was frozen before stands while it is intact and nothing that it was made from has changed.
    previous = _previous(asked.target)
    if previous is not None:
        if not previous.due(GATE, subject=_subject(previous, read, files), inputs=inputs):
            return _unchanged(previous, read)
        _refuse_edited(previous, asked.contract)

    # Everything slow happens before the first byte is written.
    made, results = _make_samples(asked, read)
    files |= {CONTRACT: read.text.encode(), **made}
    facts = _facts(read.reading, person=asked.person)
    counts: dict[str, int] = dict(Counter(str(each.origin) for each in facts.values()))
    lock = _lock(asked, read, facts)
    evidence = Evidence(
        gate=GATE,
        verdict=Verdict.PASS,
        subject={"contract": identity(read.contract), "source": inputs["source"]},
        inputs=inputs,
        budget={"unknown facts": 0},
        results=plain({"facts": counts, "notes": list(read.reading.notes), **results}),
        environment=environment(),
        started_ns=started,
        ended_ns=now_ns(),
        failure_response=_RESPONSE,
    )
    if previous is None:
        folder = create(asked.target, lock=lock, files={**files, f"evidence/{GATE}.json": evidence.content()})
    else:
        folder = previous.commit(files, evidence=evidence, replacing=("source/", "samples/"), lock=lock)
    return Frozen(
        folder=folder,
        is_unchanged=False,
        contract=read.contract,
        facts=counts,
        notes=read.reading.notes,
        samples=int(results["samples"]),
        answered=len(asked.answers),
    )


def _inputs(asked: Asked, read: Read) -> dict[str, str]:
    """Everything that the policy folder depends on."""
    return {
        "source": read.source(),
        "reader": f"{read.reader.name}/{read.reader.version}",
        "contract given": "none" if asked.contract is None else sha256(asked.contract.encode()),
        "answers": digest(plain(asked.answers)),
        "robot": identity(asked.robot) if asked.robot else "none",
        "framework": digest(locked(read.reading.framework).model_dump(mode="json")),
        "samples": "none" if read.observations is None else sha256(read.observations.content()),
    }


def _lock(asked: Asked, read: Read, facts: dict[str, LockedFact]) -> Lock:
    answers = (Answered(key=key, value=asked.answers[key], by=asked.by, on=asked.on) for key in sorted(asked.answers))
    return Lock(
        name=read.contract.name,
        reader=LockedReader(name=read.reader.name, version=read.reader.version),
        framework=locked(read.reading.framework),
        files={},
        facts=facts,
        answers=tuple(answers),
        notes=read.reading.notes,
        interlock_version=version_of("interlock"),
    )


def _make_samples(asked: Asked, read: Read) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Samples by the source framework. Where the source is the graph itself, `verify` runs it: it knows the robot."""
    if read.observations is None:
        return {}, {"samples": 0}
    files = {OBSERVATIONS: read.observations.content()}
    found = {"observations": read.observations.origin}
    framework = read.reading.framework
    if framework.kind != "child":
        return files, {**found, "samples": 0}
    made = child_references(
        framework,
        {name: read.opened.read(name) for name in read.reading.files},
        read.contract,
        read.observations,
        mistakes=True,
        python=asked.python,
        progress=asked.progress,
        what="samples",
    )
    key = made_for(read.source(), identity(read.contract), locked(framework), read.observations)
    files[REFERENCE] = made.content(key)
    return files, {**found, "samples": len(made.action), "made by": made.made_by}


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


def _subject(folder: PolicyFolder, read: Read, files: Mapping[str, bytes]) -> dict[str, str]:
    """What the evidence would be about if nothing had changed; a damaged file makes it differ."""
    intact = all(name in folder.lock.files and folder.lock.files[name].sha256 == sha256(files[name]) for name in files)
    try:
        for name in (*folder.names("source/"), *folder.names("samples/")):
            folder.read(name)
    except InterlockError:
        intact = False
    return {"contract": identity(read.contract), "source": read.source() if intact else "damaged"}


def _unchanged(folder: PolicyFolder, read: Read) -> Frozen:
    evidence = folder.evidence(GATE)
    results = evidence.results if evidence is not None else {}
    return Frozen(
        folder=folder,
        is_unchanged=True,
        contract=read.contract,
        facts={str(key): int(value) for key, value in results.get("facts", {}).items()},
        notes=read.reading.notes,
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
