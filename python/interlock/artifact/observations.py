"""Raw observations, as the robot gave them: what samples and rollouts are made of, independent of any binding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from interlock.errors import InterlockError

from .arrays import Arrays, read_arrays, write_arrays

Origin = Literal["dataset", "simulation", "recording", "synthetic"]
ORIGINS: tuple[Origin, ...] = ("dataset", "simulation", "recording", "synthetic")

_BASE = 10  # quat_wxyz, ang_vel, lin_vel
_IMAGE = "image."
_NO_TASK = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """`T` raw observations.

    Attributes:
        joints: Full joint names, the order of the columns of `state`.
        state: Joint position, velocity, torque; base quaternion (w, x, y, z), angular and linear velocity. SI. NaN
            for what the robot does not give. Shape (T, 3n+10).
        images: Camera to pictures, uint8, as the camera gives them. Shape (T, h, w, 3).
        goal: Velocity goal. Shape (T, 3).
        tasks: The task texts that occur.
        task: Index into `tasks` of each observation, -1 for none. Shape (T,).
        origin: Where they come from.
    """

    joints: tuple[str, ...]
    state: NDArray[np.float64]
    images: dict[str, NDArray[np.uint8]]
    goal: NDArray[np.float64] | None
    tasks: tuple[str, ...]
    task: NDArray[np.int64]
    origin: Origin

    def __len__(self) -> int:
        return len(self.state)

    @property
    def joint_pos(self) -> NDArray[np.float64]:
        """Joint positions, SI. Shape (T, n)."""
        return self.state[:, : len(self.joints)]

    def text(self, index: int) -> str:
        """Task text of one observation, empty for none."""
        return "" if self.task[index] == _NO_TASK else self.tasks[self.task[index]]

    def ordered(self, joints: Sequence[str]) -> Observations:
        """The same with the joints in another order.

        Raises:
            InterlockError: `samples-joints` when the joints are not the same ones.
        """
        if sorted(joints) != sorted(self.joints):
            raise InterlockError(
                code="samples-joints",
                where="samples",
                expected=", ".join(sorted(joints)),
                got=", ".join(sorted(self.joints)),
                hint="these observations are of another robot",
            )
        n = len(self.joints)
        take = np.array([self.joints.index(name) for name in joints])
        columns = np.concatenate([take, n + take, 2 * n + take, 3 * n + np.arange(_BASE)])
        return self._with(joints=tuple(joints), state=np.ascontiguousarray(self.state[:, columns]))

    def chosen(self, rows: NDArray[np.int64]) -> Observations:
        """Some of them."""
        return self._with(
            state=self.state[rows],
            images={name: each[rows] for name, each in self.images.items()},
            goal=None if self.goal is None else self.goal[rows],
            task=self.task[rows],
        )

    def spread(self, count: int) -> Observations:
        """At most `count` of them, evenly spread."""
        if len(self) <= count:
            return self
        return self.chosen(np.linspace(0, len(self) - 1, count).round().astype(np.int64))

    def _with(self, **changes: Any) -> Observations:
        now = {name: getattr(self, name) for name in self.__slots__}
        return Observations(**{**now, **changes})

    def content(self) -> bytes:
        """As a file."""
        return write_arrays(self.arrays())

    def arrays(self) -> Arrays:
        """As named arrays."""
        found: Arrays = {
            "joints": np.array(self.joints, dtype=np.str_),
            "state": self.state,
            "tasks": np.array(self.tasks, dtype=np.str_) if self.tasks else np.array([], dtype="<U1"),
            "task": self.task,
            "origin": np.array([self.origin], dtype=np.str_),
        }
        if self.goal is not None:
            found["goal"] = self.goal
        return found | {f"{_IMAGE}{name}": each for name, each in self.images.items()}


def read_observations(
    content: bytes, *, where: str, names: Mapping[str, str] | None = None, joints: Sequence[str] = ()
) -> Observations:
    """Reads a file of observations.

    A file of a person needs `joints`, and `state` or `joint_pos` (rad; m; 0..1) with, where the policy reads them,
    `joint_vel`, `quat_wxyz`, `ang_vel`, `lin_vel`, `goal`, `image.CAMERA`, and `text`, the task of each.

    Args:
        content: The file.
        where: Its name, for messages.
        names: Our name of an array -> its name in this file.
        joints: Names of the columns, where the file does not say.

    Raises:
        InterlockError: `npz-…`, `pickle-refused`, `samples-malformed`.
    """
    arrays = read_arrays(content, where=where)
    for ours, theirs in (names or {}).items():
        if theirs not in arrays:
            raise _malformed(where, f"an array {theirs}", ", ".join(arrays))
        arrays[ours] = arrays[theirs]
    if joints:
        arrays["joints"] = np.array(joints, dtype=np.str_)
    named_joints = tuple(str(name) for name in _named(arrays, "joints", "U", 1, where))
    n = len(named_joints)
    state = _state(arrays, n, where)
    count = len(state)
    images = {}
    for name, each in arrays.items():
        if name.startswith(_IMAGE):
            if each.dtype != np.uint8 or each.ndim != 4 or each.shape[3] != 3 or len(each) != count:
                raise _malformed(where, f"{name}: uint8 ({count}, h, w, 3)", f"{each.dtype} {each.shape}")
            images[name.removeprefix(_IMAGE)] = each
    goal = np.asarray(arrays["goal"], dtype=np.float64) if "goal" in arrays else None
    if goal is not None and (goal.shape != (count, 3) or not np.isfinite(goal).all()):
        raise _malformed(where, f"goal: finite ({count}, 3)", str(goal.shape))
    tasks, task = _tasks(arrays, count, where)
    if task.shape != (count,) or (count and (task.min() < _NO_TASK or task.max() >= len(tasks))):
        raise _malformed(where, f"task: ({count},), each an index into tasks", str(task.shape))
    named = str(arrays["origin"].reshape(-1)[0]) if "origin" in arrays and arrays["origin"].size else "dataset"
    origin: Origin = next((each for each in ORIGINS if each == named), "dataset")
    if len(set(named_joints)) != n or not count:
        raise _malformed(where, "different joint names and at least one observation", f"{n} names, {count}")
    return Observations(
        joints=named_joints, state=state, images=images, goal=goal, tasks=tasks, task=task, origin=origin
    )


def _tasks(arrays: Arrays, count: int, where: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The texts that occur, and which of them each observation has."""
    if "text" in arrays:
        texts = [str(text) for text in _named(arrays, "text", "U", 1, where)]
        tasks = tuple(sorted(set(texts)))
        return tasks, np.array([tasks.index(text) for text in texts], dtype=np.int64)
    tasks = tuple(str(text) for text in arrays.get("tasks", np.array([], dtype="<U1")))
    task = arrays.get("task", np.full(count, 0 if tasks else _NO_TASK))
    if task.dtype.kind not in "iu":
        raise _malformed(where, "task: whole numbers", str(task.dtype))
    return tasks, task.astype(np.int64)


