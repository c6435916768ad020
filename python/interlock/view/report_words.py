"""The run in plain words, for somebody who has never seen one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from interlock.view.recording import Recording
from interlock.view.stages import Miss
from interlock.view.timeline import Acted, Change, losses

MOST_CAUSES = 3  # told in the summary; the list has them all

IN_CHARGE = ("Running", "Degraded")

# What happened, as a clause that stands after "At 31.2 s".
HAPPENED = {
    "old-sequence": "a newer answer was already in use",
    "retired-generation": "a chunk came from a worker that was no longer in charge",
    "not-finite": "the policy's answer was not a number",
    "dimension": "the policy's answer had the wrong size",
    "stale-state": "the joint measurements became too old",
    "stale-image": "the camera's image became too old",
    "skew": "the inputs were captured too far apart in time",
    "no-valid-action": "no action of the policy was valid any more",
    "worker-dead": "the worker process died",
    "worker-late": "the worker missed its deadline",
    "worker-error": "the worker reported an error",
    "driver-dead": "the driver process died",
    "driver-stuck": "no new joint measurement came",
    "goal-lost": "the operator's goal became too old",
    "operator-stop": "the operator asked to stop",
    "orderly-end": "the run was asked to end in order",
    "terminal-closed": "the terminal was closed",
    "frozen-image": "a camera's images stopped changing",
    "no-recording": "recording was no longer possible",
}


def clause(cause: str) -> str:
    """What happened, for a stable word; a limit that refused is named."""
    if cause in HAPPENED:
        return HAPPENED[cause]
    return f"the guard refused a command ({cause})" if cause else "the mode changed without a recorded cause"


def number(value: float, digits: int = 0) -> str:
    """With thousands separated."""
    return f"{value:,.{digits}f}"


def times(count: int, word: str) -> str:
    """`1 tick`, `2 ticks`."""
    return f"{number(count)} {word}{'' if count == 1 else 's'}"


def seconds_text(ns: float) -> str:
    """A duration with about three digits."""
    return f"{ns / 1e9:.2f} s" if abs(ns) >= 1e9 else f"{ns / 1e6:.0f} ms" if abs(ns) >= 1e7 else f"{ns / 1e6:.2g} ms"


def summary(recording: Recording, missed: Sequence[Miss], limits: Sequence[Acted], changes: Sequence[Change]) -> str:
    """One paragraph: what ran, whether it kept its times, what the guard did, what went wrong and how it ended."""
    return " ".join(
        [_ran(recording), _kept_time(recording, missed), _guarded(recording, limits), *_stopped(recording, changes)]
    )


def _ran(recording: Recording) -> str:
    ticks = recording.ticks
    charged = [mode for mode in np.unique(ticks.mode) if recording.mode_name(int(mode)) in IN_CHARGE]
    running = int(np.isin(ticks.mode, charged).sum())
    rate = 1e9 / recording.tick_ns if recording.tick_ns else 0.0
    clock = ", in simulated time" if recording.is_manual else ""
    if not running:
        return f"The policy was never in charge during these {recording.seconds:.1f} s{clock}."
    in_charge = running * recording.tick_ns / 1e9
    return (
        f"The policy was in charge for {in_charge:.1f} of {recording.seconds:.1f} s at {rate:g} ticks/s "
        f"({recording.joints_text}){clock}."
    )


def _kept_time(recording: Recording, missed: Sequence[Miss]) -> str:
    if recording.is_manual:
        return "A manual clock cannot miss a tick."
    lost = sum(miss.count for miss in missed)
    planned = recording.ticks.tick.size + lost
    return f"{number(lost)} of {times(planned, 'tick')} {'was' if lost == 1 else 'were'} missed."


def _guarded(recording: Recording, limits: Sequence[Acted]) -> str:
    limited = int((recording.ticks.ruling == 1).sum())
    refused = int((recording.ticks.ruling == 2).sum())
    if not limited and not refused:
        return "The guard let every command pass unchanged."
    codes = list(dict.fromkeys(each.code for each in limits if each.limited or each.refused))
    because = f" ({', '.join(codes[:4])}{', …' if len(codes) > 4 else ''})"
    refusals = f"refused it in {times(refused, 'tick')}" if refused else "refused none"
    return f"The guard limited the command in {times(limited, 'tick')} and {refusals}{because}."


def _stopped(recording: Recording, changes: Sequence[Change]) -> list[str]:
    stops = [change for change in changes if change.is_stop]
    unasked = losses(changes)
    asked = len(stops) - len(unasked)
    if not stops:
        return ["It was never stopped."]
    told = [f"The operator stopped it {_often(asked)}."] if asked and (unasked or asked > 1) else []
    causes = list(dict.fromkeys(change.cause for change in unasked))
    for cause in causes[:MOST_CAUSES]:
        first, *more = [change for change in unasked if change.cause == cause]
        again = f" This happened {_often(len(more))} more." if more else ""
        told.append(f"At {recording.second(first.at_ns):.1f} s {clause(cause)}; {rest_clause(first)}.{again}")
    if len(stops) == 1 and asked:
        told.append(f"At {recording.second(stops[0].at_ns):.1f} s {clause(stops[0].cause)}; {rest_clause(stops[0])}.")
    if len(causes) > MOST_CAUSES:
        told.append(f"Stops of {len(causes) - MOST_CAUSES} more causes are listed below.")
    return told


def rest_clause(stop: Change) -> str:
    """How the robot came to rest, as a clause."""
    if stop.rest_ns is None:
        until = "before it was moved again" if stop.is_cut_short else "while this was recorded"
        return f"the joints did not come to rest {until}"
    if stop.rest_ns == 0:
        return "the joints were at rest already"
    turned = np.degrees(stop.moved_rad)
    return (
        f"the joints came to rest in {seconds_text(stop.rest_ns)}, none having turned more than {turned:.1f}° meanwhile"
    )


def _often(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{number(count)} times")
