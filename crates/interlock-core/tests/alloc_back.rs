//! The control thread's part of a tick allocates nothing, whatever happens in it.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small literal numbers"
)]

#[path = "front/plans.rs"]
mod plans;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use interlock_core::mode::{Event, Mode};
use interlock_core::plan::{AfterMove, Behaviour, Bound, Interpolate, Plan};
use interlock_core::sample::{Chunk, Sample};
use interlock_core::supervisor::{Readiness, Supervisor};

struct Counting;

thread_local! {
    /// Of this thread alone: the test harness allocates when it likes.
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
}

fn calls() -> usize {
    CALLS.with(Cell::get)
}

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count();
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs, limits, refuses, loses, stops, recovers and starts again; returns the modes it passed through.
fn live(plan: &Plan) -> (usize, [u32; 8]) {
    let n = plan.joints.names.len();
    let rows = plan.timing.chunk as usize;
    let mut supervisor = Supervisor::new(plan).unwrap();
    supervisor.set_ready(Readiness { worker: true, driver: true, recording: true });
    supervisor.set_generation(1);
    let mut sample = Sample::new(n);
    sample.pos.fill(0.0);
    sample.vel.fill(0.0);
    let mut chunk = Chunk::new(rows, n);
    let mut modes = [0; 8];

    let before = calls();
    assert!(before > 0, "the counter counts");
    for tick in 0..4_000u64 {
        let now_ns = (tick as i64 + 1) * plan.timing.tick_ns;
        (sample.seq, sample.capture_ns) = (tick + 1, now_ns);
        let _ = match tick % 1_000 {
            1 => supervisor.event(now_ns, Event::Arm),
            3 => supervisor.event(now_ns, Event::Start),
            700 if tick < 1_000 => supervisor.event(now_ns, Event::Stop),
            998 => supervisor.event(now_ns, Event::Recover),
            _ => Ok(()),
        };
        let _ = supervisor.set_goal(now_ns, Some([0.1, 0.0, 0.0]), None);
        let offer = supervisor.observe(now_ns, u32::from(tick % 97 == 0), Some(&sample));
        (chunk.generation, chunk.seq, chunk.at_ns, chunk.rows) = (1, offer.seq, now_ns, rows);
        let wild = if tick % 1_000 > 500 { 3.3 } else { 0.1 };
        chunk.actions.fill(wild * (tick as f64 * 0.05).sin());
        if tick == 2_600 {
            chunk.actions.fill(f64::NAN);
        }
        let outcome = supervisor.act(now_ns, offer.due.then_some(&chunk));
        modes[outcome.mode as usize] += 1;
        if let Some(command) = outcome.command.filter(|command| command.target().len() == n) {
            sample.pos.copy_from_slice(command.target());
        }
    }
    (calls() - before, modes)
}

#[test]
fn no_tick_and_no_event_allocates() {
    let mut arm = plans::chunked(6, 8, 0, Interpolate::Cubic);
    arm.timing.ticks_per_inference = 8;
    arm.start.within_pos = vec![3.0; 6];
    for bounds in [&mut arm.limits.vel, &mut arm.limits.acc, &mut arm.limits.jerk].into_iter().flatten() {
        for bound in bounds {
            bound.refuse_beyond = 1e4 * bound.limit;
        }
    }
    arm.safe.on_exit = Behaviour::GoTo { pose: vec![0.1; 6], duration_ns: plans::MS, then: AfterMove::Hold };
    let mut walker = plans::walker(12);
    walker.start.within_pos = vec![3.0; 12];
    let mut host = walker.clone();
    host.command.host_pd = true;
    let bounds = |limit: f64, n: usize| Some(vec![Bound { limit, refuse_beyond: 1e4 * limit }; n]);
    let mut all = [arm.clone(), walker.clone()];
    for plan in &mut all {
        plan.limits.window_travel = bounds(1.0, plan.joints.names.len());
    }
    all[0].limits.distance = bounds(1.0, 6);
    all[1].limits.torque_rate = bounds(1e4, 12);
    for plan in [arm, walker, host].into_iter().chain(all) {
        let (calls, modes) = live(&plan);
        assert_eq!(calls, 0);
        for mode in [Mode::Idle, Mode::Armed, Mode::Running, Mode::Stopping, Mode::Holding] {
            assert!(modes[mode as usize] > 0, "{mode:?} was never reached: {modes:?}");
        }
    }
}
