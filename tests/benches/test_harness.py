"""The harness runs, its accounting holds, and it judges only what it can tell. Nothing here asserts a duration."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the benchmarks make their networks with onnx")

from benches.document import BEGIN, END, has_marks, put
from benches.floor import Floor
from benches.job import Job, Measured, pooled
from benches.registry import benchmarks
from benches.rows import Target, Verdict, sampled, single
from benches.table import markdown

from benches import registry

ROOT = Path(__file__).parents[2]
NAMES = {"control_work", "handoff", "lateness", "cpu_per_tick", "recording", "start", "preprocess", "guard"}
TICKS_FOR_P99 = 662


def run(*arguments: object, timeout: float = 240) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benches", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def floor_of(before_us: float, after_us: float, *, n: int = 1000, crowding: float = 0.0) -> Floor:
    part = Measured(
        job=Job(contender="plain", rate_hz=500),
        facts={"crowding": [crowding]},
        floor_before=np.full(n, int(before_us * 1e3)),
        floor_after=np.full(n, int(after_us * 1e3)),
    )
    return Floor.around([part])


def lateness(us: float, floor: Floor, *, n: int = 1000):
    return sampled("lateness", "", np.full(n, int(us * 1e3)), floor=floor, targets=(Target("ratio", 1.2),))


def work(us: float, floor: Floor, *, n: int = 1000):
    return sampled("work", "", np.full(n, int(us * 1e3)), floor=floor, targets=(Target("p99", 20.0),))


def test_a_ratio_to_a_calm_floor_is_judged():
    assert lateness(55, floor_of(50, 50)).verdict is Verdict.REACHED
    assert lateness(75, floor_of(50, 50)).verdict is Verdict.MISSED


def test_a_ratio_to_a_restless_floor_is_not_judged_in_either_direction():
    for us in (10, 500):
        row = lateness(us, floor_of(50, 100))
        assert row.verdict is Verdict.NOT_EVALUATED
        assert row.reason.startswith("noisy")


def test_noise_excuses_a_miss_but_does_not_take_away_what_was_reached():
    assert work(10, floor_of(50, 100)).verdict is Verdict.REACHED
    assert work(30, floor_of(50, 100)).verdict is Verdict.NOT_EVALUATED
    assert work(30, floor_of(50, 50)).verdict is Verdict.MISSED
    assert work(90, floor_of(50, 100)).verdict is Verdict.MISSED, "by more than the noise explains"


def test_a_crowded_machine_misses_nothing():
    assert work(30, floor_of(50, 50, crowding=0.9)).verdict is Verdict.NOT_EVALUATED


def test_a_bare_loop_that_misses_its_own_deadlines_is_no_floor():
    assert lateness(2000, floor_of(2000, 2000)).reason.startswith("noisy")


def test_a_percentile_that_the_samples_do_not_support_is_withheld():
    row = work(10, floor_of(50, 50), n=TICKS_FOR_P99 - 1)
    assert row.at(99.0) is None
    assert row.verdict is Verdict.NOT_EVALUATED
    assert str(TICKS_FOR_P99) in row.reason
    assert row.as_json()["percentiles"]["p99"] == {"value": None, "needed": TICKS_FOR_P99}
    assert work(10, floor_of(50, 50), n=TICKS_FOR_P99).verdict is Verdict.REACHED


def test_a_run_that_left_running_is_not_judged():
    row = single("x", "", 1.0, n=10, unit="us", targets=(Target("value", 5.0),), problems=("left Running for Holding",))
    assert row.verdict is Verdict.NOT_EVALUATED
    assert "Holding" in row.reason


def test_a_lower_bound_is_missed_from_below():
    faster = (Target("value", 2.0, is_lower=True),)
    assert single("x", "", 1.9, n=10, unit="1", targets=faster).verdict is Verdict.MISSED
    assert single("x", "", 2.0, n=10, unit="1", targets=faster).verdict is Verdict.REACHED


def test_rounds_are_pooled_with_their_counters_and_floors():
    def part(start: int) -> Measured:
        return Measured(
            job=Job(contender="plain"),
            series={"work_ns": np.arange(start, start + 3)},
            facts={"counters": {"planned": 3, "executed": 2, "missed": 1}},
            floor_before=np.arange(2),
            floor_after=np.arange(4),
        )

    both = pooled([part(0), part(10)])
    assert both.of("work_ns").tolist() == [0, 1, 2, 10, 11, 12]
    assert both.count("planned") == both.count("executed") + both.count("missed") == 6
    assert (both.floor_before.size, both.floor_after.size) == (4, 8)


def test_what_a_process_measured_survives_its_file(tmp_path):
    left = Measured(job=Job(contender="plain", is_busy=True), series={"late_ns": np.arange(5)}, facts={"a": [1]})
    left.write(tmp_path / "out.npz")
    read = Measured.read(tmp_path / "out.npz")
    assert read.job == left.job
    assert read.of("late_ns").tolist() == [0, 1, 2, 3, 4]
    assert read.facts == {"a": [1]}


def test_every_benchmark_is_listed_once():
    names = [each.name for each in benchmarks()]
    assert sorted(names) == sorted(NAMES)
    done = run("--list")
    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()] == names


def test_a_name_that_does_not_exist_is_refused_with_those_that_do():
    done = run("--only", "guesswork")
    assert done.returncode == 2
    assert "control_work" in done.stderr


def test_a_quick_run_adds_up_and_allocates_nothing_on_the_control_thread(tmp_path):
    out = tmp_path / "bench.json"
    done = run("--quick", "--only", "control_work", "--only", "handoff", "--json", out)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(out.read_text())
    assert document["schema"] == "interlock.benchmark/1"
    assert document["environment"]["cores"] >= 1
    rows = [row for each in document["benchmarks"] for row in each["rows"]]
    assert {row["quantity"] for row in rows} == {
        "work per tick",
        "allocations per tick",
        "hand-off",
        "inside the engine",
    }
    counted = [row["conditions"]["counters"] for row in rows]
    assert all(each["planned"] == each["executed"] + each["missed"] > 0 for each in counted)
    for row in rows:
        assert row["n"] > 0
        for percentile in row["percentiles"].values():
            assert (percentile["value"] is None) == (row["n"] < percentile["needed"])
    assert [row["value"] for row in rows if row["quantity"] == "allocations per tick"] == [0]
    answered = next(row for row in rows if row["quantity"] == "hand-off")
    assert answered["n"] >= answered["conditions"]["counters"]["chunks"] - 1
    assert all("error" not in line for line in done.stdout.splitlines())


def test_ctrl_c_keeps_what_was_measured_and_leaves_no_process(tmp_path):
    out = tmp_path / "bench.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "benches", "--only", "lateness", "--json", out],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    child = first_child(process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out.read_text())["interrupted"] is True
    assert not Path(f"/proc/{child}").exists()


def first_child(process: subprocess.Popen[str]) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        if found := children.read_text().split():
            return int(found[0])
    pytest.fail("ended before it measured anything")


def test_tables_go_between_the_marks_of_a_document_and_nowhere_else(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"above\n{BEGIN}\nold\n{END}\nbelow\n")
    assert has_marks(page)
    put(page, "new")
    assert page.read_text() == f"above\n{BEGIN}\nnew\n{END}\nbelow\n"
    page.write_text("no marks")
    assert run("--document", page).returncode == 2


def test_the_example_in_the_document_registers_and_measures(monkeypatch):
    text = (ROOT / "docs" / "benchmarks.md").read_text()
    code = text.partition("```python\n")[2].partition("```")[0]
    monkeypatch.setattr(registry, "_registered", {})
    names: dict = {}
    exec(compile(code, "docs/benchmarks.md", "exec", dont_inherit=True), names)
    assert list(registry._registered) == ["name"]

    class StandIn:
        def one(self, job):
            return Measured(job=job, series={"work_ns": np.full(1000, 5000)}, floor_before=np.full(1000, 50_000),
                            floor_after=np.full(1000, 50_000))  # fmt: skip

    (row,) = names["name"](StandIn())
    assert row.verdict is Verdict.REACHED


def test_a_row_is_readable_in_a_document():
    text = markdown("Work", [work(10, floor_of(50, 50))])
    assert "### Work" in text
    assert "reached" in text
    assert "[" not in text
