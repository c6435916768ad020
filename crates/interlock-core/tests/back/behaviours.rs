//! Each safe behaviour from the last command on, inside the limits.

use interlock_core::code::Code;
use interlock_core::guard::Wire;
use interlock_core::mode::{Event, Mode};
use interlock_core::plan::{AfterMove, Behaviour, CommandKind, Interpolate, Limits, Plan};

use crate::checker::{Envelope, Observer};
use crate::plans::{self, MS};
use crate::rig::{generous, Rig, Seen};

/// Typed again from `plans::plan`.
const LIMITS: Envelope = Envelope { lo: -3.0, hi: 3.0, vel: 2.0, acc: 20.0, jerk: 200.0 };

fn fast(time: f64, joint: usize) -> f64 {
    let time = time.max(0.0);
    if joint == 0 {
        0.6 * time
    } else {
        -0.4 * time
    }
}

/// A position arm in mid-motion, with an observer per joint on it.
fn moving(mut change: impl FnMut(&mut Plan)) -> (Rig, Vec<Observer>) {
    let mut plan = plans::chunked(2, 8, 0, Interpolate::Linear);
    plan.timing.ticks_per_inference = 8;
    change(&mut plan);
    let mut rig = Rig::new(generous(plan));
    rig.policy = fast;
    rig.tick();
    rig.event(Event::Arm).unwrap();
    let seen = rig.tick();
    let mut observers: Vec<_> = seen.target.iter().map(|p| Observer::at_rest(0.01, *p)).collect();
    rig.event(Event::Start).unwrap();
    for _ in 0..100 {
        let seen = rig.tick();
        assert_eq!(seen.mode, Mode::Running);
        watch(&mut observers, &seen);
    }
    assert!(observers[0].v > 0.5, "{observers:?}");
    (rig, observers)
}

fn watch(observers: &mut [Observer], seen: &Seen) {
    for (observer, p) in observers.iter_mut().zip(&seen.target) {
        observer.see(*p, &LIMITS).unwrap();
    }
}

#[test]
fn stop_and_hold_brakes_inside_the_limits_and_holds_what_it_reached() {
    let (mut rig, mut observers) = moving(|_| ());
    rig.event(Event::Stop).unwrap();
    let mut ticks = 0;
    loop {
        let seen = rig.tick();
        watch(&mut observers, &seen);
        ticks += 1;
        if seen.mode == Mode::Holding {
            break;
        }
    }
    // v/a + a/j with v = 0.6: about 0.13 s.
    assert!(ticks <= 16, "{ticks}");
    let rest = rig.tick().target;
    for _ in 0..50 {
        assert_eq!(rig.tick().target, rest);
    }
}

#[test]
fn go_to_brakes_moves_and_then_holds_or_lets_go() {
    for (then, wire) in [(AfterMove::Hold, Wire::Position), (AfterMove::TorqueOff, Wire::Off)] {
        let pose = vec![-0.5, 0.3];
        let (mut rig, mut observers) = moving(|plan| {
            plan.safe.on_exit = Behaviour::GoTo { pose: pose.clone(), duration_ns: 600 * MS, then };
        });
        rig.event(Event::Quit).unwrap();
        let mut ticks = 0;
        loop {
            let seen = rig.tick();
            if seen.wire != Some(Wire::Off) {
                watch(&mut observers, &seen);
            }
            ticks += 1;
            assert!(ticks < 400, "{seen:?}");
            if seen.mode == Mode::Holding {
                break;
            }
            assert!(!rig.supervisor.is_finished());
        }
        assert!(ticks > 60, "{ticks}");
        assert!(observers.iter().zip(&pose).all(|(observer, pose)| (observer.p - pose).abs() < 1e-6));
        let seen = rig.tick();
        assert_eq!(seen.wire, Some(wire));
        assert!(rig.supervisor.is_finished());
    }
}

