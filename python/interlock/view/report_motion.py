"""Pictures of the joints and of the actions behind their targets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from interlock.view.charts import PALETTE, Band, Line, line_chart
from interlock.view.page import Html, details, grid, join, note, paragraph, section, tag
from interlock.view.plan_facts import position_limits, timing
from interlock.view.recording import Chunk, Recording
from interlock.view.timeline import Change, Stretch, speeds

F64 = NDArray[np.float64]

MEASURED, TARGET, WANTED = "#0f172a", "#2563eb", "#d97706"
MOST_ACTION_JOINTS = 8
CLOSE_S = 3.0  # of the picture of chunks
SMALL_POINTS = 420  # of a line in a small multiple
LEAST_RAD, LEAST_RAD_S = 0.02, 0.1  # smaller ranges are noise
POSITION_KINDS = (0, 1)


def motion(recording: Recording, behind: Sequence[Band]) -> Html:
    """Measured position, target and wanted of every joint; velocities on request."""
    ticks, span = recording.ticks, recording.span
    seconds = recording.seconds_of(ticks.due_ns)
    is_position = ticks.sent & np.isin(ticks.kind, POSITION_KINDS)
    ranges = position_limits(recording)
    positions, velocities = [], []
    small = partial(
        line_chart, span=span, marks=_goal_changes(recording), bands=behind, most_points=SMALL_POINTS, legend=False
    )
    speed = speeds(ticks) if not np.isfinite(ticks.vel).any() else ticks.vel
    for joint, name in enumerate(recording.joints):
        lines = [
            Line("wanted by the policy", seconds, ticks.wanted[:, joint], WANTED, dashed=True),
            Line("target sent", seconds, np.where(is_position, ticks.target[:, joint], np.nan), TARGET),
            Line("measured", seconds, ticks.pos[:, joint], MEASURED, width=1.2),
        ]
        positions.append(small(name, "rad", lines, height=110, limits=ranges[joint], least=LEAST_RAD))
        measured = Line("measured", seconds, speed[:, joint], MEASURED)
        velocities.append(small(name, "rad/s", [measured], height=80, least=LEAST_RAD_S))
    return section(
        "joints",
        "Joints",
        paragraph(
            join(
                [
                    _key(MEASURED, "measured"),
                    _key(TARGET, "target sent"),
                    _key(WANTED, "wanted by the policy", "dash"),
                    _key("var(--bad)", "position limit, where near", "dash"),
                ],
                " ",
            ),
            css="sub",
        ),
        grid(positions),
        note("Thin dotted lines: another goal. Shading: the mode; white is Running."),
        details("Measured velocities", grid(velocities)),
        _base(recording, behind),
    )


def _goal_changes(recording: Recording) -> list[float]:
    """Seconds at which the goal became another one."""
    goals = [goal for goal in recording.goals if not goal.request]
    before = [None, *goals[:-1]]
    return [
        recording.second(goal.stamp_ns)
        for goal, last in zip(goals, before, strict=True)
        if last is None or (goal.text, goal.velocity) != (last.text, last.velocity)
    ]


def _base(recording: Recording, behind: Sequence[Band]) -> Html:
    """How a floating base moved beside what was asked, and how far it tilted."""
    ticks = recording.ticks
    if not np.isfinite(ticks.lin_vel).any():
        return Html()
    seconds = recording.seconds_of(ticks.due_ns)
    asked = [goal for goal in recording.goals if len(goal.velocity) == 3]
    since = recording.seconds_of(np.array([goal.stamp_ns for goal in asked] + [ticks.due_ns[-1]]))
    goals = np.array([list(goal.velocity) for goal in asked] + [list(asked[-1].velocity)] if asked else [[np.nan] * 3])
    measured = (ticks.lin_vel[:, 0], ticks.lin_vel[:, 1], ticks.ang_vel[:, 2])
    pictures = [
        line_chart(
            title,
            unit,
            [
                Line("asked", since[: len(goals)], goals[:, part], WANTED, dashed=True, width=2, steps=True),
                Line("measured", seconds, measured[part], MEASURED),
            ],
            span=recording.span,
            bands=behind,
            height=110,
            least=0.1,
        )
        for part, (title, unit) in enumerate((("Forward", "m/s"), ("Left", "m/s"), ("Turning", "rad/s")))
    ]
    # The base's vertical axis against the world's: w x y z.
    upright = np.clip(1 - 2 * (ticks.quat[:, 1] ** 2 + ticks.quat[:, 2] ** 2), -1, 1)
    tilt = Line("", seconds, np.degrees(np.arccos(upright)), MEASURED)
    pictures.append(line_chart("Tilt", "°", [tilt], span=recording.span, bands=behind, height=110, least=5))
    return join([tag("h3", "Base"), grid(pictures)])


def actions(recording: Recording, stops: Sequence[Change], stretches: Sequence[Stretch]) -> Html:
    """Chunks as overlapping pieces of time, and which of them each target came from."""
    if not recording.chunks:
        return section("actions", "Actions", paragraph("No chunk arrived."))
    span = _close_span(recording, stops, stretches)
    close = [chunk for chunk in recording.chunks if _overlaps(recording, chunk, span)]
    pictures = [
        line_chart(
            name,
            "rad",
            [*_pieces(recording, close, joint), *_executed(recording, joint)],
            span=span,
            height=140,
            least=LEAST_RAD,
            legend=False,
            most_points=10**6,
        )
        for joint, name in list(enumerate(recording.joints))[:MOST_ACTION_JOINTS]
    ]
    left_out = len(recording.joints) - MOST_ACTION_JOINTS
    return section(
        "actions",
        "Actions",
        paragraph(
            "A chunk is one answer of the policy: several actions, each with the time at which it is due. "
            f"Each thin coloured line is one chunk ({len(close)} in these {span[1] - span[0]:.1f} s). The thick line "
            "is the target that was sent, in the colour of the chunk it came from; grey where no chunk was behind it."
        ),
        grid(pictures),
        note(f"{left_out} more joints are not shown here.") if left_out > 0 else Html(),
        _rows(recording),
    )


def _rows(recording: Recording) -> Html:
    """Which row of its chunk each tick executed: a saw whose teeth grow where chunks come late."""
    rows = timing(recording, "chunk")
    if rows < 2:
        return Html()
    ticks = recording.ticks
    used = ticks.sent & np.isfinite(ticks.wanted).all(axis=1)
    row = np.where(used, ticks.row.astype(np.float64), np.nan)
    return join(
        [
            line_chart(
                "Row of the chunk in use",
                f"of {rows}",
                [Line("", recording.seconds_of(ticks.due_ns), row, PALETTE[4])],
                span=recording.span,
                height=90,
                limits=[rows - 1.0],
                include=[0.0, rows - 1.0],
            ),
            note(
                "Teeth of one height: each chunk is followed by the next in time. A tooth that grows to the dashed "
                "line is a policy that ran out of actions."
            ),
        ]
    )


def _pieces(recording: Recording, chunks: Sequence[Chunk], joint: int) -> list[Line]:
    """One line per colour; chunks take the colours in turn, a gap stands between two of one colour."""
    x: dict[str, list[F64]] = {}
    y: dict[str, list[F64]] = {}
    gap = np.array([np.nan])
    for chunk in chunks:
        due = recording.seconds_of(due_times(recording, chunk))
        values = chunk.actions[:, joint]
        if due.size == 1:  # stands until the next one is due
            due, values = np.array([due[0], due[0] + recording.action_period_s]), np.repeat(values, 2)
        colour = PALETTE[chunk.seq % len(PALETTE)]
        x.setdefault(colour, []).extend([due, due[-1:]])
        y.setdefault(colour, []).extend([values, gap])
    return [Line("", np.concatenate(x[colour]), np.concatenate(y[colour]), colour, width=1.2) for colour in x]


def _executed(recording: Recording, joint: int) -> list[Line]:
    """What was sent, in the colours of the chunks behind it."""
    ticks = recording.ticks
    seconds = recording.seconds_of(ticks.due_ns)
    target = np.where(ticks.sent, ticks.target[:, joint], np.nan)
    used = np.isfinite(ticks.wanted).all(axis=1) & (ticks.chunk_seq > 0)
    lines = [Line("", seconds, np.where(used, np.nan, target), "#64748b", width=3.2)]
    for place, colour in enumerate(PALETTE):
        of_it = used & (ticks.chunk_seq % len(PALETTE) == place)
        if of_it.any():
            lines.append(Line("", seconds, np.where(of_it, target, np.nan), colour, width=3.2))
    return lines


def due_times(recording: Recording, chunk: Chunk) -> NDArray[np.int64]:
    """When each action of a chunk is due, monotonic ns. Shape (rows,)."""
    period_ns = recording.tick_ns * max(timing(recording, "ticks_per_period"), 1)
    begin = chunk.at_ns + timing(recording, "action_delay_ns")
    return begin + period_ns * np.arange(chunk.actions.shape[0], dtype=np.int64)


def _overlaps(recording: Recording, chunk: Chunk, span: tuple[float, float]) -> bool:
    if not chunk.actions.size:
        return False
    due = due_times(recording, chunk)
    return recording.second(int(due[0])) <= span[1] and recording.second(int(due[-1])) >= span[0]


def _close_span(recording: Recording, stops: Sequence[Change], stretches: Sequence[Stretch]) -> tuple[float, float]:
    """The seconds before a stop, where most chunks came; without a stop, the middle of the longest time in charge."""
    first, last = recording.span
    ends = [min(recording.second(stop.at_ns) + 0.5, last) for stop in stops]
    if ends:
        spans = [(max(end - CLOSE_S, first), end) for end in ends]
        return max(spans, key=lambda span: sum(_overlaps(recording, chunk, span) for chunk in recording.chunks))
    running = [each for each in stretches if each.mode in ("Running", "Degraded")] or list(stretches)
    if not running:
        return first, last
    longest = max(running, key=lambda each: each.end_ns - each.begin_ns)
    middle = recording.second((longest.begin_ns + longest.end_ns) // 2)
    return max(middle - CLOSE_S / 2, first), min(middle + CLOSE_S / 2, last)


def _key(colour: str, name: str, css: str = "") -> Html:
    return tag("span", Html(f'<i class="{css}" style="border-color:{colour}"></i>'), name, css="key")
