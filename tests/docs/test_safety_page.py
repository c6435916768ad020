"""Every hazard of the page names tests, and every test that it names exists."""

import re

import pytest
from pages import ROOT, coded, tables, text_of

TEXT = text_of("SAFETY.md")
ROWS = [row for rows in tables(TEXT) if rows[0][0] == "hazard" for row in rows[1:]]
NAMED = re.compile(r"[\w./-]+\.(py|rs)::\w+")


def exists(name):
    path, _, test = name.partition("::")
    file = ROOT / path
    if not file.is_file():
        return False
    text = file.read_text(encoding="utf-8")
    if test == "compile_fail":
        return "```compile_fail" in text
    if path.endswith(".py"):
        return re.search(rf"^def {test}\(", text, re.MULTILINE) is not None
    is_test = re.search(rf"#\[test\]\s+(?:#\[[^\]]*\]\s+)*fn {test}\(", text)
    return is_test is not None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_hazard_has_a_test_that_exists(row):
    assert len(row) == 3
    names = coded(row[2])
    assert names
    assert [name for name in names if not NAMED.fullmatch(name) or not exists(name)] == []


def test_the_page_has_hazards_and_limits():
    assert len(ROWS) > 30
    for word in ("## What is not claimed", "ISO 13849", "IEC 61508", "ISO 14119", "emergency stop", "## Not yet shown"):
        assert word in TEXT


def test_a_name_that_is_not_there_is_noticed():
    assert not exists("tests/serve/test_signals.py::test_nothing")
    assert not exists("tests/nothing.py::test_nothing")
    assert not exists("crates/interlock-core/src/mode.rs::next"), "a function is no test"