#[test]
fn stop_brakes_where_the_robot_is_and_goes_nowhere() {
    let (mut rig, mut observers) = moving(|plan| {
        let pose = vec![-0.5, 0.3];
        plan.safe.on_exit = Behaviour::GoTo { pose, duration_ns: 600 * MS, then: AfterMove::Hold };
    });
    rig.event(Event::Stop).unwrap();
    let ticks = rig.until(60, |seen| {
        watch(&mut observers, seen);
        seen.mode == Mode::Holding
    });
    assert!(ticks <= 16, "{ticks}: braking, not a way to somewhere");
}

#[test]
fn a_move_takes_longer_where_the_limits_need_it() {
    let pose = vec![-2.9, 0.3];
    let (mut rig, mut observers) = moving(|plan| {
        plan.safe.on_exit = Behaviour::GoTo { pose: pose.clone(), duration_ns: MS, then: AfterMove::Hold };
    });
    rig.event(Event::Quit).unwrap();
    let ticks = rig.until(1000, |seen| {
        watch(&mut observers, seen);
        seen.mode == Mode::Holding
    });
    // 3.5 rad at a peak of 1.8 rad/s: 15/8 * 3.5 / 1.8 = 3.6 s.
    assert!((340..420).contains(&ticks), "{ticks}");
}

#[test]
fn damping_goes_on_until_somebody_decides() {
    let mut rig = Rig::running(plans::walker(2));
    rig.sample.vel = vec![4.0, -4.0];
    rig.event(Event::Stop).unwrap();
    let ticks = rig.until(400, |seen| seen.mode == Mode::Holding);
    assert!(ticks > 20, "{ticks}: still for 0.2 s first");
    for _ in 0..50 {
        let seen = rig.tick();
        assert_eq!((seen.wire, &seen.kp[..], &seen.kd[..]), (Some(Wire::PositionPd), &[0.0; 2][..], &[5.0; 2][..]));
    }
}

#[test]
fn after_damping_recover_holds_where_the_robot_lies() {
    let mut plan = plans::walker(2);
    plan.start.within_pos = vec![2.0; 2];
    let mut rig = Rig::running(plan);
    rig.event(Event::Stop).unwrap();
    rig.until(400, |seen| seen.mode == Mode::Holding);
    rig.sample.pos = vec![0.7, -0.6];
    rig.tick();
    rig.event(Event::Recover).unwrap();
    let seen = rig.tick();
    assert_eq!((seen.mode, &seen.target[..], &seen.kp[..]), (Mode::Armed, &[0.7, -0.6][..], &[50.0; 2][..]));
}

#[test]
fn drives_that_were_let_go_are_taken_up_where_the_arm_hangs_and_only_on_recover() {
    let (mut rig, _) = moving(|plan| {
        plan.safe.policy_lost = Behaviour::GoTo { pose: vec![-0.5, 0.3], duration_ns: MS, then: AfterMove::TorqueOff };
        plan.safe.on_exit = Behaviour::GoTo { pose: vec![0.0; 2], duration_ns: MS, then: AfterMove::Hold };
        plan.start.within_pos = vec![3.0; 2];
    });
    rig.event(Event::Stop).unwrap();
    rig.until(400, |seen| seen.mode == Mode::Holding);
    rig.tick();
    rig.sample.pos = vec![-0.9, 0.8];
    rig.tick();
    rig.event(Event::Recover).unwrap();
    let seen = rig.tick();
    assert_eq!((seen.wire, &seen.target[..]), (Some(Wire::Position), &[-0.9, 0.8][..]));

    rig.event(Event::Stop).unwrap();
    rig.until(400, |seen| seen.mode == Mode::Holding && seen.wire == Some(Wire::Off));
    rig.event(Event::Quit).unwrap();
    for _ in 0..20 {
        assert_eq!(rig.tick().wire, Some(Wire::Off), "the end of the program moves nothing");
    }
    assert!(rig.supervisor.is_finished());
}

