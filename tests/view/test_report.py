"""What a report says, and that it says it about every recording that can be opened."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from made import CODES, JOINTS, Script, code_words_match, made, plan

from interlock.cli.report import report
from interlock.errors import InterlockError
from interlock.view.recording import Recording
from interlock.view.report import find, report_html, report_numbers
from interlock.view.report_words import summary
from interlock.view.stages import action_ages, inference_stages, tick_stages
from interlock.view.timeline import Change, changes, closest_looks, longest_still


@pytest.fixture
def told(tmp_path):
    """Makes up a run and returns its page and its numbers."""

    def tell(**script):
        recording = Recording.open(made(tmp_path / "run.mcap", Script(**script)))
        found = find(recording)
        return report_html(recording, found), report_numbers(recording, found), recording

    return tell


class Elements(HTMLParser):
    """Every element of a page with its attributes."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_the_codes_used_here_are_the_cores():
    assert code_words_match()


def test_the_page_fetches_nothing_and_runs_nothing(told):
    page, _, _ = told(seconds=2.0)
    for tag, attributes in Elements(page).found:
        assert tag not in ("script", "link", "iframe", "object", "embed", "base")
        assert not [name for name in attributes if name.startswith("on")]
        assert attributes.get("src", "data:").startswith("data:")
        assert attributes.get("href", "#").startswith("#")
    assert "url(" not in page
    assert "@import" not in page


def test_text_from_a_recording_never_becomes_markup(told):
    bait = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    page, _, _ = told(seconds=6.0, task=bait, policy=bait, camera=bait, joints=[bait, *JOINTS[1:]])
    elements = Elements(page).found
    assert "script" not in {tag for tag, _ in elements}
    assert not [attributes for _, attributes in elements if "onerror" in attributes or attributes.get("src") == "x"]
    assert page.count("&lt;script&gt;") > 5


def test_a_percentile_without_support_says_what_it_needs(told):
    page, numbers, _ = told(seconds=6.0)
    row = re.search(r"lateness: release to wake-up.*?</tr>", page)[0]
    assert "needs 6636" in row
    lateness = numbers["stages_ns"]["lateness: release to wake-up"]
    assert lateness["n"] == numbers["ticks"]["executed"] < 6636
    assert lateness["p99.9"] is None
    assert lateness["p99"] > lateness["p50"] > 0


def test_the_parts_of_a_tick_add_up_to_sensor_to_command(told):
    _, _, recording = told(seconds=4.0, synchronous=True, die_s=None)
    stages = {stage.name: stage.ns for stage in tick_stages(recording)}
    parts = (
        "sensor capture to observed",
        "waiting for the worker's answer",
        "schedule, modes, guard, fallback",
        "send",
    )
    total = sum(np.nan_to_num(stages[part]) for part in parts)
    np.testing.assert_allclose(total, stages["sensor capture to command"])


def test_the_parts_of_an_inference_add_up_to_the_chunk_being_there(told):
    _, _, recording = told(seconds=4.0)
    *stages, to_command, total, reaction = inference_stages(recording)
    assert np.isfinite(total.ns).all()
    np.testing.assert_allclose(sum(stage.ns for stage in stages), total.ns)
    assert np.all(reaction.ns > total.ns + to_command.ns)


def test_the_image_behind_an_action_is_older_than_the_observation(told):
    _, _, recording = told(seconds=4.0)
    observation, image = action_ages(recording)
    used = np.isfinite(observation.ns)
    assert used.sum() > 300
    np.testing.assert_array_equal((image.ns - observation.ns)[used], 3e6)  # the made-up camera's transfer


def test_a_manual_clock_prints_no_latency(told):
    page, numbers, _ = told(seconds=3.0, manual=True)
    assert "Not measured: manual clock" in page
    assert "needs" not in page
    assert numbers["stages_ns"] == {}


@pytest.mark.parametrize(
    ("script", "cause", "count"),
    [
        ({"late": [(1.0, 12.0)]}, "the operating system woke the control thread late", 2),
        ({"wait": [(1.0, 12.0)], "synchronous": True}, "the tick before waited for the worker's answer", 1),
        ({"wait": [(1.0, 12.0)]}, "the tick before took too long for its own work", 1),
        ({"late": [(1.0, 12.0)], "unrecorded": [(1.0, 1)]}, "cause unknown", 2),
    ],
)
def test_missed_ticks_have_the_cause_that_the_stage_times_show(told, script, cause, count):
    page, numbers, _ = told(seconds=2.0, die_s=None, **script)
    assert [(each["cause"], each["count"]) for each in numbers["missed"]] == [(cause, count)]
    assert numbers["missed"][0]["after_s"] == pytest.approx(1.0, abs=0.006)
    assert numbers["ticks"]["executed"] + numbers["ticks"]["missed"] + numbers["ticks"]["unrecorded"] == 400
    assert cause in page.replace("&#x27;", "'")


