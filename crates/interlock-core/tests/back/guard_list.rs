//! Each check of the list acts by itself: the command is in order in every other respect.

use interlock_core::code::Code;
use interlock_core::guard::{Guard, Ruling, RulingKind, Situation, Wire};
use interlock_core::mode::Mode;
use interlock_core::plan::{Bound, CommandKind, Limits, Plan};
use interlock_core::sample::Sample;
use interlock_core::schedule::Wanted;

use crate::envelope::{sample, wanted};
use crate::plans::{self, MS};
use crate::rig::generous;

const NOW: i64 = 1_000 * MS;

/// A guard whose robot stands at 0, with generation 1 in charge.
fn guard(plan: &Plan) -> Guard {
    let mut guard = Guard::new(plan).unwrap();
    guard.start(&still(0.0));
    guard.put_in_charge(1);
    guard
}

fn still(position: f64) -> Sample {
    sample(&[position; 2], &[0.0; 2], NOW)
}

fn judge(guard: &mut Guard, sample: &Sample, wanted: &Wanted, target: &[f64]) -> Ruling {
    let situation = Situation { now_ns: NOW, sample, mode: Mode::Running, starts_period: true, excused_ns: 0 };
    guard.admit(&situation, wanted, target)
}

fn refuses(plan: &Plan, wanted: &Wanted, target: &[f64]) -> Option<Code> {
    judge(&mut guard(plan), &still(0.0), wanted, target).refusal
}

fn kind(kind: CommandKind) -> Plan {
    let mut plan = plans::plan(2);
    plan.command.kind = kind;
    if kind == CommandKind::Torque {
        let limits = plans::walker(2).limits;
        plan.limits = Limits { torque: limits.torque, vel_measured: limits.vel_measured, ..Limits::default() };
        let damp = plans::walker(2).safe.policy_lost;
        (plan.safe.policy_lost, plan.safe.goal_lost, plan.safe.on_exit) = (damp.clone(), damp.clone(), damp);
    }
    plan
}

fn every_kind() -> [Plan; 4] {
    [plans::plan(2), plans::walker(2), kind(CommandKind::Velocity), kind(CommandKind::Torque)]
}

#[test]
fn a_small_command_in_order_passes_unchanged() {
    for plan in every_kind() {
        let mut guard = guard(&plan);
        let ruling = judge(&mut guard, &still(0.0), &wanted(NOW), &[1e-4, 0.0]);
        assert_eq!(ruling, Ruling::default(), "{:?}", plan.command.kind);
        let command = guard.command();
        let sent = match command.wire() {
            Wire::Position | Wire::PositionPd => command.target(),
            Wire::Velocity => command.velocity(),
            Wire::Torque => command.torque(),
            Wire::Off => panic!("nothing sent"),
        };
        assert_eq!(sent, [1e-4, 0.0]);
        assert_eq!(command.mode(), Mode::Running);
    }
}

#[test]
fn another_generation_is_refused() {
    for plan in every_kind() {
        let other = Wanted { generation: 2, ..wanted(NOW) };
        assert_eq!(refuses(&plan, &other, &[0.0; 2]), Some(Code::RetiredGeneration));
    }
}

#[test]
fn an_older_sequence_is_refused() {
    for plan in every_kind() {
        let mut guard = guard(&plan);
        let newer = Wanted { seq: 7, ..wanted(NOW) };
        assert_eq!(judge(&mut guard, &still(0.0), &newer, &[0.0; 2]).kind, RulingKind::Pass);
        let older = Wanted { seq: 6, ..wanted(NOW) };
        assert_eq!(judge(&mut guard, &still(0.0), &older, &[0.0; 2]).refusal, Some(Code::OldSequence));
        assert_eq!(judge(&mut guard, &still(0.0), &newer, &[0.0; 2]).kind, RulingKind::Pass, "the same again");
    }
}

#[test]
fn what_is_no_number_is_refused_before_any_clamp() {
    for plan in every_kind() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut guard = guard(&plan);
            let before = guard.command().target().to_vec();
            let ruling = judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, bad]);
            assert_eq!(ruling.refusal, Some(Code::NotFinite));
            assert_eq!(ruling.codes.joint(Code::NotFinite), Some(1));
            assert_eq!(guard.command().target(), before, "nothing of a refused command is used");
        }
    }
}

#[test]
fn another_number_of_values_is_refused() {
    for plan in every_kind() {
        for target in [&[0.0; 1][..], &[0.0; 3], &[]] {
            assert_eq!(refuses(&plan, &wanted(NOW), target), Some(Code::Dimension));
        }
    }
}

