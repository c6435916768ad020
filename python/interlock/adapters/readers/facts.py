"""Short ways to say where a fact comes from, and the choices that every contract starts with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.errors import InterlockError
from interlock.ports.reader import Answers, Ask, Fact, GraphFacts, Origin

JOINT_SUFFIX = "_joint"


def from_file(value: Any, place: str) -> Fact:
    """A fact that a file states; `place` is `FILE:KEY`."""
    return Fact(value, Origin("file", place))


def by_convention(value: Any, why: str) -> Fact:
    """A fact that the exporter always does this way."""
    return Fact(value, Origin("convention", why))


def from_robot(value: Any, what: str) -> Fact:
    """A fact taken from the robot file."""
    return Fact(value, Origin("robot", what))


def choice(value: Any) -> Fact:
    """Not a fact of training but a safe starting value."""
    return Fact(value, Origin("choice", "safe starting value"))


def said(value: Any) -> Fact:
    """A fact that a person said."""
    return Fact(value, Origin("person", ""))


class Questions:
    """Takes answers where there are any and collects what stays open."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.open: list[Ask] = []
        self.taken: list[str] = []
        self.notes: list[str] = []  # answers that differ from everything that speaks for one

    def fact(self, ask: Ask) -> Fact:
        """The answer to `ask`, or a stand-in while it is open."""
        if ask.key not in self._answers:
            self.open.append(ask)
            return Fact("ask", Origin("person", ""))
        value = self._answers[ask.key]
        self.taken.append(ask.key)
        fits = {
            "number": isinstance(value, (int, float)) and not isinstance(value, bool),
            "text": isinstance(value, str) and value != "",
            "list": isinstance(value, list),
            "mapping": isinstance(value, dict),
            "any": True,
        }
        if not fits[ask.kind]:
            raise InterlockError(
                code="answer-kind",
                where=f"answers: {ask.key}",
                expected=f"a {ask.kind}",
                got=repr(value)[:80],
                hint=ask.question,
            )
        if ask.candidates and all(value != each.value for each in ask.candidates):
            known = "; ".join(f"{_brief(each.value)}: {each.evidence}" for each in ask.candidates)
            self.notes.append(f"{ask.key} answered with {_brief(value)}, which differs from {known}")
        return said(value)


def _brief(value: Any) -> str:
    return f"{len(value)} entries" if isinstance(value, (dict, list)) else str(value)


def velocity_choices(joint_pos_rad: float = 0.15) -> dict[str, Any]:
    """Choices of a walking policy."""
    return {
        "max_age_ms": choice(20),
        "latency_budget_ms": choice(10),
        "start_within": {"joint_pos_rad": choice(joint_pos_rad), "tilt_rad": choice(0.2)},
    }


def without_suffix(joints: Sequence[str]) -> tuple[list[str], str]:
    """Joint names as a contract writes them: without the suffix that all of them share."""
    if joints and all(name.endswith(JOINT_SUFFIX) for name in joints):
        return [name.removesuffix(JOINT_SUFFIX) for name in joints], JOINT_SUFFIX
    return list(joints), ""


def one_if_equal(values: Sequence[float]) -> float | list[float]:
    """A single number where all are the same."""
    return values[0] if values and all(value == values[0] for value in values) else list(values)


def numbers(value: Any, count: int, where: str) -> list[float]:
    """A list of `count` finite numbers; one number stands for all.

    Raises:
        InterlockError: `source-contradiction`.
    """
    given = value if isinstance(value, list) else [value] * count
    good = all(isinstance(each, (int, float)) and not isinstance(each, bool) and abs(each) < 1e12 for each in given)
    if not good or len(given) != count:
        raise contradiction(where, f"{count} numbers", f"{len(given)}: {str(value)[:80]}")
    return [each if isinstance(each, int) else float(each) for each in given]


def single_io(graph: GraphFacts, file: str) -> tuple[str, int, str, int]:
    """Names and widths of the only input and the only output of a feed-forward policy.

    Raises:
        InterlockError: `not-served` when there are more or the shapes are not `[1, n]`.
    """
    tensors = (*graph.inputs, *graph.outputs)
    flat = all(
        each.dtype == "float32" and len(each.shape) == 2 and each.shape[0] == 1 and isinstance(each.shape[1], int)
        for each in tensors
    )
    if len(graph.inputs) != 1 or len(graph.outputs) != 1 or not flat:
        shown = "; ".join(f"{each.name} {each.dtype} {list(each.shape)}" for each in tensors)
        raise InterlockError(
            code="not-served",
            where=file,
            expected="one float32 input and one float32 output, each [1, n]",
            got=shown,
            hint="write the contract by hand and pass it with --contract",
        )
    width, actions = graph.inputs[0].shape[1], graph.outputs[0].shape[1]
    assert isinstance(width, int)
    assert isinstance(actions, int)
    return graph.inputs[0].name, width, graph.outputs[0].name, actions


def contradiction(where: str, expected: str, got: str) -> InterlockError:
    """A refusal of files that do not fit each other."""
    return InterlockError(
        code="source-contradiction",
        where=where,
        expected=expected,
        got=got,
        hint="the files of this checkpoint do not belong together, or were edited; export again",
    )
