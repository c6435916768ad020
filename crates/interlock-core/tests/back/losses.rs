//! Every way to lose the policy ends in its safe behaviour, first sample in the same tick.

use interlock_core::code::Code;
use interlock_core::guard::{RulingKind, Wire};
use interlock_core::mode::{Event, Mode};
use interlock_core::plan::{Behaviour, Interpolate};
use interlock_core::sample::Chunk;

use crate::plans;
use crate::rig::{generous, Rig};

fn sway(time: f64, joint: usize) -> f64 {
    0.15 * (2.0 * time + joint as f64).sin() - 0.15 * (joint as f64).sin()
}

/// A walker that has run for a while; damping is its loss behaviour.
fn walker() -> Rig {
    let mut rig = Rig::new(plans::walker(2));
    rig.policy = sway;
    rig.tick();
    rig.event(Event::Arm).unwrap();
    rig.tick();
    rig.event(Event::Start).unwrap();
    for _ in 0..20 {
        let seen = rig.tick();
        assert_eq!(
            (seen.mode, seen.ruling.kind, seen.wanted.valid),
            (Mode::Running, RulingKind::Pass, true),
            "{seen:?}"
        );
    }
    rig
}

/// An asynchronous chunked policy on a position arm.
fn arm() -> Rig {
    let mut plan = plans::chunked(2, 8, 0, Interpolate::Linear);
    plan.timing.ticks_per_inference = 8;
    plan.timing.action_valid_ns = 100 * plans::MS;
    let mut rig = Rig::running(generous(plan));
    rig.policy = sway;
    for _ in 0..40 {
        assert_eq!(rig.tick().mode, Mode::Running);
    }
    rig
}

fn is_damped(seen: &crate::rig::Seen) -> bool {
    seen.wire == Some(Wire::PositionPd) && seen.kp == [0.0; 2] && seen.kd == [5.0; 2]
}

#[test]
fn a_refused_command_is_replaced_in_the_same_tick() {
    let mut rig = walker();
    rig.policy = |_, joint| if joint == 1 { 5.0 } else { 0.0 };
    while !rig.supervisor.observe(rig.now_ns, 0, None).due {
        rig.tick();
    }
    let seen = loop {
        let seen = rig.tick();
        if seen.ruling.kind == RulingKind::Refused {
            break seen;
        }
    };
    assert_eq!((seen.mode, seen.cause, seen.ruling.refusal), (Mode::Stopping, Code::Position, Some(Code::Position)));
    assert!(is_damped(&seen) && seen.is_violation, "{seen:?}");
    let counters = rig.supervisor.counters();
    assert_eq!((counters.refused, counters.violations), (1, 1));
    assert_eq!((counters.refused_by.get(Code::Position), counters.lost_by.get(Code::Position)), (1, 1));
}

#[test]
fn a_policy_that_answers_with_what_is_no_action_is_lost_at_once() {
    type Spoil = fn(&mut Chunk);
    let spoils: [(Spoil, Code, bool); 5] = [
        (|chunk| chunk.actions[1] = f64::NAN, Code::NotFinite, true),
        (|chunk| chunk.rows = 0, Code::Dimension, true),
        (|chunk| chunk.rows = 9, Code::Dimension, true),
        (|chunk| chunk.status = Code::FrozenImage as u16, Code::FrozenImage, false),
        (|chunk| chunk.status = 9999, Code::WorkerError, false),
    ];
    for (spoil, code, is_refusal) in spoils {
        let mut rig = walker();
        rig.spoil = spoil;
        let seen = (0..4).map(|_| rig.tick()).find(|seen| seen.mode != Mode::Running).expect("lost");
        assert_eq!((seen.mode, seen.cause), (Mode::Stopping, code));
        assert_eq!(seen.ruling.refusal, is_refusal.then_some(code));
        assert!(is_damped(&seen), "{code:?}");
        assert_eq!(rig.supervisor.counters().dropped_by.get(code), 1);
    }
}

#[test]
fn a_chunk_of_another_worker_is_dropped_and_harmless() {
    let mut rig = arm();
    let mut chunk = rig.answer(1);
    chunk.generation = 0;
    assert_eq!(rig.tick_with(&chunk).mode, Mode::Running);
    chunk.generation = 1;
    assert_eq!(rig.tick_with(&chunk).mode, Mode::Running);
    let counters = rig.supervisor.counters();
    assert_eq!(counters.dropped_by.get(Code::RetiredGeneration), 1);
    assert_eq!(counters.dropped_by.get(Code::OldSequence), 1);
}

