"""The two documents written out: one number per element, no pattern, no grouping, no default left to the reader."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal

Numbers = tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TermX:
    """One observation term, in policy units: `(clip(value) + offset) * scale`.

    Attributes:
        term: Word of the observation vocabulary, such as `joint_pos_rel`.
        of: Form of the last action, `sin` or `cos` of a phase, empty otherwise.
        parts: Parts of the velocity goal.
        unit: Unit per element.
        clip: Before offset and scale.
        offset: Per element.
        scale: Per element.
        freq_hz: Of a phase.
        init_rad: Of a phase.
        still: (below, at_rad) of a phase.
    """

    term: str
    of: str = ""
    parts: tuple[str, ...] = ()
    unit: tuple[str, ...]
    clip: tuple[float, float] | None = None
    offset: Numbers
    scale: Numbers
    freq_hz: float = 0.0
    init_rad: Numbers = ()
    still: tuple[float, float] | None = None

    @property
    def dim(self) -> int:
        """Elements."""
        return len(self.unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsX:
    """Concatenated terms."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    terms: tuple[TermX, ...]
    steps: int
    per_term: bool
    oldest_first: bool
    repeat_first: bool
    clip: tuple[float, float] | None
    kind: Literal["terms"] = "terms"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageX:
    """One picture. `from_hw` is the camera's own size; `resize` is `none` when it is also the tensor's."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    camera: str
    size_hw: tuple[int, int]
    from_hw: tuple[int, int]
    color: str
    layout: str
    resize: str
    range: tuple[float, float]
    mean: Numbers
    std: Numbers
    eps: float
    kind: Literal["image"] = "image"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensX:
    """Token ids, or which of them are not padding."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    mask: bool
    kind: Literal["tokens"] = "tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateX:
    """A recurrent input."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    next: str
    on_dropped_chunk: str
    kind: Literal["state"] = "state"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseX:
    """Standard normal noise."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    seed: int
    kind: Literal["noise"] = "noise"


InputX = TermsX | ImageX | TokensX | StateX | NoiseX


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionX:
    """What an action row means: `clip(raw) * scale + offset` in `unit`, added to the measured position if relative."""

    kind: str
    unit: tuple[str, ...]
    clip: tuple[float, float] | None
    scale: Numbers
    offset: Numbers
    relative: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputX:
    """One output of the graph; `action` where its role is that, `period_ms` where a probe names its own."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: str
    action: ActionX | None
    period_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyJointsX:
    """The joints in policy order, full names. Gains in N*m/rad and N*m*s/rad."""

    names: tuple[str, ...]
    unit: tuple[str, ...]
    calibration: str
    default: Numbers | None
    kp: Numbers | None
    kd: Numbers | None
    mean_state: Numbers | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingX:
    """Periods in seconds, exact."""

    period_s: Fraction
    chunk: int
    execute: int
    handover: str
    action_delay_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalsX:
    """Unit, range and slew of the parts of the velocity goal; tasks in words (empty: any)."""

    velocity: tuple[tuple[str, tuple[float, float], float | None], ...] | None
    tasks: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractX:
    """A contract written out."""

    schema: str
    name: str
    trained_for: str
    source: dict[str, Any]
    timing: TimingX
    joints: PolicyJointsX
    inputs: tuple[InputX, ...]
    outputs: tuple[OutputX, ...]
    language: dict[str, Any] | None
    goals: GoalsX
    choices: dict[str, Any]
    conventions: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain data; its canonical form is what the identity is made of."""
        made: dict[str, Any] = plain(asdict(self))
        for output in made["outputs"]:
            if output["period_ms"] is None:  # absent as it was before there was such a key: the identity is the same
                del output["period_ms"]
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotX:
    """A robot written out. Row quantities are in `unit` (per s, s^2, s^3), torque N*m, gains SI; robot order."""

    schema: str
    type: str
    base: str
    driver: dict[str, Any]
    sim: dict[str, Any] | None
    sensors: dict[str, Any]
    cameras: tuple[dict[str, Any], ...]
    names: tuple[str, ...]
    unit: tuple[str, ...]
    calibration: str
    accepts: tuple[str, ...]
    limits: dict[str, tuple[Any, ...]]
    sources: dict[str, str]
    poses: dict[str, Numbers]
    kinds: dict[str, dict[str, Any]]
    safe: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        """Plain data; its canonical form is what the identity is made of."""
        made: dict[str, Any] = plain(asdict(self))
        return made


def plain(value: Any) -> Any:
    """Tuples as lists, whole-number fractions as numbers, others as text."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, Fraction):
        return str(value)
    return value
