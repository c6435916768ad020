"""The robot: a machine type by name, unit and limit, as its file writes it."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator

from interlock.contract.parts import (
    Document,
    DurationMs,
    DurationS,
    InnerPath,
    JointName,
    Name,
    NotNegative,
    Number,
    OrNone,
    Part,
    Positive,
    Range,
    RateHz,
    SizeHW,
    Text,
    UnitName,
    WordOrRows,
    exactly_one,
    period_s,
    written,
)
from interlock.contract.policy_model import Zero

ROBOT_SCHEMA = "interlock.robot/1"

Kind = Literal["position", "position_pd", "velocity", "torque"]
Quantity = Literal[
    "pos",
    "vel",
    "acc",
    "jerk",
    "torque",
    "target_step",
    "vel_measured",
    "window_travel",
    "distance",
    "torque_rate",
]


class Paced(Part):
    """Something with a period."""

    period_ms: DurationMs | None = None
    rate_hz: RateHz | None = None

    @model_validator(mode="after")
    def _one_rate(self) -> Paced:
        exactly_one(self, "period_ms", "rate_hz")
        return self

    @property
    def period_s(self) -> Fraction:
        """Its period, exact."""
        return period_s(self.period_ms, self.rate_hz)


class Driver(Paced):
    """What talks to the robot. Further keys are the driver's own options."""

    model_config = ConfigDict(extra="allow")

    __pydantic_extra__: dict[str, str | int | float | bool]

    use: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,128}$")]

    @property
    def is_simulated(self) -> bool:
        """No hardware behind it."""
        return self.use.startswith("sim:")


class Sim(Part):
    """The model that stands for the robot in simulation."""

    mjcf: InnerPath
    step_ms: DurationMs
    keyframe: Name | None = None
    base_height_m: Positive | None = None
    imu_site: Name | None = None


JointsUnit = Literal["joints.unit"]


class JointGives(Part):
    """Joint quantities, in the units of `joints.unit`; the words `joints.unit` where joints differ in theirs."""

    pos: UnitName | JointsUnit
    vel: UnitName | JointsUnit | None = None
    torque: UnitName | None = None


class BaseGives(Part):
    """Quantities of the base."""

    quat: Literal["wxyz"] | None = None
    ang_vel: Literal["rad/s"] | None = None
    lin_vel: Literal["m/s"] | None = None


class JointSensors(Paced):
    """Encoders and drives."""

    gives: JointGives
    clock: Name


class BaseSensor(Paced):
    """A sensor on the base, such as an inertial unit or an estimator."""

    gives: BaseGives
    frame: Name
    at: Name | None = None
    clock: Name


class Sensors(Part):
    """What is measured."""

    joints: JointSensors
    imu: BaseSensor | None = None
    base: BaseSensor | None = None


class Camera(Paced):
    """One camera as the driver gives its pictures."""

    size_hw: SizeHW
    color: Literal["rgb", "bgr"]
    clock: Name
    device: Text | None = None


class RobotRow(Part):
    """Limits of one joint. All are magnitudes, but for `pos`.

    `window_travel` (between any two commands less than 250 ms apart) and `distance` (between command and measured
    position) are in the joint's unit of position, `torque_rate` in its unit of torque per second; all three may be left
    out.
    """

    pos: Range | None = None
    vel: Positive | None = None
    acc: Positive | None = None
    jerk: Positive | None = None
    torque: Positive | None = None
    window_travel: Positive | None = None
    distance: Positive | None = None
    torque_rate: Positive | None = None
    kp_max: NotNegative | None = None
    kd_max: NotNegative | None = None


class RobotJoints(Part):
    """The joints in the order of the drives, and what each bears."""

    order: tuple[JointName, ...] = Field(min_length=1, max_length=128)
    name_suffix: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{0,32}$")] = ""
    accepts: tuple[Kind, ...] = Field(min_length=1)
    unit: WordOrRows[UnitName]
    zero: Zero | None = None
    each: dict[str, RobotRow]
    source: dict[str, Text]


AtLeastOne = Annotated[Number, Field(ge=1)]


