"""What a walker does when its policy is lost in mid-stride: what a fallback in software can do for it, and what not."""

from __future__ import annotations

import pytest

from interlock import _core
from interlock.cli.load import load_bound
from interlock.cli.wiring import make_plant
from interlock.runtime.lockstep import Episode, Moment, run_lockstep
from tests.conftest import interlock
from tests.policies.walkers import WALKERS, freeze_arguments, stage

pytestmark = pytest.mark.slow
LOST_S = 4.0
WATCHED_S = 10.0


@pytest.fixture(params=WALKERS, ids=lambda walker: walker.name)
def walker(request, shared_policies, tmp_path):
    pytest.importorskip("mujoco", reason="walking needs the extra `sim`")
    place = stage(request.param, shared_policies.resolve(), tmp_path)
    for step in (freeze_arguments(request.param, shared_policies.resolve()), ["build", "walker.policy"]):
        done = interlock(*step, cwd=place)
        assert done.returncode == 0, done.stderr
    return request.param, load_bound(place / "walker.policy", place / "robot.yaml")


def lose(walker, bound, *, worker: bool):
    """Loses the worker, or the goal, after four seconds of walking; how it stands six seconds later."""
    goal = tuple(float(part) for part in walker.goal.split(","))
    if not worker:
        bound.plan["goal"]["timeout_ns"] = int(LOST_S * 1e9)
    is_lost = []

    def watch(moment: Moment) -> str | None:
        if worker and not is_lost and moment.number * bound.tick_ns >= LOST_S * 1e9:
            is_lost.append(moment.mode)
            return "worker_dead"
        return None

    done = run_lockstep(bound, make_plant("sim:mujoco", bound), Episode(seconds=WATCHED_S, goal=goal), watch=watch)
    assert not worker or is_lost == ["Running"]
    return done


def test_told_to_stand_it_stands(walker):
    walker, bound = walker
    done = lose(walker, bound, worker=False)
    assert bound.plan["safe"]["goal_lost"]["do"] == "policy_zero_goal"
    assert not done.outcome.fallen
    assert abs(done.outcome.forward_mps) < 0.2


def test_damped_it_falls_within_its_limits(walker):
    walker, bound = walker
    assert bound.plan["safe"]["policy_lost"]["do"] == "damp"
    done = lose(walker, bound, worker=True)
    assert "Stopping" in done.modes
    assert done.outcome.fallen


def test_held_it_falls_and_that_cannot_be_declared(walker):
    walker, bound = walker
    bound.plan["safe"]["policy_lost"] = {"do": "stop_and_hold"}
    with pytest.raises(_core.CoreError, match="a floating base falls in a held pose"):
        _core.check_plan(bound.plan_json)
    bound.plan["safe"]["floating_base"] = False
    done = lose(walker, bound, worker=True)
    assert "Stopping" in done.modes
    assert done.outcome.fallen
