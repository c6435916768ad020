"""The process that serves a run's numbers for Prometheus, from the shared memory of the loop.

Its clients are threads of that process, which runs at the lowest priority and may be slow, stalled or killed: the
supervisor neither waits for it nor reads from it. Imported by that process alone; it needs the extra `metrics`.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, Metric, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from interlock import _core

MOST_CLIENTS = 8  # at a time; who comes then is let go at once
CLIENT_S = 5.0  # for a client to ask or to read
LOOK_S = 0.5  # between two looks at whether the supervisor lives
NICE = 19
FIRST_BUCKET = 10  # log2 of nanoseconds, see `_core.Watched.durations`
RULINGS = ("limited", "refused")

COUNTERS = {
    "executed": ("interlock_ticks_executed", "Ticks executed."),
    "missed": ("interlock_ticks_missed", "Ticks that passed while the one before was not over, or nobody ran."),
    "violations": ("interlock_guard_violations", "Limited or refused stretches."),
    "sent": ("interlock_commands_sent", "Commands sent."),
    "offered": ("interlock_observations_offered", "Observations offered to the worker."),
    "chunks": ("interlock_chunks_arrived", "Chunks that arrived."),
    "accepted": ("interlock_chunks_accepted", "Chunks that the schedule took."),
    "dropped": ("interlock_chunks_dropped", "Chunks not used."),
    "late": ("interlock_answers_late", "Synchronous offers without their chunk by the deadline."),
    "requests": ("interlock_requests", "Requests taken, granted or not."),
    "requests_refused": ("interlock_requests_refused", "Requests that were not granted."),
}
GAUGES = {
    "level": ("interlock_fallback_level", "Level of the ladder of fallbacks."),
    "generation": ("interlock_worker_generation", "Generation of the worker that is connected."),
    "worker_alive": ("interlock_worker_alive", "1 while the worker is loaded and its process lives."),
    "driver_alive": ("interlock_driver_alive", "1 while the driver's process lives."),
    "actions_left": ("interlock_chunk_actions_left", "Actions of the chunk in use that are still to come."),
    "unanswered": ("interlock_observations_unanswered", "Observations not answered yet."),
    "record_waiting": ("interlock_recording_ticks_waiting", "Ticks that wait to be written to the recording."),
    "record_chunks_waiting": ("interlock_recording_chunks_waiting", "Chunks that wait to be written likewise."),
    "ended": ("interlock_loop_ended", "1 once the loop has ended."),
}
DURATIONS = {
    "lateness_ns": ("interlock_tick_lateness_seconds", "Release of a tick to the thread running."),
    "work_ns": ("interlock_tick_work_seconds", "Work of a tick without the hand-off to the worker."),
    "handoff_ns": ("interlock_handoff_seconds", "Hand-off of an observation; synchronous: until its chunk was seen."),
    "observe_ns": ("interlock_tick_observe_seconds", "Waking to the newest sample being aligned."),
    "act_ns": ("interlock_tick_act_seconds", "Modes, schedule, guard and fallback."),
    "send_ns": ("interlock_command_send_seconds", "Publishing a command."),
    "record_ns": ("interlock_tick_record_seconds", "Copying a tick into the recording's ring."),
    "capture_to_sent_ns": ("interlock_capture_to_sent_seconds", "Capture of the sample in use to the command sent."),
}
TALLIES = {
    "limited_by": ("interlock_guard_limited", "Ticks in which a code limited the command."),
    "refused_by": ("interlock_guard_refused", "Ticks in which a code refused the command."),
    "dropped_by": ("interlock_chunks_dropped_by_code", "Chunks not used, by code."),
    "lost_by": ("interlock_losses", "Losses by cause."),
}
LOST = ("ticks", "chunks", "images", "logs")


def serve(board: int, listener: int, parent_pid: int) -> None:
    """Answers until the supervisor is gone; the body of the process.

    Args:
        board: Descriptor of the loop's memory, `_core.Supervisor.status_fd`.
        listener: Descriptor of the socket that `metrics.listen` made.
        parent_pid: The supervisor.
    """
    with contextlib.suppress(OSError):
        os.nice(NICE)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Loop(_core.Watched.attach(board)))
    server = _Server(socket.socket(fileno=listener), parent_pid)
    server.set_app(make_wsgi_app(registry))
    server.serve_forever(poll_interval=LOOK_S)


class _Handler(WSGIRequestHandler):
    timeout = CLIENT_S

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing: the terminal is the operator's."""

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # who went away, or never asked
            super().handle()


