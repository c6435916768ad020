//! A PD target is bounded by what the spring does.

use interlock_core::code::Code;
use interlock_core::guard::{Guard, Motion, Ruling, RulingKind, Situation, Wire};
use interlock_core::mode::Mode;
use interlock_core::plan::{Bound, Plan};
use interlock_core::sample::Sample;

use crate::envelope::{sample, wanted};
use crate::plans;

/// kp 50, kd 2, torque 50 (refused beyond 100), step 0.5 (1.0), measured velocity 20 (40), range +-3 (4).
fn guard(plan: &Plan) -> Guard {
    let mut guard = Guard::new(plan).unwrap();
    guard.start(&at(0.0, 0.0));
    guard.put_in_charge(1);
    guard
}

fn at(q: f64, dq: f64) -> Sample {
    sample(&[q], &[dq], 0)
}

fn judge(guard: &mut Guard, sample: &Sample, target: f64, starts_period: bool) -> Ruling {
    let situation = Situation { now_ns: 0, sample, mode: Mode::Running, starts_period, excused_ns: 0 };
    guard.admit(&situation, &wanted(0), &[target])
}

fn wide_steps() -> Plan {
    let mut plan = plans::walker(1);
    plan.limits.target_step = Some(vec![Bound { limit: 100.0, refuse_beyond: 100.0 }]);
    plan
}

#[test]
fn the_target_is_moved_until_the_predicted_torque_is_at_the_limit() {
    let mut guard = guard(&wide_steps());
    let ruling = judge(&mut guard, &at(0.0, 0.0), 1.5, true);
    assert_eq!((ruling.kind, ruling.codes.joint(Code::Torque)), (RulingKind::Limited, Some(0)));
    assert!((guard.command().target()[0] - 1.0).abs() < 1e-12);
    assert_eq!((guard.command().kp()[0], guard.command().kd()[0]), (50.0, 2.0));
}

#[test]
fn damping_counts_as_torque() {
    // kd * dq = 30 of the 50 N*m: the spring has 20 left against the motion and 80 with it.
    let mut guard = guard(&wide_steps());
    judge(&mut guard, &at(0.0, 15.0), -1.3, true);
    assert!((guard.command().target()[0] + 0.4).abs() < 1e-12, "{:?}", guard.command());
    judge(&mut guard, &at(0.0, 15.0), 1.7, true);
    assert!((guard.command().target()[0] - 1.6).abs() < 1e-12, "{:?}", guard.command());
}

#[test]
fn the_torque_limit_is_worked_out_anew_from_every_sample() {
    let mut guard = guard(&wide_steps());
    for q in [0.0, 0.2, 0.45] {
        judge(&mut guard, &at(q, 0.0), 1.5, false);
        assert!((guard.command().target()[0] - (q + 1.0)).abs() < 1e-12);
    }
    assert_eq!(judge(&mut guard, &at(0.6, 0.0), 1.5, false).kind, RulingKind::Pass);
}

#[test]
fn a_predicted_torque_beyond_its_bound_is_refused() {
    let mut guard = guard(&wide_steps());
    assert_eq!(judge(&mut guard, &at(0.0, 0.0), 2.01, true).refusal, Some(Code::Torque));
    assert_eq!(judge(&mut guard, &at(0.0, 26.0), -1.0, true).refusal, Some(Code::Torque));
    assert_eq!(judge(&mut guard, &at(0.0, 0.0), 1.99, true).refusal, None);
}

#[test]
fn a_step_counts_from_the_period_before_and_not_from_the_tick_before() {
    let mut guard = guard(&plans::walker(1));
    assert_eq!(judge(&mut guard, &at(0.0, 0.0), 0.3, true).kind, RulingKind::Pass);
    assert_eq!(judge(&mut guard, &at(0.3, 0.0), 0.6, false).kind, RulingKind::Pass);
    let ruling = judge(&mut guard, &at(0.3, 0.0), 0.9, false);
    assert_eq!(ruling.codes.joint(Code::TargetStep), Some(0));
    assert!((guard.command().target()[0] - 0.8).abs() < 1e-12);
    // The next period may go on from there.
    assert_eq!(judge(&mut guard, &at(0.8, 0.0), 0.8, true).kind, RulingKind::Pass);
    assert_eq!(judge(&mut guard, &at(0.8, 0.0), 1.25, false).kind, RulingKind::Pass);
}

