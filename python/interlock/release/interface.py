"""What a contract says about tensors, against what a graph has."""

from __future__ import annotations

from interlock.contract.expanded import ContractX
from interlock.contract.graph import check_graph
from interlock.errors import InterlockError
from interlock.ports.reader import GraphFacts

Declared = tuple[str, str, tuple[int, ...]]


def declared_inputs(contract: ContractX) -> list[Declared]:
    """Name, dtype and shape of every input that the contract promises."""
    return [(each.name, each.dtype, tuple(each.shape)) for each in contract.inputs]


def declared_outputs(contract: ContractX) -> list[Declared]:
    """Name, dtype and shape of every output that the contract promises."""
    return [(each.name, each.dtype, tuple(each.shape)) for each in contract.outputs]


def require_same_tensors(contract: ContractX, graph: GraphFacts) -> None:
    """Refuses a graph whose tensors are not those of the contract.

    Raises:
        InterlockError: `tensor-missing`, `tensor-unknown`, `dtype-mismatch`, `shape-mismatch`; all at once.
    """
    problems = check_graph(
        contract,
        [(each.name, each.dtype, each.shape) for each in graph.inputs],
        [(each.name, each.dtype, each.shape) for each in graph.outputs],
    )
    if problems:
        raise InterlockError(problems=problems, next="interlock freeze SOURCE")
