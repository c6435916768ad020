use std::f64::consts::{PI, TAU};

use interlock_core::code::Code;
use interlock_core::observe::frame::{projected_gravity, tilt_rad};
use interlock_core::plan::{History, Input, LastAction, Plan, TermKind};
use interlock_core::preprocess::Preprocessor;
use interlock_core::sample::Observation;
use proptest::prelude::*;

use super::plans::{observation, plan, term, terms};

fn built(plan: &Plan, observation: &Observation) -> Vec<f32> {
    let mut preprocessor = Preprocessor::new(plan).unwrap();
    preprocessor.build(observation, &[]).unwrap();
    preprocessor.tensors()[0].data.as_f32().to_vec()
}

fn with_terms(kinds: Vec<(TermKind, usize)>) -> Plan {
    let mut plan = plan(3);
    plan.joints.policy_from_robot = vec![2, 0, 1];
    plan.joints.default_pos = vec![0.5, 0.25, 0.125];
    plan.inputs[0] = terms(kinds.into_iter().map(|(kind, dim)| term(kind, dim)).collect());
    plan
}

/// Rotation matrix of a quaternion by the textbook.
fn matrix([w, x, y, z]: [f64; 4]) -> [[f64; 3]; 3] {
    [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
}

proptest! {
    #[test]
    fn gravity_is_the_transposed_rotation_of_down(q in prop::array::uniform4(-1.0f64..1.0), stretch in 0.9f64..1.1) {
        let norm = q.iter().map(|v| v * v).sum::<f64>().sqrt();
        prop_assume!(norm > 0.1);
        let unit = q.map(|v| v / norm);
        let rotation = matrix(unit);
        let gravity = projected_gravity(unit.map(|v| v * stretch)).unwrap();
        for axis in 0..3 {
            prop_assert!((gravity[axis] + rotation[2][axis]).abs() < 1e-12);
        }
        prop_assert!((tilt_rad(unit).unwrap() - rotation[2][2].clamp(-1.0, 1.0).acos()).abs() < 1e-6);
    }

    #[test]
    fn network_values_follow_the_declared_formula(
        si in prop::collection::vec(-10.0f64..10.0, 3),
        per_si in prop::collection::vec(-60.0f64..60.0, 3),
        offset in prop::collection::vec(-5.0f64..5.0, 3),
        scale in prop::collection::vec(-5.0f64..5.0, 3),
        clip in prop::option::of(Just([-20.0, 30.0])),
        whole in prop::option::of(Just([-40.0, 50.0])),
    ) {
        let mut plan = plan(3);
        plan.joints.policy_from_robot = vec![2, 0, 1];
        let mut joint = term(TermKind::JointVel, 3);
        (joint.per_si, joint.offset, joint.scale, joint.clip) = (per_si.clone(), offset.clone(), scale.clone(), clip);
        let history = History { steps: 1, per_term: false, oldest_first: true, repeat_first: true };
        plan.inputs[0] = Input::Terms { name: "obs".into(), terms: vec![joint], history, clip: whole };
        let mut observation = observation(3);
        observation.sample.vel = si.clone();
        let values = built(&plan, &observation);
        for (policy, robot) in [2, 0, 1].into_iter().enumerate() {
            let mut expected = si[robot] * per_si[policy];
            if let Some([lo, hi]) = clip { expected = expected.clamp(lo, hi); }
            expected = (expected + offset[policy]) * scale[policy];
            if let Some([lo, hi]) = whole { expected = expected.clamp(lo, hi); }
            prop_assert!((f64::from(values[policy]) - expected).abs() <= 1e-6 * expected.abs().max(1.0));
        }
    }
}

#[test]
fn terms_stand_in_the_order_of_the_network_and_joints_in_policy_order() {
    let plan = with_terms(vec![
        (TermKind::BaseAngVel, 3),
        (TermKind::ProjectedGravity, 3),
        (TermKind::Goal { part: vec![2, 0] }, 2),
        (TermKind::JointPosRel, 3),
        (TermKind::JointPos, 3),
        (TermKind::JointVel, 3),
        (TermKind::BaseLinVel, 3),
    ]);
    let mut observation = observation(3);
    observation.goal.velocity = [0.5, 0.6, 0.7];
    let expected =
        [0.1, 0.2, 0.3, 0.0, 0.0, -1.0, 0.7, 0.5, 0.075, -0.5, -0.15, 0.2, 0.0, 0.1, 3.0, 1.0, 2.0, 1.0, 2.0, 3.0];
    for (value, expected) in built(&plan, &observation).iter().zip(expected) {
        assert!((value - expected).abs() < 1e-6, "{value} {expected}");
    }
}

#[test]
fn a_value_that_the_policy_reads_and_that_is_no_number_never_reaches_it() {
    type Spoil = fn(&mut Observation, f64);
    let cases: [(TermKind, usize, Spoil); 6] = [
        (TermKind::JointPos, 3, |o, bad| o.sample.pos[1] = bad),
        (TermKind::JointVel, 3, |o, bad| o.sample.vel[1] = bad),
        (TermKind::BaseLinVel, 3, |o, bad| o.sample.lin_vel[2] = bad),
        (TermKind::BaseAngVel, 3, |o, bad| o.sample.ang_vel[2] = bad),
        (TermKind::ProjectedGravity, 3, |o, bad| o.sample.quat[3] = bad),
        (TermKind::Goal { part: vec![0] }, 1, |o, bad| o.goal.velocity[0] = bad),
    ];
    for (kind, dim, spoil) in cases {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut plan = with_terms(vec![(kind.clone(), dim)]);
            if let Input::Terms { terms, .. } = &mut plan.inputs[0] {
                terms[0].clip = Some([-1.0, 1.0]);
            }
            let mut observation = observation(3);
            spoil(&mut observation, bad);
            assert_eq!(Preprocessor::new(&plan).unwrap().build(&observation, &[]), Err(Code::NotFinite), "{kind:?}");
        }
    }
}

