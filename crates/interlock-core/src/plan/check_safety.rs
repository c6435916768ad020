//! Refuses limits that are missing for the kind of command and behaviours that the robot cannot carry out.

use super::check::{check_each, check_vector, refuse, require, Checked};
use super::{AfterMove, Behaviour, Bound, CommandKind, Plan, Range};

/// Longest move to a pose: ten minutes, ns.
const MAX_MOVE_NS: i64 = 600_000_000_000;

pub(super) fn check_limits(plan: &Plan) -> Checked {
    let (limits, n) = (&plan.limits, plan.n());
    let needed: &[&str] = match plan.command.kind {
        CommandKind::Position => &["pos", "vel", "acc", "jerk"],
        CommandKind::PositionPd => &["pos", "torque", "target_step", "vel_measured", "kp_max", "kd_max"],
        CommandKind::Velocity => &["pos", "vel", "acc"],
        CommandKind::Torque => &["torque", "vel_measured"],
    };
    let present = [
        ("pos", limits.pos.is_some()),
        ("vel", limits.vel.is_some()),
        ("acc", limits.acc.is_some()),
        ("jerk", limits.jerk.is_some()),
        ("torque", limits.torque.is_some()),
        ("target_step", limits.target_step.is_some()),
        ("vel_measured", limits.vel_measured.is_some()),
        ("kp_max", limits.kp_max.is_some()),
        ("kd_max", limits.kd_max.is_some()),
    ];
    for (name, is_present) in present {
        let at = format!("limits.{name}");
        require(is_present || !needed.contains(&name), &at, "missing for this kind of command")?;
    }
    let optional = [
        ("window_travel", limits.window_travel.is_some(), plan.command.kind != CommandKind::Torque),
        ("distance", limits.distance.is_some(), plan.command.kind == CommandKind::Position),
        (
            "torque_rate",
            limits.torque_rate.is_some(),
            matches!(plan.command.kind, CommandKind::PositionPd | CommandKind::Torque),
        ),
    ];
    for (name, is_present, can_act) in optional {
        require(!is_present || can_act, &format!("limits.{name}"), "cannot act for this kind of command")?;
    }
    let ranges = limits.pos.as_deref();
    ranges.map_or(Ok(()), |ranges| check_ranges("limits.pos", ranges, n))?;
    let bounds = [
        ("limits.vel", &limits.vel),
        ("limits.acc", &limits.acc),
        ("limits.jerk", &limits.jerk),
        ("limits.torque", &limits.torque),
        ("limits.target_step", &limits.target_step),
        ("limits.vel_measured", &limits.vel_measured),
        ("limits.window_travel", &limits.window_travel),
        ("limits.distance", &limits.distance),
        ("limits.torque_rate", &limits.torque_rate),
    ];
    for (at, bound) in bounds {
        bound.as_deref().map_or(Ok(()), |bound| check_bounds(at, bound, n))?;
    }
    check_gains("kp", &plan.command.kp, limits.kp_max.as_deref(), n)?;
    check_gains("kd", &plan.command.kd, limits.kd_max.as_deref(), n)
}

fn check_ranges(at: &str, ranges: &[Range], n: usize) -> Checked {
    require(ranges.len() == n, at, "must have one entry per joint")?;
    for (index, range) in ranges.iter().enumerate() {
        let is_finite = [range.lo, range.hi, range.refuse_lo, range.refuse_hi].iter().all(|value| value.is_finite());
        let is_ordered = range.refuse_lo <= range.lo && range.lo < range.hi && range.hi <= range.refuse_hi;
        let at = format!("{at}[{index}]");
        require(is_finite && is_ordered, &at, "expected finite refuse_lo <= lo < hi <= refuse_hi")?;
    }
    Ok(())
}

fn check_bounds(at: &str, bounds: &[Bound], n: usize) -> Checked {
    require(bounds.len() == n, at, "must have one entry per joint")?;
    for (index, bound) in bounds.iter().enumerate() {
        let is_finite = bound.limit.is_finite() && bound.refuse_beyond.is_finite();
        let is_ordered = bound.limit > 0.0 && bound.limit <= bound.refuse_beyond;
        let at = format!("{at}[{index}]");
        require(is_finite && is_ordered, &at, "expected finite 0 < limit <= refuse_beyond")?;
    }
    Ok(())
}

fn check_gains(name: &str, gains: &[f64], largest: Option<&[f64]>, n: usize) -> Checked {
    let Some(largest) = largest else { return Ok(()) };
    let at = format!("limits.{name}_max");
    check_vector(&at, largest, n)?;
    check_each(&at, largest, "must not be negative", |value| value >= 0.0)?;
    let beyond = gains.iter().zip(largest).position(|(gain, most)| gain > most);
    beyond.map_or(Ok(()), |index| refuse(format!("command.{name}[{index}]"), "is above the robot's largest gain"))
}