class RefuseBeyond(Part):
    """Where limiting ends and refusing begins: a ratio multiplies the limit; the others say how far beyond it.

    `pos_range_ratio` is a share of the joint's whole range on either side.
    """

    pos_range_ratio: NotNegative | None = None
    pos_rad: NotNegative | None = None
    pos_deg: NotNegative | None = None
    vel_ratio: AtLeastOne | None = None
    acc_ratio: AtLeastOne | None = None
    jerk_ratio: AtLeastOne | None = None
    torque_ratio: AtLeastOne | None = None
    target_step_ratio: AtLeastOne | None = None
    target_step_rad: Positive | None = None
    vel_measured_ratio: AtLeastOne | None = None
    window_travel_ratio: AtLeastOne | None = None
    distance_ratio: AtLeastOne | None = None
    torque_rate_ratio: AtLeastOne | None = None

    @model_validator(mode="after")
    def _one_each(self) -> RefuseBeyond:
        for names in (("pos_range_ratio", "pos_rad", "pos_deg"), ("target_step_ratio", "target_step_rad")):
            if any(getattr(self, name) is not None for name in names):
                exactly_one(self, *names)
        return self


class KindLimits(Part):
    """What the guard enforces for one kind of command."""

    enforce: tuple[Quantity, ...]
    not_applicable: dict[str, Text] = Field(default_factory=dict)
    target_step_rad: Positive | None = None
    target_step_deg: Positive | None = None
    refuse_beyond: RefuseBeyond = RefuseBeyond()

    @model_validator(mode="after")
    def _one_step(self) -> KindLimits:
        if self.target_step_rad is not None or self.target_step_deg is not None:
            exactly_one(self, "target_step_rad", "target_step_deg")
        return self


class StopAndHold(Part):
    """Brake inside the limits, then hold the position reached."""

    do: Literal["stop_and_hold"]


class Damp(Part):
    """Stiffness zero, damping `kd`; without one, that of `policy_lost`."""

    do: Literal["damp"]
    kd: dict[str, NotNegative] | None = None


class GoTo(Part):
    """Smooth move to a pose of `poses`."""

    do: Literal["go_to"]
    pose: Name
    in_s: DurationS | None = None
    then: Literal["hold", "torque_off"]


class PolicyZero(Part):
    """The same policy with a zero goal: keep balancing, stand."""

    do: Literal["policy"]
    goal: Literal["zero"]


def _behaviour(value: Any) -> str:
    return str(written(value, "do"))


Behaviour = Annotated[
    Annotated[StopAndHold, Tag("stop_and_hold")]
    | Annotated[Damp, Tag("damp")]
    | Annotated[GoTo, Tag("go_to")]
    | Annotated[PolicyZero, Tag("policy")],
    Discriminator(_behaviour),
]


class MoveToStart(Part):
    """From arming to the start envelope, while `needs` holds; asked at the terminal."""

    do: Literal["move_to_start"]
    in_s: DurationS
    needs: Literal["hoisted", "lying", "hoisted_or_lying", "clear"] | None = None


class SupervisorLost(Part):
    """What the drives do by themselves when commands stop."""

    command_timeout_ms: OrNone[DurationMs]
    drives_then: Literal["hold", "damp", "limp", "keep_last_target"]
    kd: dict[str, NotNegative] | None = None


class Estop(Part):
    """The stop outside this program; declared here, tested by hand."""

    by: Text
    cuts: Text | None = None
    bound_ms: Positive | None = None
    state_input: Text | None = None
    reason: Text | None = None


class Safe(Part):
    """What acts when the policy may not, per cause."""

    before_start: OrNone[MoveToStart]
    policy_lost: Behaviour
    goal_lost: Behaviour
    on_exit: Behaviour
    supervisor_lost: SupervisorLost
    estop: Estop


class Robot(Document):
    """One machine type."""

    schema_: Literal["interlock.robot/1"] = Field(alias="schema")
    type: Name
    base: Literal["fixed", "floating"]
    driver: Driver
    sim: Sim | None = None
    sensors: Sensors | None = None
    cameras: dict[Name, Camera] = Field(default_factory=dict, max_length=8)
    joints: RobotJoints
    poses: dict[Name, dict[str, Number]] = Field(default_factory=dict)
    limits_for_position: KindLimits | None = None
    limits_for_position_pd: KindLimits | None = None
    limits_for_velocity: KindLimits | None = None
    limits_for_torque: KindLimits | None = None
    safe: Safe