/// A PD arm on a fixed base.
fn pd_arm() -> Plan {
    let mut plan = plans::walker(2);
    plan.safe.floating_base = false;
    plan.safe.policy_lost = Behaviour::StopAndHold;
    plan.safe.on_exit = Behaviour::StopAndHold;
    plan
}

#[test]
fn a_pd_arm_slows_its_target_down_instead_of_stopping_it_dead() {
    let mut rig = Rig::new(pd_arm());
    rig.policy = |time, _| 0.8 * time;
    rig.tick();
    rig.event(Event::Arm).unwrap();
    rig.tick();
    rig.event(Event::Start).unwrap();
    for _ in 0..60 {
        assert_eq!(rig.tick().mode, Mode::Running);
    }
    let speed = rig.sample.vel[0];
    let mut last = rig.tick().target[0];
    rig.event(Event::Stop).unwrap();
    let mut step = f64::INFINITY;
    let mut travel = 0.0;
    for _ in 0..40 {
        let seen = rig.tick();
        let moved = seen.target[0] - last;
        assert!(moved >= 0.0 && moved <= step, "{moved} after {step}");
        (step, last) = (moved.max(1e-12), seen.target[0]);
        travel += moved;
    }
    assert!((travel - 0.1 * speed).abs() < 1e-9, "half of 0.2 s at {speed}: {travel}");
    assert_eq!(rig.supervisor.mode(), Mode::Holding);
}

#[test]
fn a_torque_robot_with_gains_is_held_where_it_was_stopped() {
    let mut plan = plans::plan(2);
    let limits = plans::walker(2).limits;
    plan.command = plans::walker(2).command;
    plan.command.kind = CommandKind::Torque;
    plan.limits = Limits { torque: limits.torque, vel_measured: limits.vel_measured, ..Limits::default() };
    plan.start.within_pos = vec![2.0; 2];
    let mut rig = Rig::running(plan);
    rig.policy = |_, _| 3.0;
    rig.sample.pos = vec![0.4, -0.2];
    rig.tick();
    rig.tick();
    rig.event(Event::Stop).unwrap();
    rig.sample.pos = vec![0.5, -0.3];
    let seen = rig.tick();
    assert_eq!((seen.mode, seen.wire, &seen.target[..]), (Mode::Holding, Some(Wire::Torque), &[0.4, -0.2][..]));
    let pull: Vec<f64> = seen.torque.iter().map(|torque| torque.round()).collect();
    assert_eq!(pull, [-5.0, 5.0], "kp 50 over 0.1 rad, back to there");
}

#[test]
fn a_held_pd_arm_that_is_pushed_stays_inside_its_torque_and_comes_back() {
    let mut rig = Rig::running(pd_arm());
    rig.event(Event::Stop).unwrap();
    rig.until(100, |seen| seen.mode == Mode::Holding);
    rig.is_sampling = false;
    rig.sample.pos = vec![1.5, 0.0];
    rig.sample.vel = vec![0.0; 2];
    let pushed = rig.tick_with(&interlock_core::sample::Chunk::new(1, 2));
    assert!((pushed.target[0] - 0.5).abs() < 1e-9, "{pushed:?}");
    rig.sample.pos = vec![0.5, 0.0];
    let back = rig.tick_with(&interlock_core::sample::Chunk::new(1, 2));
    assert!(back.target[0].abs() < 1e-9, "{back:?}");
}

#[test]
fn nobody_travels_blind() {
    let pose = vec![-0.5, 0.3];
    let (mut rig, mut observers) = moving(|plan| {
        plan.safe.on_exit = Behaviour::GoTo { pose: pose.clone(), duration_ns: 2_000 * MS, then: AfterMove::Hold };
    });
    rig.event(Event::Quit).unwrap();
    for _ in 0..60 {
        watch(&mut observers, &rig.tick());
    }
    assert_eq!(rig.supervisor.mode(), Mode::Stopping);
    // The driver is stopped: nothing is measured, and nothing that is sent is carried out.
    rig.is_sampling = false;
    rig.until(100, |seen| {
        watch(&mut observers, seen);
        seen.mode == Mode::Holding
    });
    let seen = rig.tick();
    assert!(matches!(seen.cause, Code::StaleState | Code::DriverStuck), "{:?}", seen.cause);
    for (target, measured) in seen.target.iter().zip(&rig.sample.pos) {
        assert!((target - measured).abs() < 0.1, "a robot that wakes up would leap from {measured} to {target}");
    }
    assert!(rig.supervisor.is_finished());
}

