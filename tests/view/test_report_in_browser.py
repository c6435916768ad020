"""The page in a real browser: fits a phone and a desk, and the browser has nothing to complain about."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest
from made import Script, made

from interlock.cli.report import report

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = (420, 1040)
# Runs in a copy of the page without its policy and tells the page around it how wide things are.
RULER = """<script>
const root = document.documentElement;
const wide = [...document.querySelectorAll("main *")].filter(each => !each.closest(".wide") && !each.closest("svg") &&
  each.getBoundingClientRect().right > root.clientWidth + 1);
parent.postMessage({
  width: innerWidth, scroll: root.scrollWidth, client: root.clientWidth, wide: wide.map(each => each.outerHTML.slice(0, 80)),
  broken: [...document.images].filter(each => !each.naturalWidth).length,
}, "*");
</script>"""
# A browser's window has a smallest width; a frame inside it has none.
AROUND = """<main></main><iframe src="as-it-is.html"></iframe><script>
const told = [];
onmessage = message => { told.push(message.data); document.body.setAttribute("data-measured", JSON.stringify(told)); };
for (const width of %s) document.body.insertAdjacentHTML("beforeend", `<iframe src="%s" width="${width}" height="900"></iframe>`);
</script>"""


@pytest.fixture(scope="module")
def browser():
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium here to look at the page with")
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    made(folder / "run.mcap", Script(late=[(1.0, 12.0)], freeze_s=3.0, task="reach " + "a-very-long-word" * 12))
    made(folder / "episode-000.mcap", Script(seconds=0.5))
    report(folder, None, as_json=False)
    return folder / "report.html"


@pytest.fixture(scope="module")
def seen(browser, page, tmp_path_factory):
    """The browser's document and what it complained about: the page as it is, and measured at each width."""
    folder = tmp_path_factory.mktemp("seen")
    without_policy = re.sub(r"<meta http-equiv[^>]*>", "", page.read_text())
    (folder / "measured.html").write_text(without_policy.replace("</body>", RULER + "</body>"))
    shutil.copy(page, folder / "as-it-is.html")
    around = folder / "around.html"
    around.write_text(AROUND % (list(WIDTHS), "measured.html"))
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--window-size=1600,1200",
            f"--user-data-dir={folder / 'profile'}",
            "--virtual-time-budget=5000",
            "--dump-dom",
            around.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "<main>" not in done.stdout:
        pytest.skip(f"the browser does not run here: {done.stderr[-200:]}")
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_the_browser_has_nothing_to_complain_about(seen):
    _, complaints = seen
    assert complaints == []


def test_the_page_never_scrolls_sideways_and_shows_every_picture(seen):
    document, _ = seen
    told = json.loads(html.unescape(re.search(r'data-measured="([^"]*)"', document)[1]))
    assert sorted(each["width"] for each in told) == list(WIDTHS)
    for measured in told:
        assert measured["wide"] == []
        assert measured["scroll"] <= measured["client"]
        assert measured["broken"] == 0