#[test]
fn a_value_that_the_policy_does_not_read_may_be_missing() {
    let mut observation = observation(3);
    observation.sample.lin_vel = [f64::NAN; 3];
    observation.sample.torque = vec![f64::NAN; 3];
    assert_eq!(built(&with_terms(vec![(TermKind::JointPos, 3)]), &observation).len(), 3);
}

#[test]
fn a_quaternion_that_is_no_rotation_is_refused() {
    for quat in [[0.0; 4], [1e-9, 0.0, 0.0, 0.0], [f64::MAX; 4], [5.0, 0.0, 0.0, 0.0]] {
        assert_eq!(projected_gravity(quat), Err(Code::NotFinite));
    }
}

#[test]
fn a_refused_observation_leaves_no_trace_in_the_history() {
    let mut plan = with_terms(vec![(TermKind::JointPos, 3)]);
    if let Input::Terms { history, .. } = &mut plan.inputs[0] {
        history.steps = 3;
    }
    let mut preprocessor = Preprocessor::new(&plan).unwrap();
    let mut twin = preprocessor.clone();
    let good = observation(3);
    let mut other = observation(3);
    other.sample.pos = vec![9.0; 3];
    let mut bad = observation(3);
    bad.sample.pos[0] = f64::NAN;
    preprocessor.build(&good, &[]).unwrap();
    assert!(preprocessor.build(&bad, &[]).is_err());
    preprocessor.build(&other, &[]).unwrap();
    twin.build(&good, &[]).unwrap();
    twin.build(&other, &[]).unwrap();
    assert_eq!(preprocessor.tensors(), twin.tensors());
}

fn phase_plan(cos: bool, still_rad: Option<f64>) -> Plan {
    let phase = TermKind::Phase { cos, freq_hz: 1.25, init_rad: vec![0.0, PI], still_rad, still_below: 0.01 };
    with_terms(vec![(phase, 2)])
}

fn phases(preprocessor: &mut Preprocessor, period: u64, goal: f64) -> [f32; 2] {
    let mut observation = observation(3);
    observation.period = period;
    observation.goal.velocity = [goal, 0.0, 0.0];
    preprocessor.build(&observation, &[]).unwrap();
    preprocessor.tensors()[0].data.as_f32().try_into().unwrap()
}

#[test]
fn phase_clocks_count_policy_periods_even_when_observations_are_skipped() {
    let mut cos = Preprocessor::new(&phase_plan(true, None)).unwrap();
    let mut sin = Preprocessor::new(&phase_plan(false, None)).unwrap();
    for period in [0u64, 1, 2, 7, 8, 100, 1_000_000] {
        // 20 ms periods.
        let angle = (TAU * 1.25 * 0.02 * period as f64) % TAU;
        for (index, init) in [0.0, PI].into_iter().enumerate() {
            let (c, s) = (phases(&mut cos, period, 0.5)[index], phases(&mut sin, period, 0.5)[index]);
            assert!((f64::from(c) - (angle + init).cos()).abs() < 1e-6, "{period}");
            assert!((f64::from(s) - (angle + init).sin()).abs() < 1e-6, "{period}");
        }
    }
}

