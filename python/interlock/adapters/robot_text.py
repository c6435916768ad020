"""Writes the facts of vendor files as a robot file: rows of patterns, sources, `ask` for what no file says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from .model_facts import JointFacts, ModelFacts

ASK = "ask"
WIDTH = 118

# What the guard needs per kind of command, in the order in which rows show it.
_ROWS = {
    "position": ("pos", "vel", "acc", "jerk"),
    "position_pd": ("pos", "vel", "torque", "kp_max", "kd_max"),
    "velocity": ("pos", "vel", "acc"),
}
_UNITS = {
    "vel": "rad/s",
    "acc": "rad/s^2",
    "jerk": "rad/s^3",
    "torque": "N*m",
    "kp_max": "N*m/rad",
    "kd_max": "N*m*s/rad",
}


def robot_text(
    base: ModelFacts,
    models: Sequence[ModelFacts],
    rows: Mapping[str, JointFacts],
    suffix: str,
    conflicts: Sequence[str],
    *,
    is_floating: bool,
    simulated: bool,
) -> str:
    """The text of a robot file.

    Args:
        base: The file that gives the order.
        models: All files, the base first.
        rows: Merged facts by joint name without suffix, in order.
        suffix: What all names end in.
        conflicts: Lines about files that disagree.
        is_floating: The base moves freely.
        simulated: Driver and emergency stop are those of a simulation.
    """
    kind, accepts, why = _kind(rows, is_floating=is_floating)
    files = ", ".join(model.file for model in models)
    lines = [
        f"# Made by `interlock robot import` from {files}.",
        "# Every `ask` is a fact that no file says. `safe` and `target_step_rad` are proposals: read and confirm them.",
        "schema: interlock.robot/1",
        f"type: {_word(base.model)}",
        f"base: {'floating' if is_floating else 'fixed'}",
        *_driver(base, simulated=simulated),
        "",
        *_sensors(base, rows, is_floating=is_floating, simulated=simulated),
        "",
        *_joints(models, rows, suffix, conflicts, kind, accepts, why),
        "",
        *_limits(kind),
        *_safe(is_floating=is_floating, simulated=simulated),
    ]
    return "\n".join(lines) + "\n"


def _kind(rows: Mapping[str, JointFacts], *, is_floating: bool) -> tuple[str, str, str]:
    drives = {row.drive for row in rows.values()}
    if drives == {"position"} and not is_floating:
        return "position", "position", "position actuators"
    if drives == {"position"}:
        return "position_pd", "position_pd", "position actuators, which are PD drives"
    if drives == {"velocity"}:
        return "velocity", "velocity", "velocity actuators"
    if drives == {"motor"}:
        return "position_pd", "position_pd, torque", "torque motors; position_pd where the drive runs the PD law"
    return ("position_pd" if is_floating else "position"), ASK, "no file says what the drives take"


def _driver(base: ModelFacts, *, simulated: bool) -> list[str]:
    step_ms = None if base.step_s is None else _number(base.step_s * 1000)
    sim = [] if step_ms is None else [f"sim: {{mjcf: {_path(base.file)}, step_ms: {step_ms}{_site(base)}}}"]
    if simulated and step_ms is not None:
        return [f'driver: {{use: "sim:mujoco", period_ms: {step_ms}}}', *sim]
    return [f"driver: {{use: {ASK}, network: {ASK}, period_ms: {ASK}}}", *sim]


def _site(base: ModelFacts) -> str:
    return f", imu_site: {_word(base.imu_site)}" if base.imu_site else ""


def _sensors(base: ModelFacts, rows: Mapping[str, JointFacts], *, is_floating: bool, simulated: bool) -> list[str]:
    period = _number(base.step_s * 1000) if simulated and base.step_s is not None else ASK
    clock = "host" if simulated else ASK
    mixed = any(row.is_slide for row in rows.values())
    pos, vel = ("joints.unit", "joints.unit") if mixed else ("rad", "rad/s")
    shown = [
        "sensors:",
        f"  joints: {{gives: {{pos: {pos}, vel: {vel}, torque: N*m}}, period_ms: {period}, clock: {clock}}}",
    ]
    # A floating base is never without an orientation and a turning rate; what else there is, its sensors say.
    gives = set(base.gives) | ({"quat", "ang_vel"} if is_floating else set())
    if gives:
        words = {"quat": "quat: wxyz", "ang_vel": "ang_vel: rad/s", "lin_vel": "lin_vel: m/s"}
        inner = ", ".join(words[each] for each in words if each in gives)
        at = f", at: {_word(base.imu_site)}" if base.imu_site else ""
        shown.append(f"  imu: {{gives: {{{inner}}}, frame: base{at}, period_ms: {period}, clock: {clock}}}")
    return shown


def _joints(
    models: Sequence[ModelFacts],
    rows: Mapping[str, JointFacts],
    suffix: str,
    conflicts: Sequence[str],
    kind: str,
    accepts: str,
    why: str,
) -> list[str]:
    columns = _ROWS[kind]
    slides = [name for name, row in rows.items() if row.is_slide]
    units = [
        f"{key}: {_UNITS[key]}" for key in columns if key != "pos" and not (slides and key in ("vel", "acc", "jerk"))
    ]
    position = [f"{name}: m" for name in slides] + (["others: rad"] if len(slides) < len(rows) else [])
    shown = ["joints:", *_wrapped("  order: [", list(rows), "]")]
    if suffix:
        shown.append(f"  name_suffix: {suffix}")
    shown.append(f"  accepts: {accepts if accepts == ASK else f'[{accepts}]'}".ljust(34) + f"# {why}")
    shown.append(f"  unit: {{{', '.join((position if slides else ['pos: rad']) + units)}}}")
    shown.append("  each:")
    patterns = _patterns(rows, columns)
    width = max(len(pattern) for pattern in patterns) + 2
    for pattern, row in patterns.items():
        inner = ", ".join(f"{key}: {_value(row, key)}" for key in columns)
        note = f"   # gain {row.kp:g} in {models[0].file}" if row.kp is not None else ""
        shown.append(f"    {f'{pattern}:'.ljust(width)}{{{inner}}}{note}")
    shown.append(f"  source: {{{', '.join(f'{key}: {_source(models, rows, key)}' for key in columns)}}}")
    if conflicts:
        shown.append(f"  # conflicts, tightest kept ({' | '.join(model.file for model in models)}):")
        shown.extend(f"  #   {line}" for line in conflicts)
    return shown


def _value(row: JointFacts, key: str) -> str:
    value = getattr(row, key, None)
    if value is None:
        return ASK
    return f"[{_number(value[0])}, {_number(value[1])}]" if isinstance(value, tuple) else _number(value)


def _patterns(rows: Mapping[str, JointFacts], columns: Sequence[str]) -> dict[str, JointFacts]:
    """Rows that say the same of joints whose names differ only before the first `_`, as one."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, row in rows.items():
        stem = name.split("_", 1)[1] if "_" in name else name
        groups.setdefault((stem, str(row.kp), *(_value(row, key) for key in columns)), []).append(name)
    made: dict[str, JointFacts] = {}
    for (stem, *_), names in groups.items():
        if len(names) == 1:
            made[names[0]] = rows[names[0]]
        else:
            made[f"({'|'.join(name.split('_', 1)[0] for name in names)})_{stem}"] = rows[names[0]]
    return made


