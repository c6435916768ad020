"""Building blocks of the two models: nothing extra, nothing coerced, nothing changed after it was read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from interlock.contract.units import UNITS
from interlock.contract.yaml_text import Tree, dotted

T = TypeVar("T")

Nothing = Literal["none"]

SMALLEST = 1e-9  # below any physical number in these files; stays above zero in every unit
LARGEST = 1e12  # beyond any physical number in these files; keeps sums and products finite


class Part(BaseModel):
    """A block of a file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


@dataclass(frozen=True, slots=True, eq=False)
class _Places:
    """Where the values of a document stand. Documents that say the same are equal wherever their lines are."""

    tree: Tree | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Places)

    def __hash__(self) -> int:
        return 0


class Document(Part):
    """A whole file."""

    _places: _Places = PrivateAttr(default_factory=_Places)

    def remember(self, tree: Tree) -> None:
        """Keeps the positions, for refusals that come later."""
        self._places = _Places(tree)

    def where(self, *path: str | int) -> str:
        """File, line and path of a value; path alone for a model that was not read from text."""
        tree = self._places.tree
        name = type(self).__name__.lower()
        return tree.where(path) if tree is not None else f"{name}.yaml {dotted(path)}".rstrip()


def as_data(value: Any) -> Any:
    """A block as plain data: keys as they are written, what is absent left out."""
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        named = {(fields[name].alias or name) if name in fields else name: item for name, item in value}
        return {key: as_data(item) for key, item in named.items() if item is not None}
    if isinstance(value, dict):
        return {key: as_data(item) for key, item in value.items()}
    return [as_data(item) for item in value] if isinstance(value, (list, tuple)) else value


def written(value: Any, key: str) -> Any:
    """A key of a block that is read or already made; None where it is not written."""
    return value.get(key) if isinstance(value, dict) else getattr(value, key, None)


def _given_or_none(value: Any) -> str:
    return "none" if value == "none" else "given"


def one_list_or_rows(value: Any) -> str:
    """How a number, a list of numbers or a row per pattern is told apart."""
    return "rows" if isinstance(value, (dict, BaseModel)) else "list" if isinstance(value, (list, tuple)) else "one"


def word_or_rows(value: Any) -> str:
    """How a word and a word per pattern are told apart."""
    return "word" if isinstance(value, str) else "rows"


OrNone = Annotated[
    Annotated[T, Tag("given")] | Annotated[Nothing, Tag("none")],
    Discriminator(_given_or_none),
]
"""Something, or the word `none` for its known absence."""

WordOrRows = Annotated[
    Annotated[T, Tag("word")] | Annotated[dict[str, T], Tag("rows")],
    Discriminator(word_or_rows),
]
"""One word for all joints, or a word per pattern."""

Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, Field(gt=SMALLEST, le=LARGEST)]
NotNegative = Annotated[float, Field(ge=0, le=LARGEST)]
DurationMs = Annotated[float, Field(ge=0.001, le=600_000)]
"""From the shortest tick of the core, 1 us, to its longest span, ten minutes."""

DelayMs = Annotated[float, Field(ge=0, le=600_000)]
DurationS = Annotated[float, Field(ge=0.001, le=600)]
RateHz = Annotated[float, Field(ge=0.002, le=1_000_000)]
Count = Annotated[int, Field(ge=1, le=100_000)]
Size = Annotated[int, Field(ge=1, le=8192)]
SizeHW = tuple[Size, Size]
Text = Annotated[str, Field(min_length=1, max_length=400)]

NumberListOrRows = Annotated[
    Annotated[Number, Tag("one")]
    | Annotated[tuple[Number, ...], Tag("list")]
    | Annotated[dict[str, Number], Tag("rows")],
    Discriminator(one_list_or_rows),
]
"""One number for all elements, one each, or (joint terms) one per pattern."""

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
JOINT_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_./-]{0,63}$"
TENSOR_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.:/-]{0,127}$"

Name = Annotated[str, Field(pattern=NAME)]
JointName = Annotated[str, Field(pattern=JOINT_NAME)]
TensorName = Annotated[str, Field(pattern=TENSOR_NAME)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
DType = Literal["float32", "int64", "uint8"]


def _ordered(value: tuple[float, float]) -> tuple[float, float]:
    if not value[1] - value[0] > SMALLEST:
        raise PydanticCustomError("range-inverted", f"expected low < high, got {list(value)}")
    return value


def _inside(value: str) -> str:
    parts = re.split(r"[/\\]", value)
    is_relative = not re.match(r"[/\\~]|[A-Za-z]:", value) and ".." not in parts and "\\" not in value
    if not is_relative or not value.isprintable():
        raise PydanticCustomError("path-outside", f"expected a path inside the folder, got {value[:80]}")
    return value


def _unit(value: str) -> str:
    if value not in UNITS:
        raise PydanticCustomError("unit-unknown", f"expected one of {', '.join(UNITS)}, got {value[:40]}")
    return value


def _pure_number(value: Any) -> Any:
    """`unit: 1` is a number to YAML and the name of a unit to us."""
    return "1" if value == 1 and not isinstance(value, bool) else value


Range = Annotated[tuple[Number, Number], AfterValidator(_ordered)]
InnerPath = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_inside)]
UnitName = Annotated[
    str,
    BeforeValidator(_pure_number),
    AfterValidator(_unit),
    WithJsonSchema({"enum": [1, *(word for word in UNITS)]}),
]


def exactly_one(block: BaseModel, *names: str) -> None:
    """Raises `unit-twice` or `missing-key` unless exactly one of the keys is written."""
    written = [name for name in names if getattr(block, name) is not None]
    if len(written) > 1:
        raise PydanticCustomError("unit-twice", f"expected one of {', '.join(names)}, got {' and '.join(written)}")
    if not written:
        raise PydanticCustomError("missing-key", f"expected one of {', '.join(names)}, got none of them")


def exact(value: float) -> Fraction:
    """The decimal number that was written, without binary rounding."""
    return Fraction(repr(float(value)))


def period_s(period_ms: float | None, rate_hz: float | None) -> Fraction:
    """A period in seconds, exact."""
    if rate_hz is not None:
        return 1 / exact(rate_hz)
    return exact(period_ms or 0.0) / 1000