class _Server(WSGIServer):
    """One thread a client, a few clients at a time, on a socket made elsewhere."""

    def __init__(self, listener: socket.socket, parent_pid: int) -> None:
        super().__init__(("", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_address = listener.getsockname()
        self.server_name, self.server_port = listener.getsockname()[:2]
        self.setup_environ()
        self._parent_pid = parent_pid
        self._free = threading.BoundedSemaphore(MOST_CLIENTS)

    def service_actions(self) -> None:
        if os.getppid() != self._parent_pid:
            os._exit(0)  # clients that stall are not waited for

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        threading.Thread(target=self._answer, args=(request, client_address), daemon=True).start()

    def _answer(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except (OSError, ValueError):
            return  # a client of this kind is nobody's concern
        finally:
            with contextlib.suppress(OSError):
                self.shutdown_request(request)
            self._free.release()


class _Loop:
    """Reads the loop's memory at every scrape."""

    def __init__(self, watched: _core.Watched) -> None:
        self._watched = watched
        self._modes = _core.mode_names()

    def collect(self) -> Iterator[Metric]:
        """All metrics; only `interlock_up` 0 where the loop was stopped in the middle of writing."""
        numbers = self._watched.look()
        yield GaugeMetricFamily("interlock_up", "1 where the loop could be read.", value=float(numbers is not None))
        if numbers is None:
            return
        facts = json.loads(self._watched.facts() or "{}")
        labels = {name: str(facts.get(name, "")) for name in ("policy", "robot", "simulated", "dry")}
        yield _labelled(GaugeMetricFamily, "interlock_run_info", "What runs.", {tuple(labels.values()): 1}, [*labels])
        modes = {(name,): float(number == numbers["mode"]) for number, name in self._modes.items()}
        yield _labelled(GaugeMetricFamily, "interlock_mode", "1 for the mode that holds.", modes, ["mode"])
        age_s = max(_core.monotonic_ns() - numbers["at_ns"], 0) / 1e9 if numbers["at_ns"] else 0.0
        yield GaugeMetricFamily("interlock_last_tick_age_seconds", "Since the last tick was due.", value=age_s)
        for key, (name, about) in COUNTERS.items():
            yield CounterMetricFamily(name, about, value=numbers[key])
        for key, (name, about) in GAUGES.items():
            yield GaugeMetricFamily(name, about, value=numbers[key])
        rulings = {(each,): numbers[each] for each in RULINGS}
        yield _labelled(
            CounterMetricFamily, "interlock_rulings", "Ticks that the guard answered so.", rulings, ["ruling"]
        )
        for key, (name, about) in TALLIES.items():
            yield _labelled(
                CounterMetricFamily, name, about, {(code,): n for code, n in numbers[key].items()}, ["code"]
            )
        for key, each in self._watched.durations().items():
            name, about = DURATIONS[key]
            yield HistogramMetricFamily(name, about, buckets=_buckets(each["buckets"]), sum_value=each["sum_ns"] / 1e9)
        yield from self._granted(facts)
        yield from self._recording(numbers["recording"])

    def _granted(self, facts: dict[str, Any]) -> Iterator[Metric]:
        granted = facts.get("granted") or {}
        scheduler = {(str(granted.get("scheduler", "")),): float(granted.get("priority") or 0)}
        about = "Real-time priority that the kernel granted the control thread."
        yield _labelled(GaugeMetricFamily, "interlock_realtime_priority", about, scheduler, ["scheduler"])
        locked = float(bool(granted.get("memory_locked")))
        yield GaugeMetricFamily("interlock_memory_locked", "1 where all memory is locked.", value=locked)

    def _recording(self, recording: dict[str, int] | None) -> Iterator[Metric]:
        if recording is None:
            return
        yield GaugeMetricFamily("interlock_recording_size_bytes", "Bytes in the file.", value=recording["bytes"])
        yield GaugeMetricFamily("interlock_recording_ended", "1 where nothing is written.", value=recording["ended"])
        busy_s = recording["writer_busy_ns"] / 1e9
        yield CounterMetricFamily("interlock_recording_writer_busy_seconds", "The writer's own time.", value=busy_s)
        lost = {(what,): recording[f"{what}_dropped"] for what in LOST}
        yield _labelled(CounterMetricFamily, "interlock_recording_dropped", "What is not in the file.", lost, ["what"])


def _labelled(kind: Any, name: str, about: str, values: Mapping[Any, float], labels: list[str]) -> Any:
    family = kind(name, about, labels=labels)
    for value_labels, value in values.items():
        family.add_metric(value_labels, value)
    return family


def _buckets(counts: list[int]) -> list[tuple[str, float]]:
    """Cumulative, by their upper ends in seconds."""
    total, found = 0, []
    for index, count in enumerate(counts):
        total += count
        end = "+Inf" if index == len(counts) - 1 else f"{2 ** (FIRST_BUCKET + index) / 1e9:.9g}"
        found.append((end, float(total)))
    return found
