"""What a policy does wrong inside its own process: shown by a graph that does it, or by the kernel's own signal."""

from __future__ import annotations

import signal
from pathlib import Path

import faulty_policy as policy
import numpy as np
import pytest
import tiny_plan as tiny
import told

from interlock import _core
from interlock.errors import InterlockError
from interlock.serve.limits import read_back, worker_memory_bytes

MIB = 1 << 20
LIMIT_BYTES = 512 * MIB
SLOW_S = 0.3


def provoked(folder, made, fault, amount=0.0, **options):
    """A run in which the goal makes the policy do wrong; its status when it had come to rest, and its worker's pid."""
    with told.running(folder, made, **options) as run:
        pid = run.worker.process.pid
        run.set_velocity((fault, amount, 0.0))
        status = told.settle(run, "Holding")
        assert run.worker.process.pid == pid, "nobody put another worker in its place"
    return status


def safe(folder, made, known_ns=None) -> told.Told:
    """The claims that hold for every fault of a worker; `known_ns` as in `told`, None: the tick that heard of it."""
    tale = told.tell(folder, made)
    tale.is_intact()
    tale.is_inside_the_envelope()
    tale.brakes_and_holds()
    if known_ns is not None:
        tale.is_safe_in_time(known_ns(tale))
    return tale


@pytest.mark.parametrize("number", [signal.SIGABRT, signal.SIGSEGV], ids=lambda number: number.name)
def test_a_worker_that_aborts_is_lost(folder, number):
    made = policy.plan()
    with told.running(folder, made) as run:
        sent_ns, ended_ns = told.kill(run.worker, number)
        assert told.settle(run, "Holding")["cause"] == "worker-dead"
    safe(folder, made).is_safe_in_time(ended_ns, earliest_ns=sent_ns)


def test_a_graph_that_crashes_its_process_takes_nothing_else_with_it(folder):
    made = policy.plan()
    with told.running(folder, made) as run:
        run.set_velocity((policy.CRASH, 0.0, 0.0))
        assert told.settle(run, "Holding")["cause"] == "worker-dead"
        assert run.worker.process.wait() == -signal.SIGFPE
        assert run.driver.process.poll() is None
    safe(folder, made, told.Told.last_offer_ns)


@pytest.mark.parametrize("synchronous", [True, False], ids=["synchronous", "asynchronous"])
def test_a_graph_that_loops_for_ever_is_lost_when_its_time_is_up(folder, synchronous):
    made = policy.plan(synchronous=synchronous)
    status = provoked(folder, made, policy.LOOP)
    assert status["cause"] == "worker-late"
    assert status["worker_alive"]
    # A synchronous policy may still be acted on by its last action; an asynchronous one has its deadline.
    deadline = made["timing"]["inference_deadline_ns"]
    known = told.Told.last_action_end_ns if synchronous else lambda tale: tale.oldest_unanswered_ns() + deadline
    safe(folder, made, known)


@pytest.fixture(scope="module")
def rounds() -> float:
    """How many rounds of the slow loop take about `SLOW_S` here."""
    engine = _core.Engine(policy.graph(), tiny.library())
    probe = 20_000
    began = _core.monotonic_ns()
    engine.run({"obs": np.array([[0.0, 0.0, policy.SLOW, probe]], np.float32)})
    return probe * SLOW_S * 1e9 / (_core.monotonic_ns() - began)


def test_an_answer_after_its_deadline_changes_nothing(folder, rounds):
    made = policy.plan()
    with told.running(folder, made) as run:
        run.set_velocity((policy.SLOW, rounds, 0.0))
        assert told.settle(run, "Holding")["cause"] == "worker-late"
        run.wait(2 * SLOW_S)
        assert run.mode() == "Holding"
    tale = safe(folder, made, told.Told.last_action_end_ns)
    late = [each for each in tale.recording.chunks if each.tick > tale.ticks.tick[tale.first_safe]]
    assert late, "the answer came in the end"
    assert all(each.refused for each in late)


def test_an_answer_that_is_no_number_is_refused_in_the_tick_in_which_it_arrives(folder):
    made = policy.plan()
    assert provoked(folder, made, policy.NAN)["cause"] == "not-finite"
    tale = safe(folder, made)
    bad = [
        each for each in tale.recording.chunks if tale.recording.code_word(each.status or each.refused) == "not-finite"
    ]
    assert bad[0].tick == tale.ticks.tick[tale.first_safe]


