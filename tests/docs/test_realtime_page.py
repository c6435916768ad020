"""The page about real time names everything that is read back, and what to do about everything that may be refused."""

from pages import coded, table, text_of

from interlock import _core
from interlock.cli.run import PRIORITY
from interlock.serve.limits import HINTS

TEXT = text_of("docs/realtime.md")


def test_every_fact_that_is_recorded_stands_on_the_page():
    named = set(coded(TEXT))
    assert set(_core.try_realtime(0)) - named == set()
    assert "processes" in named


def test_everything_that_may_be_refused_comes_with_what_to_do():
    told = {word for row in table(TEXT, "missing", "what to do") for word in coded(row[0])}
    assert {"affinity", "memory", "scheduler"} <= told
    assert {"affinity", "memory", "scheduler", "timer-slack"} == set(HINTS)


def test_the_priorities_of_the_page_are_those_that_are_asked():
    assert f"`SCHED_FIFO` {PRIORITY} for the control thread" in TEXT
    assert f"`SCHED_FIFO` {PRIORITY - 5} for the driver, {PRIORITY - 10} for the worker" in TEXT
    assert f"rtprio {PRIORITY}" in TEXT
