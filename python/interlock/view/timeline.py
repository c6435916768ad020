"""What happened when: modes, time until rest, limits that acted, images that stood still. Columns in, facts out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from interlock.view.recording import Recording, Ticks

F64 = NDArray[np.float64]

REST_RAD_S = 0.05  # about 3 deg/s: what a person calls standing still, above the noise of measured velocities
REST_HELD_NS = 250_000_000  # so long it must stay below: a joint that turns round is not at rest
ASKED = ("operator-stop", "orderly-end", "terminal-closed")
MOST_LOOKS = 3
AT_REST = ("Stopping", "Holding", "Faulted")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Time spent in one mode, monotonic ns; the end is where the next begins."""

    mode: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Change:
    """One change of mode.

    Attributes:
        at_ns: When, monotonic.
        before: Mode before.
        after: Mode after.
        cause: Stable word of the code that led to it; empty for none.
        rest_ns: From the change until every joint stays below `REST_RAD_S`; None where it never did, or where
            nothing was brought to rest.
        moved_rad: Largest distance any joint moved until then; NaN where `rest_ns` is None.
        is_cut_short: It was moved again before it was at rest.
    """

    at_ns: int
    before: str
    after: str
    cause: str
    rest_ns: int | None = None
    moved_rad: float = float("nan")
    is_cut_short: bool = False

    @property
    def is_stop(self) -> bool:
        """Whether the robot had to be brought to rest here."""
        return self.after in AT_REST and self.before not in AT_REST


@dataclass(frozen=True, slots=True)
class Acted:
    """How often one code acted on one joint.

    Attributes:
        code: Its stable word.
        joint: Name of the first joint concerned; empty for none in particular.
        limited: Ticks in which the command was limited.
        refused: Ticks in which it was refused.
        noticed: Ticks in which it passed and the code was only noted.
        first_ns: First of these ticks.
        last_ns: Last of them.
    """

    code: str
    joint: str
    limited: int
    refused: int
    noticed: int
    first_ns: int
    last_ns: int


def stretches(recording: Recording) -> list[Stretch]:
    """Modes in their order, from the ticks themselves."""
    ticks = recording.ticks
    if not ticks.mode.size:
        return []
    starts = np.flatnonzero(np.diff(ticks.mode, prepend=-1))
    ends = [*ticks.due_ns[starts[1:]], ticks.due_ns[-1] + recording.tick_ns]
    return [
        Stretch(recording.mode_name(int(ticks.mode[start])), int(ticks.due_ns[start]), int(end))
        for start, end in zip(starts, ends, strict=True)
    ]


def changes(recording: Recording) -> list[Change]:
    """Every change of mode, with how long coming to rest took where the robot was stopped."""
    found = []
    for each in recording.modes:
        if each.before == each.after:  # the first message says in which mode the recording begins
            continue
        change = Change(each.at_ns, each.before, each.after, each.cause)
        found.append(_with_rest(change, recording) if change.is_stop else change)
    return found


def losses(found: Sequence[Change]) -> list[Change]:
    """The stops that nobody asked for."""
    return [change for change in found if change.is_stop and change.cause not in ASKED]


def closest_looks(found: Sequence[Change]) -> list[Change]:
    """The stops worth a close look: the first of each cause that nobody asked for, or else the first stop at all."""
    first: dict[str, Change] = {}
    for change in losses(found):
        first.setdefault(change.cause, change)
    stops = [change for change in found if change.is_stop]
    return list(first.values())[:MOST_LOOKS] or stops[:1]


def speeds(ticks: Ticks, rows: slice = slice(None)) -> F64:
    """Measured joint speeds; differences of positions where the robot gives none. Shape (ticks, n), rad/s."""
    measured, due_ns = ticks.vel[rows], ticks.due_ns[rows]
    if np.isfinite(measured).any() or due_ns.size < 2:
        return np.abs(measured)
    positions = np.where(np.isfinite(ticks.pos[rows]), ticks.pos[rows], np.nan)
    step_s = np.maximum(np.gradient(due_ns.astype(np.float64)), 1.0) / 1e9
    return np.abs(np.gradient(positions, axis=0) / step_s[:, None])


def acted(recording: Recording) -> list[Acted]:
    """Per code and joint how often it acted, most often first."""
    ticks = recording.ticks
    rows: dict[tuple[int, int], list[int]] = {}
    for index, (codes, joints) in enumerate(zip(ticks.codes, ticks.joints, strict=True)):
        for place, code in enumerate(codes):
            rows.setdefault((code, joints[place] if place < len(joints) else -1), []).append(index)
    found = []
    for (code, joint), where in rows.items():
        ruling = ticks.ruling[where]
        known = 0 <= joint < len(recording.joints)
        found.append(
            Acted(
                code=recording.code_word(code),
                joint=recording.joints[joint] if known else "",
                limited=int((ruling == 1).sum()),
                refused=int((ruling == 2).sum()),
                noticed=int((ruling == 0).sum()),
                first_ns=int(ticks.due_ns[where[0]]),
                last_ns=int(ticks.due_ns[where[-1]]),
            )
        )
    return sorted(found, key=lambda each: (-each.refused, -each.limited, -each.noticed))


def longest_still(digests: Sequence[bytes]) -> tuple[int, int] | None:
    """First and last index of the longest row of identical images; None where no two in a row are."""
    best, start = (0, 0), 0
    for index, digest in enumerate(digests):
        if digest != digests[start]:
            start = index
        if index - start > best[1] - best[0]:
            best = start, index
    return best if best[1] > best[0] else None


def _with_rest(change: Change, recording: Recording) -> Change:
    """Fills in when and after how much motion the robot was at rest.

    A safe behaviour may begin slowly, such as a move to a pose: rest comes after the last motion while stopping.
    """
    ticks = recording.ticks
    first = int(np.searchsorted(ticks.due_ns, change.at_ns))
    named, number = np.unique(ticks.mode[first:], return_inverse=True)
    modes = np.array([recording.mode_name(int(each)) for each in named], dtype=object)[number]
    # Up to where somebody moves it again or stops it anew.
    is_stopping = modes == "Stopping"
    is_over = ~np.isin(modes, AT_REST)
    is_over[1:] |= is_stopping[1:] & ~is_stopping[:-1]
    over = np.flatnonzero(is_over)
    count = int(over[0]) if over.size else modes.size
    if not count:
        return change
    rows = slice(first, first + count)
    times, fastest = ticks.due_ns[rows], speeds(ticks, rows).max(axis=1)
    is_fast = ~(fastest < REST_RAD_S)
    fast = np.flatnonzero(is_fast)
    moved_while_stopping = np.flatnonzero(is_fast & is_stopping[:count])
    earliest = int(moved_while_stopping[-1]) + 1 if moved_while_stopping.size else 0
    # From each quiet tick on: is the next fast one far enough away?
    quiet_from = np.concatenate([[0], fast + 1])
    quiet_until = np.concatenate([times[fast], [np.iinfo(np.int64).max]])
    for start, until in zip(quiet_from, quiet_until, strict=True):
        if earliest <= start < times.size and until - times[start] >= REST_HELD_NS:
            path = ticks.pos[first : first + int(start) + 1]
            moved = float(np.abs(path - path[0]).max())
            return replace(change, rest_ns=max(int(times[start]) - change.at_ns, 0), moved_rad=moved)
    return replace(change, is_cut_short=count < modes.size)
