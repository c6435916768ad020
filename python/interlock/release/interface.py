"""What a contract says about tensors, against what a graph has: names, dtypes and shapes, one by one."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.contract.expanded import ContractX
from interlock.errors import InterlockError, Problem
from interlock.ports.reader import GraphFacts, TensorFacts

Declared = tuple[str, str, tuple[int, ...]]


def declared_inputs(contract: ContractX) -> list[Declared]:
    """Name, dtype and shape of every input that the contract promises."""
    return [(each.name, each.dtype, tuple(each.shape)) for each in contract.inputs]


def declared_outputs(contract: ContractX) -> list[Declared]:
    """Name, dtype and shape of every output that the contract promises."""
    return [(each.name, each.dtype, tuple(each.shape)) for each in contract.outputs]


def require_same_tensors(contract: ContractX, graph: GraphFacts, *, where: str) -> None:
    """Refuses a graph whose tensors are not those of the contract.

    Raises:
        InterlockError: `tensor-missing`, `tensor-unknown`, `dtype-mismatch`, `shape-mismatch`; all at once.
    """
    problems = [
        *tensor_problems(declared_inputs(contract), graph.inputs, where=f"{where} inputs"),
        *tensor_problems(declared_outputs(contract), graph.outputs, where=f"{where} outputs"),
    ]
    if problems:
        raise InterlockError(problems=problems, next="interlock show POLICY")


def tensor_problems(declared: Sequence[Declared], found: Sequence[TensorFacts], *, where: str) -> list[Problem]:
    """Every difference. A size that the graph leaves open counts as one: axes are fixed unless declared otherwise."""
    problems: list[Problem] = []
    by_name = {each.name: each for each in found}
    wanted = {name for name, _, _ in declared}
    for name, dtype, shape in declared:
        each = by_name.get(name)
        if each is None:
            alike = [other.name for other in found if other.name not in wanted and other.shape == shape]
            problems.append(
                Problem(
                    code="tensor-missing",
                    where=f"{where}: {name}",
                    expected=f"{name} {dtype} {list(shape)}",
                    got=f"only {', '.join(by_name) or 'none'}",
                    hint=f"renamed to {alike[0]}? a renamed tensor is another contract"
                    if alike
                    else "the graph was exported with other names than the contract says",
                )
            )
            continue
        if each.dtype != dtype:
            problems.append(
                Problem(
                    code="dtype-mismatch",
                    where=f"{where}: {name}",
                    expected=dtype,
                    got=each.dtype,
                    hint="ONNX Runtime converts nothing; correct the contract or export again",
                )
            )
        if tuple(each.shape) != shape:
            problems.append(
                Problem(
                    code="shape-mismatch",
                    where=f"{where}: {name}",
                    expected=str(list(shape)),
                    got=str(list(each.shape)),
                    hint="export with fixed shapes, as the contract says",
                )
            )
    problems += [
        Problem(
            code="tensor-unknown",
            where=f"{where}: {each.name}",
            expected=f"only {', '.join(sorted(wanted))}",
            got=f"{each.name} {each.dtype} {list(each.shape)}",
            hint="declare every tensor of the graph, or leave it out of the export",
        )
        for each in found
        if each.name not in wanted
    ]
    return problems
