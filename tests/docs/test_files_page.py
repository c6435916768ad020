"""What the page about contract and robot shows is read by the program, and its tables are the program's."""

import re

import pytest
from pages import blocks, coded, table, text_of

from interlock.contract.bind import bind
from interlock.contract.bind_limits import MAY, NEEDED, OPTIONAL, REFUSE_BEYOND
from interlock.contract.model import Contract, Robot
from interlock.contract.policy_model import Choices
from interlock.contract.text import load_contract, load_robot

TEXT = text_of("docs/files.md")
LOAD = {"contract": load_contract, "robot": load_robot}
VARIANTS = [(name, block) for name in LOAD for block in blocks(TEXT, "yaml", name, "variant")]


def whole(name, instead=""):
    """The page's document, top-level blocks of `instead` in place of its own."""
    mine = [part for block in blocks(TEXT, "yaml", name) if "variant" not in block.words for part in parts(block.text)]
    theirs = parts(instead)
    keys = {key for key, _ in theirs}
    return "".join(text for key, text in mine if key not in keys) + "".join(text for _, text in theirs)


def parts(text):
    """(key, text) of every top-level block."""
    found = re.split(r"^(?=\w+:)", text, flags=re.MULTILINE)
    return [(part.partition(":")[0], part) for part in found if part.strip()]


def test_the_pair_of_the_page_loads_and_binds():
    binding = bind(load_contract(whole("contract")), load_robot(whole("robot")))
    assert {line.status for line in binding.enforced} == {"enforced", "not_applicable", "not_set"}


@pytest.mark.parametrize(("name", "block"), VARIANTS, ids=lambda each: getattr(each, "line", each))
def test_every_variant_loads(name, block):
    LOAD[name](whole(name, block.text))


def test_every_yaml_block_is_one_of_these():
    shown = blocks(TEXT, "yaml")
    assert all(block.words[1:2] in (("contract",), ("robot",)) for block in shown)
    assert len(VARIANTS) >= 8


def test_every_top_level_key_of_both_files_is_shown():
    for name, model in (("contract", Contract), ("robot", Robot)):
        shown = {key for block in blocks(TEXT, "yaml", name) for key, _ in parts(block.text)}
        keys = {field.alias or key for key, field in model.model_fields.items()}
        assert keys - shown <= {"limits_for_velocity", "limits_for_torque"}


def test_the_table_of_choices_has_them_all():
    named = {coded(row[0])[0].split(".")[0] for row in table(TEXT, "choice")}
    assert named == set(Choices.model_fields)


def test_the_table_of_limits_is_what_binding_demands():
    for kind, held, request, numbered, _ in table(TEXT, "kind", "always held"):
        assert tuple(coded(held)) == NEEDED[coded(kind)[0]]
        assert tuple(coded(request)) == MAY[coded(kind)[0]]
        assert tuple(coded(numbered)) == OPTIONAL[coded(kind)[0]]


def test_the_defaults_of_refuse_beyond_are_the_programs():
    said = re.search(r"without it 10 % of the range for `pos`,(.*?)as multiples", TEXT, re.DOTALL)
    assert said is not None
    shown = {word: float(number) for number, word in re.findall(r"([\d.]+)\s+for\s+`(\w+)`", said[1])}
    assert shown | {"pos": 0.1} == REFUSE_BEYOND
