"""All stages on a manual clock: the same every time, accounting exact, faults answered in the same tick."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_plan as tiny

from interlock import _core

MODES = {name: number for number, name in _core.mode_names().items()}
CODES = {word: number for number, word in _core.code_words().items()}
START_NS = 1_000_000_000


class Arm:
    """Drives that follow perfectly: what was commanded is measured a tick later."""

    def __init__(self, made, graph: bytes, **options) -> None:
        self.core = _core.Lockstep(tiny.text(made), graph, tiny.library(), **options)
        self.pos = np.zeros(tiny.JOINTS)
        self.tick = 0
        self.targets: list[np.ndarray] = []
        self.done: _core.Tick | None = None

    def step(self, ticks: int = 1, request: str | None = None) -> _core.Tick:
        """Asks, then lets ticks pass."""
        if request is not None:
            self.core.request(request)
        for _ in range(ticks):
            now = START_NS + self.tick * tiny.TICK_NS
            self.done = self.core.step(now, tiny.state(tuple(self.pos)), now)
            self.tick += 1
            if self.done.sent:
                self.pos = self.done.command[0].copy()
                self.targets.append(self.pos)
        return self.done

    def run(self) -> None:
        """Until the policy commands."""
        assert self.step(request="arm").mode == MODES["Armed"]
        assert self.step(request="start").mode == MODES["Running"]


PLANS = [(tiny.plan(), tiny.graph()), (tiny.asynchronous_plan(), tiny.graph(8))]


@pytest.mark.parametrize(("made", "graph"), PLANS, ids=["synchronous", "asynchronous"])
def test_two_runs_send_the_same_bits(made, graph) -> None:
    sent = []
    for _ in range(2):
        arm = Arm(made, graph)
        arm.run()
        arm.step(40)
        arm.step(20, request="stop")
        sent.append(np.stack(arm.targets).tobytes())
    assert sent[0] == sent[1]
    assert len(set(np.frombuffer(sent[0]))) > 20, "it moved"


@pytest.mark.parametrize(("made", "graph"), PLANS, ids=["synchronous", "asynchronous"])
def test_every_tick_is_accounted_for(made, graph) -> None:
    arm = Arm(made, graph)
    arm.run()
    arm.step(98)
    status = arm.core.status()
    assert (status["planned"], status["executed"], status["missed"]) == (100, 100, 0)
    assert status["sent"] == 100
    assert status["offered"] == -(-98 // made["timing"]["ticks_per_inference"])
    assert status["chunks"] == status["accepted"]
    assert status["dropped"] == 0


def test_nothing_is_sent_before_arming_and_nothing_starts_by_itself() -> None:
    arm = Arm(tiny.plan(), tiny.graph())
    assert not arm.step(10).sent
    assert arm.step(10, request="arm").mode == MODES["Armed"]
    np.testing.assert_array_equal(arm.pos, [0.0, 0.0])
    assert arm.core.status()["offered"] == 0


def test_a_request_that_the_mode_does_not_allow_is_counted() -> None:
    arm = Arm(tiny.plan(), tiny.graph())
    arm.step(request="recover")
    status = arm.core.status()
    assert (status["requests"], status["requests_refused"]) == (1, 1)
    assert status["request_code"] == CODES["wrong-mode"]


def test_an_asynchronous_chunk_arrives_after_its_declared_latency() -> None:
    arm = Arm(tiny.asynchronous_plan(), tiny.graph(8))
    arm.run()
    offered = arm.step()
    assert offered.offered
    assert arm.core.status()["chunks"] == 0
    arm.step()
    assert arm.core.status()["chunks"] == 0
    arm.step()
    assert arm.core.status()["chunks"] == 1


def test_a_dead_worker_is_answered_in_the_same_tick_and_recovery_is_explicit() -> None:
    arm = Arm(tiny.plan(), tiny.graph(step=(0.01, 0.01)))
    arm.run()
    arm.step(50)
    lost = arm.step(request="worker_dead")
    assert lost.mode in (MODES["Stopping"], MODES["Holding"])
    assert lost.sent
    arm.step(200)
    assert arm.done.mode == MODES["Holding"]
    held = arm.pos.copy()
    arm.step(50)
    np.testing.assert_allclose(arm.pos, held)
    assert arm.step(request="start").mode == MODES["Holding"], "start is not recover"


def test_nan_from_the_policy_never_reaches_the_drives() -> None:
    arm = Arm(tiny.plan(), tiny.graph(nan=True))
    arm.run()
    arm.step(20)
    assert arm.done.mode == MODES["Holding"]
    assert np.isfinite(np.stack(arm.targets)).all()
    assert arm.core.status()["lost_by"] == {} or "not-finite" in arm.core.status()["lost_by"]


def test_the_guard_limits_and_without_it_nothing_is_limited_but_nan_still_stops() -> None:
    fast = tiny.graph(step=(0.3, 0.3))
    limited, free = Arm(tiny.plan(), fast), Arm(tiny.plan(), fast, guard=False)
    for arm in (limited, free):
        arm.run()
        arm.step(4)
    assert limited.core.status()["limited"] > 0
    assert free.core.status()["limited"] == 0
    assert free.pos[0] > limited.pos[0]
    blind = Arm(tiny.plan(), tiny.graph(nan=True), guard=False)
    blind.run()
    assert blind.step(20).mode == MODES["Holding"]


def test_a_recording_is_complete_and_says_so(tmp_path) -> None:
    path = tmp_path / "run.mcap"
    arm = Arm(tiny.plan(), tiny.graph(), recording=str(path), header_json='{"who": "test"}')
    arm.run()
    arm.step(300)
    arm.core.close()
    recording = arm.core.status()["recording"]
    assert recording["ticks"] == 302
    assert recording["replayable"]
    assert path.stat().st_size == recording["bytes"]


def test_a_recording_that_exists_is_not_overwritten(tmp_path) -> None:
    path = tmp_path / "run.mcap"
    path.write_bytes(b"precious")
    with pytest.raises(_core.CoreError) as refusal:
        Arm(tiny.plan(), tiny.graph(), recording=str(path))
    assert refusal.value.code == "no-recording"
    assert path.read_bytes() == b"precious"


def test_time_that_does_not_increase_and_wrong_samples_are_refused() -> None:
    arm = Arm(tiny.plan(), tiny.graph())
    arm.step()
    for now, sample in ((START_NS, tiny.state((0.0, 0.0))), (START_NS + 10**9, np.zeros(3))):
        with pytest.raises(_core.CoreError) as refusal:
            arm.core.step(now, sample, now)
        assert refusal.value.code == "dimension"


def test_an_unknown_request_is_refused_with_the_words_that_exist() -> None:
    with pytest.raises(_core.CoreError, match="recover"):
        Arm(tiny.plan(), tiny.graph()).core.request("go")
