"""The demo's policy does its task, through the very loop that runs it, with the guard on."""

from __future__ import annotations

import pytest

from interlock.cli.load import load_bound
from interlock.cli.wiring import make_plant
from interlock.runtime.lockstep import Episode, run_lockstep
from interlock.view.wilson import wilson

UNSEEN_SEED = 1_000_000
TASKS = ("reach the red block", "reach the green block", "reach the blue block")


def reached(arm_policy, count: int) -> dict[str, list[bool]]:
    bound = load_bound(arm_policy, arm_policy.parent / "robot.yaml")
    plant = make_plant("sim:arm", bound)
    results: dict[str, list[bool]] = {task: [] for task in TASKS}
    for number in range(count):
        task = TASKS[number % len(TASKS)]
        done = run_lockstep(
            bound, plant, Episode(seconds=6.0, seed=UNSEEN_SEED + number, task=task, record_images="none")
        )
        assert done.refused == 0
        results[task].append(bool(done.outcome.success))
    return results


def test_each_colour_is_reached_behind_the_guard(arm_policy):
    results = reached(arm_policy, 6)
    assert all(all(each) for each in results.values()), results


@pytest.mark.slow
def test_at_least_nine_of_ten_unseen_episodes_and_eight_of_ten_of_each_colour(arm_policy):
    results = reached(arm_policy, 200)
    everything = [each for task in TASKS for each in results[task]]
    low, _ = wilson(sum(everything), len(everything))
    assert sum(everything) >= 0.9 * len(everything)
    assert low >= 0.85
    for task in TASKS:
        assert sum(results[task]) >= 0.8 * len(results[task]), task
