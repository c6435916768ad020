"""A run is watched through shared memory: truly, by its own user, and without a way to slow or change it."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from interlock import _core
from interlock.errors import InterlockError
from interlock.runtime.beacon import NAME, Attached, running
from interlock.view.live import look
from interlock.view.log import lines

STALLED_TICKS = 200
NOISE = 0.02  # share of ticks that a busy machine may miss whoever watches


def kept_going(run, count=STALLED_TICKS):
    """Ticks go on, all accounted for, and no more are missed than a busy machine misses anyway."""
    before, after = run.ticks(count)
    assert after["planned"] == after["executed"] + after["missed"]
    assert after["tick"] > before["tick"]
    planned, missed = after["planned"] - before["planned"], after["missed"] - before["missed"]
    if before["missed"] > NOISE * before["planned"]:
        pytest.skip("the machine misses ticks by itself: too noisy to tell")
    assert missed <= max(NOISE * planned, 2), (before, after)


def first_line(watcher):
    return json.loads(watcher.stdout.readline())


def test_a_line_of_json_tells_modes_times_rulings_misses_queues_and_who_lives(a_run):
    a_run.ticks(700)
    line = first_line(a_run.watch("--json", "--once"))
    assert (line["mode"], line["state"], line["pid"]) == ("Running", "running", a_run.process.pid)
    numbers = line["numbers"]
    assert numbers["planned"] == numbers["executed"] + numbers["missed"]
    assert {"limited", "refused", "record_waiting", "unanswered", "actions_left", "limited_by"} <= set(numbers)
    assert (numbers["worker_alive"], numbers["driver_alive"]) == (1, 1)
    assert {line["facts"]["worker_pid"], line["facts"]["driver_pid"]} == set(a_run.children)
    assert line["facts"]["granted"]["scheduler"]
    assert numbers["recording"]["bytes"] > 0
    late = line["durations"]["lateness_ns"]
    assert late["p50_us"] <= late["p95_us"] <= late["p99_us"] <= late["longest_us"]
    assert late["p99.9_us"] is None, "withheld: it takes 6,636 samples"
    assert len(str(line["epoch_ns"])) == 19


def test_it_is_the_same_run_that_the_supervisor_counts(a_run):
    with Attached.open(a_run.folder) as attached:
        seen = [look(attached.watched).numbers for _ in range(50)]
    assert all(each["planned"] == each["executed"] + each["missed"] for each in seen)
    assert [each["executed"] for each in seen] == sorted(each["executed"] for each in seen)


def test_a_watcher_that_is_stopped_does_not_slow_the_loop(a_run):
    watcher = a_run.watch("--json")
    first_line(watcher)
    watcher.send_signal(signal.SIGSTOP)
    kept_going(a_run)
    watcher.send_signal(signal.SIGCONT)
    assert first_line(watcher)["state"] == "running"


def test_a_watcher_whose_reader_never_reads_does_not_slow_the_loop(a_run):
    watcher = a_run.watch()  # draws into a pipe that nobody empties
    kept_going(a_run)
    assert watcher.poll() is None


def test_a_watcher_that_is_killed_does_not_slow_the_loop(a_run):
    watchers = [a_run.watch("--json") for _ in range(2)]
    for watcher in watchers:
        first_line(watcher)
        watcher.kill()
    kept_going(a_run)
    assert a_run.process.poll() is None


def test_a_watcher_of_a_run_that_dies_says_so_and_ends(a_run):
    watcher, screen = a_run.watch("--json"), a_run.watch()
    first_line(watcher)
    a_run.kill()
    out, _ = watcher.communicate(timeout=30)
    assert json.loads(out.splitlines()[-1])["state"] == "died"
    assert watcher.returncode == 1
    shown, said = screen.communicate(timeout=30)
    assert "the supervisor died" in shown, said
    assert "alive" not in shown.rsplit("interlock watch", 1)[1], "the last screen is no present"
    assert screen.returncode == 1


def test_what_a_killed_run_recorded_is_told_up_to_its_last_second(a_run):
    a_run.ticks(300)  # the writer ends a part of the file every second
    a_run.kill()
    found = list(lines(a_run.folder / "run.mcap"))
    assert any(line.module == "mode" and line.text.endswith("-> Running") for line in found)
    assert (found[-1].module, found[-1].level) == ("record", "error")


def test_a_watcher_of_a_run_that_ends_in_order_ends_in_order(a_run):
    watcher = a_run.watch("--json")
    first_line(watcher)
    a_run.end()
    out, _ = watcher.communicate(timeout=30)
    assert json.loads(out.splitlines()[-1])["state"] == "ended"
    assert watcher.returncode == 0
    assert not (a_run.folder / NAME).exists(), "an orderly end leaves nothing behind"


def test_a_run_that_is_suspended_is_seen_as_still(a_run):
    a_run.process.send_signal(signal.SIGSTOP)
    watcher = a_run.watch("--json")
    states = [first_line(watcher)["state"] for _ in range(2)]
    assert states[-1] == "still"
    a_run.process.send_signal(signal.SIGCONT)


def test_a_dead_worker_is_seen(a_run):
    os.kill(a_run.children[-1], signal.SIGKILL)
    a_run.ticks(80)  # counts per code are shown every 64 ticks
    line = first_line(a_run.watch("--json", "--once"))
    assert line["numbers"]["worker_alive"] == 0
    assert line["numbers"]["lost_by"]["worker-dead"] == 1
    assert line["mode"] in ("Stopping", "Holding")
    assert line["cause"] == "worker-dead"


def test_nobody_can_write_into_what_it_shows(a_run):
    told = json.loads((a_run.folder / NAME).read_text())
    place = f"/proc/{told['pid']}/fd/{told['fd']}"
    descriptor = os.open(place, os.O_RDWR)
    try:
        with pytest.raises(PermissionError):
            mmap.mmap(descriptor, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        with pytest.raises(PermissionError):
            os.pwrite(descriptor, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
    kept_going(a_run, 20)


def test_only_its_user_can_find_it(a_run):
    assert stat.S_IMODE((a_run.folder / NAME).stat().st_mode) == 0o600
    if os.getuid() != 0:
        pytest.skip("another user can only be tried as root")
    # Even who can read the file, here a copy, cannot open the memory.
    with tempfile.TemporaryDirectory() as public:
        Path(public).chmod(0o755)
        shutil.copy(a_run.folder / NAME, public)
        (Path(public) / NAME).chmod(0o644)
        another = (
            "import os\nfrom pathlib import Path\nfrom interlock.errors import InterlockError\n"
            "from interlock.runtime.beacon import Attached\n"
            "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            f"try: Attached.open(Path({public!r}))\n"
            "except InterlockError as refusal: print(refusal.code)"
        )
        done = subprocess.run([sys.executable, "-c", another], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "watch-not-yours", done.stderr


def test_without_a_folder_the_newest_run_here_is_watched(a_run):
    assert running(a_run.folder) == [a_run.folder]
    assert running(a_run.folder.parent) == [a_run.folder]
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "watch", "--once", "--json"],
        cwd=a_run.folder.parents[1], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert json.loads(done.stdout)["pid"] == a_run.process.pid


def refused(folder):
    with pytest.raises(InterlockError) as caught:
        Attached.open(folder)
    assert caught.value.next
    return caught.value.code


def test_what_does_not_run_cannot_be_watched(tmp_path):
    assert refused(tmp_path) == "watch-none"
    ended = subprocess.run([sys.executable, "-c", ""], check=True)
    assert ended.returncode == 0
    for pid, started in ((2**22 - 1, 1), (os.getpid(), 1), (os.getppid(), 0)):
        told = {"schema": "interlock.watch/1", "pid": pid, "started": started, "fd": 0}
        (tmp_path / NAME).write_text(json.dumps(told))
        assert refused(tmp_path) == "watch-none"


def test_no_other_descriptor_of_a_process_is_opened(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    opened = os.open(pipe, os.O_RDWR)
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    told = {"schema": "interlock.watch/1", "pid": os.getpid(), "started": started, "fd": opened}
    (tmp_path / NAME).write_text(json.dumps(told))
    assert refused(tmp_path) == "watch-none"
    os.close(opened)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", "\x00\xff", '{"schema": "interlock.watch/1", "pid": -1, "started": 1, "fd": 1}',
     '{"schema": "interlock.watch/1", "pid": "1", "started": 1, "fd": 1}', '{"schema": "other", "pid": 1}', "[" * 4096],
)  # fmt: skip
def test_what_no_run_wrote_is_refused(tmp_path, content):
    (tmp_path / NAME).write_bytes(content.encode("latin-1"))
    assert refused(tmp_path) == "watch-file"


def test_another_memory_is_refused(tmp_path):
    ring = _core.Ring.create("ring", 2, 64)
    with pytest.raises(_core.CoreError) as caught:
        _core.Watched.attach(ring.fd)
    assert caught.value.code == "board-layout"