#[test]
fn a_hung_worker_of_an_asynchronous_policy_is_noticed_by_its_deadline() {
    let mut rig = arm();
    rig.is_answering = false;
    while !rig.tick().is_offered {}
    // 100 ms at 10 ms: the eleventh tick after the offer is late.
    let ticks = rig.until(20, |seen| seen.mode != Mode::Running);
    assert_eq!((ticks, rig.supervisor.cause()), (11, Code::WorkerLate));
}

#[test]
fn a_hung_worker_of_a_synchronous_policy_ends_with_its_last_action() {
    let mut rig = walker();
    while !rig.tick().is_offered {}
    rig.is_answering = false;
    // The last action may stand for 40 ms.
    let ticks = rig.until(20, |seen| seen.mode != Mode::Running);
    assert_eq!((ticks, rig.supervisor.cause()), (4, Code::WorkerLate));
}

#[test]
fn a_worker_that_never_answers_is_noticed_too() {
    for plan in [plans::walker(2), plans::chunked(2, 8, 0, Interpolate::Linear)] {
        let mut rig = Rig::new(plan);
        rig.is_answering = false;
        rig.tick();
        rig.event(Event::Arm).unwrap();
        rig.tick();
        rig.event(Event::Start).unwrap();
        let first = rig.tick();
        assert_eq!(
            (first.mode, first.ruling.kind, &first.target[..]),
            (Mode::Running, RulingKind::Pass, &[0.0; 2][..])
        );
        rig.until(20, |seen| seen.mode != Mode::Running);
        assert_eq!(rig.supervisor.cause(), Code::WorkerLate);
    }
}

#[test]
fn patience_ends_with_the_first_action() {
    let mut plan = plans::walker(2);
    plan.timing.action_valid_ns = 20 * plans::MS;
    let mut rig = Rig::new(plan);
    rig.policy = |_, _| 0.1;
    rig.tick();
    rig.event(Event::Arm).unwrap();
    rig.tick();
    rig.event(Event::Start).unwrap();
    assert_eq!(rig.tick().target, [0.1; 2], "the first action goes out in the first tick");
    rig.is_answering = false;
    let ticks = rig.until(10, |seen| seen.mode != Mode::Running);
    assert_eq!((ticks, rig.supervisor.cause()), (2, Code::WorkerLate));
}

#[test]
fn a_dead_worker_acts_before_the_next_tick_is_over() {
    let mut rig = walker();
    rig.event(Event::PolicyLost(Code::WorkerDead)).unwrap();
    let seen = rig.tick();
    assert!(is_damped(&seen));
    assert_eq!(seen.cause, Code::WorkerDead);
}

#[test]
fn a_robot_that_gives_no_new_samples_loses_its_policy() {
    let mut rig = walker();
    rig.is_sampling = false;
    // Samples may be 20 ms old.
    let ticks = rig.until(10, |seen| seen.mode != Mode::Running);
    assert_eq!(ticks, 3);
    assert!(matches!(rig.supervisor.cause(), Code::StaleState | Code::DriverStuck));
}

#[test]
fn an_old_image_is_noticed_when_it_is_about_to_be_offered() {
    let mut plan = plans::walker(2);
    plans::with_camera(&mut plan, [8, 8], [8, 8], interlock_core::plan::Resize::None);
    let mut rig = Rig::new(plan);
    rig.supervisor.image(0, 0, 1, 0);
    rig.tick();
    rig.event(Event::Arm).unwrap();
    rig.tick();
    rig.event(Event::Start).unwrap();
    let ticks = rig.until(20, |seen| seen.mode != Mode::Running);
    // Skew beyond 40 ms comes before an age of 80 ms: in the first offered tick after 40 ms.
    assert_eq!(rig.supervisor.cause(), Code::Skew);
    assert_eq!(rig.now_ns, 50 * plans::MS, "{ticks}");
}

#[test]
fn a_dead_driver_ends_everything() {
    let mut rig = walker();
    rig.event(Event::DriverLost).unwrap();
    let seen = rig.tick();
    assert_eq!((seen.mode, seen.cause, seen.wire), (Mode::Faulted, Code::DriverDead, None));
    for event in [Event::Recover, Event::Arm, Event::Start] {
        assert_eq!(rig.event(event), Err(Code::WrongMode));
    }
}

#[test]
fn stop_quit_and_a_closed_terminal_stop_the_robot() {
    for (event, code, ends) in [
        (Event::Stop, Code::OperatorStop, false),
        (Event::Quit, Code::OrderlyEnd, true),
        (Event::TerminalClosed, Code::TerminalClosed, false),
    ] {
        let mut rig = arm();
        rig.event(event).unwrap();
        assert!(!rig.supervisor.is_finished(), "not while it moves");
        let seen = rig.tick();
        assert_eq!(seen.cause, code);
        if seen.mode == Mode::Stopping {
            rig.until(100, |seen| seen.mode == Mode::Holding);
        }
        assert_eq!(rig.supervisor.is_finished(), ends);
    }
}

