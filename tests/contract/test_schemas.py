"""The published JSON Schemas are those of the models, and say of a document what its loader says."""

import json

import pytest
from documents import PAIRS, ROOT, wrong

from interlock.contract.schemas import FILES, published_schema
from interlock.contract.yaml_text import parse

jsonschema = pytest.importorskip("jsonschema")


@pytest.mark.parametrize("file", FILES)
def test_the_published_schema_is_current(file):
    published = json.loads((ROOT / "schemas" / file).read_text(encoding="utf-8"))
    assert published == published_schema(file), "run `python schemas/write.py`"


def validator(file):
    schema = published_schema(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("pair", PAIRS)
def test_every_example_is_valid(pair):
    for file, text in zip(FILES, PAIRS[pair], strict=True):
        assert list(validator(file).iter_errors(parse(text(), file).data)) == []


def test_an_unknown_fact_is_valid_for_an_editor():
    text = (ROOT / "examples" / "g1" / "robot.yaml").read_text(encoding="utf-8")
    assert "ask" in text
    assert list(validator("robot.schema.json").iter_errors(parse(text, "robot.yaml").data)) == []


@pytest.mark.parametrize(
    ("pair", "index", "old", "new"),
    [
        ("g1", 0, "  chunk: 1\n", ""),
        ("g1", 0, "chunk: 1\n", "chunk: one\n"),
        ("g1", 0, "unit: {default: rad", "unit: {default: radian"),
        ("g1", 0, "at_reset: repeat_first", "at_reset: repeat"),
        ("g1", 1, "base: floating", "base: flying"),
        ("g1", 1, "drives_then: damp", "drives_then: nothing"),
        ("arm", 1, "rate_hz: 20", "rate_hz: -20"),
        ("arm", 0, "padding_side: right", "padding: right"),
    ],
)
def test_what_the_loader_refuses_the_schema_marks(pair, index, old, new):
    text = wrong(PAIRS[pair][index](), (old, new))
    assert list(validator(list(FILES)[index]).iter_errors(parse(text, "x").data))
