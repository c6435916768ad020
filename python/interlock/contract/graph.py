"""Holds a graph's own inputs and outputs against what the contract promises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from interlock.contract.codes import problem
from interlock.contract.expanded import ContractX
from interlock.errors import Problem

Size = int | str | None
Tensor = tuple[str, str, Sequence[Size]]


def check_graph(contract: ContractX, inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> list[Problem]:
    """Finds tensors that are missing, extra, of another dtype or of another shape. Axes are fixed.

    Args:
        contract: The contract written out.
        inputs: (name, numpy's word for the dtype, sizes) of the graph; a symbolic size is text or None.
        outputs: The same.

    Returns:
        Problems; empty when graph and contract agree.
    """
    promised_in = {each.name: (each.dtype, each.shape) for each in contract.inputs}
    promised_out = {each.name: (each.dtype, each.shape) for each in contract.outputs}
    return [
        *_compare("input", promised_in, {name: (dtype, tuple(shape)) for name, dtype, shape in inputs}),
        *_compare("output", promised_out, {name: (dtype, tuple(shape)) for name, dtype, shape in outputs}),
    ]


def _compare(
    what: str,
    promised: Mapping[str, tuple[str, tuple[int, ...]]],
    found: Mapping[str, tuple[str, tuple[Size, ...]]],
) -> list[Problem]:
    problems = []
    for name, (dtype, shape) in promised.items():
        where = f"graph {what} {name}"
        if name not in found:
            near = get_close_matches(name, found, n=1) or list(found)
            got = f"none of that name; the graph has {', '.join(near) or 'none'}"
            problems.append(problem("tensor-missing", where, expected=f"{dtype} {list(shape)}", got=got))
            continue
        its_dtype, its_shape = found[name]
        if its_dtype != dtype:
            problems.append(problem("dtype-mismatch", where, expected=dtype, got=its_dtype))
        if its_shape != shape:
            problems.append(problem("shape-mismatch", where, expected=str(list(shape)), got=str(list(its_shape))))
    problems.extend(
        problem("tensor-unknown", f"graph {what} {name}", expected=f"one of {', '.join(promised)}", got=name)
        for name in found
        if name not in promised
    )
    return problems
