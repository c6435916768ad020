"""The modes over time, how fast the robot came to rest, and the limits that acted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from interlock.view.charts import Band, Line, band_chart, line_chart
from interlock.view.page import NOTHING, Column, Html, join, note, paragraph, section, table, tag
from interlock.view.recording import Recording
from interlock.view.report_words import clause, number, seconds_text, times
from interlock.view.timeline import REST_RAD_S, Acted, Change, Stretch, speeds

COLOURS = {
    "Idle": "#cbd5e1",
    "Armed": "#93c5fd",
    "Running": "#86efac",
    "Takeover": "#c4b5fd",
    "Degraded": "#fde68a",
    "Stopping": "#ea580c",
    "Holding": "#fbbf24",
    "Faulted": "#dc2626",
}
OTHER = "#f0abfc"
SHADE = {name: f"{colour}44" for name, colour in COLOURS.items() if name != "Running"}
MOST_CHANGES = 60
MOST_GOALS = 40
BEFORE_S, AFTER_S = 0.6, 1.4  # shown around a stop


def modes(recording: Recording, stretches: Sequence[Stretch], changes: Sequence[Change]) -> Html:
    """The timeline, every transition, and what the operator asked."""
    rows = [
        [
            f"{recording.second(change.at_ns):.3f}",
            f"{change.before} → {change.after}",
            tag("code", change.cause) if change.cause else NOTHING,
            clause(change.cause) if change.is_stop and change.cause else "",
            _rest(change),
        ]
        for change in changes[:MOST_CHANGES]
    ]
    columns = [
        Column("at", "s"),
        Column("mode", number=False),
        Column("cause", number=False),
        Column("in words", number=False),
        Column("to rest"),
    ]
    more = f"{len(changes) - MOST_CHANGES} more changes are in the recording." if len(changes) > MOST_CHANGES else ""
    return section(
        "modes",
        "Modes",
        band_chart("Mode", bands(recording, stretches), span=recording.span),
        table(columns, rows) or paragraph("The mode never changed."),
        note(
            "To rest: from the change until every measured joint stays below "
            f"{REST_RAD_S:g} rad/s for a quarter of a second. {more}"
        ),
        _goals(recording),
    )


def bands(recording: Recording, stretches: Sequence[Stretch], *, shade: bool = False) -> list[Band]:
    """Stretches of modes in seconds and colours; `shade` is for behind lines and leaves Running white."""
    palette = SHADE if shade else COLOURS
    return [
        Band(each.mode, recording.second(each.begin_ns), recording.second(each.end_ns), palette.get(each.mode, OTHER))
        for each in stretches
        if not (shade and each.mode == "Running")
    ]


def around_stop(recording: Recording, stretches: Sequence[Stretch], stop: Change | None) -> Html:
    """A close look at the first stop: what was sent, what the joints did."""
    if stop is None:
        return Html()
    at = recording.second(stop.at_ns)
    span = (max(at - BEFORE_S, recording.span[0]), min(at + max(AFTER_S, 1.3 * (stop.rest_ns or 0) / 1e9), at + 6.0))
    ticks = recording.ticks
    seconds = recording.seconds_of(ticks.due_ns)
    behind = bands(recording, stretches, shade=True)
    fastest = speeds(ticks)
    order = np.argsort(
        -np.nan_to_num(np.abs(fastest[(seconds >= span[0]) & (seconds <= span[1])])).max(axis=0, initial=0.0)
    )[: min(6, len(recording.joints))]
    marks = [at] + ([at + stop.rest_ns / 1e9] if stop.rest_ns else [])
    speed = [Line(recording.joints[joint], seconds, ticks.vel[:, joint]) for joint in order]
    moved = [
        Line(recording.joints[joint], seconds, np.where(ticks.sent, ticks.target[:, joint], np.nan)) for joint in order
    ]
    what = f"At {at:.2f} s {clause(stop.cause)}. " + (
        "The joints were at rest already."
        if stop.rest_ns == 0
        else f"The second thin line is where every joint is at rest, {seconds_text(stop.rest_ns)} later."
        if stop.rest_ns is not None
        else "The joints did not come to rest while this was recorded."
    )
    return join(
        [
            tag("h3", "The first stop, closely"),
            paragraph(what),
            line_chart(
                "Measured speed", "rad/s", speed, span=span, marks=marks, bands=behind, height=190, least=4 * REST_RAD_S
            ),
            line_chart("Target sent", "rad", moved, span=span, marks=marks, bands=behind, height=190, least=0.05),
            note(f"The {len(order)} joints that moved fastest. Shading is the mode, as above; white is Running."),
        ]
    )


def limits(recording: Recording, acted: Sequence[Acted]) -> Html:
    """Which limits acted, on which joint, how often."""
    rewards = [each for each in recording.rewards if each.channel == "constraint_violation"]
    total = sum(each.value for each in rewards)
    rows = [
        [
            tag("code", each.code),
            each.joint or NOTHING,
            number(each.limited),
            number(each.refused),
            number(each.noticed),
            f"{recording.second(each.first_ns):.3f}",
            f"{recording.second(each.last_ns):.3f}",
        ]
        for each in acted
    ]
    columns = [Column("limit", number=False), Column("joint", number=False)]
    columns += [Column("limited", "ticks"), Column("refused", "ticks"), Column("noticed", "ticks")]
    columns += [Column("first", "s"), Column("last", "s")]
    return section(
        "limits",
        "Limits that acted",
        table(columns, rows) or paragraph("None. Every command was inside its limits."),
        note(
            "The joint is the first one concerned in each tick. Noticed: the command passed, the code was only noted."
        ),
        paragraph(f"Reward channel constraint_violation: {times(len(rewards), 'event')}, {total:g} in total."),
    )


def _rest(change: Change) -> str:
    if not change.is_stop:
        return ""
    if change.rest_ns is None:
        return "not in this recording"
    return "at rest already" if change.rest_ns == 0 else seconds_text(change.rest_ns)


def _goals(recording: Recording) -> Html:
    rows = []
    for goal in recording.goals[:MOST_GOALS]:
        asked = [goal.request] if goal.request else []
        if goal.text:
            asked.append(f"“{goal.text}”")
        if len(goal.velocity):
            asked.append("velocity " + ", ".join(f"{each:g}" for each in goal.velocity))
        rows.append([f"{recording.second(goal.stamp_ns):.3f}", " · ".join(asked) or "nothing"])
    more = len(recording.goals) - MOST_GOALS
    return join(
        [
            table(
                [Column("at", "s"), Column("asked", number=False)],
                rows,
                caption="What the operator asked" + (f" (the first {MOST_GOALS}, {more} more)" if more > 0 else ""),
            )
        ]
    )
