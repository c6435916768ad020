//! Runs of one guard against an adversary, checked by an observer that sees only what was sent. Each returns its ticks.
#![allow(dead_code, reason = "each test binary uses some of it")]

use interlock_core::code::Code;
use interlock_core::guard::{Guard, Motion, Situation, Wire};
use interlock_core::mode::Mode;
use interlock_core::plan::{Bound, Command, CommandKind, Limits, Plan, Range};
use interlock_core::sample::Sample;
use interlock_core::schedule::Wanted;

use crate::checker::{Adversary, Envelope, Numbers, Observer, TravelObserver};
use crate::plans;

const N: usize = 3;

/// An action that is in order by itself, at `now_ns`.
pub fn wanted(now_ns: i64) -> Wanted {
    Wanted {
        valid: true,
        code: Code::None,
        generation: 1,
        seq: 1,
        row: 0,
        due_ns: now_ns,
        until_ns: now_ns,
        upcoming_ns: None,
    }
}

pub fn sample(pos: &[f64], vel: &[f64], now_ns: i64) -> Sample {
    let mut sample = Sample::new(pos.len());
    sample.pos.copy_from_slice(pos);
    sample.vel.copy_from_slice(vel);
    sample.capture_ns = now_ns;
    sample
}

#[allow(clippy::unnecessary_wraps, reason = "as the plan wants it")]
fn bounds(values: &[f64], beyond: f64) -> Option<Vec<Bound>> {
    Some(values.iter().map(|limit| Bound { limit: *limit, refuse_beyond: beyond * limit }).collect())
}

/// Random limits of `N` joints: ticks of 1 to 40 ms, arms from sluggish to violent.
fn envelopes(numbers: &mut Numbers) -> (f64, Vec<Envelope>) {
    let tick_ns = numbers.scale(1e6, 40e6).round();
    let envelope = |numbers: &mut Numbers| {
        let vel = numbers.scale(0.3, 8.0);
        let acc = vel / numbers.scale(0.02, 2.0);
        let jerk = acc / numbers.scale(0.005, 0.5);
        let centre = numbers.within(-1.0, 1.0);
        let reach = numbers.scale(0.05, 3.0);
        Envelope { lo: centre - reach, hi: centre + reach, vel, acc, jerk }
    };
    (tick_ns, (0..N).map(|_| envelope(numbers)).collect())
}

fn limited_plan(numbers: &mut Numbers, tick_ns: f64, envelopes: &[Envelope]) -> Plan {
    let mut plan = plans::plan(envelopes.len());
    let of = |pick: fn(&Envelope) -> f64| envelopes.iter().map(pick).collect::<Vec<_>>();
    plan.timing.tick_ns = tick_ns as i64;
    plan.timing.ticks_per_period = 1 + numbers.below(20) as u32;
    plan.timing.ticks_per_inference = plan.timing.ticks_per_period;
    plan.timing.action_valid_ns = 10_000_000_000;
    plan.timing.inference_deadline_ns = 1_000_000;
    let range = |e: &Envelope| {
        let more = 0.3 * (e.hi - e.lo);
        Range { lo: e.lo, hi: e.hi, refuse_lo: e.lo - more, refuse_hi: e.hi + more }
    };
    plan.limits = Limits {
        pos: Some(envelopes.iter().map(range).collect()),
        // Generous: what is refused is not limited, and limiting is what is under test.
        vel: bounds(&of(|e| e.vel), 1e4),
        acc: bounds(&of(|e| e.acc), 1e6),
        jerk: bounds(&of(|e| e.jerk), 1e9),
        ..Limits::default()
    };
    plan.start.pose = envelopes.iter().map(|e| 0.5 * (e.lo + e.hi)).collect();
    plan
}

