"""What the guard is given to enforce for this kind of command, and why the rest does not apply."""

from __future__ import annotations

from typing import Any

from interlock.contract.binding import Choice, LimitLine, Scope
from interlock.contract.units import DEG, UNITS, si_per

# Without these the guard cannot bound this kind of command.
NEEDED = {
    "position": ("pos", "vel", "acc", "jerk"),
    "position_pd": ("pos", "torque", "target_step", "vel_measured"),
    "velocity": ("pos", "vel", "acc"),
    "torque": ("torque", "vel_measured"),
}
MAY = {"position": (), "position_pd": (), "velocity": ("jerk",), "torque": ("pos",)}
# Held to as soon as the robot file gives a number.
OPTIONAL = {
    "position": ("window_travel", "distance"),
    "position_pd": ("window_travel", "torque_rate"),
    "velocity": ("window_travel",),
    "torque": ("torque_rate",),
}
EVER_OPTIONAL = ("window_travel", "distance", "torque_rate")
ALL = ("pos", "vel", "acc", "jerk", "torque", "target_step", "vel_measured", *EVER_OPTIONAL)

# Multiples of the limit (of the whole range for pos) beyond which nothing is limited but refused: choices, printed.
REFUSE_BEYOND = {
    "pos": 0.1,
    "vel": 4.0,
    "acc": 20.0,
    "jerk": 400.0,
    "torque": 4.0,
    "target_step": 4.0,
    "vel_measured": 1.5,
    "window_travel": 2.0,
    "distance": 2.0,
    "torque_rate": 4.0,
}

_SPRING = "the target is a spring's far end, not a trajectory; held to arm-like limits a walking policy falls"
REASONS = {
    ("position", "torque"): "the drive closes its own loop and bounds its own torque",
    ("position", "target_step"): "velocity and acceleration bound the trajectory",
    ("position", "vel_measured"): "the velocity of the trajectory is bounded",
    ("position", "torque_rate"): "the drive closes its own loop and bounds its own torque",
    ("position", "gains"): "the drive has its own",
    ("position_pd", "vel"): _SPRING,
    ("position_pd", "acc"): _SPRING,
    ("position_pd", "jerk"): _SPRING,
    ("position_pd", "distance"): "the predicted torque bounds how far the target is from where the robot is",
    ("velocity", "torque"): "the drive closes its own loop and bounds its own torque",
    ("velocity", "target_step"): "there is no position target",
    ("velocity", "vel_measured"): "the commanded velocity is bounded",
    ("velocity", "distance"): "there is no position target",
    ("velocity", "torque_rate"): "the drive closes its own loop and bounds its own torque",
    ("velocity", "jerk"): "not asked for by the robot file",
    ("velocity", "gains"): "the drive has its own",
    ("torque", "pos"): "not asked for by the robot file",
    ("torque", "vel"): "there is no velocity target; the measured velocity is bounded",
    ("torque", "acc"): "there is no trajectory",
    ("torque", "jerk"): "there is no trajectory",
    ("torque", "target_step"): "there is no position target",
    ("torque", "window_travel"): "there is no position target",
    ("torque", "distance"): "there is no position target",
    ("torque", "gains"): "there is no PD law",
}
NOT_SET = "the robot file gives no number"
_ROW_OF = {"vel_measured": "vel"}


def bind_limits(scope: Scope, kind: str) -> dict[str, Any]:
    """The plan's `limits`, robot order, SI; quantities that do not apply are None."""
    enforce = _enforced(scope, kind)
    limits: dict[str, Any] = dict.fromkeys((*(each for each in ALL if each not in EVER_OPTIONAL), "kp_max", "kd_max"))
    for quantity in ALL:
        written = _block(scope, kind).get("not_applicable", {}).get(quantity)
        if quantity in enforce:
            limits[quantity] = _bound(scope, kind, quantity)
        elif quantity in OPTIONAL[kind] and written is None:
            scope.enforced.append(LimitLine(quantity=quantity, status="not_set", reason=NOT_SET))
        else:
            reason = written or REASONS[kind, quantity]
            scope.enforced.append(LimitLine(quantity=quantity, status="not_applicable", reason=reason))
    _bind_gains(scope, kind, limits)
    _check_written(scope)
    return limits