#[test]
fn a_stale_measured_state_is_refused() {
    for plan in every_kind() {
        let mut guard = guard(&plan);
        let mut measured = still(0.0);
        measured.capture_ns = NOW - plan.timing.max_age_state_ns;
        assert_eq!(judge(&mut guard, &measured, &wanted(NOW), &[0.0; 2]).refusal, None);
        measured.capture_ns -= 1;
        assert_eq!(judge(&mut guard, &measured, &wanted(NOW), &[0.0; 2]).refusal, Some(Code::StaleState));
        measured.capture_ns = i64::MIN;
        assert_eq!(judge(&mut guard, &measured, &wanted(NOW), &[0.0; 2]).refusal, Some(Code::StaleState));
    }
}

#[test]
fn an_action_that_is_not_due_or_is_over_is_refused() {
    for plan in every_kind() {
        let over = Wanted { until_ns: NOW - 1, due_ns: 0, ..wanted(NOW) };
        let early = Wanted { due_ns: NOW + 1, until_ns: NOW + 2, ..wanted(NOW) };
        for wanted in [over, early, Wanted::NOTHING] {
            assert_eq!(refuses(&plan, &wanted, &[0.0; 2]), Some(Code::NoValidAction));
        }
    }
}

#[test]
fn a_position_is_limited_to_its_range_and_refused_beyond() {
    // The walker's targets may step by 0.5: only the range is at stake here.
    let mut plan = plans::walker(2);
    plan.limits.pos.as_mut().unwrap()[1].hi = 0.2;
    plan.limits.pos.as_mut().unwrap()[1].refuse_hi = 0.3;
    let mut guard = guard(&plan);
    let ruling = judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 0.25]);
    assert_eq!((ruling.kind, ruling.codes.joint(Code::Position)), (RulingKind::Limited, Some(1)));
    assert_eq!(guard.command().target(), [0.0, 0.2]);
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 0.31]).refusal, Some(Code::Position));
    assert_eq!(refuses(&plans::plan(2), &wanted(NOW), &[0.0, 4.1]), Some(Code::Position));
    assert_eq!(refuses(&plans::plan(2), &wanted(NOW), &[-4.1, 0.0]), Some(Code::Position));
}

/// A position plan whose ticks are policy periods and in which only one bound can refuse.
fn only(bound: &str) -> Plan {
    let mut plan = plans::plan(2);
    plan.timing.ticks_per_period = 1;
    plan.timing.ticks_per_inference = 1;
    let limits = &mut plan.limits;
    for (name, bounds) in [("vel", &mut limits.vel), ("acc", &mut limits.acc), ("jerk", &mut limits.jerk)] {
        let beyond = if name == bound { 2.0 } else { 1e9 };
        bounds.as_mut().unwrap().iter_mut().for_each(|b| b.refuse_beyond = beyond * b.limit);
    }
    plan
}

#[test]
fn each_derivative_is_refused_by_itself_beyond_its_bound() {
    // Limits 2 rad/s, 20 rad/s^2, 200 rad/s^3 and a tick of 10 ms: from rest one tick to x has x/h, x/h^2, x/h^3.
    let (h, below, above) = (0.01_f64, 0.999, 1.001);
    for (name, code, x) in [
        ("vel", Code::Velocity, 4.0 * h),
        ("acc", Code::Acceleration, 40.0 * h * h),
        ("jerk", Code::Jerk, 400.0 * h * h * h),
    ] {
        let plan = only(name);
        assert_eq!(refuses(&plan, &wanted(NOW), &[0.0, below * x]), None, "{name}");
        assert_eq!(refuses(&plan, &wanted(NOW), &[0.0, above * x]), Some(code), "{name}");
        assert_eq!(refuses(&plan, &wanted(NOW), &[0.0, -above * x]), Some(code), "{name}");
    }
}

#[test]
fn what_stands_for_a_period_is_a_demand_on_the_period_not_on_the_tick() {
    let mut plan = only("vel");
    plan.timing.ticks_per_period = 5;
    plan.timing.ticks_per_inference = 5;
    plan.timing.action_valid_ns = 50 * MS;
    assert_eq!(refuses(&plan, &wanted(NOW), &[0.19, 0.0]), None);
    assert_eq!(refuses(&plan, &wanted(NOW), &[0.21, 0.0]), Some(Code::Velocity));
}