/// Limits that a robot file may leave out, in two of three runs each: travel within 250 ms and distance to the robot.
fn optional(numbers: &mut Numbers, plan: &mut Plan, envelopes: &[Envelope]) -> (f64, f64) {
    let reach = envelopes.iter().map(|e| e.hi - e.lo).fold(f64::INFINITY, f64::min);
    let mut drawn = || if numbers.chance(0.67) { reach * numbers.scale(0.01, 1.0) } else { f64::INFINITY };
    let (travel, distance) = (drawn(), drawn());
    let limits = &mut plan.limits;
    limits.window_travel = bounds(&[travel; N], 1e6).filter(|_| travel.is_finite());
    limits.distance = bounds(&[distance; N], 1e6).filter(|_| distance.is_finite());
    (travel, distance)
}

/// Position commands against every kind of target; at random instants the policy is cut and the stop is checked to its end.
/// The robot ignores all of it and stays where it is.
pub fn position_run(seed: u64, ticks: u64) -> u64 {
    let numbers = &mut Numbers::new(seed + 1);
    let (tick_ns, envelopes) = envelopes(numbers);
    let mut plan = limited_plan(numbers, tick_ns, &envelopes);
    let (travel, distance) = optional(numbers, &mut plan, &envelopes);
    let h = plan.timing.tick_ns as f64 * 1e-9;
    let mut guard = Guard::new(&plan).unwrap();
    let start: Vec<f64> = envelopes.iter().map(|e| numbers.within(e.lo, e.hi)).collect();
    let measured = |now_ns: i64| sample(&start, &[0.0; N], now_ns);
    guard.start(&measured(0));
    guard.put_in_charge(1);
    let mut observers: Vec<Observer> = guard.command().target().iter().map(|p| Observer::at_rest(h, *p)).collect();
    let mut travels: Vec<TravelObserver> =
        guard.command().target().iter().map(|p| TravelObserver::at_rest(h, *p)).collect();
    let mut adversaries: Vec<Adversary> =
        envelopes.iter().map(|e| Adversary::new(numbers, 0.5 * (e.lo + e.hi), 0.55 * (e.hi - e.lo), h)).collect();
    let mut cut = 0u64;
    let mut target = vec![0.0; N];
    for tick in 1..=ticks {
        let now_ns = tick as i64 * plan.timing.tick_ns;
        let sample = measured(now_ns);
        for ((target, adversary), observer) in target.iter_mut().zip(&mut adversaries).zip(&observers) {
            *target = adversary.next(numbers, observer.p, h);
        }
        if cut == 0 && numbers.chance(0.01) {
            cut = 1 + numbers.below(400);
        }
        let situation = Situation { now_ns, sample: &sample, mode: Mode::Running, starts_period: true, excused_ns: 0 };
        if cut > 0 || guard.admit(&situation, &wanted(now_ns), &target).is_refused() {
            cut = cut.saturating_sub(1);
            guard.admit_safe(&sample, Mode::Stopping, Motion::Brake);
        }
        see(&guard, &mut observers, &envelopes, seed, tick);
        see_ways(&guard, &mut travels, &start, (travel, distance), seed, tick);
    }
    // The last cut is followed until rest: position limits hold all the way.
    let mut braking = 0;
    while !guard.is_at_rest() {
        braking += 1;
        assert!(braking < 1_000_000, "seed {seed} never comes to rest");
        guard.admit_safe(&measured(0), Mode::Stopping, Motion::Brake);
        see(&guard, &mut observers, &envelopes, seed, ticks + braking);
        see_ways(&guard, &mut travels, &start, (travel, distance), seed, ticks + braking);
    }
    ticks + braking
}

fn see(guard: &Guard, observers: &mut [Observer], envelopes: &[Envelope], seed: u64, tick: u64) {
    let command = guard.command();
    assert_eq!(command.wire(), Wire::Position);
    for (joint, ((observer, p), envelope)) in observers.iter_mut().zip(command.target()).zip(envelopes).enumerate() {
        if let Err(what) = observer.see(*p, envelope) {
            panic!("seed {seed} tick {tick} joint {joint}: {what}");
        }
    }
}

