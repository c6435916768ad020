//! One tick after another: offers, periods, counters, skipped ticks, goals.

use interlock_core::code::Code;
use interlock_core::guard::RulingKind;
use interlock_core::mode::{Event, Mode};
use interlock_core::plan::Interpolate;

use crate::checker::{Envelope, Observer};
use crate::plans::{self, MS};
use crate::rig::{generous, Rig};

#[test]
fn observations_are_offered_on_inference_ticks_and_carry_what_was_sent() {
    let mut plan = plans::walker(2);
    plan.timing.ticks_per_period = 4;
    plan.timing.ticks_per_inference = 4;
    plan.timing.action_valid_ns = 60 * MS;
    let mut rig = Rig::new(plan);
    rig.policy = |_, joint| 0.1 * (1.0 + joint as f64);
    rig.tick();
    rig.event(Event::Arm).unwrap();
    assert!(!rig.tick().is_offered, "not before the start");
    rig.event(Event::Start).unwrap();
    for tick in 0..12 {
        assert_eq!(rig.tick().is_offered, tick % 4 == 0, "{tick}");
    }
    let observation = rig.last_observation.as_ref().unwrap();
    assert_eq!((observation.seq, observation.period, observation.generation), (3, 2, 1));
    assert_eq!((observation.applied[0], observation.applied[1]), (0.1, 0.2));
    assert_eq!(observation.at_ns, rig.now_ns - 30 * MS);
    assert_eq!(rig.supervisor.counters().offered, 3);
}

#[test]
fn a_new_start_is_a_new_episode() {
    let mut rig = Rig::running(plans::walker(2));
    let first = rig.last_observation.clone().unwrap();
    rig.event(Event::Stop).unwrap();
    rig.until(400, |seen| seen.mode == Mode::Holding);
    rig.event(Event::Recover).unwrap();
    rig.tick();
    rig.event(Event::Start).unwrap();
    assert!(rig.tick().is_offered, "at once");
    let second = rig.last_observation.clone().unwrap();
    assert!(second.episode > first.episode && second.seq > first.seq);
    assert_eq!(second.period, 0);
}

#[test]
fn answers_from_before_the_start_do_not_count_after_it() {
    let mut rig = Rig::running(plans::walker(2));
    let old = rig.answer(rig.last_observation.as_ref().unwrap().seq);
    rig.event(Event::Stop).unwrap();
    rig.until(400, |seen| seen.mode == Mode::Holding);
    rig.event(Event::Recover).unwrap();
    rig.tick();
    rig.event(Event::Start).unwrap();
    let seen = rig.tick_with(&old);
    assert!(!seen.wanted.valid);
    assert_eq!(rig.supervisor.counters().dropped_by.get(Code::OldSequence), 1);
}

#[test]
fn a_new_worker_takes_over_only_at_the_next_start() {
    let mut rig = Rig::running(plans::walker(2));
    rig.supervisor.set_generation(2);
    for _ in 0..8 {
        assert_eq!(rig.tick().mode, Mode::Running, "the old one is still in charge");
    }
    rig.event(Event::Stop).unwrap();
    rig.until(400, |seen| seen.mode == Mode::Holding);
    rig.event(Event::Recover).unwrap();
    rig.tick();
    rig.event(Event::Start).unwrap();
    rig.spoil = |chunk| chunk.generation = 2;
    assert!(rig.tick().wanted.valid);
    assert_eq!(rig.last_observation.as_ref().unwrap().generation, 2);
}

#[test]
fn planned_ticks_are_executed_or_missed() {
    let mut rig = Rig::running(plans::walker(2));
    let before = rig.supervisor.counters();
    for skipped in [0, 0, 3, 1, 0] {
        rig.skip(skipped);
    }
    let counters = rig.supervisor.counters();
    assert_eq!((counters.executed - before.executed, counters.missed - before.missed), (5, 4));
    assert_eq!(counters.planned, counters.executed + counters.missed);
    assert_eq!(rig.tick().tick, counters.planned + 1);
}

#[test]
fn a_skipped_inference_tick_is_made_up_for() {
    let mut plan = plans::walker(2);
    plan.timing.ticks_per_period = 4;
    plan.timing.ticks_per_inference = 4;
    plan.timing.action_valid_ns = 60 * MS;
    let mut rig = Rig::running(plan);
    rig.tick();
    rig.tick();
    // Policy ticks 3, 4 and 5: the fourth would have offered.
    assert!(rig.skip(2).is_offered);
    assert!(!rig.tick().is_offered && !rig.tick().is_offered && rig.tick().is_offered, "and the rhythm stays");
}

