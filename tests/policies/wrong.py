"""Contracts that are wrong in one way, made from the right ones."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DEGREES_PER_RADIAN = 57.29577951308232
CONFIG_ORDER = (1, 7, 3, 2, 5, 6, 0, 8, 4)  # where each term of holosoma's configuration stands in the alphabet
OTHER_SIDE = {"FR": "FL", "FL": "FR", "RR": "RL", "RL": "RR", "left": "right", "right": "left"}

Change = Callable[[str, dict[str, Any]], str]


@dataclass(frozen=True)
class Wrong:
    """One wrong contract.

    Attributes:
        what: In words, as in docs/wrong-contracts.md.
        policy: Of which policy.
        change: Right contract and known facts to the wrong contract.
        noticed: freeze, check, verify, or nobody.
        code: Code of the refusal, or what the evidence of verify says.
        acts: How the run on the simulated robot ends when it is run all the same; empty: not at all.
    """

    what: str
    policy: str
    change: Change
    noticed: str
    code: str = ""
    acts: str = ""


def right(policy: str) -> str:
    return (HERE / policy / "contract.yaml").read_text()


def robot(policy: str) -> str:
    return (HERE / policy / "robot.yaml").read_text()


def gains_in_sdk_order(text: str, facts: dict[str, Any]) -> str:
    """The list of the file, which is in motor order, taken for one in policy order."""
    joints, motors = facts["joints_policy_order"], facts["joints_sdk_order"]
    taken = [joints.index(name) for name in motors]
    return _rows(text, facts, kp=[facts["kp"][i] for i in taken], kd=[facts["kd"][i] for i in taken])


def terms_in_config_order(text: str, facts: dict[str, Any]) -> str:
    block = re.search(r"    terms:.*?(?=\nstate:)", text, re.DOTALL).group(0)
    _, *terms = block.split("\n      - ")
    terms = [re.sub(r"\n\s*#.*", "", term) for term in terms]
    return text.replace(block, "    terms:\n" + "\n".join(f"      - {terms[i]}" for i in CONFIG_ORDER))


def default_times(factor: float) -> Change:
    return lambda text, facts: _rows(text, facts, default=[value * factor for value in facts["default_joint_pos"]])


def at_25_hz(text: str, facts: dict[str, Any]) -> str:
    return text.replace("control_period_ms: 20", "control_period_ms: 40")


def sides_swapped(text: str, facts: dict[str, Any]) -> str:
    order = re.search(r"  order: \[.*?\]", text, re.DOTALL).group(0)
    swapped = re.sub(r"\b(FR|FL|RR|RL|left|right)_", lambda found: f"{OTHER_SIDE[found.group(1)]}_", order)
    return text.replace(order, swapped)


def velocity_scale(wrong: float) -> Change:
    return lambda text, facts: re.sub(r"(term: joint_vel,\s+unit: rad/s, scale: )[0-9.]+", rf"\g<1>{wrong}", text)


def positions_in_degrees(text: str, facts: dict[str, Any]) -> str:
    return re.sub(r"term: joint_pos_rel,\s+unit: rad,", "term: joint_pos_rel, unit: deg,", text)


def action_scale(wrong: float) -> Change:
    return lambda text, facts: re.sub(r"(    scale: )[0-9.]+( +#)", rf"\g<1>{wrong}\g<2>", text)


def _rows(text: str, facts: dict[str, Any], **changed: Sequence[float]) -> str:
    """Joint rows written out, with some columns replaced."""
    block = re.search(r"  each:.*?(?=\ninputs:)", text, re.DOTALL).group(0)
    columns = {
        "default": facts["default_joint_pos"],
        "kp": facts["kp"],
        "kd": facts.get("kd", facts.get("kd_joint_damping")),
        **changed,
    }
    rows = []
    for index, joint in enumerate(facts["joints_policy_order"]):
        row = {key: values[index] for key, values in columns.items()}
        rows.append(f"    {joint.removesuffix('_joint')}: {json.dumps(row)}")
    return text.replace(block, "  each:\n" + "\n".join(rows) + "\n")


# The rows of the policies' own table, and what else people get wrong. Times are seconds after the start.
WRONG = (
    Wrong("gains in policy order instead of motor order", "url_g1", gains_in_sdk_order, "freeze", "contract-contradiction"),
    Wrong("terms in the order of the configuration", "hs_g1_ppo", terms_in_config_order, "verify", "stopped", "stopped 0.0"),
    Wrong("terms in the order of the configuration", "hs_g1_fastsac", terms_in_config_order, "verify", "stopped", "stopped 0.0"),
    Wrong("default pose in degrees", "pg_go1", default_times(DEGREES_PER_RADIAN), "check", "default-outside-limits"),
    Wrong("default pose in degrees", "hs_g1_ppo", default_times(DEGREES_PER_RADIAN), "check", "default-outside-limits"),
    Wrong("default pose in degrees", "url_g1", default_times(DEGREES_PER_RADIAN), "freeze", "contract-contradiction"),
    Wrong("default pose converted to radians twice", "pg_go1", default_times(1 / DEGREES_PER_RADIAN), "check", "default-outside-limits"),
    Wrong("default pose converted to radians twice", "hs_g1_ppo", default_times(1 / DEGREES_PER_RADIAN), "verify", "the guard acted in 9"),
    Wrong("control at 25 Hz instead of 50", "url_g1", at_25_hz, "freeze", "contract-contradiction"),
    Wrong("control at 25 Hz instead of 50", "pg_go1", at_25_hz, "nobody"),
    Wrong("control at 25 Hz instead of 50", "hs_g1_ppo", at_25_hz, "nobody"),
    Wrong("left and right swapped", "pg_go1", sides_swapped, "verify", "fell", "fell 0."),
    Wrong("left and right swapped", "url_g1", sides_swapped, "freeze", "contract-contradiction"),
    Wrong("left and right swapped", "hs_g1_ppo", sides_swapped, "freeze", "contract-contradiction"),
    Wrong("joint velocity scale 1 instead of 0.05", "url_g1", velocity_scale(1), "freeze", "contract-contradiction"),
    Wrong("joint velocity scale 1 instead of 0.05", "hs_g1_ppo", velocity_scale(1), "verify", "stopped", "stopped 0.0"),
    Wrong("joint velocity scale 1 instead of 0.05", "hs_g1_fastsac", velocity_scale(1), "verify", "stopped", "stopped 0.0"),
    Wrong("joint velocity scale 0.05 instead of 1", "pg_go1", velocity_scale(0.05), "nobody"),
    Wrong("joint positions in degrees", "pg_go1", positions_in_degrees, "verify", "fell", "fell 0."),
    Wrong("joint positions in degrees", "hs_g1_ppo", positions_in_degrees, "verify", "stopped", "stopped 0.0"),
    Wrong("action scale 1 instead of 0.5", "pg_go1", action_scale(1), "verify", "the guard acted in"),
    Wrong("action scale 1 instead of 0.25", "hs_g1_ppo", action_scale(1), "verify", "stopped", "stopped 0."),
)  # fmt: skip