fn see_ways(
    guard: &Guard,
    travels: &mut [TravelObserver],
    measured: &[f64],
    (travel, distance): (f64, f64),
    seed: u64,
    tick: u64,
) {
    for (joint, ((seen, p), q)) in travels.iter_mut().zip(guard.command().target()).zip(measured).enumerate() {
        let travelled = seen.see(*p);
        assert!(travelled <= travel, "seed {seed} tick {tick} joint {joint}: travelled {travelled} of {travel}");
        let away = (p - q).abs();
        assert!(away <= distance + 2e-9, "seed {seed} tick {tick} joint {joint}: {away} away of {distance}");
    }
}

/// Velocity commands to a robot that follows them exactly.
pub fn velocity_run(seed: u64, ticks: u64) -> u64 {
    let numbers = &mut Numbers::new(seed + 1);
    let (tick_ns, envelopes) = envelopes(numbers);
    let mut plan = limited_plan(numbers, tick_ns, &envelopes);
    plan.command.kind = CommandKind::Velocity;
    let (travel, _) = optional(numbers, &mut plan, &envelopes);
    plan.limits.distance = None;
    let has_jerk = numbers.chance(0.5);
    if !has_jerk {
        plan.limits.jerk = None;
    }
    let h = plan.timing.tick_ns as f64 * 1e-9;
    let mut guard = Guard::new(&plan).unwrap();
    let mut pos: Vec<f64> = envelopes.iter().map(|e| numbers.within(e.lo, e.hi)).collect();
    guard.start(&sample(&pos, &[0.0; N], 0));
    guard.put_in_charge(1);
    let free = |e: &Envelope| Envelope { jerk: if has_jerk { e.jerk } else { f64::INFINITY }, ..*e };
    let free: Vec<Envelope> = envelopes.iter().map(free).collect();
    let mut observers: Vec<Observer> = pos.iter().map(|p| Observer::at_rest(h, *p)).collect();
    let mut travels: Vec<TravelObserver> = pos.iter().map(|p| TravelObserver::at_rest(h, *p)).collect();
    let mut adversaries: Vec<Adversary> =
        envelopes.iter().map(|e| Adversary::new(numbers, 0.0, 1.2 * e.vel, h)).collect();
    let mut target = vec![0.0; N];
    for tick in 1..=ticks {
        let now_ns = tick as i64 * plan.timing.tick_ns;
        let measured = sample(&pos, &[0.0; N], now_ns);
        for ((target, adversary), observer) in target.iter_mut().zip(&mut adversaries).zip(&observers) {
            *target = adversary.next(numbers, observer.v, h);
        }
        let situation =
            Situation { now_ns, sample: &measured, mode: Mode::Running, starts_period: true, excused_ns: 0 };
        if numbers.chance(0.02) || guard.admit(&situation, &wanted(now_ns), &target).is_refused() {
            guard.admit_safe(&measured, Mode::Stopping, Motion::Brake);
        }
        assert_eq!(guard.command().wire(), Wire::Velocity);
        for (joint, ((p, v), e)) in pos.iter_mut().zip(guard.command().velocity()).zip(&free).enumerate() {
            *p += h * v;
            if let Err(what) = observers[joint].see(*p, e) {
                panic!("seed {seed} tick {tick} joint {joint}: {what}");
            }
            let travelled = travels[joint].see(*p);
            assert!(travelled <= travel, "seed {seed} tick {tick} joint {joint}: travelled {travelled} of {travel}");
        }
    }
    ticks
}

