"""What a person answers: taken from a file, used where it was asked, refused where it was not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.contract.text import draft_contract
from interlock.contract.yaml_text import Path as YamlPath
from interlock.contract.yaml_text import Tree, dotted, parse
from interlock.errors import InterlockError, NeedsAnswer, Problem
from interlock.ports.reader import Ask

from .contract_text import flow

ASK = "ask"


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


def answer_text(text: str, answers: Mapping[str, Any], *, name: str) -> tuple[str, tuple[str, ...]]:
    """Puts answers where a contract says `ask`; returns the new text and the keys that were used."""
    draft = draft_contract(text, name)
    used = [ask.path for ask in draft.asks if ask.path in answers]
    places = [(mark, path) for path, mark in _asked(draft.tree) if dotted(path) in answers]
    for (start, end), path in sorted(places, reverse=True):
        text = f"{text[:start]}{flow(answers[dotted(path)])}{text[end:]}"
    return text, tuple(used)


def _asked(tree: Tree) -> list[tuple[YamlPath, tuple[int, int]]]:
    return [
        (path, (mark.start, mark.end))
        for path, mark in tree.marks.items()
        if mark.plain and tree.text[mark.start : mark.end] == ASK
    ]


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
