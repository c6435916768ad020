"""Links between pages lead somewhere."""

import re

import pytest
from pages import FENCE, LINK, PAGES, ROOT


def anchors(text):
    heads = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_of_the_repository_that_is_named_exists(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    places = "crates|python|tests|docs|examples|proto|schemas|benches|training"
    for path in re.findall(rf"`((?:{places})/[\w./-]+)(?:::\w+)?`", text):
        assert (ROOT / path).exists(), path
