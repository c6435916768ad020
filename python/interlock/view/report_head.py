"""The top of the report: what ran, when, under which conditions, and what to know first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np

from interlock.view.page import NOTHING, Html, details, facts, join, paragraph, tag, tiles
from interlock.view.percentiles import percentiles
from interlock.view.plan_facts import mapping, timing
from interlock.view.recording import Recording
from interlock.view.report_words import number, seconds_text, summary
from interlock.view.stages import TOTAL, Miss, Stage
from interlock.view.timeline import Acted, Change, losses

MOST_DEPTH = 4  # of nested header facts


def head(recording: Recording) -> Html:
    """Title and identity of the run."""
    policy = str(recording.header.get("policy") or "Unnamed policy")
    robot = recording.header.get("robot")
    return join(
        [
            tag("h1", policy, f" on {robot}" if robot else ""),
            paragraph(
                f"Recorded {_when(recording.epoch_ns)} · {recording.seconds:.1f} s · {recording.path.name} · "
                f"interlock {recording.version}",
                css="sub",
            ),
            *_alerts(recording),
        ]
    )


def in_words(recording: Recording, missed: Sequence[Miss], limits: Sequence[Acted], changes: Sequence[Change]) -> Html:
    """The paragraph that a newcomer reads."""
    return paragraph(summary(recording, missed, limits, changes), css="summary")


def first_numbers(
    recording: Recording, stages: Sequence[Stage], missed: Sequence[Miss], changes: Sequence[Change]
) -> Html:
    """The five numbers that are looked at first."""
    ticks = recording.ticks
    lost = sum(miss.count for miss in missed)
    limited, refused = int((ticks.ruling == 1).sum()), int((ticks.ruling == 2).sum())
    stops = [change for change in changes if change.is_stop]
    unasked = losses(changes)
    slowest = max((change.rest_ns for change in stops if change.rest_ns is not None), default=None)
    if recording.is_manual:
        latency: tuple[str, object, str] = ("sensor to command", NOTHING, "not measured: manual clock")
    else:
        total = next((stage for stage in stages if stage.name == TOTAL), None)
        latency = _latency(total)
    return tiles(
        [
            (
                "ticks missed",
                NOTHING if recording.is_manual else number(lost),
                "a manual clock misses none"
                if recording.is_manual
                else f"{'!' if lost else ''}of {number(ticks.tick.size + lost)} planned",
            ),
            latency,
            ("commands limited", number(limited), "ticks in which the guard changed the command"),
            ("commands refused", number(refused), ("!" if refused else "") + "ticks in which the guard sent another"),
            (
                "stops",
                number(len(stops)),
                f"!{number(len(unasked))} that nobody asked for" if unasked else "that nobody asked for: 0",
            ),
            (
                "longest way to rest",
                NOTHING if slowest is None else seconds_text(slowest),
                "from the stop until every joint stands still",
            ),
        ]
    )


def conditions(recording: Recording) -> Html:
    """Clock, real-time grant, completeness, environment."""
    header = recording.header
    rows: list[tuple[str, object]] = [
        ("Clock", "manual (simulated time)" if recording.is_manual else "monotonic"),
        ("Real-time scheduling", _granted(recording)),
        ("Recording", "complete" if recording.complete else f"truncated: {recording.reason}"),
        ("Replayable", _replayable(recording)),
        ("Tick", _periods(recording)),
        ("Policy kind", "synchronous" if recording.is_synchronous else "asynchronous, chunked"),
    ]
    known = {"policy", "robot", "environment", "clock"}
    more = {name: value for name, value in header.items() if name not in known}
    identities = [
        (f"{name} identity", tag("code", str(value))) for name, value in mapping(recording.plan.get("identity")).items()
    ]
    computer = _flat({**mapping(header.get("environment")), **more})
    return join([facts(rows), details("Computer, versions, identities", facts([*computer, *identities]))])


def _alerts(recording: Recording) -> list[Html]:
    found = []
    if not recording.complete:
        found.append(
            "This recording is truncated: the program that wrote it ended before it could close the file. "
            "What it holds is shown."
        )
    if recording.summary is not None and not recording.summary.replayable:
        found.append("Parts of this run are missing from the recording, so it cannot be replayed bit for bit.")
    return [paragraph(text, css="alert") for text in found]


def _latency(total: Stage | None) -> tuple[str, object, str]:
    samples = np.zeros(0) if total is None else total.ns / 1e6
    for percent in percentiles(samples, (99.0, 50.0)):
        if percent.value is not None:
            return (f"sensor to command, p{percent.percent:g}", f"{percent.value:.2f} ms", "capture to command sent")
    return ("sensor to command", NOTHING, "too few ticks to say")


def _replayable(recording: Recording) -> str:
    if recording.summary is None:
        return "unknown: truncated"
    return "yes, bit for bit" if recording.summary.replayable else "no: something was dropped"


def _granted(recording: Recording) -> str:
    if recording.is_manual:
        return "does not apply"
    granted = mapping(recording.header.get("granted") or recording.header.get("realtime"))
    if not granted:
        return "not recorded"
    memory = "memory locked" if granted.get("memory_locked") else "memory not locked"
    return f"{granted.get('scheduler', 'unknown scheduler')} {granted.get('priority') or ''} · {memory}"


def _periods(recording: Recording) -> str:
    tick_ms = recording.tick_ns / 1e6
    policy, inference = (tick_ms * timing(recording, f"ticks_per_{each}") for each in ("period", "inference"))
    return f"{tick_ms:g} ms · policy {policy:g} ms · inference {inference:g} ms · chunk {timing(recording, 'chunk')}"


def _when(epoch_ns: int) -> str:
    try:
        return f"{datetime.fromtimestamp(epoch_ns / 1e9, tz=timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


def _flat(value: Mapping[str, Any], prefix: str = "", depth: int = 0) -> list[tuple[str, str]]:
    rows = []
    for name, each in value.items():
        title = f"{prefix}{name}".replace("_", " ")
        if isinstance(each, dict) and depth < MOST_DEPTH:
            rows += _flat(each, f"{title} · ", depth + 1)
        else:
            rows.append((title, "not known" if each is None else f"{each:g}" if isinstance(each, float) else str(each)))
    return rows
