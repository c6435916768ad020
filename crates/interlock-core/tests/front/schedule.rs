use interlock_core::code::Code;
use interlock_core::plan::Interpolate;
use interlock_core::sample::Chunk;
use interlock_core::schedule::{Schedule, Wanted};
use proptest::prelude::*;

use super::plans::{chunked, plan, MS};

const PERIOD: i64 = 20 * MS;

fn chunk(seq: u64, at_ns: i64, rows: &[f64]) -> Chunk {
    let mut chunk = Chunk::new(rows.len(), 1);
    (chunk.seq, chunk.at_ns, chunk.rows) = (seq, at_ns, rows.len());
    chunk.actions = rows.to_vec();
    chunk
}

fn ask(schedule: &mut Schedule, now_ns: i64) -> (Wanted, f64) {
    let mut out = [f64::NAN];
    let wanted = schedule.at(now_ns, &mut out);
    (wanted, out[0])
}

#[test]
fn before_any_chunk_nothing_is_wanted() {
    let mut schedule = Schedule::new(&plan(1)).unwrap();
    let (wanted, value) = ask(&mut schedule, 0);
    assert_eq!(wanted, Wanted::NOTHING);
    assert!(value.is_nan());
}

#[test]
fn observations_are_offered_once_per_inference_period() {
    let schedule = Schedule::new(&chunked(1, 4, 0, Interpolate::Hold)).unwrap();
    let due: Vec<u64> = (0..20).filter(|tick| schedule.offer_due(*tick)).collect();
    assert_eq!(due, [0, 8, 16]);
    assert_eq!([0, 1, 2, 9].map(|tick| schedule.period(tick)), [0, 0, 1, 4]);
}

#[test]
fn a_held_action_ends_when_the_next_is_due_and_the_last_when_its_validity_ends() {
    let mut schedule = Schedule::new(&chunked(1, 3, 0, Interpolate::Hold)).unwrap();
    schedule.accept(0, &chunk(1, 0, &[1.0, 2.0, 3.0])).unwrap();
    for (now_ms, row, value) in [(0, 0, 1.0), (19, 0, 1.0), (20, 1, 2.0), (40, 2, 3.0), (79, 2, 3.0)] {
        let (wanted, got) = ask(&mut schedule, now_ms * MS);
        assert_eq!((wanted.valid, wanted.row, wanted.seq, got), (true, row, 1, value), "{now_ms} ms");
        assert_eq!(wanted.due_ns, i64::from(row) * PERIOD);
    }
    let (wanted, value) = ask(&mut schedule, 80 * MS);
    assert_eq!((wanted.valid, wanted.code), (false, Code::NoValidAction));
    assert!(value.is_nan(), "the last action is never repeated beyond its time");
}

#[test]
fn what_the_latency_overtook_is_dropped_and_counted() {
    let mut schedule = Schedule::new(&chunked(1, 4, 0, Interpolate::Hold)).unwrap();
    schedule.accept(45 * MS, &chunk(1, 0, &[1.0, 2.0, 3.0, 4.0])).unwrap();
    assert_eq!(ask(&mut schedule, 45 * MS).1, 3.0);
    assert_eq!(schedule.counters().late_rows, 2);
    let answer = schedule.accept(1000 * MS, &chunk(2, 10 * MS, &[1.0, 2.0, 3.0, 4.0]));
    assert_eq!(answer, Err(Code::NoValidAction));
    assert_eq!(schedule.counters().overdue, 1);
}

#[test]
fn chunks_that_must_not_act_are_dropped_by_reason() {
    let mut schedule = Schedule::new(&chunked(1, 2, 0, Interpolate::Hold)).unwrap();
    schedule.begin(3, 10, &[0.0]);
    let good = |seq| Chunk { generation: 3, ..chunk(seq, 100 * MS, &[1.0, 2.0]) };
    let now = 100 * MS;
    let cases = [
        (Chunk { generation: 2, ..good(11) }, Code::RetiredGeneration),
        (good(10), Code::OldSequence),
        (Chunk { at_ns: 101 * MS, ..good(11) }, Code::WorkerError),
        (Chunk { status: Code::FrozenImage as u16, ..good(11) }, Code::FrozenImage),
        (Chunk { status: 9999, ..good(12) }, Code::WorkerError),
        (Chunk { rows: 0, ..good(13) }, Code::Dimension),
        (Chunk { rows: 3, actions: vec![0.0; 3], ..good(14) }, Code::Dimension),
        (Chunk { actions: vec![0.0; 1], ..good(15) }, Code::Dimension),
        (Chunk { actions: vec![0.0, f64::NAN], ..good(16) }, Code::NotFinite),
        (Chunk { at_ns: 50 * MS, ..good(17) }, Code::OldSequence),
    ];
    for (chunk, code) in cases {
        assert_eq!(schedule.accept(now, &chunk), Err(code), "{chunk:?}");
        assert!(!ask(&mut schedule, now).0.valid);
    }
    assert_eq!(schedule.accept(now, &good(17)), Ok(()));
    assert_eq!(schedule.accept(now, &good(17)), Err(Code::OldSequence));
    assert_eq!(ask(&mut schedule, now), (ask(&mut schedule, now).0, 1.0));
    let counters = schedule.counters();
    assert_eq!((counters.retired_generation, counters.old_sequence, counters.early), (1, 3, 1));
    assert_eq!((counters.failed, counters.dimension, counters.not_finite), (2, 3, 1));
    assert_eq!(counters.accepted, 1);
}

