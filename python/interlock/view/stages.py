"""How long each stage took, from sensor capture to command, and why ticks were missed. Columns in, numbers out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from interlock.view.recording import Recording, Ticks

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage took.

    Attributes:
        name: From what to what.
        ns: Nanoseconds, NaN where it did not happen. Shape (n,).
        is_sum: A total of other stages.
    """

    name: str
    ns: F64
    is_sum: bool = False


@dataclass(frozen=True, slots=True)
class Miss:
    """Ticks that were not executed, at one place.

    Attributes:
        at_ns: Release of the last tick before them, monotonic.
        count: How many.
        cause: What is known about why; never a guess.
        took_ns: How long the cause lasted; NaN where it is unknown.
    """

    at_ns: int
    count: int
    cause: str
    took_ns: float


TOTAL = "sensor capture to command"
ANSWERED = "observation offered to chunk there"
REACTION = "sensor capture to first command of its chunk"

UNKNOWN = "cause unknown"
WOKE_LATE = "the operating system woke the control thread late"
WAITED = "the tick before waited for the worker's answer"
WORKED = "the tick before took too long for its own work"


def happened(column: I64) -> F64:
    """Times as float64 (exact below 2^53 ns, 104 days of uptime); NaN where the recording says "did not happen"."""
    return np.where(column > 0, column, np.nan).astype(np.float64)


def lateness(ticks: Ticks) -> F64:
    """Wake-up minus release of each tick, ns."""
    return happened(ticks.woke_ns) - happened(ticks.due_ns)


def waited(recording: Recording) -> F64:
    """How long each tick waited for the answer to its own observation, ns; 0 where it did not.

    Only a synchronous policy is waited for; the chunks of others are taken as they come. Where no answer came, all of
    the tick between observation and ruling counts as waiting.
    """
    ticks = recording.ticks
    if not recording.is_synchronous:
        return np.zeros(ticks.tick.size)
    arrived, observed = happened(ticks.chunk_arrived_ns), happened(ticks.observed_ns)
    acted = happened(ticks.acted_ns)
    is_answered = (arrived > observed) & (arrived <= acted)
    in_vain = np.where(ticks.offered & np.isfinite(acted - observed), acted - observed, 0.0)
    return np.where(is_answered, arrived - observed, in_vain)


def tick_stages(recording: Recording) -> list[Stage]:
    """The stages of every tick, in their order, on the control thread."""
    ticks = recording.ticks
    woke, observed = happened(ticks.woke_ns), happened(ticks.observed_ns)
    acted, sent, captured = happened(ticks.acted_ns), happened(ticks.sent_ns), happened(ticks.captured_ns)
    wait = waited(recording)
    pushed = record_push(ticks)
    stages = [
        Stage("lateness: release to wake-up", lateness(ticks)),
        Stage("sensor capture to observed", observed - captured),
        Stage("observe: wake-up to aligned sample", observed - woke),
    ]
    if np.any(wait > 0):
        stages.append(Stage("waiting for the worker's answer", np.where(wait > 0, wait, np.nan)))
    stages += [
        Stage("schedule, modes, guard, fallback", acted - observed - wait),
        Stage("send", sent - acted),
        Stage("record", pushed),
        Stage("control thread's own work", sent - woke - wait + np.nan_to_num(pushed), is_sum=True),
        Stage(TOTAL, sent - captured, is_sum=True),
    ]
    return stages


def record_push(ticks: Ticks) -> F64:
    """What recording each tick took, ns; a tick's message tells it of the tick before."""
    told = ticks.record_ns.astype(np.float64)
    pushed = np.full(told.size, np.nan)
    follows = np.diff(ticks.tick) == 1
    pushed[:-1][follows] = told[1:][follows]
    return pushed


def inference_stages(recording: Recording) -> list[Stage]:
    """The stages of every chunk, from the observation it answers to the first command made of it."""
    ticks, chunks = recording.ticks, recording.chunks
    if not chunks:
        return []
    columns = {
        name: happened(np.array([getattr(chunk, name) for chunk in chunks], dtype=np.int64))
        for name in ("received_ns", "preprocessed_ns", "inferred_ns", "decoded_ns", "arrived_ns")
    }
    received, ready = columns["received_ns"], columns["preprocessed_ns"]
    inferred, decoded, arrived = columns["inferred_ns"], columns["decoded_ns"], columns["arrived_ns"]
    sequence = np.array([chunk.seq for chunk in chunks], dtype=np.int64)
    offered = _looked_up(sequence, ticks.observation_seq, _offer_time(recording), ticks.offered)
    captured = _looked_up(sequence, ticks.observation_seq, happened(ticks.captured_ns), ticks.offered)
    first = _looked_up(sequence, ticks.chunk_seq, happened(ticks.sent_ns), ticks.sent & (ticks.chunk_seq > 0))
    return [
        Stage("hand-off: offered to received by the worker", received - offered),
        Stage("preprocess", ready - received),
        Stage("inference", inferred - ready),
        Stage("decode", decoded - inferred),
        Stage("hand-off: decoded to seen by the control thread", arrived - decoded),
        Stage("arrival to first command made of it", np.where(first >= arrived, first - arrived, np.nan)),
        Stage(ANSWERED, arrived - offered, is_sum=True),
        Stage(REACTION, np.where(first >= arrived, first - captured, np.nan), is_sum=True),
    ]


