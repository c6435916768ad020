"""What binding produces, and what its steps share while they work."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Literal

from interlock.contract.codes import problem
from interlock.contract.expanded import ActionX, ContractX, OutputX, RobotX
from interlock.contract.model import Contract, Robot
from interlock.errors import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A unit that differs between the two files.

    Attributes:
        what: Such as `joint_pos` or `actions`.
        names: The joints or elements it concerns.
        robot_unit: Unit in the robot file.
        policy_unit: Unit in the contract.
        factor: Policy value of one robot unit.
    """

    what: str
    names: tuple[str, ...]
    robot_unit: str
    policy_unit: str
    factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitLine:
    """What happens to one quantity.

    Attributes:
        quantity: pos, vel, acc, jerk, torque, target_step, vel_measured, window_travel, distance, torque_rate, gains.
        status: What the guard does about it. `not_set`: it could, and the robot file gives no number.
        reason: Why it is not applicable, or what is missing.
        source: Where an enforced number comes from.
    """

    quantity: str
    status: Literal["enforced", "not_applicable", "not_set", "missing"]
    reason: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A value that is not a fact.

    Attributes:
        key: Its place in the file, such as `choices.max_skew_ms`.
        value: The value in the unit of its key.
        is_written: False for a default.
        why: Where a default comes from.
    """

    key: str
    value: str
    is_written: bool
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A contract joined to a robot by name.

    Attributes:
        contract: The contract written out.
        robot: The robot written out.
        identity: SHA-256 of contract, robot, calibration and index maps together.
        conversions: Units that differ.
        enforced: What the guard enforces, cannot, or lacks.
        choices: Every choice with its value.
        notes: What a person should know although nothing is wrong.
    """

    contract: ContractX
    robot: RobotX
    identity: str
    conversions: tuple[Conversion, ...]
    enforced: tuple[LimitLine, ...]
    choices: tuple[Choice, ...]
    notes: tuple[str, ...]
    numbers: dict[str, Any] = field(repr=False)

    def plan(self) -> dict[str, Any]:
        """Contract, robot and binding in SI numbers, robot order, integer nanoseconds: the core's plan."""
        return copy.deepcopy(self.numbers)


@dataclass(slots=True, kw_only=True)
class Scope:
    """Both documents, and what the steps of binding find out.

    Attributes:
        contract: For places in its text.
        robot: For places in its text.
        c: The contract written out.
        r: The robot written out.
        calibration: Of the unit at hand; empty when not given.
    """

    contract: Contract
    robot: Robot
    c: ContractX
    r: RobotX
    calibration: str
    problems: list[Problem] = field(default_factory=list)
    conversions: list[Conversion] = field(default_factory=list)
    enforced: list[LimitLine] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def n(self) -> int:
        """Degrees of freedom of the robot."""
        return len(self.r.names)

    @property
    def output(self) -> OutputX:
        """The output with the action."""
        return next(each for each in self.c.outputs if each.role == "action")

    @property
    def action(self) -> ActionX:
        """What its rows mean."""
        action = self.output.action
        assert action is not None, "expansion gives every action output one"
        return action

    def refuse(self, code: str, where: str, *, expected: str = "", got: str = "", hint: str = "") -> None:
        """Adds a problem."""
        self.problems.append(problem(code, where, expected=expected, got=got, hint=hint))

    def choose(self, key: str, written: float | None, default: float, why: str) -> float:
        """A number that may be chosen; the default is recorded with its reason."""
        value = default if written is None else written
        self.choices.append(
            Choice(key=key, value=f"{value:g}", is_written=written is not None, why="" if written is not None else why)
        )
        return float(value)
