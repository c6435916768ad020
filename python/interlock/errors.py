"""One exception family. The call site passes facts, the class writes the sentence; a published `code` never changes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of the command line."""

    DONE = 0
    FAIL = 1
    USAGE = 2
    NOT_EVALUATED = 3
    NEEDS_ANSWER = 4
    REFUSED = 5
    ENDED_BY_GUARD = 6
    CONFLICT = 7
    INTERNAL = 70
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong: where, what was expected, what was found, what to do.

    Attributes:
        code: Stable word, such as `shape-mismatch`.
        where: File and line, or path inside a document, such as `contract.yaml:10 joints.unit`.
        expected: What should stand there; empty where nothing sensible can be said.
        got: What stands there.
        hint: What to do about it.
    """

    code: str
    where: str
    expected: str = ""
    got: str = ""
    hint: str = ""

    def sentence(self) -> str:
        """The problem in one line, without its code."""
        if self.expected and self.got:
            return f"{self.where}: expected {self.expected}, got {self.got}"
        if self.expected or self.got:
            return f"{self.where}: {self.expected or self.got}"
        return self.where

    def lines(self) -> list[str]:
        """The problem as it is shown to a person."""
        shown = [f"error[{self.code}]: {self.sentence()}"]
        if self.hint:
            shown.append(f"hint: {self.hint}")
        return shown

    def as_json(self) -> dict[str, str]:
        """The problem as plain data."""
        return {
            "code": self.code,
            "where": self.where,
            "expected": self.expected,
            "got": self.got,
            "hint": self.hint,
        }


class InterlockError(Exception):
    """A refusal. Carries one problem or, where several were found at once, all of them.

    Args:
        code: Stable word of the first problem.
        where: See `Problem`.
        expected: See `Problem`.
        got: See `Problem`.
        hint: See `Problem`.
        next: The command to type next.
        exit: Exit code of the process that ends because of this.
        problems: All problems, when there are several; then the other facts may be left out.
    """

    def __init__(
        self,
        *,
        code: str = "",
        where: str = "",
        expected: str = "",
        got: str = "",
        hint: str = "",
        next: str = "",
        exit: Exit = Exit.REFUSED,
        problems: list[Problem] | None = None,
    ) -> None:
        self.problems = (
            list(problems) if problems else [Problem(code=code, where=where, expected=expected, got=got, hint=hint)]
        )
        self.code = self.problems[0].code
        self.next = next
        self.exit = exit
        super().__init__("; ".join(f"[{each.code}] {each.sentence()}" for each in self.problems))

    def lines(self) -> list[str]:
        """Everything that a person is shown, the next command last."""
        shown = [line for problem in self.problems for line in problem.lines()]
        if self.next:
            shown.append(f"next: {self.next}")
        return shown

    def as_json(self) -> dict[str, object]:
        """The refusal as plain data."""
        return {
            "error": self.code,
            "problems": [problem.as_json() for problem in self.problems],
            "next": self.next,
            "exit": int(self.exit),
        }


class NeedsAnswer(InterlockError):
    """A fact is unknown and nobody is there to ask."""

    def __init__(self, *, problems: list[Problem], next: str = "") -> None:
        super().__init__(problems=problems, next=next, exit=Exit.NEEDS_ANSWER)


class NotEvaluated(InterlockError):
    """Something could not be judged here; never a pass."""

    def __init__(self, *, code: str, where: str, hint: str = "", next: str = "") -> None:
        super().__init__(code=code, where=where, hint=hint, next=next, exit=Exit.NOT_EVALUATED)
