"""Text to plain data with line numbers. Nothing that a file says is ever executed or expanded."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from interlock.contract.codes import problem
from interlock.contract.yaml_scalars import resolve
from interlock.errors import InterlockError

Path = tuple[str | int, ...]

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 24
MAX_NODES = 100_000

_PYTHON_TAG = "tag:yaml.org,2002:python/"
_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "map", "seq")}
_INVISIBLE = {"Cc", "Cf", "Zl", "Zp", "Cs", "Co"}  # control, format (bidi, zero-width), separators, surrogates, private


@dataclass(frozen=True, slots=True)
class Mark:
    """Where something stands in the text.

    Attributes:
        line: Line of its key, or of itself in a list; from 1.
        start: Index of the first character of the value.
        end: Index behind the last character of the value.
        plain: The value is an unquoted scalar.
    """

    line: int
    start: int
    end: int
    plain: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A document as plain data.

    Attributes:
        name: What refusals call the document, such as `contract.yaml`.
        text: The text it was read from.
        data: Mappings, lists and scalars.
        marks: Position of every value.
        python_tags: Path and tag of each Python tag that was read as data.
    """

    name: str
    text: str
    data: Any
    marks: Mapping[Path, Mark]
    python_tags: tuple[tuple[Path, str], ...]

    def where(self, path: Path) -> str:
        """Name, line and dotted path, such as `contract.yaml:10 joints.unit`."""
        known = path
        while known and known not in self.marks:
            known = known[:-1]
        line = self.marks[known].line if known in self.marks else 1
        return f"{self.name}:{line} {dotted(path)}".rstrip()


def dotted(path: Path) -> str:
    """`("terms", 4, "scale")` as `terms[4].scale`."""
    shown = ""
    for part in path:
        shown += f"[{part}]" if isinstance(part, int) else f".{part}" if shown else part
    return shown


def parse(text: str, name: str) -> Tree:
    """Reads one document of ours: no anchors, no tags, no duplicate keys, keys are words, numbers are finite.

    Raises:
        InterlockError: A `yaml-…` code with the line.
    """
    return _Builder(name=name, text=text, python_tags_as_data=False, finite=True).build()


def load_data(text: str, name: str = "text", *, python_tags_as_data: bool = False) -> Any:
    """Reads somebody else's YAML as plain data; infinities are allowed.

    Args:
        text: The document.
        name: What refusals call it.
        python_tags_as_data: `!!python/tuple [1, 2]` is read as `[1, 2]`,
            `!!python/object/apply:builtins.slice [null, null, null]` as `[None, None, None]`. Nothing is imported or
            called. `python_tags` says which tags a text holds. Otherwise such a tag is refused.

    Raises:
        InterlockError: A `yaml-…` code with the line.
    """
    builder = _Builder(name=name, text=text, python_tags_as_data=python_tags_as_data, finite=False)
    return builder.build().data


def python_tags(text: str, name: str = "text") -> tuple[tuple[Path, str], ...]:
    """Path and tag, such as `object/apply:builtins.slice`, of every Python tag in the text."""
    return _Builder(name=name, text=text, python_tags_as_data=True, finite=False).build().python_tags


@dataclass(slots=True)
class _Open:
    """A mapping or list that is being filled."""

    content: dict[str, Any] | list[Any]
    path: Path
    line: int
    start: int
    key: str | None = None
    key_line: int = 0

    def next_path(self) -> Path:
        step = len(self.content) if isinstance(self.content, list) else self.key
        return (*self.path, "" if step is None else step)


