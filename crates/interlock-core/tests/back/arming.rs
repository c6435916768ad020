//! A robot is armed, started and recovered only when everything that must be there is.

use interlock_core::code::Code;
use interlock_core::guard::Wire;
use interlock_core::mode::{Event, Mode};
use interlock_core::plan::{AfterMove, Behaviour, Plan};
use interlock_core::supervisor::Readiness;

use crate::plans;
use crate::rig::{Rig, READY};

fn idle(plan: Plan) -> Rig {
    let mut rig = Rig::new(plan);
    rig.tick();
    rig
}

fn armed(plan: Plan) -> Rig {
    let mut rig = idle(plan);
    rig.event(Event::Arm).unwrap();
    rig.tick();
    rig
}

fn moving_to_start(mut plan: Plan) -> Plan {
    let pose = plan.start.pose.clone();
    plan.safe.before_start = Some(Behaviour::GoTo { pose, duration_ns: 500 * plans::MS, then: AfterMove::Hold });
    plan
}

#[test]
fn nothing_is_sent_before_arming() {
    let mut rig = Rig::new(plans::plan(2));
    for _ in 0..5 {
        assert_eq!(rig.tick().wire, None);
    }
    assert_eq!(rig.event(Event::Start), Err(Code::WrongMode));
}

#[test]
fn whoever_is_not_ready_cannot_be_armed() {
    let mut rig = idle(plans::plan(2));
    for (ready, code) in [
        (Readiness { worker: false, ..READY }, Code::NotReady),
        (Readiness { driver: false, ..READY }, Code::NotReady),
        (Readiness { recording: false, ..READY }, Code::NoRecording),
    ] {
        rig.supervisor.set_ready(ready);
        assert_eq!(rig.event(Event::Arm), Err(code));
        assert_eq!(rig.supervisor.mode(), Mode::Idle);
    }
    rig.supervisor.set_ready(READY);
    assert_eq!(rig.event(Event::Arm), Ok(()));
}

#[test]
fn without_a_fresh_sample_nothing_is_armed() {
    let mut rig = Rig::new(plans::plan(2));
    assert_eq!(rig.event(Event::Arm), Err(Code::StaleState));
    rig.tick();
    rig.is_sampling = false;
    for _ in 0..5 {
        rig.tick();
    }
    assert!(matches!(rig.event(Event::Arm), Err(Code::StaleState | Code::DriverStuck)));
}

#[test]
fn a_robot_outside_its_limits_cannot_be_armed() {
    let mut plan = plans::plan(2);
    plan.start.within_pos = vec![10.0; 2];
    for (position, code) in [(3.04, Code::OutsideLimits), (-3.04, Code::OutsideLimits), (f64::NAN, Code::NotFinite)] {
        let mut rig = Rig::new(plan.clone());
        rig.sample.pos[1] = position;
        rig.tick();
        assert_eq!(rig.event(Event::Arm), Err(code), "{position}");
    }
}

#[test]
fn a_robot_that_sags_over_its_limit_is_held_inside_it() {
    let mut plan = plans::plan(2);
    plan.start.within_pos = vec![10.0; 2];
    let mut rig = Rig::new(plan);
    rig.sample.pos[1] = 3.02;
    rig.tick();
    rig.event(Event::Arm).unwrap();
    let seen = rig.tick();
    assert!(seen.target[1] <= 3.0 && seen.target[1] > 2.999, "{seen:?}");
}

#[test]
fn outside_the_start_envelope_nothing_is_armed_unless_it_may_move_there() {
    let mut rig = Rig::new(plans::plan(2));
    rig.sample.pos[1] = 0.21;
    rig.tick();
    assert_eq!(rig.event(Event::Arm), Err(Code::OutsideStart));

    let mut rig = Rig::new(moving_to_start(plans::plan(2)));
    rig.sample.pos[1] = 1.0;
    rig.tick();
    rig.event(Event::Arm).unwrap();
    let seen = rig.tick();
    assert!((seen.target[1] - 1.0).abs() < 1e-3, "from where it is: {seen:?}");
    assert_eq!(rig.event(Event::Start), Err(Code::OutsideStart));
    let ticks = rig.until(200, |seen| (seen.target[1]).abs() < 1e-6);
    assert!(ticks > 50, "{ticks}: not before 500 ms");
    rig.tick();
    rig.tick();
    assert_eq!(rig.event(Event::Start), Ok(()));
}