#[test]
fn a_lost_goal_stops_the_robot_or_makes_it_stand() {
    let mut plan = plans::plan(2);
    plan.goal.timeout_ns = 50 * plans::MS;
    let mut rig = Rig::new(plan);
    rig.supervisor.set_goal(0, Some([0.5, 0.0, 0.0]), None).unwrap();
    rig.tick();
    rig.event(Event::Arm).unwrap();
    rig.event(Event::Start).unwrap();
    rig.until(20, |seen| seen.mode != Mode::Running);
    assert_eq!((rig.supervisor.cause(), rig.now_ns), (Code::GoalLost, 60 * plans::MS));

    let mut plan = plans::walker(2);
    plan.goal.timeout_ns = 50 * plans::MS;
    let mut rig = Rig::new(plan);
    rig.supervisor.set_goal(0, Some([0.5, 0.0, 0.0]), None).unwrap();
    rig.tick();
    rig.event(Event::Arm).unwrap();
    rig.event(Event::Start).unwrap();
    rig.tick();
    assert_eq!(rig.last_observation.as_ref().unwrap().goal.velocity, [0.5, 0.0, 0.0]);
    for _ in 0..20 {
        assert_eq!(rig.tick().mode, Mode::Running);
    }
    assert_eq!(rig.last_observation.as_ref().unwrap().goal.velocity, [0.0; 3]);
    rig.supervisor.set_goal(rig.now_ns, Some([0.4, 0.0, 0.0]), None).unwrap();
    rig.tick();
    rig.tick();
    assert_eq!(rig.last_observation.as_ref().unwrap().goal.velocity, [0.4, 0.0, 0.0], "and goes on when it is back");
}

#[test]
fn a_policy_that_is_lost_while_it_stands_still_for_the_exit_is_damped() {
    let mut plan = plans::walker(2);
    plan.safe.on_exit = Behaviour::PolicyZeroGoal;
    let mut rig = Rig::running(plan);
    rig.supervisor.set_goal(rig.now_ns, Some([0.5, 0.0, 0.0]), None).unwrap();
    rig.tick();
    rig.event(Event::Quit).unwrap();
    for _ in 0..4 {
        let seen = rig.tick();
        assert_eq!((seen.mode, seen.wanted.valid, &seen.kp[..]), (Mode::Stopping, true, &[50.0; 2][..]));
    }
    assert_eq!(rig.last_observation.as_ref().unwrap().goal.velocity, [0.0; 3]);
    rig.until(300, |seen| seen.mode == Mode::Holding);
    assert_eq!(rig.tick().kp, [50.0; 2], "the policy keeps its balance");
    rig.event(Event::Recover).unwrap();
    let seen = rig.tick();
    assert_eq!((seen.mode, seen.wanted.valid), (Mode::Armed, true), "also while armed again");
    rig.is_answering = false;
    rig.until(10, |seen| seen.mode == Mode::Stopping);
    assert!(is_damped(&rig.tick()));
    rig.until(300, |seen| seen.mode == Mode::Holding);
    assert!(is_damped(&rig.tick()), "for good");
}

#[test]
fn a_stop_and_a_closed_terminal_do_what_a_lost_policy_does() {
    for event in [Event::Stop, Event::TerminalClosed] {
        let mut plan = plans::walker(2);
        plan.safe.on_exit = Behaviour::PolicyZeroGoal;
        let mut rig = Rig::running(plan);
        rig.event(event).unwrap();
        assert!(is_damped(&rig.tick()), "{event:?}");
    }
}

#[test]
fn a_robot_that_was_never_run_is_not_stopped_by_starting_its_policy() {
    let mut plan = plans::walker(2);
    plan.safe.on_exit = Behaviour::PolicyZeroGoal;
    let mut rig = Rig::new(plan);
    rig.tick();
    rig.event(Event::Arm).unwrap();
    rig.tick();
    rig.event(Event::Quit).unwrap();
    assert!(is_damped(&rig.tick()));
    assert_eq!(rig.supervisor.counters().lost_by.iter().count(), 0, "it was not even asked");
}

#[test]
fn an_answer_owed_before_a_stop_is_not_missed_after_the_next_start() {
    let mut rig = arm();
    rig.is_answering = false;
    while !rig.tick().is_offered {}
    rig.event(Event::Stop).unwrap();
    rig.until(100, |seen| seen.mode == Mode::Holding);
    rig.event(Event::Recover).unwrap();
    rig.tick();
    rig.event(Event::Start).unwrap();
    for _ in 0..10 {
        assert_eq!(rig.tick().mode, Mode::Running, "{:?}", rig.supervisor.cause());
    }
}