#[test]
fn each_derivative_that_acts_is_named() {
    let mut guard = guard(&only("none"));
    let ruling = judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 1.0]);
    assert_eq!(ruling.kind, RulingKind::Limited);
    for code in [Code::Velocity, Code::Acceleration, Code::Jerk] {
        assert_eq!(ruling.codes.joint(code), Some(1), "{code:?}");
    }
    assert!(!ruling.codes.has(Code::Position));
    let mut plan = only("none");
    plan.limits.acc.as_mut().unwrap().iter_mut().for_each(|b| b.limit = 1e5);
    plan.limits.vel.as_mut().unwrap().iter_mut().for_each(|b| b.limit = 1e5);
    let mut guard = self::guard(&plan);
    let ruling = judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 1.0]);
    assert_eq!(ruling.codes.iter().collect::<Vec<_>>(), [Code::Jerk]);
}

#[test]
fn a_velocity_is_limited_and_refused_by_each_of_its_bounds() {
    let mut plan = only("vel");
    plan.command.kind = CommandKind::Velocity;
    let mut guard = guard(&plan);
    for _ in 0..200 {
        let ruling = judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 3.9]);
        assert_eq!((ruling.refusal, ruling.codes.joint(Code::Velocity)), (None, Some(1)));
    }
    assert!((guard.command().velocity()[1] - 2.0).abs() < 1e-9, "{:?}", guard.command());
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 4.1]).refusal, Some(Code::Velocity));
    let mut plan = only("acc");
    plan.command.kind = CommandKind::Velocity;
    assert_eq!(refuses(&plan, &wanted(NOW), &[0.0, 0.41]), Some(Code::Acceleration));
    assert_eq!(refuses(&plan, &wanted(NOW), &[0.0, 0.39]), None);
    let mut plan = only("jerk");
    plan.command.kind = CommandKind::Velocity;
    assert_eq!(refuses(&plan, &wanted(NOW), &[0.0, 0.041]), Some(Code::Jerk));
    assert_eq!(refuses(&plan, &wanted(NOW), &[0.0, 0.039]), None);
}

#[test]
fn a_velocity_towards_a_position_limit_is_braked_in_time_and_turned_away_from_outside() {
    let plan = generous(kind(CommandKind::Velocity));
    let mut guard = guard(&plan);
    let near = still(2.99);
    for _ in 0..50 {
        let ruling = judge(&mut guard, &near, &wanted(NOW), &[0.0, 1.0]);
        assert_eq!(ruling.refusal, None);
    }
    assert!(guard.command().velocity()[1] < 0.5, "{:?}", guard.command());
    let mut guard = self::guard(&plan);
    let outside = still(3.1);
    assert!(judge(&mut guard, &outside, &wanted(NOW), &[0.0, 1.0]).codes.has(Code::Position));
    assert_eq!(guard.command().velocity()[1], 0.0, "no further out");
    assert_eq!(judge(&mut guard, &outside, &wanted(NOW), &[0.0, -0.01]).kind, RulingKind::Pass, "but back in");
    assert_eq!(judge(&mut guard, &still(4.1), &wanted(NOW), &[0.0; 2]).refusal, Some(Code::Position));
    assert_eq!(judge(&mut guard, &still(f64::NAN), &wanted(NOW), &[0.0; 2]).refusal, Some(Code::NotFinite));
}

#[test]
fn a_torque_is_limited_and_refused() {
    let mut guard = guard(&kind(CommandKind::Torque));
    let ruling = judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, -70.0]);
    assert_eq!((ruling.kind, ruling.codes.joint(Code::Torque)), (RulingKind::Limited, Some(1)));
    assert_eq!(guard.command().torque(), [0.0, -50.0]);
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, -101.0]).refusal, Some(Code::Torque));
}

/// Limits that a robot file may leave out, the same for both joints.
fn with(mut plan: Plan, set: impl FnOnce(&mut Limits, fn(f64) -> Option<Vec<Bound>>)) -> Plan {
    set(&mut plan.limits, |limit| Some(vec![Bound { limit, refuse_beyond: 2.0 * limit }; 2]));
    plan
}

#[test]
fn a_trajectory_travels_no_further_within_250_ms_than_it_may_and_goes_on_afterwards() {
    let mut plan = with(only("none"), |limits, bound| limits.window_travel = bound(0.2));
    plan.limits.vel.as_mut().unwrap().iter_mut().for_each(|b| b.limit = 100.0);
    let mut guard = guard(&plan);
    let sent: Vec<f64> = (0..400)
        .map(|_| {
            let goal = guard.command().target()[1] + 0.19;
            let ruling = judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, goal.min(1.5)]);
            assert_eq!(ruling.refusal, None);
            guard.command().target()[1]
        })
        .collect();
    let furthest = sent.windows(26).map(|window| window[25] - window[0]).fold(0.0, f64::max);
    assert!(furthest > 0.15 && furthest <= 0.2, "{furthest}");
    assert!((sent[399] - 1.5).abs() < 1e-6, "it gets there: {}", sent[399]);
    let mut guard = self::guard(&plan);
    let ruling = judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 0.3]);
    assert_eq!(ruling.codes.joint(Code::WindowTravel), Some(1));
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 0.41]).refusal, Some(Code::WindowTravel));
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, -0.41]).refusal, Some(Code::WindowTravel));
}