#[test]
fn after_skipped_ticks_a_trajectory_goes_on_one_tick_at_a_time() {
    let mut plan = plans::chunked(1, 8, 0, Interpolate::Linear);
    plan.timing.ticks_per_inference = 8;
    plan.timing.inference_deadline_ns = 300 * MS;
    let limits = Envelope { lo: -3.0, hi: 3.0, vel: 2.0, acc: 20.0, jerk: 200.0 };
    let mut rig = Rig::running(generous(plan));
    rig.policy = |time, _| 0.5 * time;
    let mut observer = Observer::at_rest(0.01, 0.0);
    for tick in 0..200 {
        let seen = rig.skip(if tick % 20 == 19 { 4 } else { 0 });
        assert_eq!(seen.mode, Mode::Running, "{seen:?}");
        observer.see(seen.target[0], &limits).unwrap();
    }
}

#[test]
fn our_own_lateness_is_not_the_workers() {
    let mut plan = plans::chunked(1, 8, 0, Interpolate::Linear);
    plan.timing.ticks_per_inference = 8;
    plan.timing.action_valid_ns = 1_000 * MS;
    plan.timing.inference_deadline_ns = 50 * MS;
    let mut rig = Rig::running(plan);
    rig.is_answering = false;
    while !rig.tick().is_offered {}
    assert_eq!(rig.skip(20).mode, Mode::Running);
    rig.until(10, |seen| seen.mode != Mode::Running);
    assert_eq!(rig.supervisor.cause(), Code::WorkerLate);
}

#[test]
fn a_stretch_of_violations_is_one_event() {
    let mut plan = plans::walker(2);
    plan.limits.target_step.as_mut().unwrap().iter_mut().for_each(|step| step.limit = 0.3);
    let mut rig = Rig::running(plan);
    rig.policy = |_, _| 0.9;
    let seen: Vec<_> = (0..12).map(|_| rig.tick()).collect();
    assert!(seen.iter().filter(|seen| seen.ruling.kind == RulingKind::Limited).count() > 1);
    assert_eq!(seen.iter().filter(|seen| seen.is_violation).count(), 1);
    let counters = rig.supervisor.counters();
    assert_eq!(counters.violations, 1);
    assert!(counters.limited > 1 && counters.limited_by.get(Code::TargetStep) == counters.limited);
    rig.policy = |_, _| 0.0;
    let again: Vec<_> = (0..12).map(|_| rig.tick()).collect();
    assert_eq!(again.iter().filter(|seen| seen.is_violation).count(), 1, "and the next stretch another");
}

#[test]
fn a_goal_is_brought_into_its_range_and_slewed() {
    let mut plan = plans::walker(2);
    plan.goal.slew_per_s = Some([2.0, 1.0, 1.0]);
    let mut rig = Rig::new(plan);
    rig.supervisor.set_goal(0, Some([5.0, -0.015, 0.0]), None).unwrap();
    for _ in 0..100 {
        rig.tick();
    }
    rig.event(Event::Arm).unwrap();
    rig.event(Event::Start).unwrap();
    rig.tick();
    let goal = |rig: &Rig| rig.last_observation.as_ref().unwrap().goal.velocity;
    assert!((goal(&rig)[0] - 0.02).abs() < 1e-12, "from standstill: {:?}", goal(&rig));
    rig.tick();
    rig.tick();
    assert!((goal(&rig)[0] - 0.06).abs() < 1e-12 && (goal(&rig)[1] + 0.015).abs() < 1e-12, "{:?}", goal(&rig));
    for _ in 0..100 {
        rig.tick();
    }
    assert!((goal(&rig)[0] - 1.0).abs() < 1e-12, "{:?}", goal(&rig));
}

#[test]
fn a_goal_that_is_no_number_or_has_no_place_is_refused() {
    let mut rig = Rig::new(plans::walker(2));
    let mut set = |velocity, tokens| rig.supervisor.set_goal(0, velocity, tokens);
    assert_eq!(set(Some([f64::NAN, 0.0, 0.0]), None), Err(Code::NotFinite));
    assert_eq!(set(None, Some(&[1][..])), Err(Code::Dimension), "this policy takes no text");
    let mut plan = plans::plan(2);
    plan.goal.velocity = None;
    plans::with_text(&mut plan, 8);
    let mut rig = Rig::new(plan);
    assert_eq!(rig.supervisor.set_goal(0, Some([0.0; 3]), None), Err(Code::Dimension));
    assert_eq!(rig.supervisor.set_goal(0, None, Some(&[0; 65])), Err(Code::Dimension));
}

#[test]
fn the_same_inputs_give_the_same_commands_bit_for_bit() {
    let run = || {
        let mut rig = Rig::running(plans::chunked(2, 8, 20 * MS, Interpolate::Cubic));
        rig.policy = |time, joint| 0.8 * (3.0 * time + joint as f64).sin();
        (0..300).flat_map(|_| rig.tick().target).map(f64::to_bits).collect::<Vec<_>>()
    };
    assert_eq!(run(), run());
}

#[test]
fn our_own_lateness_does_not_cost_the_policy_its_robot() {
    let mut rig = Rig::running(plans::plan(2));
    rig.tick();
    rig.is_sampling = false;
    // The sample is as old as two ticks plus the time in which nobody ran, which is forgiven.
    assert_eq!(rig.skip(2).mode, Mode::Running);
}
