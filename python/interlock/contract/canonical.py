"""RFC 8785 (JSON Canonicalization Scheme): the one byte sequence that a value has, so that it can be hashed."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from interlock.errors import InterlockError

MAX_EXACT_INT = 2**53


def canonical_json(value: Any) -> bytes:
    """Serialises plain data: sorted by UTF-16 code units, no spaces, numbers as ECMAScript writes them.

    Args:
        value: Mappings with string keys, lists, tuples, strings, numbers, booleans, None.

    Raises:
        InterlockError: `not-canonical`, a value that JSON cannot hold exactly: NaN, infinities, whole numbers beyond
            2^53, lone surrogates, keys that are no strings, other types.
    """
    parts: list[str] = []
    _write(value, "$", parts)
    try:
        return "".join(parts).encode("utf-8")
    except UnicodeEncodeError:
        raise _refusal("$", "text without lone surrogates") from None


def digest(value: Any) -> str:
    """SHA-256 of the canonical form, lower-case hex."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def number_text(value: float) -> str:
    """A double as ECMAScript's `Number.prototype.toString` writes it.

    Raises:
        InterlockError: `not-canonical`, NaN or infinity.
    """
    if not math.isfinite(value):
        raise _refusal("$", "a finite number")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    # Python's repr has the shortest digits that read back exactly, which is also what ECMAScript demands.
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    return sign + _place_point(digits, point)


def _place_point(digits: str, point: int) -> str:
    """ECMA-262 6.1.6.1.20: `point` is the number of digits before the decimal point."""
    count = len(digits)
    if count <= point <= 21:
        return digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    power = point - 1
    mantissa = digits if count == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{mantissa}e{'+' if power > 0 else '-'}{abs(power)}"


def _write(value: Any, path: str, parts: list[str]) -> None:
    if value is None or isinstance(value, bool):
        parts.append(json.dumps(value))
    elif isinstance(value, int):
        if abs(value) > MAX_EXACT_INT:
            raise _refusal(path, "a whole number of at most 2^53 (write larger ones as text)")
        parts.append(str(int(value)))
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _refusal(path, "a finite number")
        parts.append(number_text(value))
    elif isinstance(value, str):
        parts.append(json.dumps(value, ensure_ascii=False))
    elif isinstance(value, Mapping):
        _write_mapping(value, path, parts)
    elif isinstance(value, (list, tuple)):
        parts.append("[")
        for index, item in enumerate(value):
            parts.append("," if index else "")
            _write(item, f"{path}[{index}]", parts)
        parts.append("]")
    else:
        raise _refusal(path, f"plain data, got {type(value).__name__}")


def _write_mapping(value: Mapping[Any, Any], path: str, parts: list[str]) -> None:
    for key in value:
        if not isinstance(key, str):
            raise _refusal(path, f"text as a key, got {type(key).__name__}")
    parts.append("{")
    for index, key in enumerate(sorted(value, key=_utf16)):
        parts.append("," if index else "")
        parts.append(json.dumps(key, ensure_ascii=False))
        parts.append(":")
        _write(value[key], f"{path}.{key}", parts)
    parts.append("}")


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be", "surrogatepass")


def _refusal(path: str, expected: str) -> InterlockError:
    return InterlockError(
        code="not-canonical",
        where=path,
        expected=expected,
        hint="only plain data with exact numbers has a hash",
    )