#[test]
fn a_velocity_is_limited_by_where_it_leads_within_250_ms() {
    let plan = with(generous(kind(CommandKind::Velocity)), |limits, bound| limits.window_travel = bound(0.2));
    let mut guard = guard(&plan);
    let mut codes = Vec::new();
    for _ in 0..25 {
        codes.extend(judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 1.9]).codes.iter());
    }
    assert!(codes.contains(&Code::WindowTravel));
    let free = generous(kind(CommandKind::Velocity));
    let mut unlimited = self::guard(&free);
    for _ in 0..25 {
        judge(&mut unlimited, &still(0.0), &wanted(NOW), &[0.0, 1.9]);
    }
    assert!(guard.command().velocity()[1] < unlimited.command().velocity()[1]);
    let mut guard = self::guard(&plan);
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 21.0]).refusal, Some(Code::WindowTravel));
}

#[test]
fn a_spring_s_target_travels_no_further_within_250_ms_than_it_may() {
    let plan = with(plans::walker(2), |limits, bound| limits.window_travel = bound(0.3));
    let mut guard = guard(&plan);
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 0.25]).kind, RulingKind::Pass);
    let ruling = judge(&mut guard, &still(0.2), &wanted(NOW), &[0.0, 0.4]);
    assert_eq!((ruling.kind, ruling.codes.joint(Code::WindowTravel)), (RulingKind::Limited, Some(1)));
    assert!((guard.command().target()[1] - 0.3).abs() < 1e-8);
    assert_eq!(judge(&mut guard, &still(0.2), &wanted(NOW), &[0.0, 0.61]).refusal, Some(Code::WindowTravel));
}

#[test]
fn a_command_is_not_led_away_from_a_robot_that_ignores_it() {
    let plan = with(only("none"), |limits, bound| limits.distance = bound(0.1));
    let mut guard = guard(&plan);
    let mut last = Ruling::default();
    (0..100).for_each(|_| last = judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 0.19]));
    assert_eq!((last.refusal, last.codes.joint(Code::Distance)), (None, Some(1)));
    assert!((guard.command().target()[1] - 0.1).abs() < 1e-6, "braked in time and stays: {:?}", guard.command());
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 0.21]).refusal, Some(Code::Distance));
    assert_eq!(
        judge(&mut guard, &still(-0.11), &wanted(NOW), &[0.0, 0.0]).refusal,
        Some(Code::Distance),
        "pushed away"
    );
    assert_eq!(judge(&mut guard, &still(f64::NAN), &wanted(NOW), &[0.0; 2]).refusal, Some(Code::NotFinite));
}

#[test]
fn a_robot_that_was_pushed_away_may_be_gone_back_to_but_not_further_away_from() {
    let plan = with(only("none"), |limits, bound| limits.distance = bound(0.1));
    let mut guard = guard(&plan);
    let pushed = still(-0.15);
    judge(&mut guard, &pushed, &wanted(NOW), &[0.0, 0.04]);
    assert_eq!(guard.command().target()[1], 0.0, "no further away");
    for _ in 0..100 {
        judge(&mut guard, &pushed, &wanted(NOW), &[0.0, -0.1]);
    }
    assert!((guard.command().target()[1] + 0.1).abs() < 1e-6, "but back: {:?}", guard.command());
}

#[test]
fn a_torque_changes_no_faster_than_it_may() {
    let mut plan = with(kind(CommandKind::Torque), |limits, bound| limits.torque_rate = bound(1000.0));
    plan.timing.ticks_per_period = 1;
    plan.timing.ticks_per_inference = 1;
    let mut guard = guard(&plan);
    let ruling = judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 15.0]);
    assert_eq!((ruling.kind, ruling.codes.joint(Code::TorqueRate)), (RulingKind::Limited, Some(1)));
    assert_eq!(guard.command().torque(), [0.0, 10.0]);
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 15.0]).kind, RulingKind::Pass);
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, -5.1]).refusal, Some(Code::TorqueRate));
}

