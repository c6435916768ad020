"""Modes, words, keys and exit codes on the page are those of the program."""

import mode_table
from pages import coded, table, text_of

from interlock import _core
from interlock.errors import Exit
from interlock.serve.operator import KEY_STEPS, KEYS, MARKS, REQUESTS, parse

TEXT = text_of("docs/operating.md")
KEY_NAMES = {"space": " ", "Enter": "\n"}


def test_the_table_of_modes_is_the_cores():
    assert set(mode_table.modes()) == set(_core.mode_names().values())
    assert len(mode_table.steps()) == len(mode_table.modes()) * len(mode_table.EVENTS)
    assert table(TEXT, "event", "Idle") == mode_table.grid(), "run `python tests/docs/mode_table.py`"
    assert [row[0] for row in table(TEXT, "mode")] == mode_table.modes()


def test_every_word_is_listed_and_understood():
    words = [word for row in table(TEXT, "word", "key") for word in coded(row[0])]
    assert {word.split()[0] for word in words} == {*REQUESTS, *MARKS, "task", "goal"}
    for word in words:
        assert parse(word.replace("TEXT", "reach").replace("VX VY WZ", "1 0 0")).word == word.split()[0]


def test_every_key_stands_beside_its_word():
    for said, keys, _ in table(TEXT, "word", "key"):
        words = [word.split()[0] for word in coded(said)]
        shown = [KEY_NAMES.get(key, key) for key in keys.replace(",", " ").split()]
        if words == ["goal"]:
            assert shown == list(KEY_STEPS)
        else:
            assert [KEYS[key] for key in shown] == words[: len(shown)]
    mine = {key for row in table(TEXT, "word", "key") for key in row[1].replace(",", " ").split()}
    assert {KEY_NAMES.get(key, key) for key in mine} | {"\r", "\x03"} == {*KEYS, *KEY_STEPS}


def test_exit_codes_are_the_programs():
    assert [int(row[0]) for row in table(TEXT, "code", "meaning")] == [int(code) for code in Exit]