def action_ages(recording: Recording) -> list[Stage]:
    """How old what an action was based on was when its command went out: the observation, and each camera's image."""
    ticks = recording.ticks
    made = {chunk.seq: chunk.at_ns for chunk in recording.chunks}
    used = ticks.sent & np.isfinite(ticks.wanted).all(axis=1) & (ticks.chunk_seq > 0)
    at = np.array([made.get(int(seq), 0) for seq in ticks.chunk_seq], dtype=np.int64)
    based = np.where(used, happened(at), np.nan)
    sent = happened(ticks.sent_ns)
    stages = [Stage("observation behind the action to command", sent - based, is_sum=True)]
    for camera, images in recording.images.items():
        captured = np.array(sorted(image.captured_ns for image in images), dtype=np.float64)
        if not captured.size:
            continue
        newest = np.searchsorted(captured, np.nan_to_num(based, nan=-1.0), side="right") - 1
        taken = np.where(newest >= 0, captured[np.maximum(newest, 0)], np.nan)
        age = np.where(np.isfinite(based), sent - taken, np.nan)
        stages.append(Stage(f"image of {camera} behind the action to command", age, is_sum=True))
    return [stage for stage in stages if np.isfinite(stage.ns).any()]


def misses(recording: Recording) -> list[Miss]:
    """Where ticks are missing and what the stage times around them say about it."""
    ticks, period = recording.ticks, recording.tick_ns
    late, wait, pushed = lateness(ticks), waited(recording), np.nan_to_num(record_push(ticks))
    woke = happened(ticks.woke_ns)
    ended = np.nanmax(np.stack([woke, happened(ticks.acted_ns), happened(ticks.sent_ns)]), axis=0) + pushed
    found = []
    for index in np.flatnonzero(np.diff(ticks.tick) > 1):
        count, is_certain = _missing(recording, int(index))
        if not count:
            continue
        # The first release that was missed, and everything between the release before and the next wake-up.
        release = float(ticks.due_ns[index] + period)
        shares = [(woke[index + 1] - max(ended[index], release), WOKE_LATE)]
        if ended[index] > release:
            work = ended[index] - woke[index] - wait[index]
            shares += [(late[index], WOKE_LATE), (wait[index], WAITED), (work, WORKED)]
        took, cause = max(shares, key=lambda share: np.nan_to_num(share[0], nan=-1.0))
        if not is_certain or not woke[index + 1] - release >= period:
            took, cause = float("nan"), UNKNOWN
        found.append(Miss(int(ticks.due_ns[index]), count, cause, float(took)))
    return found


def _missing(recording: Recording, index: int) -> tuple[int, bool]:
    """How many ticks were missed behind a tick, and whether all that are not in the recording were.

    A tick that the recorder dropped is absent as well; then the count of missed ticks tells them apart.
    """
    ticks, summary = recording.ticks, recording.summary
    gap = int(ticks.tick[index + 1] - ticks.tick[index]) - 1
    if summary is None or summary.ticks_dropped == 0:
        return gap, True
    told = int(ticks.missed[min(index + 2, ticks.tick.size - 1)] - ticks.missed[index])
    return min(gap, max(told, 0)), told >= gap


def _offer_time(recording: Recording) -> F64:
    """When each tick's observation was handed over: at once for a synchronous policy, after sending otherwise."""
    ticks = recording.ticks
    return happened(ticks.observed_ns if recording.is_synchronous else ticks.sent_ns)


def _looked_up(wanted: I64, keys: I64, values: F64, usable: NDArray[np.bool_]) -> F64:
    """The first usable value of each wanted key, NaN where there is none."""
    known, first = np.unique(keys[usable], return_index=True)
    if not known.size:
        return np.full(wanted.size, np.nan)
    place = np.minimum(np.searchsorted(known, wanted), known.size - 1)
    return np.where(known[place] == wanted, values[usable][first][place], np.nan)
