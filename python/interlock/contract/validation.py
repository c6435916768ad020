"""pydantic's findings in our words: code, line, expected, got."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from interlock.contract.codes import HINTS, problem
from interlock.contract.parts import Part
from interlock.contract.yaml_text import Path, Tree
from interlock.errors import Problem

_CODES = {
    "missing": "missing-key",
    "extra_forbidden": "unknown-key",
    "literal_error": "wrong-value",
    "union_tag_invalid": "wrong-value",
    "union_tag_not_found": "wrong-type",
    "string_pattern_mismatch": "wrong-value",
    "greater_than": "not-positive",
}
_TYPE_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "string": "text",
    "bool": "true or false",
    "dict": "a mapping",
    "model": "a mapping",
    "tuple": "a list",
    "list": "a list",
}
_LONGEST_SHOWN = 60


def explain(error: ValidationError, tree: Tree, asks: set[Path]) -> list[Problem]:
    """Turns every finding into a problem, but for what is wrong only because a fact is `ask`.

    Args:
        error: What pydantic found.
        tree: The document.
        asks: Paths whose value is `ask`.
    """
    found: dict[tuple[Path, str], Problem] = {}
    for details in error.errors(include_url=False):
        path = _path_in(tree.data, details["loc"])
        if any(path[: len(ask)] == ask for ask in asks):
            continue
        # A check across keys of a block says nothing while one of them is unknown.
        if details["type"] in HINTS and any(ask[: len(path)] == path for ask in asks):
            continue
        each = _explain_one(details, tree, path)
        known = found.get((path, each.code))
        if known is not None and known.expected and each.expected and each.expected not in known.expected:
            each = problem(each.code, each.where, expected=f"{known.expected}, or {each.expected}", got=each.got)
        found[(path, each.code)] = each
    return list(found.values())


def _explain_one(details: ErrorDetails, tree: Tree, path: Path) -> Problem:
    kind = details["type"]
    where = tree.where(path)
    got = _shown(details["input"])
    context: dict[str, Any] = dict(details.get("ctx", {}))
    if kind == "missing":
        near = _shown_key(path)
        return problem("missing-key", where, expected=f"the key `{near}`", got="nothing")
    if kind == "extra_forbidden":
        key = str(path[-1]) if path else ""
        near_keys = get_close_matches(key, _known_keys(), n=1)
        expected = f"a known key, perhaps `{near_keys[0]}`" if near_keys else "a known key"
        return problem("unknown-key", where, expected=expected, got=f"`{key}`")
    if kind in HINTS:
        return problem(kind, where, got=details["msg"])
    code = _CODES.get(kind, "wrong-type" if kind.endswith(("_type", "_parsing")) else "wrong-value")
    if "expected" in context:
        return problem(code, where, expected=str(context["expected"]), got=got)
    if kind == "union_tag_invalid":
        return problem(
            code, where, expected=f"one of {context.get('expected_tags', '')}", got=str(context.get("tag"))[:80]
        )
    if kind == "string_pattern_mismatch":
        return problem(code, where, expected="letters, digits and _ . - (no spaces)", got=got)
    if kind.endswith(("_type", "_parsing")):
        word = _TYPE_WORDS.get(kind.removesuffix("_type").removesuffix("_parsing"), details["msg"])
        return problem(code, where, expected=word, got=got)
    return problem(code, where, expected=_lower_first(details["msg"]), got=got)


def _path_in(data: Any, location: tuple[str | int, ...]) -> Path:
    """The part of pydantic's location that exists in the document; its union tags do not."""
    path: Path = ()
    here = data
    for index, step in enumerate(location):
        if isinstance(here, dict) and step in here:
            here = here[str(step)]
        elif isinstance(here, list) and isinstance(step, int) and step < len(here):
            here = here[step]
        elif isinstance(here, dict) and index == len(location) - 1 and step != "[key]":
            return (*path, step)
        else:
            continue
        path = (*path, step)
    return path


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return "a list"
    text = str(value)
    text = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return f"`{text}`" if text else "nothing"


def _shown_key(path: Path) -> str:
    return str(path[-1]) if path else ""


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _known_keys() -> list[str]:
    keys: set[str] = set()
    waiting: list[type[BaseModel]] = [Part]
    while waiting:
        model = waiting.pop()
        keys.update(model.model_fields)
        waiting.extend(model.__subclasses__())
    return sorted(keys)
