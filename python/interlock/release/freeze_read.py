"""What a checkpoint says, completed by what a person says; nothing is guessed, nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.artifact.child import Progress
from interlock.artifact.files import read_file, sha256
from interlock.artifact.folder import CONTRACT
from interlock.artifact.observations import Observations, read_observations
from interlock.artifact.onnx_file import require_deterministic
from interlock.artifact.safetensors import check_weights
from interlock.artifact.source import Source
from interlock.contract.canonical import digest
from interlock.contract.expand_contract import expand_contract
from interlock.contract.expanded import ContractX
from interlock.contract.model import Robot
from interlock.contract.text import draft_contract
from interlock.errors import Exit, InterlockError
from interlock.ports.reader import Reader, Reading, RobotNames

from .answers import answer_text, needs_answer, refuse_unknown
from .contract_text import write_contract
from .contradict import contradictions, knowing_reading
from .detect import choose_reader
from .interface import require_same_tensors

SAMPLES = 24  # observations that are looked at, whatever number is given


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked; see `interlock.release.freeze.freeze`."""

    source: Path
    target: Path
    readers: Sequence[Reader]
    reader: str
    robot: Robot | None
    contract: str | None
    answers: dict[str, Any]
    by: str
    on: str
    samples: Path | None
    python: Path | None
    progress: Progress | None

    @property
    def person(self) -> str:
        """Who answers, with a date."""
        return f"{self.by}, {self.on}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What the files and the answers say.

    Attributes:
        opened: The checkpoint.
        reader: Who read it.
        reading: What it found.
        text: The contract as it will be written.
        contract: The contract written out.
        observations: Raw observations, where there are any.
    """

    opened: Source
    reader: Reader
    reading: Reading
    text: str
    contract: ContractX
    observations: Observations | None

    def source(self) -> str:
        """Hash of all files that the policy consists of."""
        digests = self.opened.digests(self.reading.files)
        return digest({f"source/{name}": each for name, each in digests.items()})


def read_checkpoint(asked: Asked) -> Read:
    """Reads the checkpoint; raises everything that is unknown at once."""
    opened = Source.open(asked.source)
    names = RobotNames(type=asked.robot.type, joints=_full_names(asked.robot)) if asked.robot else None
    view = opened.view(robot=names, contract=asked.contract)
    reader = choose_reader(view, asked.readers, asked.reader, source_path=str(asked.source))
    reading = reader.read(view, asked.answers)
    if asked.contract is not None and reading.tree:
        raise InterlockError(
            code="contract-not-taken",
            where=f"{asked.source}: {reader.name}",
            expected="no --contract: this checkpoint says itself what it was trained on",
            got="one as well",
            hint="leave --contract out; edit contract.yaml afterwards where a choice is yours",
            next=f"interlock freeze {asked.source} -o {asked.target}",
            exit=Exit.USAGE,
        )
    text, used = _contract_text(reading, asked)
    draft = draft_contract(text, CONTRACT)
    if reading.asks or draft.asks:
        keys = tuple(ask.key for ask in reading.asks) or tuple(ask.path for ask in draft.asks)
        refuse_unknown(asked.answers, used, keys)
        raise needs_answer(reading.asks, [] if reading.asks else draft.unanswered(), source=str(asked.source))
    refuse_unknown(asked.answers, used, ())
    contract = expand_contract(draft.known())
    _refuse_contradictions(opened, names, contract, asked)
    return Read(
        opened=opened,
        reader=reader,
        reading=reading,
        text=text,
        contract=contract,
        observations=_observations(opened, reading, asked.samples),
    )


def _refuse_contradictions(opened: Source, names: RobotNames | None, contract: ContractX, asked: Asked) -> None:
    """A contract that was given is held against files that say the same, unless a person said whom to believe."""
    if asked.contract is None or asked.reader:
        return
    known = knowing_reading(opened.view(robot=names, contract=None), asked.readers)
    problems = contradictions(contract, known) if known is not None else []
    if problems:
        raise InterlockError(problems=problems)


def checked_files(read: Read) -> dict[str, bytes]:
    """The checkpoint's files as they will lie in the policy folder."""
    files = {}
    for name in read.reading.files:
        _check_source(read.opened, name, read.reading, read.contract)
        files[f"source/{name}"] = read.opened.read(name)
    _check_language(read.contract, files)
    return files


def _full_names(robot: Robot) -> tuple[str, ...]:
    return tuple(f"{name}{robot.joints.name_suffix}" for name in robot.joints.order)


def _contract_text(reading: Reading, asked: Asked) -> tuple[str, tuple[str, ...]]:
    """The contract, with what a person answered, and the keys of the answers that were used."""
    if not reading.tree:
        text, used = answer_text(reading.text, asked.answers, name=CONTRACT, by=asked.person)
        return text, (*reading.answered, *used)
    return write_contract(reading.tree, person=asked.person), reading.answered


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