def test_memory_beyond_the_limit_is_refused_to_the_worker_alone(folder):
    made = policy.plan()
    status = provoked(folder, made, policy.ALLOCATE, worker_memory_bytes=LIMIT_BYTES)
    assert status["cause"] == "worker-error", "the allocation failed at once instead of being waited for"
    tale = safe(folder, made, told.Told.last_offer_ns)
    assert tale.recording.header["processes"]["worker"]["memory_limit_bytes"] == LIMIT_BYTES


def test_a_worker_that_leaks_is_stopped_by_its_own_limit(folder):
    made = policy.plan()
    with told.running(folder, made, worker_memory_bytes=LIMIT_BYTES) as run:
        pid = run.worker.process.pid
        assert read_back(pid)["memory_limit_bytes"] == LIMIT_BYTES
        run.set_velocity((policy.LEAK, 0.0, 0.0))
        told.settle(run, "Holding")
        # It goes on to allocate until the kernel refuses; with that its inference has ended.
        ended = [run.wait(0.1) for _ in range(100) if not _has_given_up(run)]
        assert _has_given_up(run), f"still allocating after {len(ended) / 10} s"
        assert _status(pid, "VmData") <= LIMIT_BYTES
        assert run.mode() == "Holding"
    tale = safe(folder, made)
    assert tale.recording.code_word(int(tale.ticks.cause[tale.first_safe])) in ("worker-late", "worker-error")


def _has_given_up(run) -> bool:
    status = run.status()
    return not status["worker_alive"] or status["unanswered"] == 0


def _status(pid: int, key: str) -> int:
    """Bytes of a process that has not ended, 0 of one that has."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii") if Path(f"/proc/{pid}").exists() else ""
    found = [line.split()[1] for line in text.splitlines() if line.startswith(f"{key}:")]
    return int(found[0]) * 1024 if found else 0


def test_a_limit_in_which_the_policy_does_not_fit_is_refused_before_anything_is_armed(folder):
    with (
        pytest.raises(InterlockError) as refusal,
        told.running(folder, policy.plan(), worker_memory_bytes=32 * MIB),
    ):
        pytest.fail("it must not run")
    assert "--worker-memory" in refusal.value.problems[0].hint
    assert not (folder / "run.mcap").exists()


def test_a_worker_has_a_limit_where_nobody_names_one(folder):
    made = policy.plan()
    with told.running(folder, made) as run:
        bound = run.bound
        found = read_back(run.worker.process.pid)
        assert found["memory_limit_bytes"] == worker_memory_bytes(bound.plan, bound.graph)
        assert read_back(run.driver.process.pid)["memory_limit_bytes"] == -1
        needed = _status(run.worker.process.pid, "VmData")
        assert 0 < needed < found["memory_limit_bytes"] / 4, "room for what a run may still need"


def test_the_limit_grows_with_the_model():
    small, graph = tiny.plan(), bytes(10)
    seeing = tiny.seeing(tiny.plan())
    assert worker_memory_bytes(small, graph) < worker_memory_bytes(small, bytes(10 * MIB))
    assert worker_memory_bytes(small, graph) < worker_memory_bytes(seeing, graph)


def test_a_lost_policy_of_damped_springs_is_damped_to_the_end(folder):
    made = policy.damped_plan()
    with told.running(folder, made) as run:
        sent_ns, ended_ns = told.kill(run.worker, signal.SIGKILL)
        told.settle(run, "Holding")
    tale = told.tell(folder, made)
    tale.is_intact()
    tale.is_safe_in_time(ended_ns, earliest_ns=sent_ns)
    sent = np.flatnonzero(tale.ticks.sent)
    after = sent[sent >= tale.first_safe]
    assert len(after) > told.REST_TICKS
    assert (tale.ticks.kind[sent] == 1).all()
    assert (tale.ticks.kp[after] == 0.0).all(), "no stiffness"
    assert (tale.ticks.kd[after] == made["safe"]["policy_lost"]["kd"]).all(), "the declared damping"