/// PD targets against a robot that is thrown about.
pub fn spring_run(seed: u64, ticks: u64) -> u64 {
    let numbers = &mut Numbers::new(seed + 1);
    let mut plan = plans::walker(N);
    let (lo, hi, step) = (-0.8, 1.1, 0.3);
    let (kp, kd, torque) = (numbers.scale(5.0, 100.0), numbers.scale(0.1, 5.0), numbers.scale(5.0, 100.0));
    plan.timing.ticks_per_period = 4;
    plan.timing.ticks_per_inference = 4;
    plan.command = Command { kind: CommandKind::PositionPd, host_pd: seed % 2 == 1, kp: vec![kp; N], kd: vec![kd; N] };
    plan.limits.pos = Some(vec![Range { lo, hi, refuse_lo: lo - 1.0, refuse_hi: hi + 1.0 }; N]);
    plan.limits.torque = bounds(&[torque; N], 2.5);
    plan.limits.target_step = bounds(&[step; N], 5.0);
    plan.limits.vel_measured = bounds(&[20.0; N], 1.5);
    let rate = if numbers.chance(0.5) { numbers.scale(500.0, 50_000.0) } else { f64::INFINITY };
    let travel = if numbers.chance(0.5) { numbers.scale(0.05, 1.0) } else { f64::INFINITY };
    plan.limits.torque_rate = bounds(&[rate; N], 50.0).filter(|_| rate.is_finite());
    plan.limits.window_travel = bounds(&[travel; N], 50.0).filter(|_| travel.is_finite());
    let h = plan.timing.tick_ns as f64 * 1e-9;
    let mut guard = Guard::new(&plan).unwrap();
    let mut q = vec![0.0; N];
    guard.start(&sample(&q, &[0.0; N], 0));
    guard.put_in_charge(1);
    let mut anchor = vec![0.0; N];
    let (mut felt, ramp) = (vec![0.0; N], rate * h);
    let mut travels = vec![TravelObserver::at_rest(h, 0.0); N];
    let mut adversaries: Vec<Adversary> = (0..N).map(|_| Adversary::new(numbers, 0.15, 1.2, h)).collect();
    let mut target = vec![0.0; N];
    for tick in 1..=ticks {
        let now_ns = tick as i64 * plan.timing.tick_ns;
        let dq: Vec<f64> = (0..N).map(|_| numbers.within(-1.0, 1.0) * numbers.scale(0.1, 32.0)).collect();
        for ((q, dq), anchor) in q.iter_mut().zip(&dq).zip(&anchor) {
            *q = (*q + 0.2 * (anchor - *q) + h * dq * 0.3).clamp(lo - 0.05, hi + 0.05);
        }
        let measured = sample(&q, &dq, now_ns);
        for ((target, adversary), anchor) in target.iter_mut().zip(&mut adversaries).zip(&anchor) {
            *target = adversary.next(numbers, *anchor, h);
        }
        let starts_period = tick % 4 == 0;
        let situation = Situation { now_ns, sample: &measured, mode: Mode::Running, starts_period, excused_ns: 0 };
        if guard.admit(&situation, &wanted(now_ns), &target).is_refused() {
            continue;
        }
        let command = guard.command();
        assert_eq!(command.wire(), if plan.command.host_pd { Wire::Torque } else { Wire::PositionPd });
        for joint in 0..N {
            let (t, q, dq) = (command.target()[joint], q[joint], dq[joint]);
            let predicted = kp * (t - q) - kd * dq;
            let says = format!("seed {seed} tick {tick} joint {joint}: target {t} q {q} dq {dq} predicted {predicted}");
            assert!(predicted.abs() <= torque * (1.0 + 1e-9), "torque: {says}");
            if plan.command.host_pd {
                assert!((command.torque()[joint] - predicted).abs() < 1e-6, "torque on the wire: {says}");
            } else {
                assert_eq!((command.kp()[joint], command.kd()[joint]), (kp, kd));
            }
            let change = (predicted - felt[joint]).abs();
            assert!(change <= ramp + 1e-9 * torque, "torque rate: {change} of {ramp} from {}: {says}", felt[joint]);
            // Beyond position, travel or step only where the torque limits leave nothing else.
            let is_forced = predicted.abs() >= torque * (1.0 - 1e-6) || change >= ramp * (1.0 - 1e-6);
            felt[joint] = predicted;
            let (nearest, furthest) = travels[joint].bounds(travel);
            let is_between = t >= nearest - 2e-9 && t <= furthest + 2e-9;
            assert!(
                is_forced || is_between || (t - lo).abs() < 1e-12 || (t - hi).abs() < 1e-12,
                "travel {nearest} to {furthest}: {says}"
            );
            travels[joint].see(t);
            let is_forced = is_forced || !is_between || (t - nearest).abs() < 4e-9 || (t - furthest).abs() < 4e-9;
            assert!(is_forced || (t >= lo && t <= hi), "position: {says}");
            assert!(t >= lo - 1.0 && t <= hi + 1.0, "refused position: {says}");
            assert!(is_forced || (t - anchor[joint]).abs() <= step + 1e-12, "step from {}: {says}", anchor[joint]);
            assert!(dq.abs() <= 30.0, "measured velocity: {says}");
        }
        if starts_period {
            let in_range = command.target().iter().map(|t| t.clamp(lo, hi));
            anchor.iter_mut().zip(in_range).for_each(|(anchor, t)| *anchor = t);
        }
    }
    ticks
}