def _block(scope: Scope, kind: str) -> dict[str, Any]:
    return scope.r.kinds.get(kind, {})


def _enforced(scope: Scope, kind: str) -> tuple[str, ...]:
    block = _block(scope, kind)
    wanted = tuple(block.get("enforce", NEEDED[kind]))
    optional = tuple(
        each
        for each in OPTIONAL[kind]
        if each in wanted or (each in scope.r.limits and each not in block.get("not_applicable", {}))
    )
    place = scope.robot.where(f"limits_for_{kind}", "enforce")
    for quantity in wanted:
        if quantity not in (*NEEDED[kind], *MAY[kind], *OPTIONAL[kind]):
            expected = ", ".join((*NEEDED[kind], *MAY[kind], *OPTIONAL[kind]))
            scope.refuse("limit-not-for-kind", place, expected=expected, got=quantity)
    for quantity in NEEDED[kind]:
        if quantity not in wanted:
            expected = f"{quantity}: a {kind} command is always held to it"
            scope.refuse("limit-missing", place, expected=expected, got="not enforced")
    return tuple(dict.fromkeys((*NEEDED[kind], *(each for each in wanted if each in MAY[kind]), *optional)))


def _bound(scope: Scope, kind: str, quantity: str) -> list[dict[str, float]] | None:
    if quantity == "target_step":
        values = _target_step(scope, kind)
        source = "a choice of the robot file"
    else:
        row = _ROW_OF.get(quantity, quantity)
        values = scope.r.limits.get(row)
        source = scope.r.sources.get(row, "")
    if values is None:
        key = f"limits_for_{kind}.target_step_rad" if quantity == "target_step" else f"joints.each.*.{quantity}"
        reason = f"{key} is not in the robot file"
        scope.enforced.append(LimitLine(quantity=quantity, status="missing", reason=reason))
        place = scope.robot.where("joints", "each")
        scope.refuse("limit-missing", place, expected=f"{quantity}, for {kind} commands", got="none")
        return None
    scope.enforced.append(LimitLine(quantity=quantity, status="enforced", source=source))
    if quantity == "pos":
        return _ranges(scope, kind, values)
    factors = _si_factors(scope, quantity)
    limits = [float(value) * factor for value, factor in zip(values, factors, strict=True)]
    return [
        {"limit": limit, "refuse_beyond": _beyond(scope, kind, quantity, limit, is_first=not index)}
        for index, limit in enumerate(limits)
    ]


def _si_factors(scope: Scope, quantity: str) -> list[float]:
    if quantity in ("torque", "target_step", "torque_rate"):
        return [1.0] * scope.n
    return [si_per(unit) for unit in scope.r.unit]


def _target_step(scope: Scope, kind: str) -> tuple[float, ...] | None:
    block = _block(scope, kind)
    step_rad, step_deg = block.get("target_step_rad"), block.get("target_step_deg")
    if step_rad is None and step_deg is None:
        return None
    return (float(step_rad) if step_rad is not None else float(step_deg or 0.0) * DEG,) * scope.n


def _ranges(scope: Scope, kind: str, values: tuple[Any, ...]) -> list[dict[str, float]]:
    written = _block(scope, kind).get("refuse_beyond", {})
    absolute = written.get("pos_rad", written["pos_deg"] * DEG if "pos_deg" in written else None)
    share = written.get("pos_range_ratio", REFUSE_BEYOND["pos"])
    _record(
        scope,
        kind,
        "pos_range_ratio" if absolute is None else "pos_rad",
        share if absolute is None else absolute,
        is_written=bool(written.keys() & {"pos_range_ratio", "pos_rad", "pos_deg"}),
    )
    made = []
    for (low, high), unit in zip(values, scope.r.unit, strict=True):
        lo, hi = low * si_per(unit), high * si_per(unit)
        is_angle = UNITS[unit].quantity == "angle"
        beyond = absolute if absolute is not None and is_angle else share * (hi - lo)
        made.append({"lo": lo, "hi": hi, "refuse_lo": lo - beyond, "refuse_hi": hi + beyond})
    return made


