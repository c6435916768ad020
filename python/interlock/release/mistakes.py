"""Contracts that are wrong on purpose: a check that could not tell them from the right one would prove nothing."""

from __future__ import annotations

import copy
from typing import Any

_DEGREES = 57.29577951308232  # deg per rad

Plan = dict[str, Any]


def wrong_plans(plan: Plan) -> dict[str, Plan]:
    """Plans with one typical mistake each, where the policy has what the mistake is about."""
    made: dict[str, Plan] = {}
    if len(plan["joints"]["policy_from_robot"]) > 1:
        made["joints_reversed"] = _with(plan, _reverse_joints)
    kinds = [_kind(term) for each in plan["inputs"] if each["kind"] == "terms" for term in each["terms"]]
    if "joint_vel" in kinds:
        made["velocity_scale"] = _with(plan, _scale("joint_vel", 20.0))
    if "joint_pos" in kinds or "joint_pos_rel" in kinds:
        made["degrees_for_radians"] = _with(plan, _scale("joint_pos", _DEGREES))
    if any(each["kind"] == "terms" and len(each["terms"]) > 1 for each in plan["inputs"]):
        made["terms_reversed"] = _with(plan, _reverse_terms)
    if plan["cameras"]:
        made["colours_swapped"] = _with(plan, _swap_colours)
    return made


def _with(plan: Plan, change: Any) -> Plan:
    wrong = copy.deepcopy(plan)
    change(wrong)
    return wrong


def _kind(term: dict[str, Any]) -> str:
    word = term["term"]
    return word if isinstance(word, str) else str(next(iter(word)))


def _reverse_joints(plan: Plan) -> None:
    """Observations and targets of the policy's joints are taken for those of others; nothing else moves."""
    plan["joints"]["policy_from_robot"] = plan["joints"]["policy_from_robot"][::-1]


def _scale(prefix: str, factor: float) -> Any:
    def change(plan: Plan) -> None:
        for each in plan["inputs"]:
            for term in each.get("terms", []):
                if _kind(term).startswith(prefix):
                    term["scale"] = [value * factor for value in term["scale"]]

    return change


def _reverse_terms(plan: Plan) -> None:
    for each in plan["inputs"]:
        if each["kind"] == "terms":
            each["terms"] = each["terms"][::-1]


def _swap_colours(plan: Plan) -> None:
    for each in plan["inputs"]:
        if each["kind"] == "image":
            each["bgr"] = not each["bgr"]