def _source(models: Sequence[ModelFacts], rows: Mapping[str, JointFacts], key: str) -> str:
    if all(getattr(row, key, None) is None for row in rows.values()):
        return ASK
    files = [m.file for m in models if any(getattr(joint, key, None) is not None for joint in m.joints)]
    if len(files) == 1:
        return _quoted(files[0])
    return _quoted(f"{'narrowest' if key == 'pos' else 'lowest'} of {', '.join(files)}")


def _limits(kind: str) -> list[str]:
    if kind != "position_pd":
        return []
    return [
        "limits_for_position_pd:",
        "  enforce: [pos, torque, target_step, vel_measured]",
        "  target_step_rad: 0.5".ljust(34) + "# per control period",
        "",
    ]


def _safe(*, is_floating: bool, simulated: bool) -> list[str]:
    damp = f"{{do: damp, kd: {{others: {ASK}}}}}"
    if is_floating:
        needs = ", needs: hoisted_or_lying"
        lost, goal, leave, then = damp, "{do: policy, goal: zero}", "{do: damp}", "damp"
    else:
        needs, then = "", "hold"
        lost = goal = leave = "{do: stop_and_hold}"
    if simulated:
        timeout, estop = "100", '{by: none, reason: "simulated robot: ending the driver\'s process is the stop"}'
    else:
        timeout, then, estop = ASK, ASK, f"{{by: {ASK}, cuts: {ASK}, bound_ms: {ASK}}}"
    return [
        "safe:",
        f"  before_start: {{do: move_to_start, in_s: 3{needs}}}",
        f"  policy_lost: {lost}",
        f"  goal_lost: {goal}",
        f"  on_exit: {leave}",
        f"  supervisor_lost: {{command_timeout_ms: {timeout}, drives_then: {then}}}",
        f"  estop: {estop}",
    ]


def _wrapped(start: str, words: Sequence[str], end: str) -> list[str]:
    lines, line = [], start
    for index, word in enumerate(words):
        piece = word + (end if index == len(words) - 1 else ",")
        if len(line) + len(piece) + 1 > WIDTH:
            lines.append(line.rstrip())
            line = "    "
        line += piece if line.endswith(("[", "    ")) else f" {piece}"
    return [*lines, line]


def _number(value: float) -> str:
    return f"{value:.9g}"


def _word(text: str) -> str:
    made = re.sub(r"[^A-Za-z0-9_.-]+", "_", text).strip("_.-")[:64]
    return made if made and re.fullmatch(r"[A-Za-z].*", made) and made != "none" else ASK


def _path(name: str) -> str:
    return _quoted(re.split(r"[/\\]", name)[-1])


def _quoted(text: str) -> str:
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", text) and text not in ("none", "ask", "null", "true", "false"):
        return text
    return '"' + re.sub(r'[\\"\x00-\x1f]', "_", text) + '"'
