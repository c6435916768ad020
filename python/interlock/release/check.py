"""Does this policy fit this robot, and what will the guard enforce? Pure, fast, moves nothing; first of all gates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from interlock.contract.bind import survey
from interlock.contract.binding import Binding, LimitLine
from interlock.contract.expanded import ContractX, RobotX
from interlock.contract.model import Contract, Robot
from interlock.contract.text import NEXT, draft_contract, draft_robot
from interlock.errors import InterlockError, NeedsAnswer, Problem

WORDS = {
    "pos": "position",
    "vel": "velocity",
    "acc": "acceleration",
    "jerk": "jerk",
    "torque": "torque",
    "target_step": "target step",
    "vel_measured": "measured velocity",
    "window_travel": "travel within 250 ms",
    "distance": "distance to the measured position",
    "torque_rate": "torque rate",
    "gains": "gains",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What `interlock check` says.

    Attributes:
        policy: Name in the contract.
        robot: Type in the robot file.
        binding: Present when everything fits.
        problems: Everything that does not.
        unanswered: Facts that nobody has answered yet.
        enforced: What happens to each limited quantity, as far as it is known.
    """

    policy: str
    robot: str
    binding: Binding | None
    problems: tuple[Problem, ...]
    unanswered: tuple[Problem, ...]
    enforced: tuple[LimitLine, ...]

    @property
    def fits(self) -> bool:
        """Whether the policy may be built for this robot."""
        return self.binding is not None

    def bound(self) -> Binding:
        """The binding.

        Raises:
            NeedsAnswer: Only answers are missing.
            InterlockError: Everything that does not fit, unanswered facts included.
        """
        if self.binding is not None:
            return self.binding
        if not self.problems:
            raise NeedsAnswer(problems=list(self.unanswered), next=NEXT)
        raise InterlockError(problems=[*self.problems, *self.unanswered], next=NEXT)

    def lines(self) -> list[str]:
        """The report as a person reads it."""
        shown: list[str] = []
        if self.binding is not None:
            shown.append(_fit_line(self.binding.contract, self.binding.robot))
            shown.extend(_conversion_lines(self.binding))
        shown.extend(_guard_lines(self.enforced))
        if self.binding is not None:
            shown.extend(f"note: {note}" for note in self.binding.notes)
            shown.append(_choices_line(self.binding))
        for each in (*self.problems, *self.unanswered):
            shown.extend(each.lines())
        return shown

    def as_json(self) -> dict[str, Any]:
        """The report as plain data."""
        binding = self.binding
        return {
            "fits": self.fits,
            "policy": self.policy,
            "robot": self.robot,
            "identity": None if binding is None else binding.plan()["identity"],
            "limits": [
                {"quantity": each.quantity, "status": each.status, "reason": each.reason, "source": each.source}
                for each in self.enforced
            ],
            "conversions": []
            if binding is None
            else [
                {
                    "what": each.what,
                    "names": list(each.names),
                    "robot_unit": each.robot_unit,
                    "policy_unit": each.policy_unit,
                    "factor": each.factor,
                }
                for each in binding.conversions
            ],
            "choices": []
            if binding is None
            else [
                {"key": each.key, "value": each.value, "is_written": each.is_written, "why": each.why}
                for each in binding.choices
            ],
            "notes": [] if binding is None else list(binding.notes),
            "problems": [each.as_json() for each in self.problems],
            "unanswered": [each.as_json() for each in self.unanswered],
        }


def check(contract: Contract, robot: Robot, calibration: str | None = None) -> CheckReport:
    """Joins a contract to a robot and says how far they fit; raises nothing.

    Args:
        contract: What the policy was trained on.
        robot: The machine type.
        calibration: Of the unit at hand, where its file says one.
    """
    found = survey(contract, robot, calibration)
    return CheckReport(
        policy=contract.name,
        robot=robot.type,
        binding=found.binding,
        problems=found.problems,
        unanswered=(),
        enforced=found.enforced,
    )


def check_texts(
    contract_text: str,
    robot_text: str,
    *,
    contract_name: str = "contract.yaml",
    robot_name: str = "robot.yaml",
    calibration: str | None = None,
) -> CheckReport:
    """The same from the two texts: what is wrong or unanswered in either of them is reported together.

    Raises:
        InterlockError: A text that is no YAML of ours.
    """
    contract = draft_contract(contract_text, contract_name)
    robot = draft_robot(robot_text, robot_name)
    if contract.model is not None and robot.model is not None:
        return check(contract.model, robot.model, calibration)
    return CheckReport(
        policy=_word_of(contract.tree.data, "name"),
        robot=_word_of(robot.tree.data, "type"),
        binding=None,
        problems=(*contract.problems, *robot.problems),
        unanswered=(*contract.unanswered(), *robot.unanswered()),
        enforced=(),
    )


def _word_of(data: Any, key: str) -> str:
    return str(data.get(key, "")) if isinstance(data, dict) else ""


def _fit_line(contract: ContractX, robot: RobotX) -> str:
    units = dict(zip(contract.joints.names, contract.joints.unit, strict=True))
    pairs = dict.fromkeys(f"{units[name]} = {unit}" for name, unit in zip(robot.names, robot.unit, strict=True))
    parts = [f"{len(robot.names)} joints by name", *pairs]
    if robot.calibration:
        parts.append(f"calibration {contract.joints.calibration} = {robot.calibration}")
    used = {getattr(each, "camera", None) for each in contract.inputs} - {None}
    if used:
        parts.append(f"{len(used)} camera{'s' if len(used) > 1 else ''}")
    parts.append(f"{float(1 / contract.timing.period_s):g} Hz")
    return f"{contract.name} fits {robot.type}: {', '.join(parts)}"


def _conversion_lines(binding: Binding) -> list[str]:
    total = len(binding.robot.names)
    return [
        f"converts {each.what}: {each.robot_unit} -> {each.policy_unit} (x {each.factor:.6g}), "
        + ("all joints" if len(each.names) == total else ", ".join(each.names))
        for each in binding.conversions
    ]


def _guard_lines(enforced: Iterable[LimitLine]) -> list[str]:
    by_status: dict[str, list[LimitLine]] = {"enforced": [], "not_applicable": [], "not_set": [], "missing": []}
    for each in enforced:
        by_status[each.status].append(each)
    if not any(by_status.values()):
        return []
    shown = ["guard will enforce: " + (", ".join(WORDS[each.quantity] for each in by_status["enforced"]) or "nothing")]
    reasons: dict[str, list[str]] = {}
    for each in by_status["not_applicable"]:
        reasons.setdefault(each.reason, []).append(WORDS[each.quantity])
    shown.extend(f"not applicable: {', '.join(words)} ({reason})" for reason, words in reasons.items())
    if by_status["not_set"]:
        shown.append("not set: " + ", ".join(WORDS[each.quantity] for each in by_status["not_set"]))
    missing = [f"{WORDS[each.quantity]} ({each.reason})" for each in by_status["missing"]]
    shown.append(f"missing: {', '.join(missing) or 'nothing'}")
    return shown


def _choices_line(binding: Binding) -> str:
    defaults = [f"{each.key.removeprefix('choices.')} {each.value}" for each in binding.choices if not each.is_written]
    return f"choices by default, yours to tighten: {', '.join(defaults) or 'none'}"
