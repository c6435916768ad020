"""`interlock report`: a recording as one page, and as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from interlock.view.page import NOTHING, Column, Html, join, page, paragraph, section, table, tag
from interlock.view.percentiles import percentiles
from interlock.view.recording import Recording
from interlock.view.report_head import conditions, first_numbers, head, in_words
from interlock.view.report_images import cameras
from interlock.view.report_losses import losses
from interlock.view.report_modes import around_stops, bands, limits, modes
from interlock.view.report_motion import actions, motion
from interlock.view.report_timing import latency
from interlock.view.report_words import number, summary
from interlock.view.stages import Miss, Stage, action_ages, inference_stages, misses, tick_stages
from interlock.view.timeline import Acted, Change, Stretch, acted, changes, closest_looks, stretches

PARTS = {
    "latency": "Latency",
    "modes": "Modes",
    "limits": "Limits",
    "joints": "Joints",
    "actions": "Actions",
    "cameras": "Cameras",
    "dropped": "Dropped",
}


@dataclass(frozen=True, slots=True)
class Findings:
    """What the analysis of a recording found, computed once for page and numbers."""

    stages: list[Stage]
    missed: list[Miss]
    stretches: list[Stretch]
    changes: list[Change]
    acted: list[Acted]


def find(recording: Recording) -> Findings:
    """Analyses a recording. On a manual clock nothing has a duration and nothing is missed."""
    if not _has_motion(recording):
        return Findings(stages=[], missed=[], stretches=[], changes=[], acted=[])
    measured = not recording.is_manual
    return Findings(
        stages=tick_stages(recording) if measured else [],
        missed=misses(recording) if measured else [],
        stretches=stretches(recording),
        changes=changes(recording),
        acted=acted(recording),
    )


def report_html(recording: Recording, found: Findings, siblings: Sequence[Sequence[object]] = ()) -> str:
    """The page. `siblings`: rows about the other recordings of the same folder, as `sibling_row` makes them."""
    title = f"{recording.header.get('policy') or 'Policy'}: run report"
    if not _has_motion(recording):
        nothing = paragraph("No tick of any joint was recorded.")
        return page(title, head(recording), nothing, conditions(recording), losses(recording))
    stops = closest_looks(found.changes)
    behind = bands(recording, found.stretches, shade=True)
    return page(
        title,
        head(recording),
        in_words(recording, found.missed, found.acted, found.changes),
        first_numbers(recording, found.stages, found.missed, found.changes),
        conditions(recording),
        _contents(has_siblings=bool(siblings)),
        _siblings(siblings),
        latency(recording, found.missed),
        modes(recording, found.stretches, found.changes),
        around_stops(recording, found.stretches, stops),
        limits(recording, found.acted),
        motion(recording, behind),
        actions(recording, stops, found.stretches),
        cameras(recording, stops),
        losses(recording),
    )


def report_numbers(recording: Recording, found: Findings) -> dict[str, Any]:
    """The same findings for machines; a percentile that the samples do not support is null."""
    ticks = recording.ticks
    every = [*found.stages]
    if found.stages:
        every += [*inference_stages(recording), *action_ages(recording)]
    return {
        "recording": str(recording.path),
        "policy": recording.header.get("policy"),
        "complete": recording.complete,
        "replayable": None if recording.summary is None else recording.summary.replayable,
        "clock": "manual" if recording.is_manual else "monotonic",
        "seconds": round(recording.seconds, 6),
        "summary": summary(recording, found.missed, found.acted, found.changes),
        "ticks": {
            "executed": int(ticks.tick.size),
            "missed": sum(miss.count for miss in found.missed),
            "limited": int((ticks.ruling == 1).sum()),
            "refused": int((ticks.ruling == 2).sum()),
            "unrecorded": 0 if recording.summary is None else recording.summary.ticks_dropped,
        },
        "stages_ns": {stage.name: _stage_numbers(stage) for stage in every},
        "missed": [
            {"after_s": recording.second(miss.at_ns), "count": miss.count, "cause": miss.cause} for miss in found.missed
        ],
        "modes": [
            {
                "at_s": recording.second(change.at_ns),
                "from": change.before,
                "to": change.after,
                "cause": change.cause,
                "rest_s": None if change.rest_ns is None else change.rest_ns / 1e9,
            }
            for change in found.changes
        ],
        "limits": [
            {
                "code": each.code,
                "joint": each.joint,
                "limited": each.limited,
                "refused": each.refused,
                "noticed": each.noticed,
                "first_s": recording.second(each.first_ns),
            }
            for each in found.acted
        ],
        "constraint_violation": sum(each.value for each in recording.rewards if each.channel == "constraint_violation"),
    }


def sibling_row(name: str, recording: Recording, *, is_shown: bool) -> list[object]:
    """One recording of a folder in one line."""
    found = find(recording)
    stops = [change for change in found.changes if change.is_stop]
    ticks = recording.ticks
    last = found.stretches[-1].mode if found.stretches else NOTHING
    return [
        join([tag("b", name), " (shown here)"]) if is_shown else name,
        f"{recording.seconds:.1f}",
        number(sum(miss.count for miss in found.missed)) if not recording.is_manual else "manual clock",
        number(int((ticks.ruling == 1).sum())),
        number(int((ticks.ruling == 2).sum())),
        ", ".join(dict.fromkeys(change.cause or "no cause" for change in stops)) or "none",
        last,
    ]


def _has_motion(recording: Recording) -> bool:
    return len(recording.ticks) > 0 and len(recording.joints) > 0


def _siblings(rows: Sequence[Sequence[object]]) -> Html:
    if len(rows) < 2:
        return Html()
    columns = [Column("recording", number=False), Column("length", "s"), Column("missed", "ticks")]
    columns += [Column("limited", "ticks"), Column("refused", "ticks")]
    columns += [Column("stops", number=False), Column("ended in", number=False)]
    return section("recordings", "Recordings of this run", table(columns, rows))


def _contents(*, has_siblings: bool) -> Html:
    parts = {"recordings": "Recordings", **PARTS} if has_siblings else PARTS
    return tag("nav", *[Html(f'<a href="#{anchor}">{title}</a>') for anchor, title in parts.items()])


def _stage_numbers(stage: Stage) -> dict[str, float | int | None]:
    finite = stage.ns[np.isfinite(stage.ns)]
    shown: dict[str, float | int | None] = {f"p{each.percent:g}": each.value for each in percentiles(stage.ns)}
    return {**shown, "max": float(finite.max()) if finite.size else None, "n": int(finite.size)}