def test_ticks_that_the_recorder_dropped_are_not_called_missed(told):
    page, numbers, _ = told(seconds=2.0, unrecorded=[(1.0, 3)])
    assert numbers["missed"] == []
    assert numbers["ticks"]["unrecorded"] == 3
    assert "no: something was dropped" in page


def test_nothing_missed_is_said_in_words(told):
    page, _, _ = told(seconds=2.0)
    assert "None. Every planned tick was executed." in page


def test_the_way_to_rest_is_measured_from_the_change(told):
    page, numbers, recording = told(die_s=5.0)
    stop = next(each for each in numbers["modes"] if each["to"] == "Stopping")
    assert (stop["from"], stop["cause"], stop["at_s"]) == ("Running", "worker-dead", 5.0)
    ticks = recording.ticks
    after = np.flatnonzero((ticks.due_ns >= ticks.due_ns[0] + 5_000_000_000) & (np.abs(ticks.vel).max(axis=1) < 0.05))
    assert stop["rest_s"] == pytest.approx(recording.second(int(ticks.due_ns[after[0]])) - 5.0)
    assert "At 5.0 s the worker process died; the joints came to rest in" in page


def fake(speed, *, modes=("Running", "Stopping", "Holding"), change_at=100, stopping=50):
    """A recording with one joint, ticks of 5 ms and one change of mode."""
    size = len(speed)
    ticks = SimpleNamespace(
        due_ns=np.arange(size) * 5_000_000,
        vel=np.array(speed)[:, None],
        pos=np.cumsum(speed)[:, None] * 0.005,
        mode=np.where(np.arange(size) < change_at, 0, np.where(np.arange(size) < change_at + stopping, 1, 2)),
    )
    change = SimpleNamespace(at_ns=change_at * 5_000_000, before=modes[0], after=modes[1], cause="x")
    return SimpleNamespace(ticks=ticks, modes=[change], mode_name=lambda number: modes[number], code_word=str)


def test_a_joint_that_turns_round_is_not_at_rest():
    swing = [1.0] * 100 + [0.5, 0.01, -0.5, -0.2, 0.0] + [0.0] * 100
    (change,) = changes(fake(swing))
    assert change.rest_ns == 4 * 5_000_000


def test_a_joint_that_keeps_moving_has_no_time_to_rest():
    (change,) = changes(fake([1.0] * 300))
    assert change.rest_ns is None


def test_a_resting_robot_needs_no_time_to_rest():
    (change,) = changes(fake([0.0] * 300))
    assert change.rest_ns == 0


def test_a_move_to_a_pose_that_begins_slowly_ends_where_it_ends():
    speed = [0.0] * 160 + [0.5] * 100 + [0.0] * 100
    (change,) = changes(fake(speed, stopping=170))
    assert change.rest_ns == 160 * 5_000_000
    assert change.moved_rad == pytest.approx(0.5 * 100 * 0.005)


def test_a_robot_that_is_moved_again_too_soon_has_no_time_to_rest():
    (change,) = changes(fake([1.0] * 130, stopping=10, modes=("Running", "Stopping", "Running")))
    assert change.rest_ns is None
    assert change.is_cut_short


def test_a_push_while_holding_does_not_make_the_stop_longer():
    speed = [1.0] * 110 + [0.0] * 100 + [0.5] * 10 + [0.0] * 80
    (change,) = changes(fake(speed, stopping=20))
    assert change.rest_ns == 10 * 5_000_000


def test_going_to_arm_is_no_stop():
    (change,) = changes(fake([1.0] * 300, modes=("Idle", "Armed", "Armed")))
    assert not change.is_stop
    assert change.rest_ns is None


def stop(second, cause, begin_ns=0):
    return Change(begin_ns + int(second * 1e9), "Running", "Stopping", cause, rest_ns=80_000_000, moved_rad=0.02)


