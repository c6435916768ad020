"""Answers written into the text itself: every other byte, comments included, stays as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from interlock.contract.codes import problem
from interlock.contract.text import ASK, ask_group
from interlock.contract.yaml_text import Path, Tree, dotted, parse
from interlock.errors import InterlockError, Problem

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./*^()|+-]*")
_WORDS = {"true", "false", "null", "none", "ask"}


def answer(text: str, answers: Mapping[str, Any], name: str = "contract.yaml", by: str = "") -> str:
    """Replaces `ask` by answers.

    Args:
        text: A contract or robot.
        answers: Path, such as `driver.network`, to value; `joints.each.*.vel` answers every row that asks.
            `"none"` is a known absence.
        name: What refusals call the text.
        by: Who answered and when; written behind the value as a comment.

    Raises:
        InterlockError: `answer-unknown`, a path whose value is not `ask`; all of them.
    """
    tree = parse(text, name)
    places: dict[str, set[Path]] = {}
    for path in tree.marks:
        if _value_at(tree, path) == ASK:
            for key in (dotted(path), dotted(ask_group(path))):
                places.setdefault(key, set()).add(path)
    problems: list[Problem] = [
        problem("answer-unknown", f"{name} {path}", expected=", ".join(places) or "no `ask` in the file", got=path)
        for path in answers
        if path not in places
    ]
    if problems:
        raise InterlockError(problems=problems)
    # A path of its own counts more than the `*` of its group.
    values = {
        path: value
        for by_group in (True, False)
        for key, value in answers.items()
        for path in places[key]
        if (key != dotted(path)) is by_group
    }
    changes = sorted(((tree.marks[path], value) for path, value in values.items()), key=lambda change: -change[0].start)
    for mark, value in changes:
        text = f"{text[: mark.start]}{flow(value)}{text[mark.end :]}"
        if by:
            text = _comment(text, mark.start, " ".join(by.split()).replace("#", "no."))
    parse(text, name)
    return text


def flow(value: Any) -> str:
    """One value in YAML's flow style, exact and unambiguous.

    Raises:
        InterlockError: `wrong-type`, something that YAML of ours does not hold.
    """
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_word(str(key))}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(item) for item in value) + "]"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, str):
        return value if value in ("none", ASK) else _word(value)
    if isinstance(value, float):
        return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
    if isinstance(value, int):
        return str(value)
    raise InterlockError(problems=[problem("wrong-type", "answer", expected="plain data", got=type(value).__name__)])


def _word(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def _comment(text: str, index: int, comment: str) -> str:
    """Adds to the end of the line; a comment that is there already stays in front."""
    end = text.find("\n", index)
    end = len(text) if end < 0 else end
    return f"{text[:end].rstrip()}  # {comment}{text[end:]}"


def _value_at(tree: Tree, path: Path) -> Any:
    value = tree.data
    for step in path:
        value = value[step]
    return value
