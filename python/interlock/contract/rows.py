"""Rows of whole-name patterns: every joint matches exactly one row, every row matches a joint."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from interlock.contract.codes import problem
from interlock.errors import Problem

T = TypeVar("T")

OTHERS = "others"

MAX_PATTERN = 200  # characters
# Enough for names; what is left out (groups in repetition, lookaround, backreferences) can take exponential time.
_ALLOWED = re.compile(r"[A-Za-z0-9_./*+?()|\[\]-]+")
_NESTED_REPEAT = re.compile(r"\)[*+?{]|[*+?]{2,}|\(\?|\[[^\]]*[\[|]|\[[^\]]*--")
_MAX_REPEATS = 4


def expand_rows(
    rows: Mapping[str, T],
    joints: Sequence[str],
    where: Callable[[str], str],
    problems: list[Problem],
) -> dict[str, T]:
    """Gives each joint its row.

    Args:
        rows: Pattern to row; `others` is the row of joints that no pattern matches.
        joints: Names without suffix.
        where: Turns a pattern (or the empty string) into a place for refusals.
        problems: Filled with what is wrong.

    Returns:
        Joint to row, for the joints that match exactly one.
    """
    found: dict[str, T] = {}
    owner: dict[str, str] = {}
    for pattern, row in rows.items():
        if pattern == OTHERS:
            continue
        compiled = compile_pattern(pattern, where(pattern), problems)
        if compiled is None:
            continue
        matched = [joint for joint in joints if compiled.fullmatch(joint)]
        if not matched:
            got = f"`{pattern}` matches none of {', '.join(joints)}"
            problems.append(problem("pattern-unmatched", where(pattern), got=got))
        for joint in matched:
            if joint in owner:
                got = f"{joint} matches `{owner[joint]}` and `{pattern}`"
                problems.append(problem("joint-matched-twice", where(pattern), expected="one row per joint", got=got))
            else:
                owner[joint], found[joint] = pattern, row
    rest = [joint for joint in joints if joint not in owner]
    if OTHERS in rows:
        if not rest:
            got = f"`{OTHERS}` stands for no joint: each has its own row"
            problems.append(problem("pattern-unmatched", where(OTHERS), got=got))
        return {**found, **dict.fromkeys(rest, rows[OTHERS])}
    problems.extend(
        problem("joint-unmatched", where(""), expected="one row per joint", got=f"no row for {joint}") for joint in rest
    )
    return found


def compile_pattern(pattern: str, where: str, problems: list[Problem]) -> re.Pattern[str] | None:
    """A pattern that cannot take long, or None and a problem."""
    repeats = sum(pattern.count(sign) for sign in "*+?")
    is_plain = (
        len(pattern) <= MAX_PATTERN
        and _ALLOWED.fullmatch(pattern) is not None
        and _NESTED_REPEAT.search(pattern) is None
        and repeats <= _MAX_REPEATS
    )
    if is_plain:
        try:
            return re.compile(pattern)
        except re.error:
            pass
    problems.append(problem("pattern-invalid", where, got=f"`{pattern[:80]}`"))
    return None
