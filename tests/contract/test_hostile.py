"""Whatever stands in a file, the answer is an object or a refusal with code, hint and next command; never a traceback."""

import pytest
from documents import PAIRS, arm_contract, arm_robot, g1_contract, wrong
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from interlock.contract.bind import survey
from interlock.contract.codes import HINTS
from interlock.contract.edit import answer
from interlock.contract.text import draft_contract, draft_robot, load_contract, load_robot
from interlock.contract.yaml_text import load_data
from interlock.errors import InterlockError
from interlock.release.check import check_texts

many = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

DOCUMENTS = {f"{pair}-{index}": PAIRS[pair][index]() for pair in PAIRS for index in (0, 1)}

SNIPPETS = [
    "ask",
    "none",
    "null",
    "~",
    "",
    "[]",
    "{}",
    "[[]]",
    "{a: b}",
    "-1",
    "0",
    "1e308",
    "-1e308",
    "1e-320",
    "4096",
    "99999999",
    "9007199254740993",
    ".nan",
    ".inf",
    "-.inf",
    "1e999",
    "true",
    "'",
    '"',
    "&a",
    "*a",
    "!!python/none",
    "!x",
    "%",
    "@",
    "`",
    "? ",
    ": ",
    "- ",
    "\t",
    "\r",
    "\u0000",
    "\u202e",
    "\u2028",
    "\ufeff",
    "é",
    "😀",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "C:\\x",
    "~/x",
    "\\\\host\\x",
    "<<",
    "[1, 2",
    "}",
    "]",
    "|",
    ">",
    "#",
    "others",
    ".*",
    "(a+)+",
    "x" * 500,
    "deg",
    "percent",
]


def consume(text):
    """Everything a text may go through; only a refusal may come out instead."""
    for load in (draft_contract, draft_robot):
        draft = made_or_refused(load, text)
        for each in () if draft is None else (*draft.problems, *draft.unanswered()):
            assert each.code in HINTS
            assert each.where
    for tags in (True, False):
        made_or_refused(lambda given, tags=tags: load_data(given, python_tags_as_data=tags), text)


def made_or_refused(make, *given):
    try:
        return make(*given)
    except InterlockError as refusal:
        check_refusal(refusal)
        return None


def check_refusal(refusal):
    assert refusal.code in HINTS
    assert all(each.hint and each.where for each in refusal.problems)
    assert all(len(line) < 4000 for line in refusal.lines())


@many
@given(st.text(max_size=400))
def test_any_text(text):
    consume(text)


@many
@given(st.text("[]{},:-?&*!|>'\"%@`#ab1 \n\t\\.", max_size=120))
@example("[" * 4000)
@example("{" * 4000)
@example("? " * 2000)
@example("a: " * 500)
@example("!!map " * 50)
@example("'" + "\\" * 2000)
@example('"\\x"')
@example('"\\UFFFFFFFF"')
@example("--- ---")
@example("...")
@example(">\n\n\n  \n")
@example("|9\n a")
@example("a: |+\n\n")
@example("!<tag:yaml.org,2002:map> {}")
@example("!<>")
@example("&")
@example("%TAG ! tag:x,2000:\n--- !a b")
def test_any_text_of_yaml_signs(text):
    consume(text)


@many
@given(st.sampled_from(sorted(DOCUMENTS)), st.floats(0, 1))
def test_a_truncated_document(name, share):
    text = DOCUMENTS[name]
    consume(text[: int(len(text) * share)])


@many
@given(st.sampled_from(sorted(DOCUMENTS)), st.data())
def test_a_mutated_document(name, data):
    text = DOCUMENTS[name]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 12))
        text = text[:at] + data.draw(st.sampled_from(SNIPPETS) | st.text(max_size=3)) + text[at + length :]
    consume(text)


def leaves(text):
    draft = draft_contract(text) if "interlock.contract/1" in text else draft_robot(text)
    return [mark for path, mark in draft.tree.marks.items() if path]


LEAVES = {name: leaves(text) for name, text in DOCUMENTS.items()}


@many
@given(st.sampled_from(sorted(PAIRS)), st.data())
def test_any_value_replaced_by_any_other_binds_or_is_refused(pair, data):
    texts = [DOCUMENTS[f"{pair}-0"], DOCUMENTS[f"{pair}-1"]]
    for _ in range(data.draw(st.integers(1, 2))):
        index = data.draw(st.integers(0, 1))
        name = f"{pair}-{index}"
        if texts[index] is not DOCUMENTS[name]:
            continue
        mark = data.draw(st.sampled_from(LEAVES[name]))
        other = data.draw(st.sampled_from(LEAVES[name]))
        new = data.draw(
            st.sampled_from([*SNIPPETS, DOCUMENTS[name][other.start : other.end]])
            | st.floats(width=32).map(repr)
            | st.integers(-10, 10_000).map(str)
        )
        texts[index] = texts[index][: mark.start] + new + texts[index][mark.end :]
    report = made_or_refused(check_texts, *texts)
    if report is None:
        return
    for each in (*report.problems, *report.unanswered):
        assert each.code in HINTS
    assert report.fits != bool(report.problems or report.unanswered)
    assert report.lines()


