"""The modes over time, how fast the robot came to rest, and the limits that acted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from interlock.view.charts import Band, Line, band_chart, line_chart
from interlock.view.page import NOTHING, Column, Html, details, join, note, paragraph, section, table, tag
from interlock.view.recording import Recording
from interlock.view.report_words import clause, number, rest_clause, seconds_text, times
from interlock.view.timeline import REST_RAD_S, Acted, Change, Stretch, losses, speeds

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
FEW_CHANGES = 12  # all are shown at once
MOST_CHANGES = 300
MOST_GOALS = 300
BEFORE_S, AFTER_S = 0.6, 1.4  # shown around a stop


def modes(recording: Recording, stretches: Sequence[Stretch], changes: Sequence[Change]) -> Html:
    """The timeline, the stops, every transition, and what the operator asked."""
    stops = [change for change in changes if change.is_stop]
    listed = _transitions(recording, changes[:MOST_CHANGES])
    if len(changes) > MOST_CHANGES:
        listed = join([listed, note(f"{number(len(changes) - MOST_CHANGES)} more are in the recording.")])
    if len(changes) > FEW_CHANGES:
        shown = losses(changes) or stops
        caption = "Stops that nobody asked for" if losses(changes) else "Stops"
        listed = join(
            [
                _transitions(recording, shown[:MOST_CHANGES], caption=caption),
                details(f"All {number(len(changes))} changes of mode", listed),
            ]
        )
    return section(
        "modes",
        "Modes",
        band_chart("Mode", bands(recording, stretches), span=recording.span),
        listed or paragraph("The mode never changed."),
        note(
            "To rest: from the change until every measured joint stays below "
            f"{REST_RAD_S:g} rad/s for a quarter of a second."
        ),
        _goals(recording),
    )


def _transitions(recording: Recording, changes: Sequence[Change], *, caption: str = "") -> Html:
    rows = [
        [
            f"{recording.second(change.at_ns):.3f}",
            f"{change.before} → {change.after}",
            _rest(change),
            tag("code", change.cause) if change.cause else NOTHING,
            clause(change.cause) if change.is_stop and change.cause else "",
        ]
        for change in changes
    ]
    words = [Column(title, number=False) for title in ("mode", "cause", "in words")]
    return table([Column("at", "s"), words[0], Column("to rest"), *words[1:]], rows, caption=caption)


def bands(recording: Recording, stretches: Sequence[Stretch], *, shade: bool = False) -> list[Band]:
    """Stretches of modes in seconds and colours; `shade` is for behind lines and leaves Running white."""
    palette = SHADE if shade else COLOURS
    return [
        Band(each.mode, recording.second(each.begin_ns), recording.second(each.end_ns), palette.get(each.mode, OTHER))
        for each in stretches
        if not (shade and each.mode == "Running")
    ]


def around_stops(recording: Recording, stretches: Sequence[Stretch], stops: Sequence[Change]) -> Html:
    """A close look at some stops: what was sent, what the joints did."""
    return join([_around_stop(recording, stretches, stop) for stop in stops])


def _around_stop(recording: Recording, stretches: Sequence[Stretch], stop: Change) -> Html:
    at = recording.second(stop.at_ns)
    span = (max(at - BEFORE_S, recording.span[0]), min(at + max(AFTER_S, 1.3 * (stop.rest_ns or 0) / 1e9), at + 6.0))
    ticks = recording.ticks
    seconds = recording.seconds_of(ticks.due_ns)
    look = partial(
        line_chart,
        span=span,
        marks=[at] + ([at + stop.rest_ns / 1e9] if stop.rest_ns else []),
        bands=bands(recording, stretches, shade=True),
        height=170,
    )
    rows = slice(*np.searchsorted(seconds, span))
    fastest = np.nan_to_num(speeds(ticks, rows)).max(axis=0, initial=0.0)
    order = np.argsort(-fastest)[: min(6, len(recording.joints))]
    speed = [Line(recording.joints[joint], seconds, ticks.vel[:, joint]) for joint in order]
    sent = [
        Line(recording.joints[joint], seconds, np.where(ticks.sent, ticks.target[:, joint], np.nan)) for joint in order
    ]
    line = " The second thin line is where every joint is at rest." if stop.rest_ns else ""
    what = f"{stop.before} → {stop.after}: {clause(stop.cause)}; {rest_clause(stop)}.{line}"
    return join(
        [
            tag("h3", f"The stop at {at:.2f} s, closely"),
            paragraph(what),
            look("Measured speed", "rad/s", speed, least=4 * REST_RAD_S),
            look("Target sent", "rad", sent, least=0.05),
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
        return "moved again before" if change.is_cut_short else "not in this recording"
    return "at rest already" if change.rest_ns == 0 else seconds_text(change.rest_ns)


def _goals(recording: Recording) -> Html:
    rows = []
    for goal in recording.goals[:MOST_GOALS]:
        asked = [goal.request] if goal.request else []
        if goal.text:
            asked.append(f"“{goal.text}”")
        if len(goal.velocity):
            asked.append("velocity " + ", ".join(f"{each:g}" for each in goal.velocity))
        rows.append([f"{max(recording.second(goal.stamp_ns), 0.0):.3f}", " · ".join(asked) or "nothing"])
    columns = [Column("at", "s"), Column("asked", number=False)]
    if len(rows) <= FEW_CHANGES:
        return table(columns, rows, caption="What the operator asked")
    more = len(recording.goals) - len(rows)
    left_out = note(f"{number(more)} more are in the recording.") if more else Html()
    return details(f"What the operator asked ({number(len(recording.goals))} times)", table(columns, rows), left_out)
