"""What the page about watching says about lines, modules and metrics holds for the code."""

import re

from pages import blocks, coded, table, text_of

from interlock.serve import metrics_server as served
from interlock.view.log_lines import LEVELS, MODULES

TEXT = text_of("docs/watching.md")


def test_the_lines_of_the_page_have_the_shape_of_the_log():
    (block,) = blocks(TEXT, "log")
    for line in block.text.splitlines():
        match = re.fullmatch(r"\[(\d{19})\]\[(\w+)\]\[([A-Z]+)\] .+", line)
        assert match[2] in MODULES
        assert match[3].lower() in LEVELS


def test_every_module_stands_in_the_table():
    assert [coded(row[0])[0] for row in table(TEXT, "module")] == list(MODULES)


def test_every_metric_of_the_loop_stands_in_the_table():
    shown = {name for row in table(TEXT, "metric") for name in coded(row[0])}
    counters = {f"{name}_total" for name, _ in (*served.COUNTERS.values(), *served.TALLIES.values())}
    others = {name for name, _ in (*served.GAUGES.values(), *served.DURATIONS.values())}
    assert counters | others <= shown


def test_the_python_of_the_page_compiles():
    (snippet,) = blocks(TEXT, "python")
    compile(snippet.text, "watching.md", "exec")
