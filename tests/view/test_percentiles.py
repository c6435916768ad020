"""A percentile is printed only where the samples support it."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from interlock.view.percentiles import SUPPORT, percentiles


def fewest(percent: float) -> int:
    """Smallest n for which at most one sample beyond the percentile has a chance of 1 % or less."""
    p = percent / 100
    return next(n for n in count(1) if p**n + n * (1 - p) * p ** (n - 1) <= 0.01)


@pytest.mark.parametrize("percent", sorted(SUPPORT))
def test_the_support_follows_from_its_rule(percent):
    assert SUPPORT[percent] == fewest(percent)


def test_the_support_is_the_one_of_the_design():
    assert [SUPPORT[each] for each in (90.0, 95.0, 99.0, 99.9)] == [64, 130, 662, 6636]


def test_one_sample_too_few_withholds_and_says_how_many_are_needed():
    (few,) = percentiles(np.arange(661.0), (99.0,))
    (enough,) = percentiles(np.arange(662.0), (99.0,))
    assert (few.value, few.text()) == (None, "needs 662")
    assert enough.value == pytest.approx(np.percentile(np.arange(662.0), 99))


def test_what_is_not_finite_does_not_count_as_a_sample():
    samples = np.concatenate([np.arange(63.0), [np.nan, np.inf, np.nan]])
    (found,) = percentiles(samples, (90.0,))
    assert found.value is None


def test_no_samples_support_nothing():
    assert [each.value for each in percentiles(np.zeros(0))] == [None] * 4
