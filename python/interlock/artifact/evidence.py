"""What was observed about a policy: one file per gate, with everything needed to trust it."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interlock.contract.canonical import canonical_json
from interlock.errors import Exit, InterlockError

SCHEMA: Literal["interlock.evidence/1"] = "interlock.evidence/1"


class Verdict(str, Enum):
    """A gate's answer; never defaulted."""

    PASS = "PASS"  # noqa: S105
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    ERROR = "ERROR"
    ABORTED = "ABORTED"

    @property
    def exit(self) -> Exit:
        """Exit code of a command that ends with this verdict."""
        return {
            Verdict.PASS: Exit.DONE,
            Verdict.FAIL: Exit.FAIL,
            Verdict.INCONCLUSIVE: Exit.NOT_EVALUATED,
            Verdict.ERROR: Exit.FAIL,
            Verdict.ABORTED: Exit.INTERRUPTED,
        }[self]


class Evidence(BaseModel):
    """A gate, its verdict, and what it was about.

    Attributes:
        gate: Name of the gate.
        verdict: Its answer.
        subject: Hashes of what was judged, by role.
        inputs: Hashes of everything else that the verdict depends on; together with `subject` they decide whether it
            still holds.
        budget: What was allowed, fixed before anything was measured.
        results: What was measured.
        environment: Where.
        started_ns: Epoch nanoseconds, as text because they exceed 2^53.
        ended_ns: Epoch nanoseconds.
        failure_response: What to do when the verdict is not PASS.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["interlock.evidence/1"] = Field(default=SCHEMA, alias="schema")
    gate: str = Field(pattern=r"^[a-z][a-z0-9-]{0,40}$")
    verdict: Verdict
    subject: dict[str, str]
    inputs: dict[str, str]
    budget: dict[str, Any]
    results: dict[str, Any]
    environment: dict[str, Any]
    started_ns: str = Field(pattern=r"^[0-9]{1,20}$")
    ended_ns: str = Field(pattern=r"^[0-9]{1,20}$")
    failure_response: str

    def content(self) -> bytes:
        """Canonical JSON, the bytes that are written, hashed and, later, signed."""
        return canonical_json(self.model_dump(mode="json", by_alias=True))

    @staticmethod
    def parse(content: bytes, *, where: str) -> Evidence:
        """Reads evidence back; it must be canonical to the byte.

        Raises:
            InterlockError: `evidence-malformed`.
        """
        try:
            evidence = Evidence.model_validate(json.loads(content))
            written = evidence.content()
        except (ValueError, ValidationError, RecursionError, InterlockError) as cause:
            raise _malformed(where, str(cause).splitlines()[0][:200]) from None
        if written != content:
            raise _malformed(where, "not the canonical form")
        return evidence


def _malformed(where: str, got: str) -> InterlockError:
    return InterlockError(
        code="evidence-malformed",
        where=where,
        expected=f"{SCHEMA} in canonical JSON",
        got=got,
        hint="evidence is written by gates and never by hand; run the gate again",
    )


def plain(value: Any) -> Any:
    """Numbers of numpy as plain data; what JSON cannot hold becomes the words `nan`, `inf` and `-inf`."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 1 << 53:
        return str(value)
    return value


def now_ns() -> str:
    """Epoch nanoseconds as signed JSON carries them."""
    return str(time.time_ns())