#[test]
fn a_start_waits_for_the_move_to_end() {
    let mut rig = Rig::new(moving_to_start(plans::plan(2)));
    rig.sample.pos[1] = 0.5;
    rig.tick();
    rig.event(Event::Arm).unwrap();
    rig.until(200, |seen| seen.target[1] < 0.15);
    assert_eq!(rig.event(Event::Start), Err(Code::NotReady));
    assert_eq!(rig.event(Event::Disarm), Err(Code::NotReady), "nor is it dropped on the way");
}

#[test]
fn a_tilted_or_unknown_base_is_outside_the_start_envelope() {
    let tilted = |angle: f64| [(angle / 2.0).cos(), 0.0, (angle / 2.0).sin(), 0.0];
    for (quat, answer) in [
        (tilted(0.19), Ok(())),
        (tilted(0.21), Err(Code::OutsideStart)),
        (tilted(3.0), Err(Code::OutsideStart)),
        ([f64::NAN; 4], Err(Code::OutsideStart)),
        ([0.0; 4], Err(Code::OutsideStart)),
    ] {
        let mut rig = Rig::new(plans::walker(2));
        rig.sample.quat = quat;
        rig.tick();
        assert_eq!(rig.event(Event::Arm), answer, "{quat:?}");
    }
}

#[test]
fn an_armed_robot_is_held_where_it_was() {
    let mut plan = plans::plan(2);
    plan.start.pose = vec![0.1, -0.1];
    let mut rig = armed(plan);
    for _ in 0..20 {
        let seen = rig.tick();
        assert_eq!((seen.mode, seen.wire, &seen.target[..]), (Mode::Armed, Some(Wire::Position), &[0.1, -0.1][..]));
    }
    let mut rig = armed(plans::walker(2));
    let seen = rig.tick();
    assert_eq!((seen.wire, &seen.target[..], &seen.kp[..]), (Some(Wire::PositionPd), &[0.0; 2][..], &[50.0; 2][..]));
}

#[test]
fn a_policy_with_a_task_text_is_not_started_without_one() {
    let mut plan = plans::plan(2);
    plans::with_text(&mut plan, 8);
    let mut rig = armed(plan);
    assert_eq!(rig.event(Event::Start), Err(Code::NotReady));
    rig.supervisor.set_goal(rig.now_ns, None, Some(&[1, 2, 3])).unwrap();
    assert_eq!(rig.event(Event::Start), Ok(()));
    rig.tick();
    let goal = &rig.last_observation.as_ref().unwrap().goal;
    assert_eq!((goal.token_count, &goal.tokens[..4]), (3, &[1, 2, 3, 0][..]));
}

#[test]
fn a_policy_that_stops_without_a_goal_is_not_started_without_one() {
    let mut plan = plans::plan(2);
    plan.goal.timeout_ns = 100 * plans::MS;
    let mut rig = armed(plan);
    assert_eq!(rig.event(Event::Start), Err(Code::GoalLost));
    rig.supervisor.set_goal(rig.now_ns, Some([0.0; 3]), None).unwrap();
    assert_eq!(rig.event(Event::Start), Ok(()));
}

#[test]
fn a_takeover_without_anybody_there_is_refused() {
    let mut rig = Rig::running(plans::walker(2));
    assert_eq!(rig.event(Event::Takeover), Err(Code::NotReady));
    assert_eq!(rig.tick().mode, Mode::Running);
}

#[test]
fn a_stop_is_left_only_by_recover_and_only_in_health() {
    let mut rig = Rig::running(plans::plan(2));
    rig.event(Event::Stop).unwrap();
    rig.until(50, |seen| seen.mode == Mode::Holding);
    for _ in 0..100 {
        assert_eq!(rig.tick().mode, Mode::Holding, "for as long as nobody decides");
    }
    for event in [Event::Arm, Event::Start] {
        assert_eq!(rig.event(event), Err(Code::WrongMode));
    }
    rig.supervisor.set_ready(Readiness { worker: false, ..READY });
    assert_eq!(rig.event(Event::Recover), Err(Code::NotReady));
    rig.supervisor.set_ready(READY);
    rig.event(Event::Recover).unwrap();
    assert_eq!(rig.tick().mode, Mode::Armed, "and then nothing starts by itself");
    rig.event(Event::Start).unwrap();
    assert_eq!(rig.tick().mode, Mode::Running);
}
