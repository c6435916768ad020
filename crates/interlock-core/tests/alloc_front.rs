//! The tick path allocates nothing: observation to tensors, raw actions to targets, chunks to wanted actions.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "small literal numbers; equality is meant where it is written"
)]

#[path = "front/plans.rs"]
mod plans;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use interlock_core::align::Align;
use interlock_core::decode::Decoder;
use interlock_core::plan::{Input, Interpolate, LastAction, Resize, TermKind};
use interlock_core::preprocess::{ImageView, Preprocessor};
use interlock_core::sample::Chunk;
use interlock_core::schedule::Schedule;

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

#[test]
fn the_tick_path_does_not_allocate() {
    let (n, rows) = (12, 8);
    let mut plan = plans::chunked(n, rows, 30 * plans::MS, Interpolate::Cubic);
    plan.timing.ticks_per_inference = 4;
    plan.timing.max_age_image_ns = 1_000 * plans::MS;
    plan.timing.max_skew_ns = 1_000 * plans::MS;
    let phase =
        TermKind::Phase { cos: true, freq_hz: 1.0, init_rad: vec![0.0, 3.0], still_rad: Some(3.0), still_below: 0.01 };
    plan.inputs[0] = plans::terms(vec![
        plans::term(TermKind::ProjectedGravity, 3),
        plans::term(TermKind::JointPosRel, n),
        plans::term(TermKind::JointVel, n),
        plans::term(TermKind::LastAction { of: LastAction::Applied }, n),
        plans::term(phase, 2),
    ]);
    if let Input::Terms { history, clip, .. } = &mut plan.inputs[0] {
        history.steps = 5;
        *clip = Some([-100.0, 100.0]);
    }
    for resize in [Resize::Nearest, Resize::Bilinear, Resize::Area] {
        plans::with_camera(&mut plan, [48, 64], [24, 32], resize);
    }
    plans::with_camera(&mut plan, [48, 64], [48, 64], Resize::None);
    plans::with_text(&mut plan, 8);
    plans::with_state(&mut plan);
    plan.inputs.push(Input::Noise { name: "z".into(), shape: vec![1, 8, 12], seed: 1 });

    let mut align = Align::new(&plan).unwrap();
    let mut preprocessor = Preprocessor::new(&plan).unwrap();
    let mut decoder = Decoder::new(&plan).unwrap();
    let mut schedule = Schedule::new(&plan).unwrap();
    let mut observation = plans::observation(n);
    let mut sample = observation.sample.clone();
    observation.goal.token_count = 3;
    let mut pixels = vec![100u8; 48 * 64 * 3];
    let mut raw = vec![0.1f32; 8 * n];
    let mut chunk = Chunk::new(8, n);
    let mut target = vec![0.0; n];
    schedule.begin(0, 0, &target);

    let before = calls();
    assert!(before > 0, "the counter counts");
    let mut wanted_ticks = 0;
    for tick in 0..400u64 {
        let now = tick as i64 * 10 * plans::MS;
        (sample.seq, sample.capture_ns) = (tick + 1, now);
        align.take(now, &sample).unwrap();
        for camera in 0..4 {
            align.take_image(now, camera, tick + 1, now).unwrap();
        }
        assert_eq!(align.freshness(now).code(), interlock_core::code::Code::None);
        if schedule.offer_due(tick) {
            align.fill(&mut observation);
            (observation.seq, observation.at_ns, observation.period) = (tick + 1, now, schedule.period(tick));
            observation.episode = (tick / 100) as u32;
            pixels[0] = tick as u8;
            let view = ImageView { pixels: &pixels, height: 48, width: 64, seq: tick + 1, capture_ns: now };
            preprocessor.build(&observation, &[view; 4]).unwrap();
            raw[0] = tick as f32 * 1e-3;
            preprocessor.note_action(&raw).unwrap();
            preprocessor.carry("h_out", &[1.0, 2.0]).unwrap();
            (chunk.seq, chunk.at_ns) = (tick + 1, now);
            decoder.decode(&raw, &observation.sample.pos, &mut chunk).unwrap();
            schedule.accept(now, &chunk).unwrap();
        }
        wanted_ticks += u32::from(schedule.at(now, &mut target).valid);
        observation.applied.copy_from_slice(&target);
        if tick == 200 {
            schedule.clear();
        }
        let _ = schedule.accept(now, &chunk);
    }
    let after = calls();
    assert_eq!(after - before, 0);
    assert!(wanted_ticks > 380, "{wanted_ticks}");
}
