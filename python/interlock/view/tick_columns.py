"""All ticks of a recording as columns: one array per quantity, filled message by message."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]
F64 = NDArray[np.float64]

SCALARS = (
    "tick", "due_ns", "woke_ns", "captured_ns", "observed_ns", "chunk_arrived_ns", "acted_ns", "sent_ns", "record_ns",
    "mode", "level", "cause", "ruling", "sample_seq", "sent", "kind", "generation", "chunk_seq", "row", "goal_seq",
    "offered", "observation_seq", "missed", "chunks_dropped",
)  # fmt: skip
ABSENT = float("nan")
# What stands where a message leaves a joint array out, see recording.proto. Gains repeat the message before.
JOINT_ROWS = {
    "pos": ABSENT, "vel": ABSENT, "torque": ABSENT, "wanted": ABSENT, "target": ABSENT, "velocity": 0.0,
    "torque_command": 0.0,
}  # fmt: skip
GAINS = ("kp", "kd")
BASE_ROWS = {"quat": 4, "ang_vel": 3, "lin_vel": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """One row per recorded tick. Times in monotonic ns, 0 where something did not happen; joint values SI, robot order.

    Attributes:
        tick: Ordinal, missed ticks counted.
        due_ns: Release.
        woke_ns: The control thread ran.
        captured_ns: Capture of the sample in use.
        observed_ns: The sample was aligned.
        chunk_arrived_ns: The chunk in use arrived.
        acted_ns: The guard had ruled.
        sent_ns: The command was on its way.
        record_ns: How long recording the tick before took.
        mode: Number; `Recording.mode_name` names it.
        level: Level of the ladder.
        cause: Code of the last stop; `Recording.code_word` names it.
        ruling: 0 pass, 1 limited, 2 refused.
        sample_seq: Sample in use.
        sent: A command was sent; False in a dry run, whose commands are recorded all the same.
        kind: 0 position, 1 position_pd, 2 velocity, 3 torque, 4 off.
        generation: Generation of the chunk in use.
        chunk_seq: The chunk in use.
        row: Its row.
        goal_seq: The goal in force.
        offered: An observation was offered for inference.
        observation_seq: Which.
        missed: Ticks missed so far.
        chunks_dropped: Chunks not used so far.
        pos: Measured, rad. Shape `(T, n)`, like every joint array; NaN where the robot gives none.
        vel: Measured, rad/s.
        torque: Measured, N*m.
        quat: Base orientation, w x y z. Shape `(T, 4)`.
        ang_vel: Base, rad/s. Shape `(T, 3)`.
        lin_vel: Base, m/s. Shape `(T, 3)`.
        wanted: What the schedule asked for; NaN where no action was valid.
        target: Commanded, rad; NaN where there was no command.
        velocity: Commanded, rad/s.
        torque_command: Commanded, N*m.
        kp: Commanded, N*m/rad.
        kd: Commanded, N*m*s/rad.
        codes: Codes that acted or were noticed, per tick.
        joints: First joint that each of them concerns, -1 for none.
        events: Numbers of the requests taken, per tick.
    """

    tick: I64
    due_ns: I64
    woke_ns: I64
    captured_ns: I64
    observed_ns: I64
    chunk_arrived_ns: I64
    acted_ns: I64
    sent_ns: I64
    record_ns: I64
    mode: I64
    level: I64
    cause: I64
    ruling: I64
    sample_seq: I64
    sent: NDArray[np.bool_]
    kind: I64
    generation: I64
    chunk_seq: I64
    row: I64
    goal_seq: I64
    offered: NDArray[np.bool_]
    observation_seq: I64
    missed: I64
    chunks_dropped: I64
    pos: F64
    vel: F64
    torque: F64
    quat: F64
    ang_vel: F64
    lin_vel: F64
    wanted: F64
    target: F64
    velocity: F64
    torque_command: F64
    kp: F64
    kd: F64
    codes: list[tuple[int, ...]]
    joints: list[tuple[int, ...]]
    events: list[tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.tick)


class TickColumns:
    """Collects ticks of `joints` joints. `add` raises ValueError for a message that does not fit."""

    def __init__(self, joints: int) -> None:
        self._joints = joints
        self._scalars = {name: array("q") for name in SCALARS}
        self._rows = {name: array("d") for name in (*JOINT_ROWS, *GAINS, *BASE_ROWS)}
        self._absent = {name: array("d", [value] * joints) for name, value in JOINT_ROWS.items()}
        self._absent |= {name: array("d", [0.0] * joints) for name in GAINS}
        self._absent |= {name: array("d", [ABSENT] * width) for name, width in BASE_ROWS.items()}
        self._lists: dict[str, list[tuple[int, ...]]] = {"codes": [], "joints": [], "events": []}

    def add(self, message: Any) -> None:
        """Appends one `interlock.v1.Tick`."""
        for name, column in self._scalars.items():
            column.append(getattr(message, name))
        for name, row in self._rows.items():
            values, absent = getattr(message, name), self._absent[name]
            if not values:
                row.extend(absent)
            elif len(values) == len(absent):
                row.extend(values)
                if name in GAINS:
                    self._absent[name] = array("d", values)
            else:
                raise ValueError(f"{name}: expected {len(absent)} values, got {len(values)}")
        for name, list_ in self._lists.items():
            list_.append(tuple(getattr(message, name)))

    def ticks(self) -> Ticks:
        """The columns. Ends collecting."""
        scalars: dict[str, Any] = {name: _column(each, np.int64) for name, each in self._scalars.items()}
        for name in ("sent", "offered"):
            scalars[name] = scalars[name].astype(np.bool_)
        lists: dict[str, Any] = dict(self._lists)
        rows: dict[str, Any] = {name: _column(each, np.float64) for name, each in self._rows.items()}
        shaped = {name: each.reshape(-1, max(BASE_ROWS.get(name, self._joints), 1)) for name, each in rows.items()}
        return Ticks(**scalars, **shaped, **lists)


def _column(values: array[Any], dtype: Any) -> NDArray[Any]:
    return np.frombuffer(values, dtype=dtype) if values else np.empty(0, dtype=dtype)
