"""The two models."""

from __future__ import annotations

from interlock.contract.policy_model import CONTRACT_SCHEMA, Contract
from interlock.contract.robot_model import ROBOT_SCHEMA, Robot

__all__ = ["CONTRACT_SCHEMA", "ROBOT_SCHEMA", "Contract", "Robot"]
