"""The comparison: one Python loop with onnxruntime, written with care.

Absolute deadlines, arrays made beforehand, one inference thread without spinning, input and output bound once. It
clips positions and does nothing else: no processes, no guard, no recording.
"""

from __future__ import annotations

import os
import resource
import time

import numpy as np
import onnxruntime

from benches.fixtures.policies import actor_graph
from benches.fixtures.texts import actor_texts
from benches.job import Given, Job, Measured

WARMUP_TICKS = 30
DEFAULT_RAD, SCALE = np.float32(0.1), np.float32(0.25)
RANGE_RAD = (np.float32(-2.5), np.float32(2.5))


def session(graph: bytes, threads: int) -> onnxruntime.InferenceSession:
    """An engine; `threads` 0 leaves every option alone, as most programs do."""
    options = onnxruntime.SessionOptions()
    if threads:
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def measure(job: Job, given: Given) -> Measured:
    """Runs the loop for `job.seconds`."""
    engine = session(actor_graph(given.folder, job.joints), job.threads)
    granted = _realtime(job.priority)
    try:
        measured = _loop(job, engine)
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    measured.facts["granted"] = granted
    return measured


def _realtime(priority: int) -> dict[str, object]:
    if priority:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))  # 0: the calling thread alone
        except PermissionError as refused:
            return {"scheduler": "other", "priority": 0, "refused": [str(refused)]}
    return {"scheduler": "fifo" if priority else "other", "priority": priority, "refused": []}


def _loop(job: Job, engine: onnxruntime.InferenceSession) -> Measured:
    n, size = job.joints, actor_texts(job.joints, job.kind, job.rate_hz).observed
    period_ns = 1_000_000_000 // job.rate_hz
    planned = int(job.seconds * job.rate_hz) + WARMUP_TICKS
    observation = np.zeros((1, size), dtype=np.float32)
    action = np.zeros((1, n), dtype=np.float32)
    binding = engine.io_binding()
    binding.bind_cpu_input("obs", observation)
    binding.bind_output("actions", "cpu", 0, np.float32, [1, n], action.ctypes.data)
    pos, vel = np.full(n, 0.1001, dtype=np.float32), np.full(n, 1e-4, dtype=np.float32)
    base, last = np.zeros(size, dtype=np.float32), np.zeros(n, dtype=np.float32)
    target, step = np.zeros(n, dtype=np.float32), size - 3 * n
    late, work, infer = (np.zeros(planned, dtype=np.int64) for _ in range(3))
    for _ in range(WARMUP_TICKS):
        engine.run_with_iobinding(binding)
    now = time.monotonic_ns
    used = resource.getrusage(resource.RUSAGE_SELF)
    begun_s = used.ru_utime + used.ru_stime
    released, executed = 0, 0
    due = now() + period_ns
    while released < planned:
        while (left := due - now()) > 0:
            time.sleep(left / 1e9)  # noqa: TID251  the loop as people write it
        woke = now()
        # Overslept ticks are missed, and each of them is a sample of lateness, as in the paced loop.
        while woke - due >= period_ns and released < planned - 1:
            late[released] = woke - due
            released += 1
            due += period_ns
        late[released] = woke - due
        released += 1
        flat = observation[0]
        flat[:step] = base[:step]
        np.subtract(pos, DEFAULT_RAD, out=flat[step : step + n])
        flat[step + n : step + 2 * n] = vel
        flat[step + 2 * n : step + 3 * n] = last
        began = now()
        engine.run_with_iobinding(binding)
        ended = now()
        last[:] = action[0]
        np.multiply(last, SCALE, out=target)
        target += DEFAULT_RAD
        np.clip(target, *RANGE_RAD, out=target)
        work[executed] = now() - woke - (ended - began)
        infer[executed] = ended - began
        executed += 1
        due += period_ns
    used = resource.getrusage(resource.RUSAGE_SELF)
    ticks = max(executed, 1)
    counters = {"planned": released, "executed": executed, "missed": released - executed}
    return Measured(
        job=job,
        series={
            "lateness_ns": late[WARMUP_TICKS:released],
            "work_ns": work[WARMUP_TICKS:executed],
            "infer_ns": infer[WARMUP_TICKS:executed],
        },
        facts={
            "counters": counters,
            "cpu_us_per_tick": {"process": (used.ru_utime + used.ru_stime - begun_s) / ticks * 1e6},
        },
    )
