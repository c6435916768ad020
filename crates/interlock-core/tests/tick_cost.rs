//! What a tick costs, printed: `cargo test -p interlock-core --release --test tick_cost -- --ignored --nocapture`
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::disallowed_methods,
    reason = "small numbers; measuring time is what this is for"
)]

#[path = "back/checker.rs"]
mod checker;
#[path = "back/envelope.rs"]
mod envelope;
#[path = "front/plans.rs"]
mod plans;

use std::hint::black_box;
use std::time::Instant;

use envelope::{sample, wanted};
use interlock_core::guard::{Guard, Motion, RulingKind, Situation};
use interlock_core::mode::{Event, Mode};
use interlock_core::plan::{Bound, Interpolate, Plan};
use interlock_core::sample::Chunk;
use interlock_core::supervisor::{Readiness, Supervisor};

const TICKS: usize = 20_000;

fn report(name: &str, mut nanoseconds: Vec<u64>, limited: usize) {
    nanoseconds.sort_unstable();
    let at = |share: f64| nanoseconds[((nanoseconds.len() - 1) as f64 * share) as usize];
    println!(
        "{name:48} p50 {:6} ns  p99 {:6} ns  p99.9 {:6} ns  limited {:3.0} %",
        at(0.5),
        at(0.99),
        at(0.999),
        100.0 * limited as f64 / TICKS as f64
    );
}

fn arm(n: usize, tick_ms: i64) -> Plan {
    let mut plan = plans::chunked(n, 16, 0, Interpolate::Linear);
    plan.timing.tick_ns = tick_ms * plans::MS;
    plan.timing.ticks_per_period = (50 / tick_ms) as u32;
    plan.timing.ticks_per_inference = 8 * plan.timing.ticks_per_period;
    plan.timing.max_age_state_ns = 60 * plans::MS;
    let bounds = |limit: f64| Some(vec![Bound { limit, refuse_beyond: 1e6 * limit }; n]);
    plan.limits.vel = bounds(3.5);
    plan.limits.acc = bounds(20.0);
    plan.limits.jerk = bounds(1500.0);
    plan
}

fn guard_cost(name: &str, plan: &Plan, course: impl Fn(f64, usize) -> f64) {
    let n = plan.joints.names.len();
    let h = plan.timing.tick_ns as f64 * 1e-9;
    let mut guard = Guard::new(plan).unwrap();
    let mut sample = sample(&vec![0.0; n], &vec![0.0; n], 0);
    guard.start(&sample);
    guard.put_in_charge(1);
    let mut target = vec![0.0; n];
    let (mut spent, mut limited) = (Vec::with_capacity(TICKS), 0);
    for tick in 1..=TICKS {
        let now_ns = tick as i64 * plan.timing.tick_ns;
        sample.capture_ns = now_ns;
        target.iter_mut().enumerate().for_each(|(joint, target)| *target = course(tick as f64 * h, joint));
        let starts_period = tick % 10 == 0;
        let before = Instant::now();
        let situation = Situation { now_ns, sample: &sample, mode: Mode::Running, starts_period, excused_ns: 0 };
        let ruling = black_box(guard.admit(&situation, &wanted(now_ns), &target));
        spent.push(before.elapsed().as_nanos() as u64);
        assert!(!ruling.is_refused(), "{ruling:?}");
        limited += usize::from(ruling.kind == RulingKind::Limited);
    }
    black_box(guard.admit_safe(&sample, Mode::Stopping, Motion::Brake));
    report(name, spent, limited);
}

