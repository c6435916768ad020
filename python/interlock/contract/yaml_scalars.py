"""What a plain YAML 1.2 scalar means."""

from __future__ import annotations

import re

from interlock.contract.codes import problem
from interlock.errors import InterlockError

Scalar = None | bool | int | float | str

MAX_EXACT_INT = 2**53  # beyond it a JSON number is no longer exact everywhere

_INT = re.compile(r"[-+]?[0-9]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NON_FINITE = {
    ".inf": float("inf"),
    "+.inf": float("inf"),
    "-.inf": float("-inf"),
    ".nan": float("nan"),
}
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}
_LONGEST_INT = 20  # digits; more is beyond MAX_EXACT_INT whatever they are


def resolve(text: str, where: str, *, finite: bool) -> Scalar:
    """Turns the text of a plain scalar into a value, by the YAML 1.2 core schema.

    Args:
        text: The scalar as written, unquoted.
        where: For the refusal.
        finite: Refuse infinities and NaN.

    Raises:
        InterlockError: `yaml-number`, a number that is not exact or not finite.
    """
    if text in _WORDS or (text.lower() in _WORDS and (text.istitle() or text.isupper())):
        return _WORDS[text.lower()]
    if _INT.fullmatch(text) or _HEX.fullmatch(text):
        value = _integer(text)
        if value is None:
            raise _bad_number(where, f"a whole number of at most {MAX_EXACT_INT}", text)
        return value
    if _FLOAT.fullmatch(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise _bad_number(where, "a number that a double can hold", text)
        return number
    if text.lower() in _NON_FINITE:
        if finite:
            raise _bad_number(where, "a finite number", text)
        return _NON_FINITE[text.lower()]
    return text


def _integer(text: str) -> int | None:
    if len(text) > _LONGEST_INT:
        return None
    value = int(text, 0) if _HEX.fullmatch(text) else int(text)
    return value if abs(value) <= MAX_EXACT_INT else None


def _bad_number(where: str, expected: str, got: str) -> InterlockError:
    shown = got if len(got) <= 40 else f"{got[:40]}… ({len(got)} digits)"
    return InterlockError(problems=[problem("yaml-number", where, expected=expected, got=shown)])