pub(super) fn check_start(plan: &Plan) -> Checked {
    let (start, n) = (&plan.start, plan.n());
    check_pose(plan, "start.pose", &start.pose)?;
    check_vector("start.within_pos", &start.within_pos, n)?;
    check_each("start.within_pos", &start.within_pos, "must be positive", |value| value > 0.0)?;
    if plan.safe.floating_base {
        require(start.within_tilt_rad.is_some(), "start.within_tilt_rad", "a floating base needs one")?;
    }
    let is_tilt = start.within_tilt_rad.is_none_or(|tilt| tilt.is_finite() && tilt > 0.0);
    require(is_tilt, "start.within_tilt_rad", "must be positive")
}

fn check_pose(plan: &Plan, at: &str, pose: &[f64]) -> Checked {
    check_vector(at, pose, plan.n())?;
    let ranges = plan.limits.pos.iter().flatten();
    let outside = pose.iter().zip(ranges).position(|(value, range)| *value < range.lo || *value > range.hi);
    outside.map_or(Ok(()), |index| refuse(format!("{at}[{index}]"), "is outside the position limit"))
}

pub(super) fn check_safe(plan: &Plan) -> Checked {
    let safe = &plan.safe;
    require(safe.command_timeout_ns >= 0, "safe.command_timeout_ns", "must not be negative")?;
    if let Some(before) = &safe.before_start {
        let Behaviour::GoTo { pose, .. } = before else {
            return refuse("safe.before_start", "only a move to the start pose can come before the start");
        };
        check_behaviour(plan, "safe.before_start", before)?;
        let reach = plan.start.pose.iter().zip(&plan.start.within_pos);
        let is_inside = pose.iter().zip(reach).all(|(goal, (pose, within))| (goal - pose).abs() <= *within);
        require(is_inside, "safe.before_start.pose", "is outside the start envelope")?;
    }
    check_behaviour(plan, "safe.policy_lost", &safe.policy_lost)?;
    check_behaviour(plan, "safe.goal_lost", &safe.goal_lost)?;
    check_behaviour(plan, "safe.on_exit", &safe.on_exit)?;
    let needs_policy = safe.policy_lost == Behaviour::PolicyZeroGoal;
    require(!needs_policy, "safe.policy_lost", "a lost policy cannot act")?;
    let holds = matches!(safe.policy_lost, Behaviour::StopAndHold | Behaviour::GoTo { then: AfterMove::Hold, .. });
    require(!(safe.floating_base && holds), "safe.policy_lost", "a floating base falls in a held pose")
}

fn check_behaviour(plan: &Plan, at: &str, behaviour: &Behaviour) -> Checked {
    let has_gains = !plan.command.kp.is_empty();
    let kind = plan.command.kind;
    match behaviour {
        Behaviour::StopAndHold => {
            let can_hold = kind != CommandKind::Torque || has_gains;
            require(can_hold, at, "holding by torque needs gains")
        }
        Behaviour::Damp { kd } => {
            let can_damp = matches!(kind, CommandKind::PositionPd | CommandKind::Torque);
            require(can_damp, at, "this kind of command has no damping")?;
            check_vector(&format!("{at}.kd"), kd, plan.n())?;
            check_each(&format!("{at}.kd"), kd, "must not be negative", |value| value >= 0.0)?;
            let beyond = kd.iter().zip(plan.limits.kd_max.iter().flatten()).position(|(kd, most)| kd > most);
            beyond.map_or(Ok(()), |index| refuse(format!("{at}.kd[{index}]"), "is above the robot's largest gain"))
        }
        Behaviour::GoTo { pose, duration_ns, .. } => {
            let can_move = match kind {
                CommandKind::Position | CommandKind::PositionPd => true,
                CommandKind::Torque => has_gains,
                CommandKind::Velocity => false,
            };
            require(can_move, at, "this kind of command cannot move to a pose")?;
            check_pose(plan, &format!("{at}.pose"), pose)?;
            require((1..=MAX_MOVE_NS).contains(duration_ns), at, "duration out of range")
        }
        Behaviour::PolicyZeroGoal => {
            let Some(velocity) = plan.goal.velocity else { return refuse(at, "there is no velocity goal") };
            let has_zero = velocity.iter().all(|[lo, hi]| *lo <= 0.0 && *hi >= 0.0);
            require(has_zero, at, "zero is outside the velocity goal's range")
        }
    }
}