#[test]
fn a_delayed_chunk_waits_while_the_older_one_goes_on() {
    let mut plan = plan(1);
    plan.timing.action_delay_ns = 50 * MS;
    let mut schedule = Schedule::new(&plan).unwrap();
    let mut seen = Vec::new();
    for tick in 0..20 {
        let now = tick * 10 * MS;
        if schedule.offer_due(tick as u64) {
            schedule.accept(now, &chunk(tick as u64 + 1, now, &[tick as f64])).unwrap();
        }
        let (wanted, value) = ask(&mut schedule, now);
        seen.push(value);
        assert_eq!(wanted.valid, now >= 50 * MS);
        assert!(wanted.upcoming_ns.is_some_and(|due| due > now && due <= now + 50 * MS));
    }
    // Each action acts exactly 50 ms after its observation, none is lost.
    for (tick, value) in seen.iter().enumerate().skip(5) {
        assert_eq!(*value, ((tick - 5) / 2 * 2) as f64, "{tick}");
    }
    assert_eq!(schedule.counters().superseded, 0);
}

#[test]
fn a_new_generation_in_charge_lets_the_old_chunk_end_and_refuses_its_successors() {
    let mut schedule = Schedule::new(&chunked(1, 2, 0, Interpolate::Hold)).unwrap();
    schedule.accept(0, &chunk(1, 0, &[1.0, 2.0])).unwrap();
    schedule.put_in_charge(1);
    assert_eq!(ask(&mut schedule, 0).0.generation, 0);
    assert_eq!(schedule.accept(0, &chunk(2, 0, &[1.0, 2.0])), Err(Code::RetiredGeneration));
    schedule.accept(10 * MS, &Chunk { generation: 1, ..chunk(3, 10 * MS, &[5.0, 6.0]) }).unwrap();
    let (wanted, value) = ask(&mut schedule, 10 * MS);
    assert_eq!((wanted.generation, wanted.seq, value), (1, 3, 5.0));
}

#[test]
fn after_a_clear_nothing_is_wanted() {
    for delay in [0, 50 * MS] {
        let mut schedule = Schedule::new(&chunked(1, 4, delay, Interpolate::Hold)).unwrap();
        schedule.accept(0, &chunk(1, 0, &[1.0; 4])).unwrap();
        schedule.clear();
        assert!(!ask(&mut schedule, delay).0.valid);
    }
}

/// Value of a chunk's curve by the textbook.
fn naive(rows: &[f64], start_ns: i64, now_ns: i64, interpolate: Interpolate) -> f64 {
    let last = rows.len() as i64 - 1;
    let row = ((now_ns - start_ns) / PERIOD).clamp(0, last) as usize;
    let u = ((now_ns - start_ns) as f64 / PERIOD as f64 - row as f64).clamp(0.0, 1.0);
    let at = |index: usize| rows[index.min(rows.len() - 1)];
    match interpolate {
        Interpolate::Hold => at(row),
        Interpolate::Linear => at(row) * (1.0 - u) + at(row + 1) * u,
        Interpolate::Cubic => {
            let slope = |index: usize| match (index.checked_sub(1), rows.get(index + 1)) {
                (Some(before), Some(next)) => (next - rows[before]) / 2.0,
                (None, Some(next)) => next - rows[index],
                (Some(before), None) => rows[index] - rows[before],
                (None, None) => 0.0,
            };
            if row as i64 == last {
                return at(row);
            }
            let (h00, h10) = (2.0 * u.powi(3) - 3.0 * u * u + 1.0, u.powi(3) - 2.0 * u * u + u);
            let (h01, h11) = (3.0 * u * u - 2.0 * u.powi(3), u.powi(3) - u * u);
            h00 * at(row) + h10 * slope(row) + h01 * at(row + 1) + h11 * slope(row + 1)
        }
    }
}

fn rules() -> impl Strategy<Value = Interpolate> {
    prop_oneof![Just(Interpolate::Hold), Just(Interpolate::Linear), Just(Interpolate::Cubic)]
}

