"""One registry: every code that refuses is in it with a hint, and nothing is in it that never refuses."""

import re
from pathlib import Path

from documents import ROOT

from interlock.contract.codes import HINTS

SOURCES = {
    path: path.read_text(encoding="utf-8")
    for folder in ("contract", "adapters", "release")
    for path in sorted((ROOT / "python" / "interlock" / folder).rglob("*.py"))
    if path.name != "codes.py"
}


def test_every_code_has_a_hint():
    assert all(re.fullmatch(r"[a-z0-9-]+", code) for code in HINTS)
    assert all(hint and not hint.endswith(".") for hint in HINTS.values())


def test_every_code_is_used():
    text = "\n".join(SOURCES.values())
    assert [code for code in HINTS if f'"{code}"' not in text] == []


def test_every_code_that_refuses_is_registered():
    calls = re.compile(r'(?:problem|\.refuse|_refusal)\(\s*"([a-z0-9-]+)"')
    used = {code for path, text in SOURCES.items() if _is_ours(path) for code in calls.findall(text)}
    assert sorted(used - set(HINTS)) == []
    assert len(used) > 50


def _is_ours(path: Path) -> bool:
    return "contract" in path.parts