def flat_states(count: int, joints: int) -> NDArray[np.float64]:
    """States of which nothing is known yet: NaN, base upright. Shape (count, 3n+10)."""
    state = np.full((count, 3 * joints + _BASE), np.nan)
    state[:, 3 * joints : 3 * joints + 4] = (1.0, 0.0, 0.0, 0.0)
    return state


def _state(arrays: Arrays, n: int, where: str) -> NDArray[np.float64]:
    if "state" in arrays:
        state = np.asarray(arrays["state"], dtype=np.float64)
        if state.ndim != 2 or state.shape[1] != 3 * n + _BASE:
            raise _malformed(where, f"state: (T, {3 * n + _BASE})", str(state.shape))
    else:
        pos = np.asarray(_named(arrays, "joint_pos", "f", 2, where), dtype=np.float64)
        state = flat_states(len(pos), n)
        parts = {"joint_pos": 0, "joint_vel": n, "quat_wxyz": 3 * n, "ang_vel": 3 * n + 4, "lin_vel": 3 * n + 7}
        sizes = {"joint_pos": n, "joint_vel": n, "quat_wxyz": 4, "ang_vel": 3, "lin_vel": 3}
        for name, start in parts.items():
            if name in arrays:
                each = _named(arrays, name, "f", 2, where)
                if each.shape != (len(pos), sizes[name]):
                    raise _malformed(where, f"{name}: ({len(pos)}, {sizes[name]})", str(each.shape))
                state[:, start : start + sizes[name]] = each
    if not np.isfinite(state[:, :n]).all():
        raise _malformed(where, "finite joint positions", "NaN or infinity")
    return np.ascontiguousarray(state)


def _named(arrays: Arrays, name: str, kind: str, axes: int, where: str) -> NDArray[Any]:
    each = arrays.get(name)
    if each is None or each.dtype.kind != kind or each.ndim != axes:
        got = "none" if each is None else f"{each.dtype} {each.shape}"
        raise _malformed(where, f"an array {name} with {axes} axes", got)
    return each


def _malformed(where: str, expected: str, got: str) -> InterlockError:
    return InterlockError(
        code="samples-malformed",
        where=where,
        expected=expected,
        got=got,
        hint="see the help of `interlock freeze --samples`",
    )
