"""The contract: what a policy promises and needs, as its file writes it."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from interlock.contract.observation_model import ImageRule, Input, Language, Noise, RecurrentState
from interlock.contract.parts import (
    Count,
    DelayMs,
    Document,
    DType,
    DurationMs,
    InnerPath,
    JointName,
    Name,
    NotNegative,
    Number,
    NumberListOrRows,
    OrNone,
    Part,
    Positive,
    Range,
    RateHz,
    TensorName,
    Text,
    UnitName,
    WordOrRows,
    exactly_one,
    one_list_or_rows,
    period_s,
    word_or_rows,
    written,
)

CONTRACT_SCHEMA = "interlock.contract/1"


class Source(Part):
    """Where the policy came from. Hashes of the files stand in lock.json."""

    reader: Name
    files: InnerPath
    dataset: Text | None = None
    framework: Text | None = None
    parent: Text | None = None


class Timing(Part):
    """When the policy is asked and when its answers take effect."""

    control_period_ms: DurationMs | None = None
    control_rate_hz: RateHz | None = None
    chunk: Annotated[int, Field(ge=1, le=4096)]
    execute: Count | None = None
    handover: Literal["replace", "linear_blend", "temporal_ensemble", "real_time_chunking"] | None = None
    action_delay_ms: DelayMs

    @model_validator(mode="after")
    def _one_rate(self) -> Timing:
        exactly_one(self, "control_period_ms", "control_rate_hz")
        return self

    @property
    def period_s(self) -> Fraction:
        """Time between two actions, exact."""
        return period_s(self.control_period_ms, self.control_rate_hz)


class MeanStd(Part):
    """In: `(x - mean) / (std + eps)`; out: `x * std + mean`."""

    mean: Number
    std: NotNegative


class MinMax(Part):
    """In: `[min, max]` becomes [-1, 1]; out: back."""

    min: Number
    max: Number


def _statistics_kind(value: Any) -> str:
    return "min_max" if written(value, "min") is not None or written(value, "max") is not None else "mean_std"


Statistics = Annotated[
    Annotated[MeanStd, Tag("mean_std")] | Annotated[MinMax, Tag("min_max")],
    Discriminator(_statistics_kind),
]


class PolicyRow(Part):
    """What a contract says about one joint."""

    default: Number | None = None
    kp: NotNegative | None = None
    kd: NotNegative | None = None
    state: Statistics | None = None
    action: Statistics | None = None


class Zero(Part):
    """What the zero of the joints was set by."""

    calibration: Name


class PolicyJoints(Part):
    """The joints in the order of the network, and what the policy knows about each."""

    order: tuple[JointName, ...] = Field(min_length=1, max_length=128)
    name_suffix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{0,32}$")] = ""
    unit: WordOrRows[UnitName]
    zero: Zero | None = None
    eps: NotNegative | None = None
    each: dict[str, PolicyRow]


def _is_action(value: Any) -> str:
    return "action" if written(value, "role") == "action" else "other"


def _offset_kind(value: Any) -> str:
    return "word" if isinstance(value, str) else "numbers"


def _tasks_kind(value: Any) -> str:
    return "any" if isinstance(value, str) else "list"


class ActionOutput(Part):
    """The chunk of actions: `target = clip(raw) * scale + offset`, relative to where it says."""

    role: Literal["action"]
    kind: Literal[
        "joint_position_target",
        "joint_velocity_target",
        "joint_torque",
        "end_effector_pose",
        "end_effector_delta",
    ]
    unit: UnitName | None = None
    like: Literal["joints"] | None = None
    relative_to: Literal["current_joint_pos"] | None = None
    scale: NumberListOrRows | None = None
    offset: (
        Annotated[
            Annotated[Literal["default"], Tag("word")] | Annotated[NumberListOrRows, Tag("numbers")],
            Discriminator(_offset_kind),
        ]
        | None
    ) = None
    clip: OrNone[Range] | None = None
    dtype: Literal["float32"] | None = None
    shape: tuple[Count, ...] | None = None


class OtherOutput(Part):
    """Any other output of the graph; `period_ms` of a probe is the time between two of its snapshots."""

    role: Literal["confidence", "distribution", "probe", "state"]
    shape: tuple[Count, ...]
    dtype: DType | None = None
    period_ms: Positive | None = None


Output = Annotated[
    Annotated[ActionOutput, Tag("action")] | Annotated[OtherOutput, Tag("other")],
    Discriminator(_is_action),
]


class GoalRange(Part):
    """One part of the velocity goal; `slew_per_s` is its largest change per second."""

    unit: UnitName
    range: Range
    slew_per_s: Positive | None = None


class VelocityGoal(Part):
    """Body velocity in the base frame, yaw only."""

    lin_vel_x: GoalRange
    lin_vel_y: GoalRange
    ang_vel_z: GoalRange


class TextGoal(Part):
    """A task in words; `any`, or the ones that training knew."""

    tasks: Annotated[
        Annotated[Literal["any"], Tag("any")] | Annotated[tuple[Text, ...], Tag("list")],
        Discriminator(_tasks_kind),
    ]


class Goals(Part):
    """What the operator may ask."""

    velocity: VelocityGoal | None = None
    text: TextGoal | None = None


class StartWithin(Part):
    """How far from the start pose a run may begin; each joint is held to the number in its own kind of unit."""

    joint_pos_rad: Positive | None = None
    joint_pos_deg: Positive | None = None
    joint_pos_percent: Positive | None = None
    joint_pos_mm: Positive | None = None
    tilt_rad: Positive | None = None

    @model_validator(mode="after")
    def _one_angle(self) -> StartWithin:
        if self.joint_pos_rad is not None or self.joint_pos_deg is not None:
            exactly_one(self, "joint_pos_rad", "joint_pos_deg")
        return self


class Ages(Part):
    """Oldest admissible samples."""

    joints: DurationMs | None = None
    cameras: DurationMs | None = None


class Choices(Part):
    """Not from training: safe values, printed where they are not written. Yours to tighten."""

    max_age_ms: (
        Annotated[Annotated[DurationMs, Tag("one")] | Annotated[Ages, Tag("rows")], Discriminator(one_list_or_rows)]
        | None
    ) = None
    max_skew_ms: DurationMs | None = None
    latency_budget_ms: DurationMs | None = None
    inference: Literal["synchronous", "asynchronous"] | None = None
    inference_deadline_ms: DurationMs | None = None
    action_valid_ms: DurationMs | None = None
    sim_latency_ms: DelayMs | None = None
    interpolate: Literal["hold", "linear", "cubic"] | None = None
    goal_timeout_ms: DelayMs | None = None
    start_pose: (
        Annotated[
            Annotated[Literal["default", "mean"], Tag("word")] | Annotated[dict[str, Number], Tag("rows")],
            Discriminator(word_or_rows),
        ]
        | None
    ) = None
    start_within: StartWithin | None = None


class Contract(Document):
    """What one policy was trained on: facts, and a block of choices."""

    schema_: Literal["interlock.contract/1"] = Field(alias="schema")
    name: Name
    trained_for: Name
    source: Source
    timing: Timing
    joints: PolicyJoints
    inputs: dict[TensorName, Input] = Field(min_length=1)
    image: ImageRule | None = None
    state: OrNone[dict[TensorName, RecurrentState]]
    noise: OrNone[dict[TensorName, Noise]]
    language: OrNone[Language]
    outputs: dict[TensorName, Output] = Field(min_length=1)
    goals: Goals = Goals()
    choices: Choices = Choices()
