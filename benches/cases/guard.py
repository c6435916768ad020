"""The pure core alone, without processes or clocks: the guard, and a whole tick of observing and acting, by joints."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

from benches.lab import ROOT, Lab, MeasurementError
from benches.registry import benchmark
from benches.rows import Row, Verdict, not_evaluated
from interlock.view.percentiles import SUPPORT, Percentile

BUILD = ["cargo", "test", "--quiet", "--release", "-p", "interlock-core", "--test", "tick_cost"]
BUILD_TIMEOUT_S, RUN_TIMEOUT_S = 400.0, 60.0
TICKS = 20_000  # TICKS in crates/interlock-core/tests/tick_cost.rs
LINE = re.compile(
    r"^(?P<case>.+?)\s+p50\s+(?P<p50>\d+) ns\s+p99\s+(?P<p99>\d+) ns\s+p99\.9\s+(?P<p999>\d+) ns\s+limited\s+(?P<limited>\d+)"
)


@benchmark("guard", "the core alone, one thread, no waiting: guard and whole ticks by joints and kind", order=8)
def guard(lab: Lab) -> Iterator[Row]:
    if lab.is_quick:
        yield not_evaluated("core per tick", "all", "left out of --quick: it may have to be compiled", unit="us")
        return
    if shutil.which("cargo") is None:
        yield not_evaluated("core per tick", "all", "cargo is not installed", unit="us")
        return
    lab.on_job("guard: compiling what is not compiled yet")
    _cargo([*BUILD, "--no-run"], BUILD_TIMEOUT_S)
    lab.on_job("guard: running")
    said = _cargo([*BUILD, "--", "--ignored", "--nocapture"], RUN_TIMEOUT_S)
    found = [match for line in said.splitlines() if (match := LINE.match(line.strip()))]
    if not found:
        raise MeasurementError(f"guard: expected lines with percentiles, got {said[-200:]!r}")
    yield from (_row(match) for match in found)


def _row(match: re.Match[str]) -> Row:
    named = {50.0: "p50", 99.0: "p99", 99.9: "p999"}
    return Row(
        quantity="core per tick",
        case=match["case"],
        unit="us",
        n=TICKS,
        percentiles=tuple(Percentile(each, int(match[name]) / 1e3, SUPPORT[each]) for each, name in named.items()),
        verdict=Verdict.COMPARISON,
        conditions={"limited_percent": int(match["limited"])},
    )


def _cargo(command: list[str], timeout_s: float) -> str:
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise MeasurementError(f"guard: {' '.join(command)} took longer than {timeout_s:g} s") from None
    if done.returncode != 0:
        raise MeasurementError(f"guard: {' '.join(command)}: {done.stderr.strip()[-300:]}")
    return done.stdout