proptest! {
    #[test]
    fn within_one_chunk_the_target_is_the_textbook_curve(
        rows in prop::collection::vec(-3.0f64..3.0, 1..9), delay_ms in 0i64..60, interpolate in rules(),
        ages_ms in prop::collection::vec(0i64..250, 1..20),
    ) {
        let mut plan = chunked(1, rows.len() as u32, delay_ms * MS, interpolate);
        plan.timing.action_valid_ns = 30 * MS;
        let mut schedule = Schedule::new(&plan).unwrap();
        schedule.accept(0, &chunk(1, 0, &rows)).unwrap();
        let start = delay_ms * MS;
        let until = start + (rows.len() as i64 - 1) * PERIOD + 30 * MS;
        let mut ages_ms = ages_ms;
        ages_ms.sort_unstable();
        for now in ages_ms.into_iter().map(|ms| ms * MS) {
            let (wanted, value) = ask(&mut schedule, now);
            prop_assert_eq!(wanted.valid, now >= start && now < until);
            if wanted.valid {
                let expected = naive(&rows, start, now, interpolate);
                prop_assert!((value - expected).abs() < 1e-9, "{} {}", value, expected);
                prop_assert!(wanted.due_ns <= now && (now < wanted.due_ns + PERIOD || wanted.row as usize == rows.len() - 1));
            }
        }
    }

    #[test]
    fn a_handover_is_continuous_and_over_after_one_period(
        old in prop::collection::vec(-3.0f64..3.0, 8), new in prop::collection::vec(-3.0f64..3.0, 8),
        latency_ms in 0i64..50, cubic: bool, pose in -1.0f64..1.0,
    ) {
        let interpolate = if cubic { Interpolate::Cubic } else { Interpolate::Linear };
        let mut schedule = Schedule::new(&chunked(1, 8, 0, interpolate)).unwrap();
        schedule.begin(0, 0, &[pose]);
        schedule.accept(0, &chunk(1, 0, &old)).unwrap();
        prop_assert!((ask(&mut schedule, 0).1 - pose).abs() < 1e-9, "the first chunk starts at the pose that stands");
        let (at, arrival) = (60 * MS, (60 + latency_ms) * MS);
        let before = ask(&mut schedule, arrival).1;
        prop_assert!((before - naive(&old, 0, arrival, interpolate)).abs() < 1e-9);
        schedule.accept(arrival, &chunk(2, at, &new)).unwrap();
        let (wanted, value) = ask(&mut schedule, arrival);
        prop_assert_eq!(wanted.seq, 2);
        prop_assert!((value - before).abs() < 1e-9, "no step at the seam: {} {}", value, before);
        let mut last = value;
        for step in 1..=20 {
            let now = arrival + step * MS;
            let value = ask(&mut schedule, now).1;
            let curve = naive(&new, at, now, interpolate) - naive(&new, at, now - MS, interpolate);
            let faded = (before - naive(&new, at, arrival, interpolate)).abs() * 0.08;
            prop_assert!((value - last - curve).abs() <= faded + 1e-9);
            last = value;
        }
        let now = arrival + PERIOD;
        prop_assert!((last - naive(&new, at, now, interpolate)).abs() < 1e-9);
    }

    #[test]
    fn the_target_does_not_depend_on_how_often_it_is_asked(
        chunks in prop::collection::vec(prop::collection::vec(-3.0f64..3.0, 4), 1..6), delay_ms in 0i64..100,
        interpolate in rules(), asked in prop::collection::vec(any::<bool>(), 60),
    ) {
        let mut plan = chunked(1, 4, delay_ms * MS, interpolate);
        plan.timing.ticks_per_inference = 4;
        let mut often = Schedule::new(&plan).unwrap();
        let mut seldom = Schedule::new(&plan).unwrap();
        for (tick, asked) in asked.into_iter().enumerate() {
            let now = tick as i64 * 10 * MS;
            if let (Some(rows), 0) = (chunks.get(tick / 4), tick % 4) {
                let chunk = chunk(tick as u64 + 1, now, rows);
                prop_assert_eq!(often.accept(now, &chunk), seldom.accept(now, &chunk));
            }
            let answer = ask(&mut often, now);
            if asked {
                let other = ask(&mut seldom, now);
                prop_assert_eq!(answer.0, other.0);
                prop_assert!(answer.1.to_bits() == other.1.to_bits());
            }
        }
    }

    #[test]
    fn whatever_comes_the_target_is_a_number_or_nothing(
        events in prop::collection::vec((0u32..2, 0u64..20, -100i64..400, 0usize..6, any::<f64>(), 0u16..3), 1..40),
    ) {
        let mut schedule = Schedule::new(&chunked(2, 4, 30 * MS, Interpolate::Cubic)).unwrap();
        for (tick, (generation, seq, at_ms, rows, value, status)) in events.into_iter().enumerate() {
            let now = tick as i64 * 10 * MS;
            let value = if value.abs() > 1e100 { f64::NAN } else { value };
            let status = if status == 2 { 77 } else { 0 };
            let mut chunk = Chunk { generation, seq, at_ns: at_ms * MS, status, rows, ..Chunk::new(6, 2) };
            chunk.actions.fill(value);
            let _ = schedule.accept(now, &chunk);
            let mut out = [f64::NAN; 2];
            let wanted = schedule.at(now, &mut out);
            prop_assert_eq!(wanted.valid, out.iter().all(|v| v.is_finite()));
        }
    }
}