#[test]
fn a_move_to_the_start_ends_when_the_robot_is_not_seen_any_more() {
    let mut plan = generous(plans::chunked(2, 8, 0, Interpolate::Linear));
    let away = Behaviour::GoTo { pose: plan.start.pose.clone(), duration_ns: 2_000 * MS, then: AfterMove::Hold };
    (plan.safe.before_start, plan.safe.policy_lost) = (Some(away.clone()), away);
    let mut rig = Rig::new(plan);
    rig.sample.pos.iter_mut().for_each(|position| *position += 1.0);
    rig.tick();
    rig.event(Event::Arm).unwrap();
    (0..60).for_each(|_| drop(rig.tick()));
    assert_eq!(rig.supervisor.mode(), Mode::Armed);
    rig.is_sampling = false;
    rig.until(100, |seen| seen.mode == Mode::Holding);
    for (target, measured) in rig.tick().target.iter().zip(&rig.sample.pos) {
        assert!((target - measured).abs() < 0.15, "{target} {measured}");
    }
}

#[test]
fn after_the_drives_acted_by_themselves_motion_begins_where_the_robot_is() {
    let sagging = |plan: &mut Plan| plan.safe.command_timeout_ns = 100 * MS;
    for is_stopped in [false, true] {
        let (mut rig, _) = moving(sagging);
        if is_stopped {
            rig.event(Event::Stop).unwrap();
            rig.until(100, |seen| seen.mode == Mode::Holding);
        }
        // The supervisor does not run for a while, and limp drives let the arm sink.
        rig.sample.pos.iter_mut().for_each(|position| *position -= 0.7);
        let sunk = rig.sample.pos.clone();
        let seen = rig.skip(20);
        for (target, measured) in seen.target.iter().zip(&sunk) {
            assert!((target - measured).abs() < 0.02, "leaps from {measured} to {target}");
        }
        let mut last = seen.target;
        for _ in 0..50 {
            let now = rig.tick().target;
            for (was, is) in last.iter().zip(&now) {
                assert!((is - was).abs() <= LIMITS.vel * 0.01 * (1.0 + 1e-6));
            }
            last = now;
        }
    }
}

#[test]
fn a_pause_shorter_than_the_drives_wait_changes_nothing() {
    let (mut rig, _) = moving(|plan| plan.safe.command_timeout_ns = 100 * MS);
    rig.event(Event::Stop).unwrap();
    rig.until(100, |seen| seen.mode == Mode::Holding);
    let held = rig.tick().target;
    rig.sample.pos.iter_mut().for_each(|position| *position -= 0.01);
    assert_eq!(rig.skip(5).target, held);
}

#[test]
fn nobody_travels_on_positions_that_are_no_numbers() {
    let (mut rig, mut observers) = moving(|plan| {
        plan.safe.on_exit = Behaviour::GoTo { pose: vec![-0.5, 0.3], duration_ns: 2_000 * MS, then: AfterMove::Hold };
    });
    rig.event(Event::Quit).unwrap();
    (0..60).for_each(|_| watch(&mut observers, &rig.tick()));
    rig.is_unknown = true;
    let ticks = rig.until(30, |seen| {
        watch(&mut observers, seen);
        seen.mode == Mode::Holding
    });
    assert!(ticks > 1, "it brakes inside its limits");
    assert_eq!(rig.supervisor.cause(), Code::NotFinite);
}