@dataclass(slots=True, kw_only=True)
class _Builder:
    name: str
    text: str
    python_tags_as_data: bool
    finite: bool
    marks: dict[Path, Mark] = field(default_factory=dict)
    tags: list[tuple[Path, str]] = field(default_factory=list)
    stack: list[_Open] = field(default_factory=list)
    root: Any = None
    filled: bool = False
    nodes: int = 0

    def build(self) -> Tree:
        self._check_text()
        for event in self._events():
            self._take(event)
        if not self.filled or self.root is None:
            raise self._refusal("yaml-empty", 1, got="nothing")
        return Tree(
            name=self.name,
            text=self.text,
            data=self.root,
            marks=self.marks,
            python_tags=tuple(self.tags),
        )

    def _check_text(self) -> None:
        if len(self.text) > MAX_CHARACTERS:
            raise self._refusal(
                "yaml-too-large", 1, expected=f"at most {MAX_CHARACTERS:,} characters", got=f"{len(self.text):,}"
            )
        if self.text.isascii() and not any(c < " " and c not in "\t\n\r" for c in self.text):
            return
        for index, character in enumerate(self.text):
            if character not in "\t\n\r" and unicodedata.category(character) in _INVISIBLE:
                line = self.text.count("\n", 0, index) + 1
                raise self._refusal("yaml-text", line, got=f"invisible character U+{ord(character):04X}")

    def _events(self) -> Iterator[Event]:
        parser = YAML(typ="safe", pure=True)
        try:
            yield from parser.parse(self.text)
        except InterlockError:
            raise
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            what = error.problem or error.context or "not YAML"
            raise self._refusal("yaml-syntax", mark.line + 1 if mark else 1, got=str(what)) from None
        except Exception as error:  # noqa: BLE001  (whatever a third-party parser makes of hostile text is a refusal)
            raise self._refusal("yaml-syntax", 1, got=type(error).__name__) from None

    def _take(self, event: Event) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None) is not None:
            raise self._refusal("yaml-anchor", line, got="an anchor or alias")
        if isinstance(event, DocumentStartEvent):
            if event.version is not None or event.tags:
                raise self._refusal("yaml-directive", line, got="a % directive")
            if self.filled:
                raise self._refusal("yaml-documents", line, got="a second document")
        elif isinstance(event, ScalarEvent):
            self._take_scalar(event, line)
        elif isinstance(event, (MappingStartEvent, SequenceStartEvent)):
            self._open(event, line)
        elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
            done = self.stack.pop()
            self._place(done.content, done.path, done.line, done.start, event.end_mark.index, plain=False)

    def _open(self, event: MappingStartEvent | SequenceStartEvent, line: int) -> None:
        is_mapping = isinstance(event, MappingStartEvent)
        path = self._path_for(line)
        self._count(line)
        if len(self.stack) >= MAX_DEPTH:
            raise self._refusal("yaml-too-deep", line, expected=f"at most {MAX_DEPTH} levels", got="more")
        self._check_tag(event.tag, path, line)
        self.stack.append(_Open({} if is_mapping else [], path, line, event.start_mark.index))

    def _take_scalar(self, event: ScalarEvent, line: int) -> None:
        owner = self.stack[-1] if self.stack else None
        self._count(line)
        if owner is not None and isinstance(owner.content, dict) and owner.key is None:
            self._take_key(owner, event, line)
            return
        path = self._path_for(line)
        self._check_tag(event.tag, path, line)
        plain = event.style in (None, "") and event.tag in (None, "!")
        where = f"{self.name}:{line} {dotted(path)}".rstrip()
        value = resolve(event.value, where, finite=self.finite) if plain else event.value
        self._place(value, path, line, event.start_mark.index, event.end_mark.index, plain=plain)

    def _take_key(self, owner: _Open, event: ScalarEvent, line: int) -> None:
        self._check_tag(event.tag, owner.path, line)
        key = str(event.value)
        if isinstance(owner.content, dict) and key in owner.content:
            first = self.marks[owner.path + (key,)].line  # noqa: RUF005  (a star in an index is Python 3.11)
            raise self._refusal("yaml-duplicate-key", line, got=f"`{key}` again (first in line {first})")
        owner.key, owner.key_line = key, line

    def _place(self, value: Any, path: Path, line: int, start: int, end: int, *, plain: bool) -> None:
        owner = self.stack[-1] if self.stack else None
        if owner is None:
            self.root, self.filled = value, True
        elif isinstance(owner.content, list):
            owner.content.append(value)
        else:
            owner.content[str(owner.key)] = value
            owner.key, line = None, owner.key_line
        self.marks[path] = Mark(line, start, end, plain)

    def _path_for(self, line: int) -> Path:
        if not self.stack:
            return ()
        owner = self.stack[-1]
        if isinstance(owner.content, dict) and owner.key is None:
            raise self._refusal("yaml-key", line, expected="a word", got="a mapping or list as a key")
        return owner.next_path()

    def _check_tag(self, tag: Any, path: Path, line: int) -> None:
        name = str(tag) if tag is not None else "!"
        if name == "!" or (not self.finite and name in _PLAIN_TAGS):
            return
        if self.python_tags_as_data and name.startswith(_PYTHON_TAG):
            self.tags.append((path, name.removeprefix(_PYTHON_TAG)))
            return
        raise self._refusal("yaml-tag", line, got=f"tag {name.replace('tag:yaml.org,2002:', '!!')[:80]}")

    def _count(self, line: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self._refusal("yaml-too-large", line, expected=f"at most {MAX_NODES:,} values", got="more")

    def _refusal(self, code: str, line: int, expected: str = "", got: str = "") -> InterlockError:
        return InterlockError(problems=[problem(code, f"{self.name}:{line}", expected=expected, got=got)])