#[test]
fn a_policy_step_beyond_its_bound_is_refused_wherever_torque_left_the_target() {
    let mut guard = guard(&plans::walker(1));
    assert_eq!(judge(&mut guard, &at(0.0, 0.0), 0.9, true).refusal, None);
    // Sent was 0.5; the policy's own step from 0.9 is what is judged.
    assert_eq!(judge(&mut guard, &at(0.5, 0.0), 1.7, true).refusal, None);
    assert_eq!(judge(&mut guard, &at(0.5, 0.0), 0.65, true).refusal, Some(Code::TargetStep));
}

#[test]
fn where_range_and_torque_do_not_meet_the_torque_wins_near_the_range() {
    let mut plan = wide_steps();
    plan.limits.pos.as_mut().unwrap()[0].hi = 0.1;
    let mut guard = guard(&plan);
    // kd * dq = 78 of 50 N*m: only targets from 0.56 on keep the torque; the nearest to the range is taken.
    let ruling = judge(&mut guard, &at(0.0, 39.0), 0.5, true);
    assert_eq!(ruling.refusal, None);
    assert!((guard.command().target()[0] - 0.56).abs() < 1e-12, "{:?}", guard.command());
    plan.limits.pos.as_mut().unwrap()[0].refuse_hi = 0.5;
    let mut guard = self::guard(&plan);
    assert_eq!(judge(&mut guard, &at(0.0, 39.0), 0.5, true).refusal, Some(Code::Torque), "not beyond refusal");
}

#[test]
fn a_joint_without_stiffness_is_damped_inside_the_torque_limit() {
    let mut plan = wide_steps();
    plan.command.kp = vec![0.0];
    plan.command.kd = vec![5.0];
    let mut guard = guard(&plan);
    let ruling = judge(&mut guard, &at(0.0, 16.0), 0.0, true);
    assert!(ruling.codes.has(Code::Torque));
    assert!((guard.command().kd()[0] * 16.0 - 50.0).abs() < 1e-9);
}

#[test]
fn gains_above_the_robots_are_refused_twice() {
    let mut plan = plans::walker(1);
    plan.command.kp = vec![101.0];
    assert!(Guard::new(&plan).is_err(), "at load");
    let mut plan = plans::walker(1);
    plan.limits.kd_max = Some(vec![1.9]);
    assert!(Guard::new(&plan).is_err(), "at load");
}

#[test]
fn an_unknown_measured_state_is_refused() {
    let mut guard = guard(&plans::walker(1));
    assert_eq!(judge(&mut guard, &at(f64::NAN, 0.0), 0.0, true).refusal, Some(Code::NotFinite));
    assert_eq!(judge(&mut guard, &at(0.0, f64::NAN), 0.0, true).refusal, Some(Code::NotFinite));
}

#[test]
fn host_side_pd_sends_the_torque_of_the_limited_target() {
    let mut plan = wide_steps();
    plan.command.host_pd = true;
    let mut guard = guard(&plan);
    judge(&mut guard, &at(0.1, 1.0), 0.5, true);
    let command = guard.command();
    assert_eq!((command.wire(), command.kp()[0], command.kd()[0]), (Wire::Torque, 0.0, 0.0));
    assert!((command.torque()[0] - (50.0 * 0.4 - 2.0)).abs() < 1e-12);
    judge(&mut guard, &at(0.0, 0.0), 1.9, true);
    assert!((guard.command().torque()[0] - 50.0).abs() < 1e-9);
}

#[test]
fn a_damped_robot_gets_no_stiffness_and_no_more_torque_than_it_may() {
    let mut plan = wide_steps();
    for host_pd in [false, true] {
        plan.command.host_pd = host_pd;
        let mut guard = guard(&plan);
        for (dq, torque) in [(4.0, -20.0), (-4.0, 20.0), (30.0, -50.0)] {
            let ruling = guard.admit_safe(&at(0.3, dq), Mode::Stopping, Motion::Damp(&[5.0]));
            let command = guard.command();
            assert_eq!(command.kp(), [0.0]);
            let acts = if host_pd { command.torque()[0] } else { -command.kd()[0] * dq };
            assert!((acts - torque).abs() < 1e-9, "{acts}");
            assert_eq!(ruling.codes.has(Code::Torque), dq > 10.0);
        }
    }
}

#[test]
fn drives_that_are_let_go_get_nothing() {
    let mut guard = guard(&plans::walker(1));
    judge(&mut guard, &at(0.0, 0.0), 0.3, true);
    guard.admit_safe(&at(0.0, 0.0), Mode::Holding, Motion::Off);
    let command = guard.command();
    assert_eq!((command.wire(), command.kp()[0], command.kd()[0], command.torque()[0]), (Wire::Off, 0.0, 0.0, 0.0));
}
