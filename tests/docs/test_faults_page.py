"""Every fault of the page is brought about by a test, every test of a fault stands on the page."""

import re

import pytest
from pages import ROOT, coded, tables, text_of
from test_safety_page import exists

TEXT = text_of("docs/faults.md")
ROWS = [row for rows in tables(TEXT) if rows[0][0] == "fault" for row in rows[1:]]
FOLDER = ROOT / "tests" / "faults"
NAMES = {
    f"tests/faults/{path.name}::{name}"
    for path in FOLDER.glob("test_*.py")
    for name in re.findall(r"^def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_every_fault_is_brought_about_by_a_test(row):
    assert len(row) == 5
    assert all(row)
    names = coded(row[4])
    assert names
    assert [name for name in names if not exists(name)] == []
    text = (ROOT / names[0].partition("::")[0]).read_text(encoding="utf-8")
    for fault in coded(row[0]):
        assert re.search(rf"\b{fault}\b", text), f"{fault} is brought about by no test of this file"


def test_every_test_of_a_fault_stands_on_the_page():
    shown = {name for row in ROWS for name in coded(row[4])}
    assert NAMES - shown == set()


def test_the_whole_vocabulary_is_there():
    first = " ".join(row[0] for row in ROWS)
    for word in ("off", "stuck", "garbage", "wrong", "slow", "delayed", "intermittent", "abort", "leak", "loop", "NaN"):
        assert word in first
