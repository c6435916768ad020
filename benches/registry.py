"""The list of benchmarks. Each stands in a file of `benches/cases` and registers one function that yields rows."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from benches import cases

if TYPE_CHECKING:
    from benches.lab import Lab
    from benches.rows import Row

Measure = Callable[["Lab"], Iterator["Row"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One benchmark.

    Attributes:
        name: What `--only` takes.
        title: What it measures, with the target in words.
        order: Place in the table.
        measure: Yields rows as they are measured.
    """

    name: str
    title: str
    order: int
    measure: Measure


_registered: dict[str, Benchmark] = {}


def benchmark(name: str, title: str, *, order: int) -> Callable[[Measure], Measure]:
    """Registers the function below it."""

    def register(measure: Measure) -> Measure:
        if name in _registered:
            raise ValueError(f"two benchmarks are called {name}")
        _registered[name] = Benchmark(name=name, title=title, order=order, measure=measure)
        return measure

    return register


def benchmarks() -> list[Benchmark]:
    """All of them, in order."""
    for module in pkgutil.iter_modules(cases.__path__):
        import_module(f"{cases.__name__}.{module.name}")
    return sorted(_registered.values(), key=lambda each: (each.order, each.name))
