"""One word per concept, and no promise, wherever a user reads: pages and help."""

import re

import pytest
from pages import PAGES, ROOT

HELP = [
    ROOT / "python" / "interlock" / "cli" / f"{name}.py" for name in ("verbs", "main", "demo", "steps", "run", "go")
]
READ = [*PAGES, *HELP]
# Word that is not used -> the one that is.
SYNONYMS = {
    r"fixtures?": "sample",
    r"(?<!shape )profiles?": "rules, or shape profile",
    r"(?:camera|image|video) frames?": "image; a frame is a coordinate frame",
    r"(?:velocity|task) commands? (?:of|from|by) (?:the )?operator": "goal",
    r"commanded velocity of the base": "goal",
    r"controllers? policy": "policy",
    r"digital twin": "simulation",
    r"plugins?": "driver, reader",
    r"watchdogs?": "worker late, driver stuck: say which",
    r"inference (?:server|service)": "worker",
    r"action (?:queue|buffer)": "chunk, schedule",
    r"models? (?:file|checkpoint)": "checkpoint",
    r"golden pairs?": "golden sample",
    r"calibration profile": "calibration",
}
PROMISES = (
    r"fail-?safe", r"foolproof", r"bulletproof", r"guaranteed", r"certified", r"safety[- ]rated", r"production[- ]ready",
    r"state[- ]of[- ]the[- ]art", r"seamless(?:ly)?", r"blazing", r"world[- ]class", r"cutting[- ]edge", r"powerful", r"effortless(?:ly)?",
)  # fmt: skip
UNFINISHED = (r"TODO", r"FIXME", r"coming soon", r"lorem ipsum")


def found(patterns, text):
    return [match[0] for pattern in patterns for match in re.finditer(rf"\b(?:{pattern})\b", text, re.IGNORECASE)]


@pytest.mark.parametrize("path", READ, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_synonyms_no_promises_nothing_unfinished(path):
    text = path.read_text(encoding="utf-8")
    assert found(SYNONYMS, text) == []
    assert found(PROMISES, text) == []
    assert found(UNFINISHED, text) == []


def test_the_nouns_of_the_design_are_used():
    text = " ".join(path.read_text(encoding="utf-8").lower() for path in PAGES)
    for noun in (
        "policy",
        "robot",
        "contract",
        "goal",
        "sample",
        "ruling",
        "fallback",
        "driver",
        "recording",
        "evidence",
    ):
        assert re.search(rf"\b{noun}s?\b", text), noun


def test_a_synonym_is_noticed():
    assert found(SYNONYMS, "It makes fixtures for the shape profile and a Profile of the load.") == [
        "fixtures",
        "Profile",
    ]
    assert found(PROMISES, "a failsafe, production-ready") == ["failsafe", "production-ready"]
