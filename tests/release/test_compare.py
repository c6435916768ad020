"""The comparison of two sets of actions: pure numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from interlock.release.compare import Budget, compare, drift, effect, flips

NAMES = ("a", "b", "c")
FINITE = st.floats(-10, 10)
ACTIONS = arrays.arrays(np.float64, (5, 2, 3), elements=FINITE)


def test_what_is_equal_passes():
    reference = np.ones((4, 2, 3))
    assert compare(reference, reference.copy(), Budget(), NAMES).passes


@settings(max_examples=200, deadline=None)
@given(ACTIONS, ACTIONS)
def test_passing_means_that_every_element_is_inside_the_budget(reference, other):
    budget = Budget(atol=1e-3, rtol=1e-2)
    candidate = reference + 1e-3 * other
    inside = bool((np.abs(candidate - reference) <= 1e-3 + 1e-2 * np.abs(reference)).all())
    assert compare(reference, candidate, budget, NAMES).passes is inside


@settings(max_examples=100, deadline=None)
@given(ACTIONS, st.integers(0, 4), st.integers(0, 1), st.integers(0, 2), st.sampled_from([np.nan, np.inf, -np.inf]))
def test_what_is_not_a_number_never_passes(reference, t, row, joint, value):
    broken = reference.copy()
    broken[t, row, joint] = value
    for one, other in ((reference, broken), (broken, reference), (broken, broken)):
        found = compare(one, other, Budget(atol=1e6), NAMES)
        assert not found.passes
        assert found.dimensions[NAMES[joint]]["not_finite"] == 1
        assert found.worst == NAMES[joint]


def test_a_large_relative_error_does_not_excuse_a_large_absolute_one():
    """Both terms together bound the difference; neither alone is an excuse for the other."""
    reference, candidate = np.full((1, 1, 3), 1e-6), np.full((1, 1, 3), 2e-6)
    assert compare(reference, candidate, Budget(atol=1e-5, rtol=0), NAMES).passes
    assert not compare(reference, candidate, Budget(atol=0, rtol=1e-2), NAMES).passes


@pytest.mark.parametrize("shape", [(3, 2, 3), (4, 1, 3), (4, 2, 2), (0, 2, 3)])
def test_another_shape_never_passes(shape):
    assert not compare(np.zeros((4, 2, 3)), np.zeros(shape), Budget(), NAMES).passes


def test_nothing_compared_never_passes():
    assert not compare(np.zeros((0, 2, 3)), np.zeros((0, 2, 3)), Budget(), NAMES).passes


def test_a_small_joint_is_not_hidden_by_a_large_one():
    reference = np.array([[[1000.0, 0.0, 0.0]]])
    candidate = np.array([[[1000.0, 0.0, 0.01]]])
    found = compare(reference, candidate, Budget(), NAMES)
    assert (found.passes, found.worst) == (False, "c")


def test_a_percentile_is_withheld_below_the_samples_that_support_it():
    few, many = np.zeros((661, 1, 3)), np.zeros((662, 1, 3))
    assert compare(few, few, Budget(), NAMES).dimensions["a"]["p99"] is None
    assert compare(many, many, Budget(), NAMES).dimensions["a"]["p99"] == 0


def test_permuted_dimensions_are_named():
    reference = np.random.default_rng(0).normal(size=(20, 1, 3))
    found = compare(reference, reference[..., [2, 1, 0]], Budget(), NAMES)
    assert found.permuted == (("a", "c"), ("c", "a"))


def test_the_needed_tolerance_is_the_one_that_just_passes():
    draw = np.random.default_rng(1)
    reference = draw.normal(size=(30, 2, 3))
    candidate = reference + draw.normal(scale=1e-3, size=reference.shape)
    needed = max(each["needed_atol"] for each in compare(reference, candidate, Budget(), NAMES).dimensions.values())
    assert compare(reference, candidate, Budget(atol=needed * 1.0001), NAMES).passes
    assert not compare(reference, candidate, Budget(atol=needed * 0.999), NAMES).passes


def test_a_decision_on_the_other_side_of_a_limit_is_a_flip():
    reference, candidate = np.full((1, 1, 3), 0.499), np.full((1, 1, 3), 0.499)
    candidate[0, 0, 1] = 0.501
    found = flips(reference, candidate, Budget(), [(0.5,)] * 3, NAMES)
    assert found["flipped"] == {"b": 1}


def test_drift_grows_over_the_quarters_of_a_rollout():
    reference = np.zeros((200, 1, 3))
    candidate = reference + np.linspace(0, 1, 200)[:, None, None]
    quarters = drift(reference, candidate)
    assert quarters == sorted(quarters)
    assert quarters[3] == 1.0


def test_the_effect_of_a_missing_action_is_infinite():
    reference = np.zeros((2, 1, 3))
    broken = reference.copy()
    broken[0, 0, 2] = np.nan
    assert effect(reference, broken).tolist() == [0, 0, np.inf]
