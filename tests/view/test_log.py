"""Every module on one timeline, from recordings made up and from recordings that end in a crash."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from made import BOOT_NS, EPOCH_NS, JOINTS, V1, Recorder, Script, made, plan

from interlock.errors import InterlockError
from interlock.view.log import lines
from interlock.view.log_lines import LEVELS

SHAPE = re.compile(r"^\[(\d{19})\]\[([a-z]+)\]\[(DEBUG|INFO|WARNING|ERROR)\] (.+)$")
STORY = Script(seconds=4.0, die_s=3.0, late=[(1.0, 17.0)], limited=[(2.0, 3, 21, 1)])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return made(tmp_path_factory.mktemp("log") / "run.mcap", STORY)


def shown(path, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "interlock", "show", str(path), "--log", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def written(path, messages):
    """A recording of exactly these (name, time, fields), after a header."""
    recorder = Recorder(path)
    clock = V1["interlock.v1.Clock"](monotonic_ns=BOOT_NS, realtime_ns=EPOCH_NS)
    facts = plan(STORY)
    facts["timing"]["max_age_state_ns"] = 25_000_000
    codes = {11: "old-sequence", 20: "position", 21: "velocity", 40: "worker-dead"}
    recorder.write(
        "Header",
        BOOT_NS,
        schema="interlock.recording/1",
        plan_json=json.dumps(facts),
        header_json="{}",
        joints=JOINTS,
        clock=clock,
        codes=codes,
        modes={0: "Idle", 2: "Running", 5: "Stopping"},
    )
    for name, at_ns, fields in messages:
        recorder.write(name, at_ns, **fields)
    recorder.close()
    return path


def told(path, *messages):
    return list(lines(written(path, messages)))


def tick(number, **fields):
    due_ns = BOOT_NS + number * 5_000_000
    times = {"due_ns": due_ns, "woke_ns": due_ns + 10, "observed_ns": due_ns + 20, "acted_ns": due_ns + 30}
    return "Tick", due_ns, {"tick": number, **times, "captured_ns": due_ns, "sample_seq": number + 1, **fields}


def test_every_line_has_time_module_and_level_and_the_times_rise(whole):
    printed = shown(whole.parent, "--level", "debug").stdout.splitlines()
    found = [SHAPE.match(line) for line in printed]
    assert all(found), [line for line, match in zip(printed, found, strict=True) if not match][:3]
    times = [int(match[1]) for match in found]
    assert times == sorted(times)
    assert abs(times[0] - EPOCH_NS) < 10**10, "nanoseconds since the epoch"
    assert {match[2] for match in found} >= {"record", "supervisor", "operator", "mode", "guard", "worker", "driver"}


def test_the_end_is_told_last(whole):
    assert list(lines(whole))[-1].text.startswith("ends: ")


def test_one_of_everything_is_told(whole):
    text = [f"{line.module} {line.level} {line.text}" for line in lines(whole)]
    for wanted in (
        "record info begins: reach-block on tabletop-arm",
        "operator info goal 1: task 'reach the red block'",
        "operator info asks to arm",
        "mode info Armed -> Running",
        "supervisor warning missed 3 ticks before tick 203",
        "guard warning limited: velocity of shoulder",
        "guard info passes again, limited for 3 ticks",
        "schedule warning chunk 4 of worker 1 is dropped: a newer answer was already in use (old-sequence)",
        "worker debug chunk 1 of worker 1 arrived: 16 actions",
        "mode error Running -> Stopping: the worker process died (worker-dead)",
        "record info ends: ",
    ):
        assert any(line.startswith(wanted) for line in text), (wanted, [each for each in text if "debug" not in each])


def test_what_the_writer_wrote_late_stands_where_it_happened(tmp_path):
    late = ("Log", BOOT_NS + 1_000, {"at_ns": BOOT_NS + 1_000, "module": "driver", "level": "info", "text": "first"})
    found = told(tmp_path / "run.mcap", tick(0), tick(1), tick(200), late)
    assert [line.text for line in found if line.module == "driver"] == ["first"]
    assert [line.epoch_ns for line in found] == sorted(line.epoch_ns for line in found)


def test_a_ruling_is_told_when_it_changes_and_once_for_each_code_that_joins(tmp_path):
    limited = {"ruling": 1, "codes": [21], "joints": [1]}
    story = [tick(0), tick(1, **limited), tick(2, **limited), tick(3, ruling=1, codes=[21, 20], joints=[1, 0])]
    story += [tick(4, ruling=2, codes=[20], joints=[0]), tick(5, ruling=2, codes=[20], joints=[0]), tick(6)]
    guard = [(line.level, line.text) for line in told(tmp_path / "run.mcap", *story) if line.module == "guard"]
    assert guard == [
        ("warning", "limited: velocity of shoulder"),
        ("warning", "limited: position of base_yaw"),
        ("error", "refused: position of base_yaw"),
        ("info", "passes again, refused for 2 ticks"),
    ]


def test_a_dead_process_and_an_old_measurement_are_told_by_whom_they_concern(tmp_path):
    old = {"captured_ns": BOOT_NS - 10**9}
    story = [tick(0), tick(1, **old), tick(2, **old), tick(3, events=[10]), tick(4, events=[11])]
    found = [(line.module, line.level) for line in told(tmp_path / "run.mcap", *story) if line.level != "debug"]
    assert found.count(("align", "warning")) == 1
    assert ("worker", "error") in found
    assert ("driver", "error") in found


def test_requests_that_are_repeated_until_granted_are_told_once(tmp_path):
    asked = [
        ("Goal", BOOT_NS + n * 50_000_000, {"stamp_ns": BOOT_NS + n * 50_000_000, "request": "start"}) for n in range(9)
    ]
    found = [line for line in told(tmp_path / "run.mcap", *asked) if line.module == "operator" and line.level == "info"]
    assert [line.text for line in found] == ["asks to start"]


def test_modules_and_levels_are_filtered(whole):
    some = [
        SHAPE.match(line) for line in shown(whole, "--module", "guard,mode", "--level", "warning").stdout.splitlines()
    ]
    assert {match[2] for match in some} == {"guard", "mode"}
    assert {match[3] for match in some} == {"WARNING", "ERROR"}


def test_json_is_one_object_a_line(whole):
    found = [json.loads(line) for line in shown(whole, "--json").stdout.splitlines()]
    assert all({"epoch_ns", "module", "level", "text"} <= set(each) for each in found)
    assert any(each.get("code") == "velocity" and each.get("joint") == "shoulder" for each in found)


def test_a_module_that_nobody_has_is_refused_with_those_that_exist(whole):
    done = shown(whole, "--module", "gaurd")
    assert done.returncode == 2
    assert "error[log-module]" in done.stderr
    assert "guard" in done.stderr


def test_a_recording_that_ends_in_a_crash_is_told_up_to_there(whole, tmp_path):
    torn = tmp_path / "torn.mcap"
    torn.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    found = list(lines(torn))
    assert found[-1].level == "error"
    assert found[-1].text.startswith("the recording ends early: ")
    assert len(found) > 20
    unfinished = list(lines(made(tmp_path / "unfinished.mcap", Script(seconds=1.0, die_s=None, closed=False))))
    assert unfinished[-1].level == "error"


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_recording_is_told_as_far_as_it_is_whole_or_refused(whole, tmp_path, seed):
    random = np.random.default_rng(seed)
    data = bytearray(whole.read_bytes())
    for place in random.integers(0, len(data), size=random.integers(1, 6)):
        data[place] = random.integers(256)
    damaged = tmp_path / "damaged.mcap"
    damaged.write_bytes(data)
    refusals = []
    try:
        assert all(line.level in LEVELS and line.shown() for line in lines(damaged))
    except InterlockError as refusal:
        refusals.append(refusal.code)
    assert set(refusals) <= {"recording-format", "recording-schema"}


def test_of_several_recordings_one_is_named(whole, tmp_path):
    for name in ("episode-000.mcap", "episode-001.mcap"):
        (tmp_path / name).write_bytes(whole.read_bytes())
    done = shown(tmp_path)
    assert done.returncode == 2
    assert "error[log-several]" in done.stderr
    (tmp_path / "episode-001.mcap").unlink()
    assert "ends: " in shown(tmp_path).stdout


@pytest.mark.parametrize("content", [b"", b"nothing of ours", b"\x89MCAP0\r\n"])
def test_what_is_no_recording_is_refused(tmp_path, content):
    path = tmp_path / "run.mcap"
    path.write_bytes(content)
    with pytest.raises(InterlockError) as caught:
        list(lines(path))
    assert caught.value.code == "recording-format"


def test_what_was_quoted_cannot_pass_for_another_line(tmp_path):
    text = "harmless\n[1796000000000000000][guard][INFO] passes\x1b[2J"
    told(tmp_path / "run.mcap", ("Log", BOOT_NS, {"at_ns": BOOT_NS, "module": "driver", "level": "info", "text": text}))
    printed = shown(tmp_path / "run.mcap", "--module", "driver").stdout
    assert len(printed.splitlines()) == 1
    assert "\x1b" not in printed


def test_a_reader_that_goes_away_ends_it_without_a_word(whole):
    done = subprocess.run(
        f"{sys.executable} -m interlock show {whole} --log --level debug | head -n 1",
        shell=True, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert SHAPE.match(done.stdout.strip())
    assert done.stderr == ""


def test_memory_does_not_grow_with_the_length_of_the_run(tmp_path):
    # 40,000 ticks far apart, each with a line: a reader that holds them needs several megabytes.
    def ticks(count):
        for number in range(count):
            yield tick(number * 100, offered=True, observation_seq=number)

    peaks = []
    for count in (2_000, 40_000):
        path = written(tmp_path / f"{count}.mcap", ticks(count))
        tracemalloc.start()
        assert sum(1 for _ in lines(path)) > count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]


def test_levels_rise():
    assert LEVELS == ("debug", "info", "warning", "error")
