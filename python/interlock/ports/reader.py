"""A reader fills a contract from what people already have: pure functions of verified bytes, nothing executed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFacts:
    """One input or output of a graph.

    Attributes:
        name: Tensor name.
        dtype: numpy's word for it, such as `float32`.
        shape: Sizes; text for a symbolic size, None for an unknown one.
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalFile:
    """A file beside the graph that holds weights.

    Attributes:
        name: Path relative to the graph's own folder.
        tensors: How many initializers live in it.
        end: One past the last byte that is used.
    """

    name: str
    tensors: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFacts:
    """What an ONNX file says about itself."""

    inputs: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    opset: int
    domains: Mapping[str, int]
    producer: str
    metadata: Mapping[str, str]
    operators: Mapping[str, int]
    random_operators: tuple[str, ...]
    external: tuple[ExternalFile, ...]
    wide_integers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotNames:
    """What a reader may take from the robot file.

    Attributes:
        type: The machine type.
        joints: Full joint names in the robot file's order, which is the drives' own order.
    """

    type: str
    joints: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceView:
    """What a person pointed at.

    Attributes:
        label: Name of the folder or file, without suffix.
        names: Every regular file below it, as relative paths with `/`, sorted.
        read: Bytes of one of them; hashed as they are read.
        graph: Facts of one ONNX file among them.
        robot: The robot that was given, if any.
        contract: Text of a contract that was given, if any.
    """

    label: str
    names: tuple[str, ...]
    read: Callable[[str], bytes]
    graph: Callable[[str], GraphFacts]
    robot: RobotNames | None = None
    contract: str | None = None

    def ending(self, suffix: str) -> tuple[str, ...]:
        """Names that end in `suffix`."""
        return tuple(name for name in self.names if name.lower().endswith(suffix))


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a fact comes from.

    Attributes:
        kind: A file and key, a convention of the exporter, the robot file, a person and date, or a choice that is
            not a fact of training.
        detail: Such as `deploy.yaml:step_dt`.
    """

    kind: Literal["file", "convention", "robot", "person", "choice"]
    detail: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A leaf of a contract with its origin. `value` is plain YAML data."""

    value: Any
    origin: Origin


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible answer and what speaks for it."""

    value: Any
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A fact that the files do not say.

    Attributes:
        key: Name of the answer in an answers file.
        question: What is asked, in one line.
        look: Where a person finds it.
        candidates: Possible answers.
        kind: Shape of an answer.
    """

    key: str
    question: str
    look: str
    candidates: tuple[Candidate, ...] = ()
    kind: Literal["number", "text", "list", "mapping", "any"] = "any"


Answers = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """How reference actions are made.

    Attributes:
        kind: `onnx`: the given graph itself is the source. `child`: a script of ours rebuilds the network from the
            weights in a child process.
        graph: Name of the ONNX file in the source (kind `onnx`).
        script: Our script (kind `child`); it also exports.
        model: Our definition of the network, chosen by the type that the checkpoint declares (kind `child`).
    """

    kind: Literal["onnx", "child"]
    graph: str = ""
    script: Path | None = None
    model: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a reader found.

    Attributes:
        files: Names of the source files that the policy consists of; these are copied and hashed.
        tree: The contract as nested mappings whose leaves are `Fact`; empty where `text` is given.
        text: The contract's text, where it was given rather than read.
        asks: Facts that are unknown; `tree` is not complete while there are any.
        answered: Keys of the answers that were used.
        notes: Traps that were seen and how they were read.
        framework: How reference actions are made.
        samples: Name of a source file with raw observations, empty for none.
        sample_arrays: Our name of an array in that file -> its name there.
        sample_joints: Joint names of its columns, where the file does not say.
    """

    files: tuple[str, ...]
    framework: Framework
    tree: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    asks: tuple[Ask, ...] = ()
    answered: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    samples: str = ""
    sample_arrays: Mapping[str, str] = field(default_factory=dict)
    sample_joints: tuple[str, ...] = ()


class Reader(Protocol):
    """Reads one kind of checkpoint."""

    @property
    def name(self) -> str:
        """Word used in `source.reader`."""

    @property
    def version(self) -> int:
        """Raised whenever the same files would be read differently."""

    @property
    def framework(self) -> Framework:
        """What makes reference actions and graphs; `graph` is left empty."""

    def claims(self, source: SourceView) -> str:
        """Why this source is of this kind, in a few words; empty when it is not."""

    def read(self, source: SourceView, answers: Answers) -> Reading:
        """Reads it. `answers` hold what a person said to `Ask.key`; an answer that nobody asked for is refused later.

        Raises:
            InterlockError: The files contradict themselves.
        """
