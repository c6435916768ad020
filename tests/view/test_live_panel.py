"""The screen says what holds, in any width, and marks what is wrong."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

from interlock import _core
from interlock.view.live import DURATIONS, Duration, Look
from interlock.view.live_panel import panel
from interlock.view.percentiles import percentiles

NUMBERS = [
    "level",
    "executed",
    "missed",
    "accepted",
    "dropped",
    "late",
    "actions_left",
    "unanswered",
    "record_waiting",
    "record_chunks_waiting",
    "ruling",
    "limited",
    "refused",
    "worker_alive",
    "driver_alive",
]


def duration(name, samples_us):
    samples = np.asarray(samples_us, dtype=np.float64)
    found = percentiles(samples, (50.0, 95.0, 99.0, 99.9))
    return Duration(
        name=name, samples=samples.size, found=found, longest=float(samples.max()) if samples.size else None
    )


def look(**change):
    numbers = dict.fromkeys(NUMBERS, 0) | {"worker_alive": 1, "driver_alive": 1, "recording": None}
    numbers |= {name: {} for name in ("limited_by", "refused_by", "lost_by", "dropped_by")}
    numbers |= change.pop("numbers", {})
    facts = {"policy": "walk", "robot": "g1", "tick_ns": 2_000_000, "granted": {"scheduler": "other"}, "worker_pid": 7}
    told = {
        "at_ns": _core.monotonic_ns(),
        "state": "running",
        "numbers": numbers,
        "mode": "Running",
        "cause": "",
        "durations": [duration(name, np.full(700, 40.0)) for name in DURATIONS],
        "facts": facts | change.pop("facts", {}),
        "goal": {},
        "since_tick_ns": 0,
    }
    return Look(**told | change)


def drawn(shown, width=80, **options):
    colours = options.get("colours", False)
    console = Console(
        file=io.StringIO(), width=width, force_terminal=colours, color_system="standard" if colours else None
    )
    console.print(panel(shown, where="runs/one", rates=options.get("rates", {}), width=width))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 72, 80, 128, 160, 200])
def test_nothing_is_wider_than_the_terminal_and_numbers_are_whole(width):
    text = drawn(look(numbers={"executed": 123_456_789, "missed": 4_321}), width)
    assert all(len(line) <= width for line in text.splitlines())
    if width >= 60:
        assert "123,456,789" in text
        assert "4,321" in text
        assert "…" not in text


def test_it_fits_a_terminal_of_24_lines():
    acted = {f"code-{n}": n for n in range(9)}
    text = drawn(look(goal={"velocity": [0.5, 0, 0]}, numbers={"limited_by": acted}))
    assert len(text.splitlines()) <= 24
    assert "and 5 more" in text


def test_a_percentile_without_support_is_withheld():
    text = drawn(look(durations=[duration(name, np.arange(100.0)) for name in DURATIONS]))
    assert "n<130" in text
    assert "n<662" in text
    assert "49.5" in text


def test_what_is_wrong_is_said():
    dead = drawn(look(mode="Holding", cause="worker-dead", numbers={"worker_alive": 0}))
    assert "the worker process died (worker-dead)" in dead
    assert "NOT THERE" in dead
    assert "suspended or starved" in drawn(look(state="still", since_tick_ns=3_100_000_000), 120)
    assert "3.1 s" in drawn(look(state="still", since_tick_ns=3_100_000_000), 120)
    assert "REFUSES" in drawn(look(numbers={"ruling": 2}))
    assert "DRY, nothing is sent" in drawn(look(facts={"dry": True}))
    assert "ROBOT g1" in drawn(look())
    assert "SIMULATION g1" in drawn(look(facts={"simulated": True}))
    ended = dict.fromkeys(("bytes", "bytes_per_s", "images_ended"), 0)
    lost = {f"{name}_dropped": 3 for name in ("ticks", "chunks", "logs", "images")}
    assert "ENDED EARLY" in drawn(look(numbers={"recording": {**ended, **lost, "ended": 1}}))
    assert "dropped 3 ticks" in drawn(look(numbers={"recording": {**ended, **lost, "ended": 0}}))


def test_the_last_screen_of_a_dead_supervisor_claims_no_present():
    text = drawn(look(state="died"))
    assert "alive" not in text
    assert "the supervisor died" in text


def test_what_is_beyond_its_budget_stands_out():
    slow = [duration(name, np.full(700, 250_000.0)) for name in DURATIONS]
    beyond = drawn(look(durations=slow, facts={"latency_budget_ns": 200_000_000}), colours=True)
    within = drawn(look(durations=slow, facts={"latency_budget_ns": 300_000_000}), colours=True)
    assert beyond.count("\x1b[1;33m250,000") > within.count("\x1b[1;33m250,000")


def test_names_from_elsewhere_are_text_and_not_markup():
    text = drawn(look(facts={"policy": "[red]x[/red]", "robot": "[bold]"}, goal={"text": "[blink]"}))
    assert "[red]x[/red]" in text
    assert "[blink]" in text
