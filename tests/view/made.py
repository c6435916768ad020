"""Recordings made up for tests, written in the real schema: an arm whose run has one of everything."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from mcap.writer import CompressionType, Writer
from proto_text import classes, descriptor_set

from interlock import _core
from interlock.view.png import png

RECORDING, IMAGE = "interlock/v1/recording.proto", "foxglove/CompressedImage.proto"
V1, FOXGLOVE = classes(RECORDING), classes(IMAGE)
TOPICS = {
    "Header": "header",
    "Clock": "clock",
    "Tick": "tick",
    "Chunk": "chunk",
    "Goal": "goal",
    "ModeChange": "mode",
    "Reward": "reward",
    "Log": "log",
    "Summary": "summary",
}
EPOCH_NS, BOOT_NS = 1_796_000_000_000_000_000, 5_000_000_000_000
TICK_NS = 5_000_000
JOINTS = ["base_yaw", "shoulder", "elbow", "wrist"]
MODES = {0: "Idle", 1: "Armed", 2: "Running", 3: "Takeover", 4: "Degraded", 5: "Stopping", 6: "Holding", 7: "Faulted"}
CODES = {
    0: "none",
    11: "old-sequence",
    17: "no-valid-action",
    20: "position",
    21: "velocity",
    23: "jerk",
    40: "worker-dead",
    46: "operator-stop",
    48: "frozen-image",
}
ROWS, PERIOD_TICKS, INFERENCE_TICKS = 16, 10, 80


@dataclass
class Script:
    """What happens in a made-up run.

    Attributes:
        seconds: Length.
        die_s: When the worker dies; None: never.
        late: (second, milliseconds): the operating system is late.
        wait: (second, milliseconds): the tick waits for the worker.
        unrecorded: (second, ticks): ticks that the recorder drops.
        limited: (first second, ticks, code, joint).
        manual: On a manual clock.
        synchronous: Every tick waits for its own chunk.
        images: Record a camera of this many pixels; 0: none.
        freeze_s: From when on the camera repeats itself.
        policy: Name in the header.
        task: Task text of the goal.
        camera: Name of the camera.
        joints: Their names; as many as there are values.
        plan: Replaces the plan.
        tick: Fields of every tick that are replaced.
        closed: The file has its summary and its end.
    """

    seconds: float = 8.0
    die_s: float | None = 5.0
    late: list = field(default_factory=list)
    wait: list = field(default_factory=list)
    unrecorded: list = field(default_factory=list)
    limited: list = field(default_factory=lambda: [(2.0, 3, 21, 1)])
    manual: bool = False
    synchronous: bool = False
    images: int = 48
    freeze_s: float | None = None
    policy: str = "reach-block"
    task: str = "reach the red block"
    camera: str = "front"
    joints: list = field(default_factory=lambda: list(JOINTS))
    plan: dict | None = None
    tick: dict = field(default_factory=dict)
    closed: bool = True


class Recorder:
    def __init__(self, path: Path, camera: str = "front") -> None:
        self._file = path.open("wb")
        self._writer = Writer(self._file, chunk_size=64 * 1024, compression=CompressionType.NONE)
        self._writer.start()
        schema = descriptor_set(RECORDING).SerializeToString()
        self._channels = {}
        for name, topic in TOPICS.items():
            number = self._writer.register_schema(f"interlock.v1.{name}", "protobuf", schema)
            self._channels[name] = self._writer.register_channel(f"/interlock/{topic}", "protobuf", number)
        number = self._writer.register_schema(
            "foxglove.CompressedImage", "protobuf", descriptor_set(IMAGE).SerializeToString()
        )
        self._channels["image"] = self._writer.register_channel(f"/camera/{camera}", "protobuf", number)

    def write(self, name, time_ns, /, **values):
        self._add(name, time_ns, V1[f"interlock.v1.{name}"](**values))

    def image(self, at_ns, pixels):
        message = FOXGLOVE["foxglove.CompressedImage"](frame_id="front", data=png(pixels), format="png")
        message.timestamp.FromNanoseconds(at_ns + EPOCH_NS - BOOT_NS)
        self._add("image", at_ns, message)

    def close(self, *, whole=True):
        if whole:
            self._writer.finish()
        self._file.close()

    def _add(self, name, at_ns, message):
        time = at_ns + EPOCH_NS - BOOT_NS
        self._writer.add_message(self._channels[name], time, message.SerializeToString(), time)


def plan(script: Script) -> dict:
    """Of the made-up arm; only what a report reads."""
    return {
        "schema": "interlock.plan/1",
        "identity": {"contract": "a" * 64, "robot": "b" * 64, "binding": "c" * 64},
        "timing": {
            "tick_ns": TICK_NS,
            "ticks_per_period": PERIOD_TICKS,
            "chunk": 1 if script.synchronous else ROWS,
            "ticks_per_inference": PERIOD_TICKS if script.synchronous else INFERENCE_TICKS,
            "action_delay_ns": 0,
            "synchronous": script.synchronous,
            "manual_latency_ns": 30_000_000,
            "latency_budget_ns": 700_000_000,
        },
        "joints": {"names": JOINTS},
        "cameras": [{"name": "front", "height": script.images, "width": script.images}] if script.images else [],
        "limits": {"pos": [{"lo": -1.0, "hi": 0.7, "refuse_lo": -1.1, "refuse_hi": 0.8} for _ in JOINTS]},
    }


def made(path: Path, script: Script | None = None) -> Path:
    """Writes the run of a script."""
    script = script or Script()
    recorder = Recorder(path, script.camera)
    start = 1_000_000_000 if script.manual else BOOT_NS
    clock = {"monotonic_ns": start, "realtime_ns": start + EPOCH_NS - BOOT_NS, "tai_ns": start + EPOCH_NS - BOOT_NS}
    header = {
        "policy": script.policy,
        "robot": "tabletop-arm",
        "clock": "manual" if script.manual else "monotonic",
        "environment": {"cpu": "Made-up CPU", "cores": 2, "packages": {"numpy": "2.0"}},
        "granted": {"scheduler": "SCHED_FIFO", "priority": 50, "memory_locked": True},
    }
    recorder.write(
        "Header",
        start,
        schema="interlock.recording/1",
        plan_json=json.dumps(plan(script) if script.plan is None else script.plan),
        header_json=json.dumps(header),
        clock=V1["interlock.v1.Clock"](**clock),
        manual_clock=script.manual,
        images="png",
        joints=script.joints,
        version="0.1.0",
        codes=CODES,
        modes=MODES,
    )
    recorder.write("Clock", start, **clock)
    Run(recorder, script, start).ticks()
    recorder.close(whole=script.closed)
    return path


class Run:
    """A seeded story told tick by tick."""

    def __init__(self, recorder, script, start):
        self.recorder, self.script, self.start = recorder, script, start
        self.random = np.random.default_rng(7)
        self.mode, self.missed, self.sequence, self.images = 0, 0, 0, 0
        self.pos, self.vel = np.zeros(4), np.zeros(4)
        self.counts = {"ticks": 0, "chunks": 0, "images": 0, "ticks_limited": 0, "ticks_dropped": 0}
        self.chunk_arrived, self.in_use, self.coming = 0, 0, (0, 0)

    def ticks(self):
        script, total = self.script, int(self.script.seconds * 1e9) // TICK_NS
        self.recorder.write("Goal", self.start, seq=1, stamp_ns=self.start, text=script.task)
        self.recorder.write("Goal", self.start, seq=1, stamp_ns=self.start, request="arm")
        tick, busy, pictures = 0, 0, 0
        while tick < total:
            due = self.start + tick * TICK_NS
            second = tick * TICK_NS / 1e9
            late = 40_000 + int(self.random.gamma(2.0, 12_000)) + self._at(script.late, second)
            woke = max(due + (0 if script.manual else late), busy)
            # As the control thread does it: what was overslept is missed, and the tick that is executed is a later one.
            overslept = (woke - due) // TICK_NS
            self.missed += overslept
            tick += overslept
            for each in range(pictures, tick + 1):
                self._camera(each, self.start + each * TICK_NS)
            pictures = tick + 1
            unrecorded = sum(count for at, count in script.unrecorded if abs(second - at) < 0.0026)
            self.counts["ticks_dropped"] += unrecorded
            tick += unrecorded
            busy = self._tick(tick, self.start + tick * TICK_NS, woke + unrecorded * TICK_NS)
            tick += 1
        end = self.start + total * TICK_NS
        if script.closed:
            self.recorder.write(
                "Summary",
                end,
                **self.counts,
                ticks_missed=self.missed,
                replayable=not self.counts["ticks_dropped"],
                writer_busy_ns=200_000_000,
                writer_longest_ns=9_000_000,
                bytes=3_000_000,
            )

    def _tick(self, tick, due, woke):
        script, second = self.script, tick * TICK_NS / 1e9
        wait = self._at(script.wait, second) + (220_000 if script.synchronous and tick % PERIOD_TICKS == 0 else 0)
        wait = 0 if script.manual else wait
        self._modes(tick, second, due)
        limited = [
            (code, joint) for first, count, code, joint in script.limited if 0 <= tick - round(first * 200) < count
        ]
        wanted = self._wanted(second)
        running = self.mode == 2
        self._move(wanted, running)
        offered = running and tick % (PERIOD_TICKS if script.synchronous else INFERENCE_TICKS) == 0
        observed = woke + (0 if script.manual else 1_500)
        acted = observed + wait + (0 if script.manual else 2_500)
        sent = acted + (0 if script.manual else 900)
        if offered:
            self._chunk(tick, due, sent if not script.synchronous else observed, observed + wait)
        if self.coming[1] <= observed + wait:
            self.in_use, self.chunk_arrived = self.coming
        row = (tick % INFERENCE_TICKS) // PERIOD_TICKS if not script.synchronous else 0
        self.counts["ticks"] += 1
        self.counts["ticks_limited"] += bool(limited)
        told = {
            "tick": tick,
            "due_ns": due,
            "woke_ns": woke,
            "captured_ns": due if script.manual else due - 1_100_000,
            "observed_ns": observed,
            "chunk_arrived_ns": self.chunk_arrived,
            "acted_ns": acted,
            "sent_ns": sent,
            "record_ns": 0 if script.manual else 700,
            "mode": self.mode,
            "ruling": 1 if limited else 0,
            "codes": [code for code, _ in limited],
            "joints": [joint for _, joint in limited],
            "sample_seq": tick,
            "pos": self.pos,
            "vel": self.vel,
            "quat": [1, 0, 0, 0],
            "wanted": wanted if running and self.in_use else [],
            "sent": self.mode > 1,
            "kind": 0,
            "target": self.pos + 0.01,
            "generation": 1,
            "chunk_seq": self.in_use,
            "row": row,
            "goal_seq": 1,
            "offered": offered,
            "observation_seq": self.sequence,
            "missed": self.missed,
        }
        self.recorder.write("Tick", due, **{**told, **script.tick})
        for code, joint in limited[:1] if limited and tick == round(script.limited[0][0] * 200) else []:
            self.recorder.write(
                "Reward",
                due,
                tick=tick,
                at_ns=due,
                channel="constraint_violation",
                value=-10,
                code=code,
                joint=joint,
                ruling=1,
            )
        return sent + 700

    def _at(self, list_, second):
        return sum(int(ms * 1e6) for at, ms in list_ if abs(second - at) < 0.0026)

    def _modes(self, tick, second, due):
        script = self.script
        story = [(0.2, 1, 0), (0.4, 2, 0)]
        if script.die_s is not None:
            story += [(script.die_s, 5, 40), (script.die_s + 0.3, 6, 0)]
        for at, mode, cause in story:
            if tick == round(at * 200):
                self.recorder.write(
                    "ModeChange", due, tick=tick, at_ns=due, **{"from": self.mode}, to=mode, cause=cause
                )
                self.mode = mode

    def _wanted(self, second):
        return 0.55 * np.sin(second * np.array([0.9, 1.3, 1.7, 2.1]))

    def _move(self, wanted, running):
        if running:
            step = (wanted - self.pos) * 0.12
            self.vel = step / (TICK_NS / 1e9)
        else:
            self.vel = self.vel * 0.93
        self.pos = self.pos + self.vel * TICK_NS / 1e9
        self.vel = np.where(np.abs(self.vel) < 1e-4, 0.0, self.vel)

    def _chunk(self, tick, due, offered, in_time):
        script = self.script
        self.sequence += 1
        self.counts["chunks"] += 1
        rows = 1 if script.synchronous else ROWS
        second = (due - self.start) / 1e9
        actions = np.stack([self._wanted(second + 0.05 * row) for row in range(rows)]) + self.random.normal(
            0, 0.004, (rows, 4)
        )
        gone = 0 if script.manual else 1
        received = offered + gone * (45_000 + int(self.random.gamma(2, 9_000)))
        ready = received + gone * 180_000
        inferred = ready + gone * (8_000_000 if not script.synchronous else 100_000)
        decoded = inferred + gone * 6_000
        arrived = in_time if script.synchronous else decoded + gone * 2_000_000
        self.coming = self.sequence, arrived
        self.recorder.write(
            "Chunk",
            arrived,
            tick=tick,
            generation=1,
            seq=self.sequence,
            at_ns=due,
            rows=rows,
            actions=actions.ravel(),
            received_ns=received,
            preprocessed_ns=ready,
            inferred_ns=inferred,
            decoded_ns=decoded,
            arrived_ns=arrived,
            refused=11 if self.sequence == 4 else 0,
        )

    def _camera(self, tick, due):
        script = self.script
        if not script.images or tick % 20:
            return
        second = tick * TICK_NS / 1e9
        frozen = script.freeze_s is not None and second >= script.freeze_s
        at = script.freeze_s if frozen else second
        side = script.images
        y, x = np.mgrid[:side, :side]
        pixels = np.stack([120 + x, 130 + y, np.full_like(x, 150)], axis=-1) % 256
        middle = side / 2 + side / 3 * np.sin(at * 0.9)
        pixels[np.hypot(x - middle, y - side / 2) < side / 7] = (200, 40, 40)
        pixels[0, 0] = int(at * 10) % 256  # no two images of a live camera are identical
        self.counts["images"] += 1
        self.recorder.image(due - 3_000_000 if not script.manual else due, pixels.astype(np.uint8))


def code_words_match() -> bool:
    """Whether the words used here are the core's."""
    return all(_core.code_word(number) == word for number, word in CODES.items())