@many
@given(st.sampled_from(sorted(PAIRS)), st.data())
def test_what_binds_is_a_plan_that_the_core_accepts(pair, data):
    core = pytest.importorskip("interlock._core", reason="the extension is not built")
    import json

    index = data.draw(st.integers(0, 1))
    name = f"{pair}-{index}"
    mark = data.draw(st.sampled_from([mark for mark in LEAVES[name] if mark.plain]))
    value = data.draw(
        st.floats(-1e6, 1e6).map(repr)
        | st.integers(-3, 5000).map(str)
        | st.floats(0, 2).map(lambda x: f"{x:.3g}")
        | st.sampled_from([DOCUMENTS[name][each.start : each.end] for each in LEAVES[name] if each.plain])
    )
    texts = [DOCUMENTS[f"{pair}-0"], DOCUMENTS[f"{pair}-1"]]
    texts[index] = texts[index][: mark.start] + value + texts[index][mark.end :]
    try:
        contract, robot = load_contract(texts[0]), load_robot(texts[1])
    except InterlockError:
        return
    binding = survey(contract, robot).binding
    if binding is not None:
        core.check_plan(json.dumps(binding.plan()))


@pytest.mark.parametrize(
    "path",
    ["../secrets", "/etc/passwd", "a/../../b", "~/x", "C:\\x", "..\\x", "a\\..\\b", "\\\\host\\share", "..", "x/.."],
)
def test_paths_stay_inside_the_folder(path):
    contract = wrong(g1_contract(), ("files: source/", f"files: '{path}'"))
    assert "path-outside" in [each.code for each in draft_contract(contract).problems]
    robot = wrong(arm_robot(), ("mjcf: scene.xml", f"mjcf: '{path}'"))
    assert "path-outside" in [each.code for each in draft_robot(robot).problems]
    language = wrong(arm_contract(), ("tokenizer: source/tokenizer.json", f"tokenizer: '{path}'"))
    assert "path-outside" in [each.code for each in draft_contract(language).problems]


@pytest.mark.parametrize(
    "name", ["unitree_g1_29dof ", "un\u0131tree", "unitre\u0435", "a/b", "../x", "-x", ".x", "x" * 65, "a b", "a\u0301"]
)
def test_names_that_look_like_others_are_refused(name):
    text = wrong(g1_contract(), ("name: g1-velocity  ", f"name: '{name}'  "))
    assert [each.code for each in draft_contract(text).problems] == ["wrong-value"]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "1",
        "text",
        "- a",
        "schema: interlock.robot/1",
        "schema: interlock.contract/2",
        "schema: [1]",
        "name: x",
        "schema: ~",
    ],
)
def test_a_document_of_another_kind_is_refused(text):
    draft = draft_contract(text)
    assert draft.model is None
    assert draft.problems[0].code in {"wrong-type", "schema-version", "missing-key"}


def test_numbers_of_every_size_are_refused_before_they_overflow():
    for value in ("1e300", "-1e300", "1e13"):
        text = wrong(g1_contract(), ("scale: 0.25", f"scale: {value}"))
        assert draft_contract(text).problems
    for value in ("1e-300", "0", "-20"):
        text = wrong(g1_contract(), ("control_period_ms: 20 ", f"control_period_ms: {value} "))
        with pytest.raises(InterlockError):
            survey_or_raise(text)


def survey_or_raise(text):
    found = survey(load_contract(text), load_robot(DOCUMENTS["g1-1"]))
    if found.problems:
        raise InterlockError(problems=list(found.problems))


@many
@given(
    st.recursive(
        st.text(max_size=20)
        | st.integers(-(2**53), 2**53)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.booleans(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=6,
    )
)
def test_an_answer_reads_back_as_the_value_it_was(value):
    text = wrong(arm_robot(), ('use: "sim:arm"', "use: ask"))
    answered = made_or_refused(lambda given: answer(given, {"driver.use": value}, by="Ada # 2026\nx: 1"), text)
    if answered is None:
        return
    found = draft_robot(answered).tree.data
    assert found["driver"]["use"] == value
    assert list(found) == list(draft_robot(text).tree.data)
