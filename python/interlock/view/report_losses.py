"""What was dropped on the way, and what the recorder itself did."""

from __future__ import annotations

from interlock.view.page import Column, Html, bullets, note, paragraph, section, table, tag
from interlock.view.recording import Recording
from interlock.view.report_words import HAPPENED, number, times

MOST_LOGS = 30


def losses(recording: Recording) -> Html:
    """Chunks not used, images lost, the writer's own numbers, warnings."""
    return section("dropped", "Dropped, and the recorder", _chunks(recording), _recorder(recording), _logs(recording))


def _chunks(recording: Recording) -> Html:
    refused: dict[tuple[str, str], int] = {}
    for chunk in recording.chunks:
        if chunk.status:
            key = (recording.code_word(chunk.status), "the worker")
        elif chunk.refused:
            key = (recording.code_word(chunk.refused), "the schedule")
        else:
            continue
        refused[key] = refused.get(key, 0) + 1
    arrived = len(recording.chunks)
    rows = [
        [tag("code", code), by, number(count), f"{count / arrived:.1%}", HAPPENED.get(code, "")]
        for (code, by), count in sorted(refused.items(), key=lambda each: -each[1])
    ]
    columns = [Column("code", number=False), Column("said by", number=False)]
    columns += [Column("chunks"), Column("of all"), Column("in words", number=False)]
    lost = sum(refused.values())
    said = f"{times(arrived, 'chunk')} arrived, {number(lost)} {'was' if lost == 1 else 'were'} not used."
    return Html(paragraph(said) + table(columns, rows))


def _recorder(recording: Recording) -> Html:
    summary = recording.summary
    if summary is None:
        return paragraph("The recorder's own numbers are missing: the recording is truncated.")
    seconds = max(recording.seconds, 1e-9)
    wall = "" if recording.is_manual else f" ({summary.writer_busy_ns / 1e9 / seconds:.1%} of the time)"
    busy = (
        f"The writer was busy for {summary.writer_busy_ns / 1e9:.2f} s{wall}, "
        f"longest write {summary.writer_longest_ns / 1e6:.1f} ms; the control thread never waits for it."
    )
    rows: list[list[object]] = [
        ["ticks recorded", number(summary.ticks), number(summary.ticks_dropped)],
        ["chunks recorded", number(summary.chunks), number(summary.chunks_dropped)],
        ["images recorded", number(summary.images), number(summary.images_dropped)],
    ]
    return Html(
        table([Column("what", number=False), Column("recorded"), Column("lost")], rows)
        + bullets(
            [
                f"{summary.bytes / 1e6:.1f} MB written, {summary.bytes / 1e6 / seconds * 60:.1f} MB a minute"
                + (" of simulated time." if recording.is_manual else "."),
                busy,
                *(["Disk space ran low: images ended before the run did."] if summary.images_ended else []),
            ]
        )
        + note("Ticks or chunks lost between control thread and writer make a recording unfit for replay.")
    )


def _logs(recording: Recording) -> Html:
    rows = [
        [f"{recording.second(each.at_ns):.3f}", each.level, each.module, each.text]
        for each in recording.logs
        if each.level in ("warning", "error")
    ]
    if not rows:
        return Html()
    columns = [Column("at", "s"), *[Column(name, number=False) for name in ("level", "module", "said")]]
    return table(columns, rows[:MOST_LOGS], caption=f"Warnings and errors ({number(len(rows))})")