#[test]
fn a_predicted_torque_changes_no_faster_than_it_may_whoever_changes_it() {
    // kp 50: 1000 N*m/s at 10 ms are 10 N*m, a fifth of a rad.
    let plan = with(plans::walker(2), |limits, bound| limits.torque_rate = bound(1000.0));
    let mut guard = guard(&plan);
    let ruling = judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 0.3]);
    assert_eq!((ruling.kind, ruling.codes.joint(Code::TorqueRate)), (RulingKind::Limited, Some(1)));
    assert!((guard.command().target()[1] - 0.2).abs() < 1e-12);
    // The robot is pushed the other way: the target goes with it.
    let ruling = judge(&mut guard, &still(-0.5), &wanted(NOW), &[0.0, 0.3]);
    assert!(ruling.codes.has(Code::TorqueRate));
    assert!((guard.command().target()[1] - (-0.5 + 0.4)).abs() < 1e-12, "{:?}", guard.command());
    let mut guard = self::guard(&with(plans::walker(2), |limits, bound| limits.torque_rate = bound(400.0)));
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW), &[0.0, 0.4]).refusal, Some(Code::TorqueRate));
}

#[test]
fn a_robot_that_moves_too_fast_is_noticed_and_then_refused() {
    for plan in [plans::walker(2), kind(CommandKind::Torque)] {
        let mut guard = guard(&plan);
        // Far enough ahead for the spring to pull nothing: torque is not at stake.
        let fast = |speed: f64| sample(&[0.0; 2], &[0.0, speed], NOW);
        let ahead = |speed: f64| if plan.command.kp.is_empty() { [0.0; 2] } else { [0.0, 0.04 * speed] };
        let step = plan.limits.target_step.is_some();
        let wants = |speed: f64| if step { [0.0, ahead(speed)[1].min(0.49)] } else { ahead(speed) };
        assert_eq!(
            judge(&mut guard, &fast(19.0), &wanted(NOW), &wants(10.0)).codes.joint(Code::MeasuredVelocity),
            None
        );
        let noticed = judge(&mut guard, &fast(21.0), &wanted(NOW), &wants(21.0));
        assert_eq!(noticed.codes.joint(Code::MeasuredVelocity), Some(1));
        assert_eq!(noticed.refusal, None);
        assert!(judge(&mut guard, &fast(-41.0), &wanted(NOW), &[0.0, 0.0]).is_refused());
        let beyond = judge(&mut guard, &fast(41.0), &wanted(NOW), &[0.0, 0.9]);
        assert_eq!(beyond.refusal, Some(Code::MeasuredVelocity), "{beyond:?}");
    }
}

#[test]
fn a_guard_that_begins_at_an_unknown_position_stays_where_it_was() {
    for plan in every_kind() {
        let mut guard = guard(&plan);
        guard.start(&still(f64::NAN));
        assert_eq!(guard.command().target(), [0.0; 2], "{:?}", plan.command.kind);
        assert_eq!(guard.command().wire(), Wire::Off);
    }
}

#[test]
fn without_limits_only_the_limits_are_gone() {
    let mut guard = Guard::without_limits(&plans::plan(2)).unwrap();
    guard.start(&still(0.0));
    guard.put_in_charge(1);
    let ruling = judge(&mut guard, &still(0.0), &wanted(NOW), &[2.0, -50.0]);
    assert_eq!((ruling.kind, guard.command().target()), (RulingKind::Pass, &[2.0, -50.0][..]));
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW), &[f64::NAN; 2]).refusal, Some(Code::NotFinite));
    assert_eq!(judge(&mut guard, &still(0.0), &Wanted::NOTHING, &[0.0; 2]).refusal, Some(Code::NoValidAction));
}

#[test]
fn the_order_of_the_list_decides_which_code_refuses() {
    let plan = plans::plan(2);
    let worst = Wanted { generation: 9, seq: 0, due_ns: NOW + 1, ..wanted(NOW) };
    let mut guard = guard(&plan);
    let stale = sample(&[0.0; 2], &[0.0; 2], 0);
    assert_eq!(judge(&mut guard, &stale, &worst, &[f64::NAN; 3]).refusal, Some(Code::RetiredGeneration));
    assert_eq!(judge(&mut guard, &stale, &wanted(NOW), &[f64::NAN; 3]).refusal, Some(Code::NotFinite));
    assert_eq!(judge(&mut guard, &stale, &wanted(NOW), &[9.0; 3]).refusal, Some(Code::Dimension));
    assert_eq!(judge(&mut guard, &stale, &wanted(NOW + 1), &[9.0; 2]).refusal, Some(Code::StaleState));
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW + 1), &[9.0; 2]).refusal, Some(Code::NoValidAction));
    assert_eq!(judge(&mut guard, &still(0.0), &wanted(NOW), &[9.0; 2]).refusal, Some(Code::Position));
}
