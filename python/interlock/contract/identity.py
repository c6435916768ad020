"""What a document is, whatever its comments, grouping and order of keys."""

from __future__ import annotations

from interlock.contract.canonical import digest
from interlock.contract.expand_contract import expand_contract
from interlock.contract.expand_robot import expand_robot
from interlock.contract.expanded import ContractX, RobotX
from interlock.contract.model import Contract, Robot


def expand(document: Contract | Robot) -> ContractX | RobotX:
    """Writes a contract or robot out. Raises `InterlockError` with everything in which it contradicts itself."""
    return expand_contract(document) if isinstance(document, Contract) else expand_robot(document)


def identity(document: Contract | Robot | ContractX | RobotX) -> str:
    """SHA-256 (lower-case hex) of the canonical JSON of the expanded form."""
    expanded = expand(document) if isinstance(document, (Contract, Robot)) else document
    return digest(expanded.as_json())
