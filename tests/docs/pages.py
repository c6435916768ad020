"""Reads the pages of this repository: fenced blocks, tables, links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")) if path.is_file()
)
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: the words after the fence, its text, its first line's number."""

    words: tuple[str, ...]
    text: str
    line: int


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, *words: str) -> list[Block]:
    """Blocks whose fence begins with these words."""
    found = [
        Block(tuple(match[1].split()), match[2], text.count("\n", 0, match.start()) + 2)
        for match in FENCE.finditer(text)
    ]
    return [block for block in found if block.words[: len(words)] == words]


def tables(text: str) -> list[list[list[str]]]:
    """Every table as rows of cells; the head is the first row, the rule below it is left out."""
    found: list[list[list[str]]] = []
    inside = False
    for line in FENCE.sub("", text).splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if not inside:
            found.append([])
            inside = True
        if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            found[-1].append(cells)
    return found


def table(text: str, *head: str) -> list[list[str]]:
    """Rows of the table with this head."""
    for rows in tables(text):
        if rows[0][: len(head)] == list(head):
            return rows[1:]
    raise AssertionError(f"no table with the head {head}")


def coded(cell: str) -> list[str]:
    """Words in code quotes."""
    return re.findall(r"`([^`]+)`", cell)