/// Torque commands.
pub fn torque_run(seed: u64, ticks: u64) -> u64 {
    let numbers = &mut Numbers::new(seed + 1);
    let mut plan = plans::plan(N);
    let limit = numbers.scale(1.0, 100.0);
    plan.command.kind = CommandKind::Torque;
    plan.limits =
        Limits { torque: bounds(&[limit; N], 1.5), vel_measured: bounds(&[10.0; N], 1.5), ..Limits::default() };
    let ramp = if numbers.chance(0.67) { limit * numbers.scale(0.01, 1.0) } else { f64::INFINITY };
    let h = plan.timing.tick_ns as f64 * 1e-9;
    plan.limits.torque_rate = bounds(&[ramp / h; N], 100.0).filter(|_| ramp.is_finite());
    plan.safe.policy_lost = interlock_core::plan::Behaviour::Damp { kd: vec![1.0; N] };
    plan.safe.goal_lost = plan.safe.policy_lost.clone();
    plan.safe.on_exit = plan.safe.policy_lost.clone();
    let mut guard = Guard::new(&plan).unwrap();
    guard.start(&sample(&[0.0; N], &[0.0; N], 0));
    guard.put_in_charge(1);
    let mut adversaries: Vec<Adversary> = (0..N).map(|_| Adversary::new(numbers, 0.0, 1.2 * limit, 0.01)).collect();
    let mut before = vec![0.0; N];
    for tick in 1..=ticks {
        let now_ns = tick as i64 * plan.timing.tick_ns;
        let dq: Vec<f64> = (0..N).map(|_| numbers.within(-16.0, 16.0)).collect();
        let measured = sample(&[0.0; N], &dq, now_ns);
        let target: Vec<f64> = adversaries.iter_mut().map(|adversary| adversary.next(numbers, 0.0, 0.01)).collect();
        let situation =
            Situation { now_ns, sample: &measured, mode: Mode::Running, starts_period: true, excused_ns: 0 };
        let is_refused = guard.admit(&situation, &wanted(now_ns), &target).is_refused();
        if is_refused {
            let kd = [numbers.scale(0.01, 100.0); N];
            guard.admit_safe(&measured, Mode::Stopping, Motion::Damp(&kd));
        } else {
            assert!(dq.iter().all(|dq| dq.abs() <= 15.0), "seed {seed} tick {tick}: too fast");
        }
        for (torque, dq) in guard.command().torque().iter().zip(&dq) {
            assert!(torque.abs() <= limit * (1.0 + 1e-12), "seed {seed} tick {tick}: {torque} of {limit}");
            assert!(!is_refused || torque * dq <= 0.0, "seed {seed} tick {tick}: damping drives");
        }
        for (torque, before) in guard.command().torque().iter().zip(&mut before) {
            let change = (torque - *before).abs();
            assert!(is_refused || change <= ramp + 1e-9 * limit, "seed {seed} tick {tick}: {change} of {ramp} at once");
            *before = *torque;
        }
    }
    ticks
}
