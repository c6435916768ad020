"""Latency per stage, lateness, and missed ticks with their cause."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from interlock.view.charts import Line, bar_chart, line_chart
from interlock.view.page import NOTHING, Column, Html, grid, join, note, paragraph, section, table, tag
from interlock.view.percentiles import percentiles
from interlock.view.plan_facts import timing
from interlock.view.recording import Recording
from interlock.view.report_words import number, times
from interlock.view.stages import (
    ANSWERED,
    REACTION,
    TOTAL,
    Miss,
    Stage,
    action_ages,
    inference_stages,
    lateness,
    tick_stages,
)

F64 = NDArray[np.float64]

MOST_MISSES = 25  # listed one by one; the table by cause has them all
US, MS = 1e3, 1e6  # nanoseconds
FAST_MS = 2  # inferences below it are shown in microseconds


def latency(recording: Recording, missed: Sequence[Miss]) -> Html:
    """How long everything took, or that nothing of it was measured."""
    if recording.is_manual:
        latency_ms = timing(recording, "manual_latency_ns") / MS
        return section(
            "latency",
            "Latency",
            paragraph("Not measured: manual clock. Every stage takes no time there, and every tick is on time."),
            note(f"An asynchronous inference took the declared {latency_ms:g} ms.")
            if not recording.is_synchronous
            else Html(),
        )
    return join([_measured(recording), _missed(recording, missed)])


def _measured(recording: Recording) -> Html:
    ticks = recording.ticks
    stages = tick_stages(recording)
    total = next(stage for stage in stages if stage.name == TOTAL)
    budget_ns = timing(recording, "latency_budget_ns")
    late = lateness(ticks)
    inference = [*inference_stages(recording), *action_ages(recording)]
    shown = "Two questions: how long from a sensor reading to the command that answers it, and where that time goes."
    return section(
        "latency",
        "Latency",
        paragraph(shown),
        stage_table(stages, US, "µs", "Every tick, on the control thread", 1),
        _inference_table(inference),
        note(
            "A percentile is printed only where there are samples enough to support it; “needs 6636” says how many. "
            "Rows in bold are totals. The age of an action counts from what it is based on to its command: a chunk is "
            "executed for a while, so its last action is older than its first."
        ),
        grid(
            [
                bar_chart("Sensor capture to command", "ms", total.ns / MS),
                bar_chart("Lateness: release to wake-up", "µs", late / US),
                _reaction_picture(inference, budget_ns),
            ]
        ),
        line_chart(
            "Lateness over time",
            "µs",
            [Line("", recording.seconds_of(ticks.due_ns), late / US)],
            span=recording.span,
            height=110,
        ),
    )


def _inference_table(stages: Sequence[Stage]) -> Html:
    if not stages:
        return Html()
    answered = next((stage.ns for stage in stages if stage.name == ANSWERED), np.zeros(0))
    is_fast = bool(np.nanmedian(answered) < FAST_MS * MS) if np.isfinite(answered).any() else False
    unit_ns, unit, digits = (US, "µs", 1) if is_fast else (MS, "ms", 2)
    return stage_table(stages, unit_ns, unit, "Every inference, in the worker process", digits)


def _reaction_picture(stages: Sequence[Stage], budget_ns: int) -> Html:
    """From what a sensor saw to the first command that knows of it, with the contract's budget beside it."""
    reaction = next((stage for stage in stages if stage.name == REACTION), None)
    if reaction is None:
        return Html()
    limit = budget_ns / MS if budget_ns else None
    return bar_chart(
        "Sensor capture to first command of its chunk", "ms", reaction.ns / MS, counted="chunks", limit=limit
    )


def stage_table(stages: Sequence[Stage], unit_ns: float, unit: str, caption: str, digits: int) -> Html:
    """Percentiles per stage; numbers only where the samples support them."""
    columns = [Column("stage", number=False)]
    columns += [Column(name, unit) for name in ("p50", "p95", "p99", "p99.9", "max")]
    columns += [Column("n")]
    rows: list[list[object]] = []
    for stage in stages:
        samples = stage.ns[np.isfinite(stage.ns)] / unit_ns
        name = tag("b", stage.name) if stage.is_sum else stage.name
        if not samples.size:
            rows.append([name, *[NOTHING] * 5, "0"])
            continue
        cells = [each.text(digits) for each in percentiles(samples)]
        rows.append([name, *cells, f"{samples.max():,.{digits}f}", number(samples.size)])
    return table(columns, rows, caption=caption)


def _missed(recording: Recording, missed: Sequence[Miss]) -> Html:
    lost = sum(miss.count for miss in missed)
    if not missed:
        return section("missed", "Missed ticks", paragraph("None. Every planned tick was executed."))
    causes = dict.fromkeys(miss.cause for miss in missed)
    totals: list[list[object]] = []
    for cause in causes:
        of_it = [miss for miss in missed if miss.cause == cause]
        took = np.array([miss.took_ns for miss in of_it]) / MS
        longest = f"{np.nanmax(took):.2f}" if np.isfinite(took).any() else NOTHING
        totals.append([cause, number(sum(miss.count for miss in of_it)), number(len(of_it)), longest])
    totals.sort(key=lambda row: -int(str(row[1]).replace(",", "")))
    listed: list[list[object]] = [
        [
            f"{recording.second(miss.at_ns):.3f}",
            number(miss.count),
            miss.cause,
            NOTHING if np.isnan(miss.took_ns) else f"{miss.took_ns / MS:.2f}",
        ]
        for miss in missed[:MOST_MISSES]
    ]
    return section(
        "missed",
        "Missed ticks",
        paragraph(f"{times(lost, 'tick')} not executed, at {times(len(missed), 'place')}."),
        table([Column("cause", number=False), Column("ticks"), Column("places"), Column("longest", "ms")], totals)
        if len(missed) > 3
        else Html(),
        table(
            [Column("after", "s"), Column("ticks"), Column("cause", number=False), Column("took", "ms")],
            listed,
            caption="Where" + (f" (the first {MOST_MISSES} of {len(missed)})" if len(missed) > MOST_MISSES else ""),
        ),
        note(
            "The cause is the largest part of the time between the release before and the next wake-up, where all "
            "stage times around it are recorded; otherwise it is unknown."
        ),
    )
