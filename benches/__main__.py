"""`python -m benches`: runs the benchmarks, prints tables, leaves JSON with the environment record."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.console import Console

from benches.document import BEGIN, has_marks, put, render
from benches.host import Load
from benches.lab import ROOT, Lab, MeasurementError
from benches.registry import Benchmark, benchmarks
from benches.rows import FAILED, Row
from benches.table import show
from interlock.artifact.environment import environment

SCHEMA = "interlock.benchmark/1"
OUT = ROOT / "benches" / "out"
INTERRUPTED, FAILURE = 130, 1


def main(arguments: list[str] | None = None) -> int:
    """Runs what was asked for; returns the exit code: 0 whatever the verdicts, 1 when something could not be measured."""
    known = benchmarks()
    asked = _asked(known, arguments)
    if asked.list:
        for each in known:
            sys.stdout.write(f"{each.name:16} {each.title}\n")
        return 0
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 200)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "began": f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
        "command": ["python", "-m", "benches", *(sys.argv[1:] if arguments is None else arguments)],
        "quick": asked.quick,
        "scale": asked.scale,
        "environment": environment(),
        "benchmarks": [],
    }
    measured: list[tuple[str, list[Row]]] = []
    before = Load.now()
    chosen = [each for each in known if not asked.only or each.name in asked.only]
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    code = 0
    with console.status("starting") as status:
        try:
            with Lab(is_quick=asked.quick, scale=asked.scale, on_job=status.update) as lab:
                for each in chosen:
                    rows: list[Row] = []
                    measured.append((each.title, rows))
                    code = max(code, _run(each, lab, console, document["benchmarks"], rows))
        except KeyboardInterrupt:
            document["interrupted"] = True
            code = INTERRUPTED
    document["machine"] = before.until(Load.now())
    document["ended"] = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
    path = asked.json or OUT / f"{document['began'].replace(':', '-')}{'-quick' if asked.quick else ''}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if asked.document and code != INTERRUPTED:
        put(asked.document, render(document, measured))
    console.print(_closing(document, path), soft_wrap=True)
    return code


def _asked(known: list[Benchmark], arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benches",
        description="Measurements as ratios against the floor of the same run. Everything ends by itself.",
    )
    parser.add_argument("--quick", action="store_true", help="shows that everything works in 40 s; supports no claim")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write; default benches/out/TIME.json")
    parser.add_argument(
        "--only", action="append", metavar="NAME", choices=[each.name for each in known], default=[],
        help="one benchmark, may be repeated: " + ", ".join(each.name for each in known),
    )  # fmt: skip
    parser.add_argument("--scale", type=float, default=1.0, metavar="X", help="measure X times as long")
    parser.add_argument("--document", type=Path, metavar="FILE", help="put the tables between the marks of a document")
    parser.add_argument("--list", action="store_true", help="what there is")
    asked = parser.parse_args(arguments)
    if asked.document and not has_marks(asked.document):
        parser.error(f"--document: expected a file with the line {BEGIN}")
    if not 0.1 <= asked.scale <= 100:
        parser.error("--scale: expected 0.1 to 100")
    return asked


def _run(each: Benchmark, lab: Lab, console: Console, done: list[dict[str, Any]], rows: list[Row]) -> int:
    """One benchmark, into `rows`; what it had before Ctrl-C or a failure is kept and shown."""
    entry: dict[str, Any] = {"name": each.name, "title": each.title, "error": None}
    done.append(entry)
    try:
        for row in each.measure(lab):
            rows.append(row)  # noqa: PERF402  what came before Ctrl-C stays
    except MeasurementError as failure:
        entry["error"] = str(failure)
    finally:
        entry["rows"] = [row.as_json() for row in rows]
        if rows:
            show(console, f"{each.name}: {each.title}", rows)
    if entry["error"]:
        console.print(f"[red]error[/red]: {each.name}: {entry['error']}", soft_wrap=True)
    has_failed = entry["error"] or any(row.reason.startswith(FAILED) for row in rows)
    return FAILURE if has_failed else 0


def _closing(document: dict[str, Any], path: Path) -> str:
    verdicts = [row["verdict"] for each in document["benchmarks"] for row in each["rows"] if row["verdict"]]
    counted = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)) or "no verdicts"
    machine = document["machine"]
    return (
        f"{counted} · load {machine['load_average_before']} before, {machine['load_average_after']} after, "
        f"{machine['stolen_s']} s stolen by the hypervisor · {path}"
    )


if __name__ == "__main__":
    sys.exit(main())
