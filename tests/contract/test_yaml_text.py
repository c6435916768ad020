"""Text of ours is plain, small and unambiguous; text of others is data and nothing else."""

import pytest

from interlock.contract.yaml_text import MAX_CHARACTERS, MAX_DEPTH, load_data, parse, python_tags
from interlock.errors import InterlockError


def code_of(text):
    with pytest.raises(InterlockError) as refusal:
        parse(text, "x.yaml")
    return refusal.value.code


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("no", "no"),
        ("off", "off"),
        ("0o17", 15),
        ("0x1F", 31),
        ("010", 10),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-11-30", "2026-11-30"),
        ("true", True),
        ("~", None),
        ("'1'", "1"),
        (".5", 0.5),
        ("-3.", -3.0),
        ("9f31c2", "9f31c2"),
        ("wxyz", "wxyz"),
    ],
)
def test_scalars_follow_yaml_1_2(text, value):
    found = parse(f"a: {text}", "x.yaml").data["a"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "yaml-empty"),
        ("# only a comment\n", "yaml-empty"),
        ("a: [1, 2", "yaml-syntax"),
        ("a: 'unfinished", "yaml-syntax"),
        ("a: 1\nb: 2\na: 3\n", "yaml-duplicate-key"),
        ("a: {b: 1, b: 1}\n", "yaml-duplicate-key"),
        ("a: &x 1\n", "yaml-anchor"),
        ("a: 1\nb: *x\n", "yaml-anchor"),
        ("a: !!python/object/apply:os.system [ls]\n", "yaml-tag"),
        ("!!set {a, b}\n", "yaml-tag"),
        ("a: !!str 1\n", "yaml-tag"),
        ("%YAML 1.1\n---\na: 1\n", "yaml-directive"),
        ("a: 1\n---\nb: 2\n", "yaml-documents"),
        ("? [1, 2]\n: 3\n", "yaml-key"),
        ("a: .nan\n", "yaml-number"),
        ("a: -.inf\n", "yaml-number"),
        ("a: 1e999\n", "yaml-number"),
        ("a: 9007199254740993\n", "yaml-number"),
        ("a: " + "9" * 5000, "yaml-number"),
        ("[" * 500, "yaml-too-deep"),
        ("- " * (MAX_DEPTH + 2) + "1", "yaml-too-deep"),
        ("a: \u202etxt\n", "yaml-text"),
        ("jo\u200bint: 1\n", "yaml-text"),
        ("a: \x00\n", "yaml-text"),
        ("\ufeffa: 1\n", "yaml-text"),
        ("a: \ud800\n", "yaml-text"),
        ("a" * (MAX_CHARACTERS + 1), "yaml-too-large"),
        ("[" + "1," * 120_000 + "1]", "yaml-too-large"),
    ],
)
def test_hostile_or_broken_text_is_refused(text, code):
    assert code_of(text) == code


def test_an_anchor_bomb_is_refused_before_it_grows():
    bomb = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    assert code_of(bomb) == "yaml-anchor"


def test_a_refusal_names_file_and_line():
    with pytest.raises(InterlockError) as refusal:
        parse("a: 1\n\nb: [\n  1,\n  &x 2]\n", "contract.yaml")
    assert refusal.value.problems[0].where == "contract.yaml:5"


def test_positions_point_at_the_value():
    tree = parse("a:\n  b: [10, {c: ask}]\n", "x.yaml")
    mark = tree.marks["a", "b", 1, "c"]
    assert tree.text[mark.start : mark.end] == "ask"
    assert tree.where(("a", "b", 1, "c")) == "x.yaml:2 a.b[1].c"


def test_python_tags_are_read_as_data_and_named():
    text = "ids: !!python/object/apply:builtins.slice [null, null, null]\npair: !!python/tuple\n- 1\n- .inf\n"
    assert load_data(text, python_tags_as_data=True) == {"ids": [None, None, None], "pair": [1, float("inf")]}
    assert [tag for _, tag in python_tags(text)] == ["object/apply:builtins.slice", "tuple"]


def test_python_tags_are_refused_unless_asked_for():
    with pytest.raises(InterlockError) as refusal:
        load_data("a: !!python/tuple [1]\n")
    assert refusal.value.code == "yaml-tag"


def test_other_tags_are_refused_even_as_data():
    with pytest.raises(InterlockError) as refusal:
        load_data("a: !ruby/object:Gem {}\n", python_tags_as_data=True)
    assert refusal.value.code == "yaml-tag"


def test_nothing_is_executed(tmp_path):
    canary = tmp_path / "canary"
    text = f"a: !!python/object/apply:os.mkdir ['{canary}']\nb: !!python/name:os.system ''\n"
    load_data(text, python_tags_as_data=True)
    assert not canary.exists()
