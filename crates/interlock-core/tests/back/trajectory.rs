//! A position trajectory follows what it can and goes after the rest without running past it.

use interlock_core::guard::{Guard, Motion, Ruling, RulingKind, Situation};
use interlock_core::mode::Mode;
use interlock_core::plan::{Bound, Plan};

use crate::checker::{Envelope, Observer};
use crate::envelope::{sample, wanted};
use crate::plans::{self, MS};

const LIMITS: Envelope = Envelope { lo: -3.0, hi: 3.0, vel: 3.5, acc: 20.0, jerk: 1500.0 };

/// One joint of a brisk arm at a 5 ms tick; nothing is refused.
fn arm() -> Plan {
    let mut plan = plans::plan(1);
    let bound = |limit: f64| Some(vec![Bound { limit, refuse_beyond: 1e9 }]);
    plan.timing.tick_ns = 5 * MS;
    plan.timing.inference_deadline_ns = MS;
    (plan.limits.vel, plan.limits.acc, plan.limits.jerk) = (bound(3.5), bound(20.0), bound(1500.0));
    plan
}

struct Run {
    guard: Guard,
    observer: Observer,
    now_ns: i64,
}

impl Run {
    fn from(position: f64) -> Self {
        let mut guard = Guard::new(&arm()).unwrap();
        guard.start(&sample(&[position], &[0.0], 0));
        guard.put_in_charge(1);
        let observer = Observer::at_rest(0.005, guard.command().target()[0]);
        Run { guard, observer, now_ns: 0 }
    }

    fn time(&self) -> f64 {
        self.now_ns as f64 * 1e-9
    }

    fn want(&mut self, target: f64) -> (f64, Ruling) {
        self.now_ns += 5 * MS;
        let measured = sample(&[0.0], &[0.0], self.now_ns);
        let situation = Situation {
            now_ns: self.now_ns,
            sample: &measured,
            mode: Mode::Running,
            starts_period: true,
            excused_ns: 0,
        };
        let ruling = self.guard.admit(&situation, &wanted(self.now_ns), &[target]);
        (self.see(), ruling)
    }

    fn brake(&mut self) -> f64 {
        self.guard.admit_safe(&sample(&[0.0], &[0.0], 0), Mode::Stopping, Motion::Brake);
        self.see()
    }

    fn see(&mut self) -> f64 {
        let p = self.guard.command().target()[0];
        self.observer.see(p, &LIMITS).unwrap();
        p
    }
}

#[test]
fn a_smooth_motion_inside_the_limits_goes_out_bit_for_bit() {
    let mut run = Run::from(0.0);
    for _ in 0..2000 {
        let time = run.time();
        let target = 0.2 * (1.0 - (3.0 * time).cos());
        let (sent, ruling) = run.want(target);
        assert_eq!((sent, ruling.kind), (target, RulingKind::Pass));
    }
}

#[test]
fn a_step_is_reached_exactly_and_never_passed() {
    for goal in [0.05, 0.5, 2.0, -1.3] {
        let mut run = Run::from(0.0);
        let mut ticks = 0;
        while run.want(goal).0 != goal || run.observer.v != 0.0 || run.observer.a != 0.0 {
            ticks += 1;
            assert!(run.observer.p.abs() <= f64::abs(goal) + 1e-9, "past {goal}: {:?}", run.observer);
            assert!(ticks < 400, "never there");
        }
        // Fastest possible in continuous time: accelerate and brake at the limits.
        let distance = f64::abs(goal);
        let (cruise, ramp) = (3.5, 20.0 / 1500.0);
        let by_acc = 2.0 * (distance / 20.0).sqrt();
        let by_vel = distance / cruise + cruise / 20.0;
        let fastest = if distance > cruise * cruise / 20.0 { by_vel } else { by_acc } + ramp;
        let took = f64::from(ticks) * 0.005;
        assert!(took < fastest + 0.06, "{goal}: {took} s, at best {fastest} s");
        for _ in 0..100 {
            assert_eq!(run.want(goal).0, goal, "stays");
        }
    }
}

#[test]
fn a_ramp_is_caught_up_with_and_then_followed_exactly() {
    let mut run = Run::from(0.0);
    for _ in 0..200 {
        let target = run.time();
        run.want(target);
    }
    let target = run.time();
    let (sent, ruling) = run.want(target);
    assert_eq!((sent, ruling.kind), (target, RulingKind::Pass));
}

#[test]
fn an_accelerating_target_is_caught_up_with_while_it_accelerates() {
    let mut run = Run::from(0.0);
    // Sets in with more jerk than allowed, then accelerates evenly.
    let passes = (1..=40).map(|tick| {
        let time = f64::from(tick) * 0.005;
        run.want(7.9 * time * time).1.kind == RulingKind::Pass
    });
    let passes: Vec<_> = passes.collect();
    assert!(passes.iter().any(|passes| !passes), "{passes:?}");
    assert!(passes.iter().skip(10).all(|passes| *passes), "{passes:?}");
}

#[test]
fn a_policy_that_only_jitters_does_not_keep_the_joint_swinging() {
    let mut run = Run::from(0.0);
    for tick in 0..100 {
        run.want(if tick % 2 == 0 { 0.3 } else { -0.3 });
    }
    let goal = 0.1;
    let settled = (0..400).find(|_| run.want(goal).0 == goal && run.observer.v == 0.0 && run.observer.a == 0.0);
    assert!(settled.is_some(), "{:?}", run.observer);
    for _ in 0..50 {
        assert_eq!(run.want(goal).0, goal);
    }
}

#[test]
fn a_target_beyond_the_range_ends_at_the_limit() {
    let mut run = Run::from(2.5);
    for _ in 0..400 {
        run.want(3.9);
    }
    assert!((run.observer.p - 3.0).abs() < 1e-8 && run.observer.p <= 3.0, "{:?}", run.observer);
    let (_, ruling) = run.want(3.9);
    assert!(ruling.codes.has(interlock_core::code::Code::Position));
}

#[test]
fn braking_ends_at_rest_and_stays_there() {
    let mut run = Run::from(0.0);
    for _ in 0..60 {
        run.want(2.5);
    }
    assert!(run.observer.v > 3.0, "{:?}", run.observer);
    let ticks = (0..200)
        .take_while(|_| {
            run.brake();
            !run.guard.is_at_rest()
        })
        .count();
    // v/a + a/j = 175 + 13 ms.
    assert!((36..=42).contains(&ticks), "{ticks}");
    let rest = run.observer.p;
    for _ in 0..20 {
        assert_eq!(run.brake(), rest);
    }
}

#[test]
fn the_policy_goes_on_smoothly_from_a_half_finished_stop() {
    let mut run = Run::from(0.0);
    for cycle in 0..20 {
        for _ in 0..30 {
            run.want(2.0);
        }
        for _ in 0..cycle {
            run.brake();
        }
    }
    let (sent, _) = run.want(2.0);
    assert_eq!(sent, 2.0);
}
