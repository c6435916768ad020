"""`lock.json`: hashes of every file of a policy, where each fact came from, who answered what. Written by machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interlock.contract.canonical import canonical_json
from interlock.errors import InterlockError

from .files import safe_name

SCHEMA: Literal["interlock.lock/1"] = "interlock.lock/1"
LOCK_FILE = "lock.json"
_HEX = r"^[0-9a-f]{64}$"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, strict=True)


class LockedFile(_Model):
    """One file of the policy."""

    sha256: str = Field(pattern=_HEX)
    bytes: int = Field(ge=0)


class LockedFact(_Model):
    """Where one fact of the contract came from."""

    origin: Literal["file", "convention", "robot", "person", "choice"]
    detail: str


class Answered(_Model):
    """What a person said."""

    key: str
    value: Any
    by: str
    on: str


class LockedReader(_Model):
    """Which reader made the contract."""

    name: str
    version: int


class LockedFramework(_Model):
    """What makes reference actions.

    Attributes:
        kind: `onnx`: the graph in `source/` is the source. `child`: the network is rebuilt from weights.
        graph: Name of that graph.
        model_sha256: Hash of the definition of the network (kind `child`).
        script_sha256: Hash of the program that rebuilds it (kind `child`).
    """

    kind: Literal["onnx", "child"]
    graph: str = ""
    model_sha256: str = ""
    script_sha256: str = ""


class Lock(_Model):
    """The whole file."""

    schema_: Literal["interlock.lock/1"] = Field(default=SCHEMA, alias="schema")
    name: str
    reader: LockedReader
    framework: LockedFramework
    files: dict[str, LockedFile]
    facts: dict[str, LockedFact] = Field(default_factory=dict)
    answers: tuple[Answered, ...] = Field(default=(), strict=False)
    notes: tuple[str, ...] = Field(default=(), strict=False)
    contract_edited: bool = False
    interlock_version: str = ""

    def content(self) -> bytes:
        """As written: canonical, with line breaks so that git shows what changed."""
        plain = self.model_dump(mode="json", by_alias=True)
        canonical_json(plain)
        return (json.dumps(plain, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()

    @staticmethod
    def parse(content: bytes) -> Lock:
        """Reads it back.

        Raises:
            InterlockError: `lock-malformed`.
        """
        try:
            lock = Lock.model_validate(json.loads(content, object_pairs_hook=_unique, parse_constant=_no_constant))
        except (ValueError, ValidationError, RecursionError) as cause:
            raise InterlockError(
                code="lock-malformed",
                where=LOCK_FILE,
                expected=SCHEMA,
                got=str(cause).splitlines()[0][:200],
                hint="lock.json is written by interlock and never by hand",
                next="interlock freeze SOURCE",
            ) from None
        for name in lock.files:
            safe_name(name, where=LOCK_FILE)
        return lock


def _unique(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON")