#[test]
fn a_standing_goal_stops_the_phase_and_motion_starts_it_anew() {
    let mut cos = Preprocessor::new(&phase_plan(true, Some(PI))).unwrap();
    assert_eq!(phases(&mut cos, 0, 0.5), [1.0, -1.0]);
    let walking = phases(&mut cos, 3, 0.5);
    assert!(walking[0] < 0.95 && walking[0] > 0.8);
    assert_eq!(phases(&mut cos, 4, 0.009), [-1.0, -1.0]);
    assert_eq!(phases(&mut cos, 9, 0.0), [-1.0, -1.0]);
    assert_eq!(phases(&mut cos, 10, 0.5), [1.0, -1.0]);
    assert_eq!(phases(&mut cos, 13, 0.5), walking);
}

fn last_plan(of: LastAction) -> Plan {
    let mut plan = with_terms(vec![(TermKind::LastAction { of }, 3)]);
    let action = plan.outputs[0].action.as_mut().unwrap();
    action.clip = Some([-1.0, 1.0]);
    action.scale = vec![0.25, 0.5, 2.0];
    action.offset = vec![0.1, 0.2, 0.3];
    action.si_per_unit = vec![0.5, 1.0, 2.0];
    plan
}

#[test]
fn the_last_action_is_zero_at_reset_then_raw_or_clipped() {
    for (of, expected) in [(LastAction::Raw, [0.5, -3.0, 2.0]), (LastAction::Clipped, [0.5, -1.0, 1.0])] {
        let mut preprocessor = Preprocessor::new(&last_plan(of)).unwrap();
        let mut observation = observation(3);
        observation.applied = vec![9.0; 3];
        preprocessor.build(&observation, &[]).unwrap();
        assert_eq!(preprocessor.tensors()[0].data.as_f32(), [0.0; 3]);
        preprocessor.note_action(&[0.5, -3.0, 2.0]).unwrap();
        preprocessor.build(&observation, &[]).unwrap();
        assert_eq!(preprocessor.tensors()[0].data.as_f32(), expected);
        observation.episode = 1;
        preprocessor.build(&observation, &[]).unwrap();
        assert_eq!(preprocessor.tensors()[0].data.as_f32(), [0.0; 3]);
    }
}

#[test]
fn an_action_that_is_no_number_is_not_remembered() {
    let mut preprocessor = Preprocessor::new(&last_plan(LastAction::Raw)).unwrap();
    preprocessor.build(&observation(3), &[]).unwrap();
    preprocessor.note_action(&[1.0; 3]).unwrap();
    assert_eq!(preprocessor.note_action(&[f32::NAN, 0.0, 0.0]), Err(Code::NotFinite));
    assert_eq!(preprocessor.note_action(&[0.0; 4]), Err(Code::Dimension));
    preprocessor.build(&observation(3), &[]).unwrap();
    assert_eq!(preprocessor.tensors()[0].data.as_f32(), [1.0; 3]);
}

#[test]
fn the_applied_action_is_what_was_sent_in_action_units() {
    for relative in [false, true] {
        let mut plan = last_plan(LastAction::Applied);
        plan.outputs[0].action.as_mut().unwrap().relative = relative;
        let mut preprocessor = Preprocessor::new(&plan).unwrap();
        let mut observation = observation(3);
        preprocessor.build(&observation, &[]).unwrap();
        let q_before = observation.sample.pos.clone();
        preprocessor.build(&observation, &[]).unwrap();
        assert_eq!(preprocessor.tensors()[0].data.as_f32(), [0.0; 3], "nothing sent yet");
        let mut decoder = interlock_core::decode::Decoder::new(&plan).unwrap();
        let mut chunk = interlock_core::sample::Chunk::new(1, 3);
        let raw = [0.5f32, -0.25, 0.75];
        decoder.decode(&raw, &q_before, &mut chunk).unwrap();
        observation.applied = chunk.actions.clone();
        observation.sample.pos = vec![2.0; 3];
        preprocessor.build(&observation, &[]).unwrap();
        for (value, expected) in preprocessor.tensors()[0].data.as_f32().iter().zip(raw) {
            assert!((value - expected).abs() < 1e-6, "{relative}: {value} {expected}");
        }
    }
}
