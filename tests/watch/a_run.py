"""A run of its own process, as a program: starts the tiny robot, lets its policy command, and shows itself.

    python a_run.py FOLDER

Says `{"pids": [...]}` once it runs; ends in order when its standard input is closed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "core"))

import tiny_plan as tiny
from tiny_robot import Robot

from interlock.runtime.beacon import Beacon

TICK_NS = 5_000_000


def main() -> None:
    folder = Path(sys.argv[1])
    made = tiny.plan(tick_ns=TICK_NS, inference_deadline_ns=4_500_000, action_valid_ns=500_000_000)
    made["timing"]["max_age_state_ns"] = 1_000_000_000
    with Robot(made, tiny.graph(step=(0.0, 0.0)), recording=folder / "run.mcap", realtime_priority=50) as robot:
        beacon = Beacon.light(folder, robot.core.status_fd)
        facts = {"policy": "tiny", "robot": "two-joints", "tick_ns": TICK_NS, "granted": robot.granted}
        robot.core.show_facts(json.dumps({**facts, "worker_pid": robot.worker.pid, "driver_pid": robot.driver.pid}))
        robot.run()
        print(json.dumps({"pids": [child.pid for child in robot.children]}), flush=True)
        sys.stdin.read()
        robot.until("Holding", "stop")
        robot.core.request("quit")
        robot.core.wait(10_000_000_000)
        robot.core.stop()
        beacon.put_out()


if __name__ == "__main__":
    main()
