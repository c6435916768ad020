"""Patterns match whole names; each joint has exactly one row and each row a joint."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.contract.rows import MAX_PATTERN, expand_rows

JOINTS = ("left_hip", "right_hip", "left_knee", "right_knee", "waist")


def expand(rows):
    problems = []
    return expand_rows(rows, JOINTS, lambda pattern: f"each {pattern}", problems), [each.code for each in problems]


def test_every_joint_gets_the_row_that_matches_its_whole_name():
    found, codes = expand({".*_hip": 1, "(left|right)_knee": 2, "waist": 3})
    assert codes == []
    assert found == {"left_hip": 1, "right_hip": 1, "left_knee": 2, "right_knee": 2, "waist": 3}


def test_others_is_the_only_default():
    found, codes = expand({".*_hip": 1, "others": 9})
    assert codes == []
    assert found["waist"] == 9


@pytest.mark.parametrize(
    ("rows", "codes"),
    [
        ({".*_hip": 1, ".*": 2}, ["joint-matched-twice"] * 2),
        ({".*_hip": 1, "others": 2, "wrist": 3}, ["pattern-unmatched"]),
        ({"hip": 1, "others": 2}, ["pattern-unmatched"]),
        ({".*": 1, "others": 2}, ["pattern-unmatched"]),
        ({".*_hip": 1}, ["joint-unmatched"] * 3),
        ({}, ["joint-unmatched"] * 5),
        ({"(": 1, "others": 2}, ["pattern-invalid"]),
        ({"(a+)+b": 1, "others": 2}, ["pattern-invalid"]),
        ({"(?=a).*": 1, "others": 2}, ["pattern-invalid"]),
        ({r"(a)\1": 1, "others": 2}, ["pattern-invalid"]),
        ({"a{1,9}": 1, "others": 2}, ["pattern-invalid"]),
        ({".*.*": 1, "others": 2}, ["pattern-unmatched"]),
        ({"x" * (MAX_PATTERN + 1): 1, "others": 2}, ["pattern-invalid"]),
        ({"left hip": 1, "others": 2}, ["pattern-invalid"]),
    ],
)
def test_rows_that_are_not_one_to_one_are_refused(rows, codes):
    assert expand(rows)[1] == codes


@settings(deadline=None)
@given(st.text("ab_.*+?()|[]-", max_size=40))
def test_no_pattern_takes_long(pattern):
    expand_rows({pattern: 1}, ("a" * 64, "ab" * 32), str, [])  # an exponential pattern would not come back


@settings(deadline=None)
@given(st.lists(st.sampled_from([*JOINTS, ".*_hip", ".*_knee", "(left|right)_hip", "others", ".*"]), unique=True))
def test_either_each_joint_has_one_row_or_something_is_said(patterns):
    found, codes = expand({pattern: index for index, pattern in enumerate(patterns)})
    assert (sorted(found) == sorted(JOINTS)) or codes
