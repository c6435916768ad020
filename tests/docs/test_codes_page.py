"""The page of codes is current, and every code of the core has words for people."""

import runpy

from pages import ROOT

from interlock import _core
from interlock.cli.show import CORE_CODES


def test_the_page_of_codes_is_current():
    made = runpy.run_path(str(ROOT / "docs" / "write_codes.py"))
    assert made["PAGE"].read_text(encoding="utf-8") == made["page"](), "run `python docs/write_codes.py`"


def test_every_code_of_the_core_is_explained():
    assert set(CORE_CODES) == set(_core.code_words().values())
