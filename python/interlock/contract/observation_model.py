"""Inputs of the graph as a contract writes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from interlock.contract.parts import (
    Count,
    DType,
    InnerPath,
    Name,
    NotNegative,
    Number,
    NumberListOrRows,
    OrNone,
    Part,
    Positive,
    Range,
    Sha256,
    SizeHW,
    TensorName,
    Text,
    UnitName,
    exactly_one,
    written,
)

GoalPart = Literal["lin_vel_x", "lin_vel_y", "ang_vel_z"]


class History(Part):
    """How many observations the network sees, and how they lie in the tensor."""

    steps: Annotated[int, Field(ge=1, le=256)]
    layout: Literal["per_term", "per_step"]
    order: Literal["oldest_first", "newest_first"]
    at_reset: Literal["repeat_first", "zeros"]


class _Scaled(Part):
    scale: NumberListOrRows
    offset: NumberListOrRows = 0.0
    clip: OrNone[Range] = "none"


class BaseTerm(_Scaled):
    """A quantity of the base: `clip(value)`, plus offset, times scale."""

    term: Literal["base_lin_vel", "base_ang_vel", "projected_gravity"]
    unit: UnitName
    frame: Literal["base"]


class JointTerm(_Scaled):
    """A quantity of every joint, in policy order."""

    term: Literal["joint_pos", "joint_pos_rel", "joint_vel"]
    unit: UnitName


class GoalTerm(_Scaled):
    """What the operator asks; its unit stands under `goals`."""

    term: Literal["goal"]
    of: Literal["velocity"]
    parts: tuple[GoalPart, ...] = ("lin_vel_x", "lin_vel_y", "ang_vel_z")


class LastActionTerm(_Scaled):
    """The previous action; zeros at reset."""

    term: Literal["last_action"]
    of: Literal["raw", "clipped", "applied"]


class Still(Part):
    """What a phase clock does while the robot is asked to stand."""

    below: NotNegative
    at_rad: Number


class PhaseTerm(_Scaled):
    """Sine or cosine of clocks, one per element of `init_rad`."""

    term: Literal["phase"]
    of: Literal["sin", "cos"]
    freq_hz: Positive | None = None
    period_s: Positive | None = None
    init_rad: tuple[Number, ...]
    still: OrNone[Still]

    @model_validator(mode="after")
    def _one_rate(self) -> PhaseTerm:
        exactly_one(self, "freq_hz", "period_s")
        return self


def _term_kind(value: Any) -> str:
    kinds = {
        "goal": "goal",
        "last_action": "last_action",
        "phase": "phase",
        "joint_pos": "joint",
        "joint_pos_rel": "joint",
        "joint_vel": "joint",
    }
    return kinds.get(str(written(value, "term")), "base")


Term = Annotated[
    Annotated[BaseTerm, Tag("base")]
    | Annotated[JointTerm, Tag("joint")]
    | Annotated[GoalTerm, Tag("goal")]
    | Annotated[LastActionTerm, Tag("last_action")]
    | Annotated[PhaseTerm, Tag("phase")],
    Discriminator(_term_kind),
]


class TermsInput(Part):
    """Observation terms, concatenated in this order."""

    dtype: Literal["float32"]
    shape: tuple[Count, ...] | None = None
    history: OrNone[History]
    clip: OrNone[Range]
    terms: tuple[Term, ...]


class JointInput(Part):
    """One joint quantity as a tensor of its own, normalised by the rows of `joints.each` where they say how."""

    of: Literal["joint_pos", "joint_vel"]
    dtype: Literal["float32"]
    shape: tuple[Count, ...] | None = None


class TokensInput(Part):
    """Token ids of the task text, or which of them are not padding."""

    of: Literal["tokens", "token_mask"]
    dtype: Literal["int64"]
    shape: tuple[Count, ...] | None = None


class Resize(Part):
    """How the picture was brought to size in training.

    `opencv_linear`: INTER_LINEAR, half-pixel centres, no antialias. `opencv_nearest`: INTER_NEAREST. `opencv_area`:
    INTER_AREA, shrinking only. None of them crops or pads.
    """

    rule: Literal["opencv_linear", "opencv_nearest", "opencv_area"]
    from_hw: SizeHW


Triple = tuple[Number, Number, Number]
PositiveTriple = tuple[Positive, Positive, Positive]


class ImageRule(Part):
    """What happens to a picture: byte 0 and 255 become `range`, then `(x - mean) / (std + eps)`."""

    color: Literal["rgb", "bgr"] | None = None
    layout: Literal["chw", "hwc"] | None = None
    dtype: DType | None = None
    range: Range | None = None
    resize: OrNone[Resize] | None = None
    mean: OrNone[Triple] | None = None
    std: OrNone[PositiveTriple] | None = None
    eps: NotNegative | None = None


class ImageInput(ImageRule):
    """One camera picture. `like: image` takes from the block `image` what is not written here."""

    camera: Name
    size_hw: SizeHW
    like: Literal["image"] | None = None
    shape: tuple[Count, ...] | None = None


def _input_kind(value: Any) -> str:
    of = written(value, "of")
    if written(value, "camera") is not None:
        return "image"
    if of in ("tokens", "token_mask"):
        return "tokens"
    return "joint" if of is not None else "terms"


Input = Annotated[
    Annotated[TermsInput, Tag("terms")]
    | Annotated[JointInput, Tag("joint")]
    | Annotated[TokensInput, Tag("tokens")]
    | Annotated[ImageInput, Tag("image")],
    Discriminator(_input_kind),
]


class RecurrentState(Part):
    """One recurrent input: fed from the output `next` of the inference before."""

    next: TensorName
    shape: tuple[Count, ...]
    dtype: Literal["float32"]
    at_reset: Literal["zeros"]
    on_dropped_chunk: Literal["keep", "reset"]
    on_fallback: Literal["reset"]
    on_swap: Literal["reset"]


class Noise(Part):
    """Randomness as an explicit input; there is none inside a graph."""

    shape: tuple[Count, ...]
    dtype: Literal["float32"]
    distribution: Literal["standard_normal"]
    seed: Annotated[int, NotNegative]


class Language(Part):
    """How a task text becomes token ids."""

    tokenizer: InnerPath
    sha256: Sha256
    template: Text
    padding_side: Literal["right", "left"]
    length: Count
    pad_id: Annotated[int, NotNegative]
