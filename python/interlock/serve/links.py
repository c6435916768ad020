"""The shared-memory links of one run: made by the supervisor's process, inherited by driver and worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from interlock import _core

STATE_SLOTS = 64
COMMAND_SLOTS = 64
IMAGE_SLOTS = 20  # a history of 16 and room for the writer that lags
EXCHANGE_SLOTS = 16


@dataclass(frozen=True, slots=True)
class DriverLinks:
    """What a driver's process shares with the supervisor."""

    state: _core.Ring
    command: _core.Ring
    images: list[_core.Ring]

    @staticmethod
    def create(plan: dict[str, Any]) -> DriverLinks:
        """Rings of the sizes that the plan asks for."""
        joints = len(plan["joints"]["names"])
        return DriverLinks(
            state=_core.Ring.create("state", STATE_SLOTS, _core.state_bytes(joints)),
            command=_core.Ring.create("command", COMMAND_SLOTS, _core.command_bytes(joints)),
            images=[
                _core.Ring.create(f"image-{each['name']}", IMAGE_SLOTS, each["height"] * each["width"] * 3)
                for each in plan["cameras"]
            ],
        )

    @staticmethod
    def attach(descriptors: dict[str, Any]) -> DriverLinks:
        """Maps inherited descriptors."""
        return DriverLinks(
            state=_core.Ring.attach(descriptors["state"]),
            command=_core.Ring.attach(descriptors["command"]),
            images=[_core.Ring.attach(each) for each in descriptors["images"]],
        )

    def descriptors(self) -> dict[str, Any]:
        """File descriptors by role, for the child's configuration."""
        return {
            "state": self.state.fd,
            "command": self.command.fd,
            "images": [each.fd for each in self.images],
        }


@dataclass(frozen=True, slots=True)
class WorkerLinks:
    """What one worker shares with the supervisor: observations in, chunks out. One pair per generation."""

    observation: _core.Ring
    chunk: _core.Ring

    @staticmethod
    def create(plan: dict[str, Any]) -> WorkerLinks:
        """Rings of the sizes that the plan asks for."""
        joints = len(plan["joints"]["names"])
        return WorkerLinks(
            observation=_core.Ring.create("observation", EXCHANGE_SLOTS, _core.observation_bytes(joints)),
            chunk=_core.Ring.create("chunk", EXCHANGE_SLOTS, _core.chunk_bytes(plan["timing"]["chunk"], joints)),
        )

    @staticmethod
    def attach(descriptors: dict[str, Any]) -> WorkerLinks:
        """Maps inherited descriptors."""
        return WorkerLinks(
            observation=_core.Ring.attach(descriptors["observation"]),
            chunk=_core.Ring.attach(descriptors["chunk"]),
        )

    def descriptors(self) -> dict[str, Any]:
        """File descriptors by role, for the child's configuration."""
        return {"observation": self.observation.fd, "chunk": self.chunk.fd}


def flat_descriptors(descriptors: dict[str, Any]) -> list[int]:
    """Every descriptor in a configuration, for `pass_fds`."""
    found: list[int] = []
    for value in descriptors.values():
        found.extend(value if isinstance(value, list) else [value])
    return found
