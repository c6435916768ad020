"""Text to contract or robot. What is unknown (`ask`) and what is wrong is collected and reported together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from interlock.contract.codes import problem
from interlock.contract.model import CONTRACT_SCHEMA, ROBOT_SCHEMA, Contract, Robot
from interlock.contract.validation import explain
from interlock.contract.yaml_text import Path, Tree, dotted, parse
from interlock.errors import InterlockError, NeedsAnswer, Problem

ASK = "ask"
NEXT = "interlock check POLICY --robot ROBOT"

M = TypeVar("M", Contract, Robot)


@dataclass(frozen=True, slots=True)
class Ask:
    """A fact that is not known.

    Attributes:
        path: Where it stands, such as `driver.network`; the key of its answer.
        group: The same with `*` for a joint row, such as `joints.each.*.vel`; answers every row at once.
        where: The path with file and line.
    """

    path: str
    group: str
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft(Generic[M]):
    """A document as far as it is known.

    Attributes:
        tree: The text as data, with positions.
        asks: Facts that nobody has answered yet.
        problems: What is wrong besides.
        model: The model; None while there is an ask or a problem.
    """

    tree: Tree
    asks: tuple[Ask, ...]
    problems: tuple[Problem, ...]
    model: M | None

    def unanswered(self) -> list[Problem]:
        """The asks as problems; the same field of several joint rows as one."""
        groups: dict[str, list[Ask]] = {}
        for ask in self.asks:
            groups.setdefault(ask.group, []).append(ask)
        return [
            problem("unanswered", asks[0].where if len(asks) == 1 else f"{_line(asks[0])} {group}", got=_count(asks))
            for group, asks in groups.items()
        ]

    def known(self) -> M:
        """The model.

        Raises:
            InterlockError: Problems and unanswered facts, all of them.
            NeedsAnswer: Nothing is wrong, but facts are unanswered.
        """
        if self.model is not None:
            return self.model
        if self.problems:
            raise InterlockError(problems=[*self.problems, *self.unanswered()], next=NEXT)
        raise NeedsAnswer(problems=self.unanswered(), next=NEXT)


def load_contract(text: str, name: str = "contract.yaml") -> Contract:
    """Reads a contract. `name` is what refusals call it.

    Raises:
        InterlockError: Everything that is wrong, with lines; unanswered facts included.
    """
    return draft_contract(text, name).known()


def load_robot(text: str, name: str = "robot.yaml") -> Robot:
    """Reads a robot. `name` is what refusals call it.

    Raises:
        InterlockError: Everything that is wrong, with lines; unanswered facts included.
    """
    return draft_robot(text, name).known()


def draft_contract(text: str, name: str = "contract.yaml") -> Draft[Contract]:
    """Reads a contract as far as it is known. Raises `InterlockError` only for text that is no YAML of ours."""
    return _draft(_parsed(text, name), Contract, CONTRACT_SCHEMA)


def draft_robot(text: str, name: str = "robot.yaml") -> Draft[Robot]:
    """Reads a robot as far as it is known. Raises `InterlockError` only for text that is no YAML of ours."""
    return _draft(_parsed(text, name), Robot, ROBOT_SCHEMA)


def _parsed(text: str, name: str) -> Tree:
    try:
        return parse(text, name)
    except InterlockError as error:
        raise InterlockError(problems=error.problems, next=NEXT) from None


def _draft(tree: Tree, model: type[M], schema: str) -> Draft[M]:
    data = tree.data
    if not isinstance(data, dict):
        wrong = problem("wrong-type", tree.where(()), expected="a mapping", got=type(data).__name__)
        return Draft(tree=tree, asks=(), problems=(wrong,), model=None)
    if data.get("schema") != schema:
        code = "schema-version" if "schema" in data else "missing-key"
        got = str(data.get("schema", "no `schema`"))[:80]
        wrong = problem(code, tree.where(("schema",)), expected=f"schema: {schema}", got=got)
        return Draft(tree=tree, asks=(), problems=(wrong,), model=None)
    paths = list(_paths_of(ASK, data, ()))
    asks = tuple(Ask(dotted(path), dotted(ask_group(path)), tree.where(path)) for path in paths)
    expected = "a value, `none` for a known absence or `ask` for an unknown fact"
    problems = [
        problem("missing-key", tree.where(path), expected=expected, got="nothing") for path in _paths_of(None, data, ())
    ]
    made: M | None = None
    try:
        # In JSON lists may become tuples although validation is strict.
        made = model.model_validate_json(json.dumps(data))
        made.remember(tree)
    except ValidationError as error:
        problems += explain(error, tree, set(paths))
    is_whole = not asks and not problems
    return Draft(tree=tree, asks=asks, problems=tuple(problems), model=made if is_whole else None)


def ask_group(path: Path) -> Path:
    """The path with `*` in place of a joint row."""
    return (*path[:2], "*", *path[3:]) if path[:2] == ("joints", "each") and len(path) > 3 else path


def _line(ask: Ask) -> str:
    return ask.where.split(" ", 1)[0]


def _count(asks: list[Ask]) -> str:
    return "ask" if len(asks) == 1 else f"ask ({len(asks)} rows)"


def _paths_of(wanted: str | None, value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _paths_of(wanted, item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _paths_of(wanted, item, (*path, index))
    elif value == wanted:
        yield path