def test_stops_that_nobody_asked_for_are_looked_at_first_one_of_each_cause():
    found = [stop(1, "operator-stop"), stop(2, "stale-state"), stop(3, "stale-state"), stop(4, "worker-dead")]
    assert [each.at_ns for each in closest_looks(found)] == [2_000_000_000, 4_000_000_000]
    assert closest_looks(found[:1]) == found[:1]
    assert closest_looks([]) == []


def test_the_summary_tells_every_cause_once_and_how_often(told):
    _, _, recording = told(seconds=1.0, limited=[])
    begin = recording.begin_ns
    found = (
        [stop(1, "operator-stop", begin)] * 20 + [stop(2, "stale-state", begin)] * 3 + [stop(4, "worker-dead", begin)]
    )
    assert summary(recording, [], [], found) == (
        "The policy was in charge for 0.6 of 1.0 s at 200 ticks/s (4 joints). 0 of 200 ticks were missed. "
        "The guard let every command pass unchanged. The operator stopped it 20 times. "
        "At 2.0 s the joint measurements became too old; the joints came to rest in 80 ms, none having turned more than "
        "1.1° meanwhile. This happened twice more. "
        "At 4.0 s the worker process died; the joints came to rest in 80 ms, none having turned more than 1.1° meanwhile."
    )


def test_limits_are_counted_per_code_and_joint(told):
    page, numbers, _ = told(limited=[(2.0, 3, 21, 1), (3.0, 5, 23, 0)])
    assert [(each["code"], each["joint"], each["limited"], each["first_s"]) for each in numbers["limits"]] == [
        ("jerk", "base_yaw", 5, 3.0),
        ("velocity", "shoulder", 3, 2.0),
    ]
    assert numbers["constraint_violation"] == -10
    assert "The guard limited the command in 8 ticks" in page


def test_a_camera_that_freezes_while_the_arm_moves_is_marked(told):
    page, _, _ = told(seconds=6.0, die_s=None, freeze_s=3.0)
    frozen = page.count('class="image frozen"')
    assert frozen == sum(second > 3.0 for second in np.round(np.linspace(0, 59, 8)) / 10)
    assert "the joints moved" in page


def test_a_still_picture_of_a_still_arm_is_not_called_frozen(told):
    page, _, _ = told(seconds=12.0, die_s=0.5, freeze_s=2.0)
    assert 'class="image frozen"' not in page
    assert "the joints stood still" in page


@pytest.mark.parametrize(
    ("row", "expected"), [("", None), ("abc", None), ("abbcccd", (3, 5)), ("aab", (0, 1)), ("abb", (1, 2))]
)
def test_the_longest_row_of_identical_images_is_found(row, expected):
    assert longest_still([each.encode() for each in row]) == expected


def test_every_joint_is_drawn(told):
    page, _, _ = told(seconds=2.0)
    for joint in JOINTS:
        assert f'aria-label="{joint}: wanted by the policy' in page
    assert "nan" not in "".join(re.findall(r'points="([^"]*)"', page))


def test_chunks_that_were_not_used_are_counted_by_code(told):
    page, _, _ = told(seconds=6.0)
    assert re.search(r"<code>old-sequence</code></td><td>the schedule</td><td class=\"n\">1<", page)


def test_a_truncated_recording_is_shown_and_called_truncated(told):
    page, numbers, _ = told(closed=False)
    assert not numbers["complete"]
    assert numbers["ticks"]["executed"] > 100
    assert "This recording is truncated" in page
    assert "unknown: truncated" in page


def test_a_file_that_was_cut_anywhere_is_shown_or_refused(tmp_path):
    whole = made(tmp_path / "whole.mcap", Script(seconds=3.0)).read_bytes()
    shown = 0
    for length in np.linspace(0, len(whole) - 1, 12).astype(int):
        cut = tmp_path / "cut.mcap"
        cut.write_bytes(whole[:length])
        try:
            recording = Recording.open(cut)
        except InterlockError:
            continue
        assert "truncated" in report_html(recording, find(recording))
        shown += 1
    assert shown > 3


