"""What a person answers: taken from a file, used where it was asked, refused where it was not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.contract.edit import answer, flow
from interlock.contract.text import draft_contract
from interlock.contract.yaml_text import parse
from interlock.errors import InterlockError, NeedsAnswer, Problem
from interlock.ports.reader import Ask


def read_answers(text: str, *, where: str) -> dict[str, Any]:
    """Answers by key.

    Raises:
        InterlockError: `yaml-…`, `answers-malformed`.
    """
    data = parse(text, where).data
    if not isinstance(data, dict):
        raise InterlockError(
            code="answers-malformed",
            where=where,
            expected="a mapping from what was asked to what is answered",
            got=type(data).__name__,
            hint="the refusal that asked lists the keys",
        )
    return {str(key): value for key, value in data.items()}


def answer_text(text: str, answers: Mapping[str, Any], *, name: str, by: str) -> tuple[str, tuple[str, ...]]:
    """Puts answers where a contract says `ask`; returns the new text and the keys that were used."""
    asked = {key for ask in draft_contract(text, name).asks for key in (ask.path, ask.group)}
    used = {key: value for key, value in answers.items() if key in asked}
    return answer(text, used, name, by), tuple(used)


def refuse_unknown(answers: Mapping[str, Any], used: tuple[str, ...], open_keys: tuple[str, ...]) -> None:
    """Refuses answers to questions that nobody asked: a misspelt key would leave its question to a guess.

    Raises:
        InterlockError: `answer-unknown`.
    """
    strange = sorted(set(answers) - set(used))
    if strange:
        asked = ", ".join((*used, *open_keys)) or "nothing"
        raise InterlockError(
            problems=[
                Problem(
                    code="answer-unknown",
                    where=f"answers: {key}",
                    expected=f"one of what is asked: {asked}",
                    got=key,
                    hint="remove it, or correct its spelling",
                )
                for key in strange
            ]
        )


def needs_answer(asks: tuple[Ask, ...], others: list[Problem], *, source: str) -> NeedsAnswer:
    """Everything that is unknown, at once, with candidates, what speaks for them, and where to look."""
    problems = []
    for ask in asks:
        shown = "; ".join(f"{flow(each.value)} ({each.evidence})" for each in ask.candidates)
        problems.append(
            Problem(
                code="unanswered",
                where=ask.key,
                expected=ask.question,
                got="",
                hint=f"look in: {ask.look}{f' · candidates: {shown}' if shown else ''}",
            )
        )
    return NeedsAnswer(
        problems=[*problems, *others],
        next=f"interlock freeze {source} --answers answers.yaml   (one line per question)",
    )
