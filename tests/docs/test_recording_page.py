"""What the page about recordings says about topics, messages and Python holds for a recording."""

import contextlib
import io
import re

import pytest
from pages import ROOT, blocks, coded, table, text_of
from tests.conftest import interlock

from interlock.view.mcap_file import McapFile

TEXT = text_of("docs/recording.md")


def topics():
    return {coded(topic)[0]: coded(message) for topic, message, _ in table(TEXT, "topic", "message")}


@pytest.fixture(scope="module")
def run(arm_policy, tmp_path_factory):
    pytest.importorskip("mujoco", reason="the simulated arm needs the extra `sim`")
    folder = tmp_path_factory.mktemp("recorded")
    done = interlock(
        "run", arm_policy, "--robot", arm_policy.parent / "robot.yaml", "--sim", "--lockstep", "--task",
        "reach the red block", "--seconds", "3", "-o", "runs/one", cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_topic_that_is_written_stands_in_the_table():
    source = (ROOT / "crates" / "interlock-rt" / "src" / "record" / "file.rs").read_text(encoding="utf-8")
    written = dict(re.findall(r'\(Topic::\w+, "(/interlock/\w+)", "(\w+)"\)', source))
    shown = {
        topic: names[0].removeprefix("interlock.v1.") for topic, names in topics().items() if "camera" not in topic
    }
    assert written == shown


def test_a_real_recording_has_these_topics_and_no_others(run):
    seen = {}
    for raw in McapFile(run / "runs" / "one" / "run.mcap").messages():
        topic = "/camera/NAME" if raw.topic.startswith("/camera/") else raw.topic
        seen[topic] = raw.schema
    assert {topic: schema in topics()[topic] for topic, schema in seen.items()} == dict.fromkeys(seen, True)
    assert {"/interlock/header", "/interlock/tick", "/interlock/chunk", "/camera/NAME", "/interlock/summary"} <= set(
        seen
    )


def test_the_python_of_the_page_runs(run, monkeypatch):
    (snippet,) = blocks(TEXT, "python")
    monkeypatch.chdir(run)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(snippet.text, "recording.md", "exec"), {})
    assert "complete" in said.getvalue()
    assert "Armed -> Running" in said.getvalue()
