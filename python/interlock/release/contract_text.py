"""Writes a contract as a person would: one fact a line, its origin behind it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from interlock.contract.edit import flow
from interlock.ports.reader import Fact, Origin

_KEY = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.:/()|*+-]*")
_WIDTH = 118
_COMMENT_COLUMN = 34
SCHEMA = "interlock.contract/1"


def write_contract(tree: Mapping[str, Any], *, person: str = "") -> str:
    """The text of a contract.

    Args:
        tree: Nested mappings; leaves are `Fact` or lists of `Fact`.
        person: Who said what a person said, with a date.
    """
    tree = _signed(tree, person)
    lines = ["# What this policy was trained on. Behind each fact: where it comes from.", f"schema: {SCHEMA}"]
    for key, node in tree.items():
        if isinstance(node, Mapping) and lines[-1] != "" and not _is_short(key, node):
            lines.append("")
        lines.extend(_lines(key, node, 0))
        if isinstance(node, Mapping) and not _is_short(key, node):
            lines.append("")
    text = "\n".join(lines).rstrip() + "\n"
    return re.sub(r"\n{3,}", "\n\n", text)


def origins(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Fact]]:
    """Dotted path and fact of every leaf."""
    for key, node in tree.items():
        path = f"{prefix}{key}"
        if isinstance(node, Fact):
            yield path, node
        elif isinstance(node, Mapping):
            yield from origins(node, f"{path}.")
        else:
            for index, each in enumerate(node):
                yield f"{path}[{index}]", each


def _signed(node: Any, person: str) -> Any:
    """The same with the person's name behind what a person said."""
    if isinstance(node, Fact):
        if node.origin.kind != "person":
            return node
        detail = ": ".join(part for part in (person, node.origin.detail) if part)
        return Fact(node.value, Origin("person", detail))
    if isinstance(node, Mapping):
        return {key: _signed(each, person) for key, each in node.items()}
    return [_signed(each, person) for each in node]


def _lines(key: str, node: Any, depth: int) -> list[str]:
    pad = "  " * depth
    shown = key if _KEY.fullmatch(key) else json.dumps(key)
    if isinstance(node, Fact):
        return _fact(f"{pad}{shown}: ", node)
    if isinstance(node, Mapping):
        if _is_short(key, node):
            inner = ", ".join(f"{name}: {flow(fact.value)}" for name, fact in node.items())
            return [_commented(f"{pad}{shown}: {{{inner}}}", next(iter(node.values())))]
        head, below = _shared(f"{pad}{shown}:", list(node.values()))
        inside = zip(node, below, strict=True)
        return [head, *(line for name, each in inside for line in _lines(name, each, depth + 1))]
    if not node:
        return [f"{pad}{shown}: []"]
    head, below = _shared(f"{pad}{shown}:", list(node))
    return [head, *(line for each in below for line in _fact(f"{pad}  - ", each))]


def _shared(head: str, nodes: list[Any]) -> tuple[str, list[Any]]:
    """Says a common origin once, in the line above."""
    facts = [each for each in nodes if isinstance(each, Fact)]
    if len(facts) < 3 or len(facts) != len(nodes) or len({each.origin for each in facts}) > 1:
        return head, nodes
    silent = Origin(facts[0].origin.kind, "")
    return _commented(head, facts[0]), [Fact(each.value, silent) for each in facts]


def _is_short(key: str, node: Mapping[str, Any]) -> bool:
    """Whether a block fits one line and has one origin."""
    facts = list(node.values())
    if not facts or len(facts) > 4 or not all(isinstance(each, Fact) for each in facts):
        return False
    inner = ", ".join(f"{name}: {flow(fact.value)}" for name, fact in node.items())
    same = len({each.origin for each in facts}) == 1
    return same and len(key) + len(inner) < 76


def _fact(start: str, fact: Fact) -> list[str]:
    whole = f"{start}{flow(fact.value)}"
    if len(whole) <= _WIDTH or not isinstance(fact.value, list):
        return [_commented(whole, fact)]
    # A list longer than a line is broken between its elements.
    pad = " " * (len(start) - len(start.lstrip()) + 2)
    lines, line = [], f"{start}["
    for index, each in enumerate(fact.value):
        word = flow(each) + ("]" if index == len(fact.value) - 1 else ",")
        if len(line) + len(word) + 1 > _WIDTH:
            lines.append(line.rstrip())
            line = pad
        line += word if line.endswith("[") or line == pad else f" {word}"
    return [*lines, _commented(line, fact)]


def _commented(line: str, fact: Fact) -> str:
    detail = " ".join(fact.origin.detail.split()).replace("#", "no.")
    if not detail:
        return line
    words = {"file": detail, "convention": detail, "robot": f"robot file: {detail}", "person": detail}
    return f"{line.ljust(_COMMENT_COLUMN)}  # {words.get(fact.origin.kind, detail)}"