def _beyond(scope: Scope, kind: str, quantity: str, limit: float, *, is_first: bool) -> float:
    written = _block(scope, kind).get("refuse_beyond", {})
    absolute = written.get("target_step_rad") if quantity == "target_step" else None
    ratio = written.get(f"{quantity}_ratio")
    if is_first:
        if absolute is not None:
            _record(scope, kind, "target_step_rad", absolute, is_written=True)
        else:
            _record(scope, kind, f"{quantity}_ratio", ratio or REFUSE_BEYOND[quantity], is_written=ratio is not None)
    if absolute is not None:
        if absolute < limit and is_first:
            place = scope.robot.where(f"limits_for_{kind}", "refuse_beyond", "target_step_rad")
            scope.refuse("range-inverted", place, expected=f"at least the limit of {limit:g} rad", got=f"{absolute:g}")
        return float(absolute)
    return limit * float(ratio or REFUSE_BEYOND[quantity])


def _record(scope: Scope, kind: str, key: str, value: float, *, is_written: bool) -> None:
    why = "" if is_written else "between the limit and this a command is limited, beyond it refused"
    name = f"limits_for_{kind}.refuse_beyond.{key}"
    scope.choices.append(Choice(key=name, value=f"{value:g}", is_written=is_written, why=why))


def _bind_gains(scope: Scope, kind: str, limits: dict[str, Any]) -> None:
    if kind != "position_pd":
        scope.enforced.append(LimitLine(quantity="gains", status="not_applicable", reason=REASONS[kind, "gains"]))
        return
    missing = [key for key in ("kp_max", "kd_max") if key not in scope.r.limits]
    for key in missing:
        place = scope.robot.where("joints", "each")
        scope.refuse("limit-missing", place, expected=f"{key}, for position_pd commands", got="none")
    if missing:
        reason = f"{' and '.join(missing)} not in the robot file"
        scope.enforced.append(LimitLine(quantity="gains", status="missing", reason=reason))
        return
    for key in ("kp_max", "kd_max"):
        limits[key] = [float(value) for value in scope.r.limits[key]]
    source = scope.r.sources.get("kp_max", "")
    scope.enforced.append(LimitLine(quantity="gains", status="enforced", source=source))
    for key in ("kp", "kd"):
        gains = getattr(scope.c.joints, key)
        if gains is None:
            continue
        for name, gain in zip(scope.c.joints.names, gains, strict=True):
            if name in scope.r.names and gain > limits[f"{key}_max"][scope.r.names.index(name)]:
                largest = limits[f"{key}_max"][scope.r.names.index(name)]
                place = scope.contract.where("joints", "each")
                scope.refuse(
                    "gain-above-maximum", place, expected=f"{key} of {name} at most {largest:g}", got=f"{gain:g}"
                )


def _check_written(scope: Scope) -> None:
    """A limit that is written and enforced for no kind of command that the robot accepts is a mistake."""
    kinds = [*scope.r.accepts, *(["position_pd"] if "torque" in scope.r.accepts else [])]
    acting: set[str] = set()
    for kind in kinds:
        block = _block(scope, kind)
        wanted = {*NEEDED[kind], *OPTIONAL[kind], *block.get("enforce", ())}
        acting |= {_ROW_OF.get(each, each) for each in wanted} | set(block.get("not_applicable", ()))
        if kind == "position_pd":
            acting |= {"kp_max", "kd_max"}
    for quantity in scope.r.limits:
        if quantity not in acting:
            place = scope.robot.where("joints", "each")
            expected = f"a limit that acts for {' or '.join(kinds)} commands"
            scope.refuse("limit-unenforced", place, expected=expected, got=quantity)