fn whole_tick_cost(name: &str, plan: &Plan) {
    let n = plan.joints.names.len();
    let rows = plan.timing.chunk as usize;
    let mut supervisor = Supervisor::new(plan).unwrap();
    supervisor.set_ready(Readiness { worker: true, driver: true, recording: true });
    supervisor.set_generation(1);
    let mut sample = sample(&vec![0.0; n], &vec![0.0; n], 0);
    let mut chunk = Chunk::new(rows, n);
    let period = plan.timing.tick_ns as f64 * 1e-9 * f64::from(plan.timing.ticks_per_period);
    let (mut spent, mut limited, mut has_chunk) = (Vec::with_capacity(TICKS), 0, false);
    for tick in 1..=TICKS {
        let now_ns = tick as i64 * plan.timing.tick_ns;
        (sample.seq, sample.capture_ns) = (tick as u64, now_ns);
        let before = Instant::now();
        let offer = supervisor.observe(now_ns, 0, Some(&sample));
        let seen = before.elapsed();
        if offer.due {
            has_chunk = true;
            (chunk.generation, chunk.seq, chunk.at_ns, chunk.rows) = (1, offer.seq, now_ns, rows);
            for (row, actions) in chunk.actions.chunks_mut(n).enumerate() {
                let time = now_ns as f64 * 1e-9 + row as f64 * period;
                actions.iter_mut().enumerate().for_each(|(joint, a)| *a = 0.15 * (time + joint as f64).sin());
            }
        }
        let before = Instant::now();
        let outcome = supervisor.act(now_ns, has_chunk.then_some(&chunk));
        spent.push((seen + before.elapsed()).as_nanos() as u64);
        has_chunk = false;
        limited += usize::from(outcome.ruling.kind == RulingKind::Limited);
        if tick == 1 {
            supervisor.event(now_ns, Event::Arm).unwrap();
        }
        if tick == 2 {
            supervisor.event(now_ns, Event::Start).unwrap();
        }
    }
    assert_eq!(supervisor.mode(), Mode::Running, "{:?}", supervisor.cause());
    report(name, spent, limited);
}

#[test]
#[ignore = "prints times"]
fn what_a_tick_costs() {
    let smooth = |time: f64, joint: usize| 0.4 * (2.0 * time + joint as f64).sin() - 0.4 * (joint as f64).sin();
    let violent = |time: f64, joint: usize| 2.9 * (9.0 * time + joint as f64).sin().signum();
    let walk = |time: f64, joint: usize| 0.3 * (8.0 * time + joint as f64).sin();
    guard_cost("guard, position, 12 joints, 5 ms, smooth", &arm(12, 5), smooth);
    guard_cost("guard, position, 12 joints, 2 ms, smooth", &arm(12, 2), smooth);
    guard_cost("guard, position, 12 joints, 1 ms, every limit", &arm(12, 1), violent);
    guard_cost("guard, position, 12 joints, 5 ms, every limit", &arm(12, 5), violent);
    let bounds = |limit: f64, n: usize| Some(vec![Bound { limit, refuse_beyond: 1e6 * limit }; n]);
    let mut all = arm(12, 1);
    (all.limits.window_travel, all.limits.distance) = (bounds(0.4, 12), bounds(0.5, 12));
    guard_cost("guard, position, 12 joints, 1 ms, also travel and distance", &all, violent);
    let mut all = plans::walker(29);
    (all.limits.window_travel, all.limits.torque_rate) = (bounds(0.4, 29), bounds(2000.0, 29));
    guard_cost("guard, PD, 29 joints, also travel and torque rate", &all, walk);
    guard_cost("guard, PD, 12 joints", &plans::walker(12), walk);
    guard_cost("guard, PD, 29 joints", &plans::walker(29), walk);
    whole_tick_cost("observe and act, position, 12 joints, 5 ms", &arm(12, 5));
    whole_tick_cost("observe and act, position, 29 joints, 2 ms", &arm(29, 2));
    let mut walker = plans::walker(29);
    walker.timing.tick_ns = 2 * plans::MS;
    walker.timing.ticks_per_period = 10;
    walker.timing.ticks_per_inference = 10;
    walker.timing.inference_deadline_ns = plans::MS;
    whole_tick_cost("observe and act, PD, 29 joints, 2 ms", &walker);
}