@pytest.mark.parametrize(
    "script",
    [
        {"tick": {"pos": [1e300, np.nan, np.inf, -1e308], "vel": [np.nan] * 4, "target": [1e13] * 4}},
        {"tick": {"due_ns": 0, "woke_ns": -5, "sent_ns": 2**62, "mode": 99, "codes": [20, 77], "joints": [-7]}},
        {"tick": {"missed": 2**60}},
        {"tick": {"kind": 9, "row": 4_000_000_000, "chunk_seq": 2**63 - 1, "codes": [1] * 50}},
        {"joints": [], "tick": {name: [] for name in ("pos", "vel", "target", "wanted")}, "seconds": 0.2},
        {"seconds": 0.0},
        {"seconds": 0.005},
        {"images": 1},
        {"plan": {**plan(Script()), "limits": {"pos": ["high"] * 4}, "cameras": 7, "identity": [1]}},
        {
            "plan": {
                **plan(Script()),
                "limits": None,
                "timing": {**plan(Script())["timing"], "chunk": "x", "ticks_per_period": -1},
            }
        },
    ],
)
@pytest.mark.parametrize("manual", [False, True])
def test_a_recording_that_makes_no_sense_still_makes_a_page(told, script, manual):
    page, _, _ = told(**{"seconds": 1.5, "die_s": 1.0, "manual": manual, **script})
    drawn = "".join(re.findall(r'(?:points|x1|y1|x|y|width|height)="([^"]*)"', page)).lower()
    assert "nan" not in drawn
    assert "inf" not in drawn


@pytest.mark.parametrize("content", [b"", b"\x80\x04pickle", b"\x89MCAP0\r\n", b"\x89MCAP0\r\n" + bytes(200)])
def test_what_is_no_recording_is_refused_and_nothing_is_written(tmp_path, content):
    path = tmp_path / "run.mcap"
    path.write_bytes(content)
    with pytest.raises(InterlockError) as refusal:
        report(path, tmp_path / "report.html", as_json=False)
    assert refusal.value.code == "recording-format"
    assert [each.name for each in tmp_path.iterdir()] == ["run.mcap"]


def test_a_folder_without_a_recording_is_refused_with_the_next_command(tmp_path):
    with pytest.raises(InterlockError) as refusal:
        report(tmp_path, None, as_json=False)
    assert (refusal.value.code, refusal.value.next) == ("recording-missing", "interlock run NAME.policy --sim")


def test_a_run_folder_shows_its_run_and_lists_the_rest(tmp_path, capsys):
    made(tmp_path / "run.mcap", Script(seconds=1.0))
    made(tmp_path / "episode-000.mcap", Script(seconds=2.0, die_s=1.0))
    (tmp_path / "broken.mcap").write_bytes(b"no")
    assert report(tmp_path, None, as_json=False) == 0
    page = (tmp_path / "report.html").read_text()
    assert "<b>run.mcap</b> (shown here)" in page
    assert "episode-000.mcap" in page
    assert "not readable (recording-format)" in page
    assert "report.html" in capsys.readouterr().out


def test_of_several_episodes_the_newest_is_shown(tmp_path):
    for number in range(3):
        path = made(tmp_path / f"episode-{number:03d}.mcap", Script(seconds=0.5, images=0))
        os.utime(path, (1_000_000 + number, 1_000_000 + number))
    report(tmp_path, None, as_json=False)
    page = (tmp_path / "episode-002.html").read_text()
    assert "<b>episode-002.mcap</b> (shown here)" in page


def test_json_is_one_object_with_the_findings(tmp_path, capsys):
    made(tmp_path / "run.mcap", Script(seconds=2.0))
    report(tmp_path, None, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["exit"] == 0
    assert told["report"].endswith("report.html")
    assert told["modes"][0]["to"] == "Armed"


def test_a_place_that_cannot_be_written_is_an_error_with_a_hint(tmp_path):
    made(tmp_path / "run.mcap", Script(seconds=0.5, images=0))
    (tmp_path / "file").write_text("")
    with pytest.raises(InterlockError) as refusal:
        report(tmp_path, tmp_path / "file" / "report.html", as_json=False)
    assert refusal.value.code == "report-not-written"


def test_the_command_line_refuses_without_a_traceback(tmp_path):
    (tmp_path / "run.mcap").write_bytes(b"PK\x03\x04")
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "report", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 5
    assert "error[recording-format]" in done.stderr
    assert "next: " in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_all_codes_of_the_story_have_words():
    from interlock.view.report_words import HAPPENED

    assert set(CODES.values()) & set(HAPPENED) == {
        "old-sequence",
        "no-valid-action",
        "worker-dead",
        "operator-stop",
        "frozen-image",
    }
