"""XML as plain nodes with line numbers. No DOCTYPE, no entities, nothing outside the text; bounded size and depth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from interlock.contract.codes import problem
from interlock.errors import InterlockError

MAX_BYTES = 50_000_000
MAX_DEPTH = 200
MAX_NODES = 500_000


@dataclass(slots=True)
class Node:
    """One element.

    Attributes:
        tag: Its name.
        line: Where it begins.
        attributes: As written.
        children: In document order.
    """

    tag: str
    line: int
    attributes: dict[str, str]
    children: list[Node] = field(default_factory=list)

    def all(self, tag: str) -> Iterator[Node]:
        """Children of that name."""
        return (child for child in self.children if child.tag == tag)


def parse_xml(content: bytes, name: str) -> Node:
    """Reads the root element.

    Raises:
        InterlockError: `xml-syntax`, `xml-unsafe`, `xml-too-large`.
    """
    if len(content) > MAX_BYTES:
        raise _refusal("xml-too-large", name, 1, f"{len(content):,} bytes")
    builder = _Builder(name)
    try:
        builder.parser.Parse(content, True)
    except expat.ExpatError as error:
        raise _refusal("xml-syntax", name, error.lineno, expat.errors.messages.get(error.code, "no XML")) from None
    if builder.root is None:
        raise _refusal("xml-syntax", name, 1, "no element")
    return builder.root


class _Builder:
    def __init__(self, name: str) -> None:
        self.name = name
        self.root: Node | None = None
        self._open: list[Node] = []
        self._nodes = 0
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.EntityDeclHandler = self._doctype

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        self._nodes += 1
        if self._nodes > MAX_NODES or len(self._open) >= MAX_DEPTH:
            raise _refusal("xml-too-large", self.name, line, "too many or too deep elements")
        node = Node(tag, line, attributes)
        if self._open:
            self._open[-1].children.append(node)
        else:
            self.root = node
        self._open.append(node)

    def _end(self, tag: str) -> None:
        del tag
        self._open.pop()

    def _doctype(self, *declared: object) -> None:
        del declared
        raise _refusal("xml-unsafe", self.name, self.parser.CurrentLineNumber, "a DOCTYPE or entity")


def _refusal(code: str, name: str, line: int, got: str) -> InterlockError:
    return InterlockError(problems=[problem(code, f"{name}:{line}", got=got)])
