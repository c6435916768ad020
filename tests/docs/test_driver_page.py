"""The page about drivers shows the example that the conformance suite runs, and the methods that a driver has."""

from pages import blocks, coded, table, text_of

from interlock.contract.text import load_robot
from interlock.ports.driver import Driver

TEXT = text_of("docs/driver.md")


def test_the_page_shows_the_example_that_is_tested():
    assert blocks(TEXT, "python")[0].text == text_of("examples/driver/bench_arm.py")


def test_the_line_for_the_robot_file_is_the_examples():
    assert blocks(TEXT, "yaml")[0].text in text_of("examples/driver/robot.yaml")
    load_robot(text_of("examples/driver/robot.yaml"))


def test_every_method_is_named():
    named = {coded(row[0])[0].partition("(")[0] for row in table(TEXT, "method")}
    owed = {name for name in vars(Driver) if not name.startswith("_")}
    assert named == owed | {"__init__"}
