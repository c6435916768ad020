"""What a robot's driver does wrong: off, stuck, garbage, wrong, slow, delayed, intermittent, hanging, dead, suspended."""

from __future__ import annotations

import os
import signal

import faulty_policy as policy
import numpy as np
import pytest
import told

AGES = ("driver-stuck", "stale-state")
HEALTHY_TICKS = 40


def safe(folder, made) -> told.Told:
    """The claims that hold whatever a driver does."""
    tale = told.tell(folder, made)
    tale.is_intact()
    tale.is_inside_the_envelope()
    return tale


def befallen(folder, fault, *wanted):
    """A run whose robot gets a fault; status when it had come to rest, plan, and when the fault began."""
    made = policy.plan()
    with told.running(folder, made) as run:
        driver, worker = run.driver.process.pid, run.worker.process.pid
        at_ns = told.switch(run, fault)
        status = told.settle(run, *wanted)
        assert (run.driver.process.pid, run.worker.process.pid) == (driver, worker)
        assert not told.is_ended(worker), "it is not the worker's fault"
    return status, made, at_ns


# What is known by the age of the last measurement: silence, old stamps, hanging. True: measurements with true stamps may
# still come after the fault began, too rarely or once.
SILENT = {
    "off": True, "hang_write": True, "too_slow": True, "bursts": True, "stuck_stamps": False, "short": False,
    "delayed": False, "hang_read": False, "hang_with_gil": False,
}  # fmt: skip


@pytest.mark.parametrize("fault", SILENT)
def test_what_brings_no_new_measurement_is_noticed_by_its_age(folder, fault):
    status, made, at_ns = befallen(folder, fault, "Holding")
    assert status["cause"] in AGES
    tale = safe(folder, made)
    last_ns = tale.last_sample_ns() if SILENT[fault] else tale.last_sample_ns(before_ns=at_ns)
    tale.is_safe_in_time(last_ns + made["timing"]["max_age_state_ns"])
    tale.brakes_and_holds()
    if fault == "short":
        assert tale.ticks.captured_ns.max() == last_ns, "what was cut off stands nowhere as measured"


def test_a_suspended_driver_is_noticed_by_the_age_of_its_last_measurement(folder):
    made = policy.plan()
    with told.running(folder, made) as run:
        os.kill(run.driver.process.pid, signal.SIGSTOP)
        try:
            assert told.settle(run, "Holding")["cause"] in AGES
        finally:
            os.kill(run.driver.process.pid, signal.SIGCONT)
        run.wait(0.2)
        assert run.mode() == "Holding", "that it is back changes nothing"
    tale = safe(folder, made)
    tale.is_safe_in_time(tale.last_sample_ns() + made["timing"]["max_age_state_ns"])
    tale.brakes_and_holds()


def test_a_robot_that_is_heard_again_is_not_driven_again(folder):
    made = policy.plan()
    with told.running(folder, made) as run:
        told.switch(run, "delayed")
        told.settle(run, "Holding")
        told.switch(run, "none")
        run.wait(0.3)
        assert run.mode() == "Holding"
    safe(folder, made).brakes_and_holds()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV], ids=lambda number: number.name)
def test_after_a_dead_driver_nothing_is_sent(folder, number):
    made = policy.plan()
    with told.running(folder, made) as run:
        sent_ns, ended_ns = told.kill(run.driver, number)
        assert told.settle(run, "Faulted")["cause"] == "driver-dead"
    tale = safe(folder, made)
    tale.is_safe_in_time(ended_ns, earliest_ns=sent_ns)
    tale.nothing_was_sent_after(tale.first_safe)


# What is known by the value: no number, or one that no robot can have.
GARBAGE = {"nan": "not-finite", "infinite": "not-finite", "huge": "position", "jump": "position"}


@pytest.mark.parametrize("fault", [*GARBAGE, "bytes"])
def test_what_is_no_measurement_is_refused_in_the_tick_that_reads_it(folder, fault):
    status, made, at_ns = befallen(folder, fault, "Holding")
    assert fault == "bytes" or status["cause"] == GARBAGE[fault]
    tale = safe(folder, made)
    tale.brakes_and_holds()
    first_bad_ns = int(tale.ticks.due_ns[np.flatnonzero(tale.ticks.captured_ns > at_ns)[0]])
    tale.is_safe_in_time(first_bad_ns)


@pytest.mark.parametrize("fault", ["offset", "swapped", "stuck_values"])
def test_what_is_wrong_is_noticed_where_the_robot_declares_a_distance(folder, fault):
    made = policy.watched_plan()
    with told.running(folder, made) as run:
        at_ns = told.switch(run, fault)
        assert told.settle(run, "Holding")["cause"] == "distance"
    tale = safe(folder, made)
    tale.brakes_and_holds()
    ticks = tale.ticks
    apart = np.abs(ticks.wanted - ticks.pos).max(axis=1)
    known = np.flatnonzero((ticks.due_ns > at_ns) & (apart > policy.REFUSED_DISTANCE_RAD))
    tale.is_safe_in_time(int(ticks.due_ns[known[0]]))
    if fault == "stuck_values":
        led = np.abs(ticks.target - ticks.pos).max(axis=1)[: tale.first_safe]
        assert led.max() <= policy.DISTANCE_RAD * told.SLACK, "it was not led away meanwhile"


# What nobody can know by the value alone: values that a healthy robot might have measured. What goes out stays inside the limits all the
# same, in every tick, and the policy goes on.
PLAUSIBLE = ["offset", "swapped", "stuck_values", "slow", "intermittent"]


@pytest.mark.parametrize("fault", PLAUSIBLE)
def test_what_looks_healthy_is_bounded_by_the_limits(folder, fault):
    made = policy.plan()
    with told.running(folder, made) as run:
        at_ns = told.switch(run, fault)
        run.wait(HEALTHY_TICKS * policy.TICK_NS / 1e9)
        assert run.mode() == "Running", run.status()
    tale = safe(folder, made)
    during = (tale.ticks.due_ns > at_ns) & (tale.ticks.mode == told.MODES["Running"])
    assert during.sum() >= HEALTHY_TICKS / 2
    ages = (tale.ticks.due_ns - tale.ticks.captured_ns)[during]
    assert (ages <= made["timing"]["max_age_state_ns"]).all(), "nothing older than admitted was acted on"
    if fault == "offset":
        limited = tale.ticks.ruling[during] == 1
        assert limited.any(), "the leap that the measurement makes is limited, not followed"
