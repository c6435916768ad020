"""Rates that the robot can serve, and ages and deadlines derived from them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from interlock.contract.binding import Choice, Scope
from interlock.contract.expanded import ImageX
from interlock.contract.policy_model import Ages

NS = 10**9
LARGEST_SYNCHRONOUS_WAIT = 0.8  # of a tick: the rest is for guard and sending
LONGEST_DEFAULT_LATENCY_MS = 400.0
LONGEST_DELAY = 32  # inference periods that the core lets chunks wait
CAMERA_PERIODS_OF_AGE = 3.0
CAMERA_PERIODS_OF_SKEW = 1.5


def bind_timing(scope: Scope, kind: str) -> dict[str, Any]:
    """The plan's `timing`.

    Defaults, for period P, chunk of c actions of which e are executed, latency budget L:

    - latency budget: P/2 synchronous; asynchronous the slack (c - e)P, or half a chunk without slack, at most 400 ms.
    - action valid: P + max(0, L - (c - e)P): the last action bridges what the latency may take.
    - deadline: synchronous min(0.8 tick, L), after which the tick goes on and a late chunk still counts from the tick
      in which it arrives; asynchronous max(L, (c - e)P).
    """
    timing, driver = scope.c.timing, scope.robot.driver.period_s
    period = timing.period_s
    ticks = _ticks(scope, driver, period)
    _check_cameras_in_time(scope, period * timing.execute)
    _check_sensors_in_time(scope, period)
    if timing.handover != "replace":
        scope.refuse("not-served", scope.contract.where("timing", "handover"), expected="replace", got=timing.handover)
    period_ms, tick_ms = float(period * 1000), float(driver * 1000)
    if timing.action_delay_ms >= LONGEST_DELAY * timing.execute * period_ms:
        place = scope.contract.where("timing", "action_delay_ms")
        expected = f"less than {LONGEST_DELAY} inference periods"
        scope.refuse("timing-contradiction", place, expected=expected, got=f"{timing.action_delay_ms:g} ms")
    is_synchronous = _is_synchronous(scope)
    slack_ms = (timing.chunk - timing.execute) * period_ms
    written = scope.contract.choices
    latency_ms = scope.choose(
        "choices.latency_budget_ms",
        written.latency_budget_ms,
        _latency_default(timing.chunk, period_ms, slack_ms, is_synchronous=is_synchronous),
        "half a control period" if is_synchronous else "the slack of a chunk, at most 400 ms",
    )
    valid_ms = scope.choose(
        "choices.action_valid_ms",
        written.action_valid_ms,
        period_ms + max(0.0, latency_ms - slack_ms),
        "one control period and what the latency budget needs beyond the slack of a chunk",
    )
    deadline_ms = scope.choose(
        "choices.inference_deadline_ms",
        written.inference_deadline_ms,
        min(LARGEST_SYNCHRONOUS_WAIT * tick_ms, latency_ms) if is_synchronous else max(latency_ms, slack_ms),
        "0.8 of a tick, at most the latency budget" if is_synchronous else "when the running chunk must be replaced",
    )
    _check_budgets(
        scope, period_ms, tick_ms, slack_ms, latency_ms, valid_ms, deadline_ms, is_synchronous=is_synchronous
    )
    sim_ms = 0.0 if is_synchronous else _sim_latency(scope, period_ms, latency_ms)
    tick_ns = round(driver * NS)
    # A period of ticks may be longer than the exact one by their rounding.
    valid_ns = max(_ns(valid_ms), tick_ns * ticks) if slack_ms == 0 else _ns(valid_ms)
    return {
        "tick_ns": tick_ns,
        "ticks_per_period": ticks,
        "ticks_per_inference": ticks * timing.execute,
        "chunk": timing.chunk,
        "action_delay_ns": _ns(timing.action_delay_ms),
        "handover": "replace",
        "interpolate": _interpolation(scope, kind, ticks),
        "synchronous": is_synchronous,
        "inference_deadline_ns": min(_ns(deadline_ms), tick_ns) if is_synchronous else _ns(deadline_ms),
        "action_valid_ns": valid_ns,
        "manual_latency_ns": _ns(sim_ms),
        **_ages(scope, period_ms, tick_ms),
        "latency_budget_ns": _ns(latency_ms),
    }


def _ticks(scope: Scope, driver: Fraction, period: Fraction) -> int:
    ratio = period / driver
    if ratio.denominator == 1:
        return int(ratio)
    expected = f"a whole number of driver periods of {_ms(driver)} ms"
    got = f"{_ms(period)} ms, {float(ratio):.3g} of them"
    scope.refuse("rate-mismatch", scope.contract.where("timing"), expected=expected, got=got)
    return max(1, round(ratio))


def _check_cameras_in_time(scope: Scope, inference: Fraction) -> None:
    for each in scope.c.inputs:
        camera = scope.robot.cameras.get(each.camera) if isinstance(each, ImageX) else None
        if camera is not None and camera.period_s > inference:
            place = scope.robot.where("cameras", each.camera) if isinstance(each, ImageX) else ""
            expected = f"a picture every {_ms(inference)} ms, the inference period"
            scope.refuse("camera-slow", place, expected=expected, got=f"one every {_ms(camera.period_s)} ms")


def _check_sensors_in_time(scope: Scope, period: Fraction) -> None:
    sensors = scope.robot.sensors
    for name in ("joints", "imu", "base"):
        sensor = getattr(sensors, name, None)
        if sensor is not None and sensor.period_s > period:
            expected = f"a sample every {_ms(period)} ms, the control period"
            got = f"one every {_ms(sensor.period_s)} ms"
            scope.refuse("rate-mismatch", scope.robot.where("sensors", name), expected=expected, got=got)


def _is_synchronous(scope: Scope) -> bool:
    written = scope.contract.choices.inference
    word = written or ("synchronous" if scope.c.timing.chunk == 1 else "asynchronous")
    scope.choices.append(
        Choice(
            key="choices.inference", value=word, is_written=written is not None, why="one action per inference or more"
        )
    )
    return word == "synchronous"


def _latency_default(chunk: int, period_ms: float, slack_ms: float, *, is_synchronous: bool) -> float:
    if is_synchronous:
        return period_ms / 2
    return min(LONGEST_DEFAULT_LATENCY_MS, slack_ms if slack_ms > 0 else max(period_ms, chunk * period_ms / 2))


def _check_budgets(
    scope: Scope,
    period_ms: float,
    tick_ms: float,
    slack_ms: float,
    latency_ms: float,
    valid_ms: float,
    deadline_ms: float,
    *,
    is_synchronous: bool,
) -> None:
    if is_synchronous and deadline_ms > tick_ms:
        place = scope.contract.where("choices", "inference_deadline_ms")
        scope.refuse(
            "budget-impossible", place, expected=f"at most a tick of {tick_ms:g} ms", got=f"{deadline_ms:g} ms"
        )
    needed_ms = period_ms + max(0.0, latency_ms - slack_ms)
    if (slack_ms == 0 and valid_ms < period_ms) or (not is_synchronous and valid_ms < needed_ms):
        place = scope.contract.where("choices", "action_valid_ms")
        expected = f"at least {needed_ms:g} ms: nothing would be valid while the next chunk is computed"
        scope.refuse("budget-impossible", place, expected=expected, got=f"{valid_ms:g} ms")


def _sim_latency(scope: Scope, period_ms: float, latency_ms: float) -> float:
    written = scope.contract.choices.sim_latency_ms
    return scope.choose(
        "choices.sim_latency_ms", written, min(period_ms, latency_ms), "one control period, at most the latency budget"
    )


def _interpolation(scope: Scope, kind: str, ticks: int) -> str:
    written = scope.contract.choices.interpolate
    word = written or ("cubic" if kind == "position" and ticks > 1 else "hold")
    why = "smooth between the actions of a trajectory" if word == "cubic" else "as in training"
    scope.choices.append(Choice(key="choices.interpolate", value=word, is_written=written is not None, why=why))
    return word


def _ages(scope: Scope, period_ms: float, tick_ms: float) -> dict[str, int]:
    written = scope.contract.choices.max_age_ms
    joints = written.joints if isinstance(written, Ages) else written
    images = written.cameras if isinstance(written, Ages) else None
    cameras = [float(camera.period_s * 1000) for camera in scope.robot.cameras.values()]
    slowest = max(cameras, default=period_ms)
    joints_ms = scope.choose(
        "choices.max_age_ms.joints", joints, max(period_ms, 2 * tick_ms), "a control period, at least two ticks"
    )
    images_ms, skew_ms = CAMERA_PERIODS_OF_AGE * slowest, joints_ms
    if cameras:
        images_ms = scope.choose("choices.max_age_ms.cameras", images, images_ms, "three camera periods")
        skew_ms = max(CAMERA_PERIODS_OF_SKEW * slowest, joints_ms)
    skew_ms = scope.choose(
        "choices.max_skew_ms",
        scope.contract.choices.max_skew_ms,
        skew_ms,
        "one and a half camera periods" if cameras else "the age of the joints",
    )
    if joints_ms < tick_ms or (cameras and images_ms < slowest):
        place = scope.contract.where("choices", "max_age_ms")
        expected = f"at least {tick_ms:g} ms (joints), {slowest:g} ms (cameras): every sample would be too old"
        scope.refuse("budget-impossible", place, expected=expected, got=f"{joints_ms:g} ms, {images_ms:g} ms")
    return {
        "max_age_state_ns": _ns(joints_ms),
        "max_age_image_ns": _ns(images_ms),
        "max_skew_ns": _ns(skew_ms),
    }


def _ns(milliseconds: float) -> int:
    return round(milliseconds * 1e6)


def _ms(seconds: Fraction) -> str:
    return f"{float(seconds * 1000):g}"
