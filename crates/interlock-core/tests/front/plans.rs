//! Plans for the tests: small, valid, changed by each test where it matters.
#![allow(dead_code, reason = "each test binary uses some of them")]

use interlock_core::plan::{
    Action, Behaviour, Bound, Camera, Command, CommandKind, Goal, Handover, History, Identity, Input, Interpolate,
    Joints, Limits, Output, Plan, Range, Resize, Role, Safe, Start, Term, TermKind, Timing,
};
use interlock_core::sample::Observation;

pub const MS: i64 = 1_000_000;

/// A position-commanded robot of `n` joints: 10 ms ticks, 20 ms periods, one action per inference, synchronous.
pub fn plan(n: usize) -> Plan {
    let hash = "0".repeat(64);
    let bounds = |limit: f64| Some(vec![Bound { limit, refuse_beyond: 2.0 * limit }; n]);
    Plan {
        schema: "interlock.plan/1".into(),
        identity: Identity { contract: hash.clone(), robot: hash.clone(), binding: hash },
        timing: Timing {
            tick_ns: 10 * MS,
            ticks_per_period: 2,
            ticks_per_inference: 2,
            chunk: 1,
            action_delay_ns: 0,
            handover: Handover::Replace,
            interpolate: Interpolate::Hold,
            synchronous: true,
            inference_deadline_ns: 8 * MS,
            action_valid_ns: 40 * MS,
            manual_latency_ns: 0,
            max_age_state_ns: 20 * MS,
            max_age_image_ns: 80 * MS,
            max_skew_ns: 40 * MS,
            latency_budget_ns: 10 * MS,
        },
        joints: Joints {
            names: (0..n).map(|i| format!("joint_{i}")).collect(),
            si_per_unit: vec![1.0; n],
            policy_from_robot: (0..n).collect(),
            default_pos: vec![0.0; n],
        },
        command: Command { kind: CommandKind::Position, host_pd: false, kp: vec![], kd: vec![] },
        cameras: vec![],
        inputs: vec![terms(vec![joint_term(TermKind::JointPos, n)])],
        outputs: vec![Output {
            name: "action".into(),
            shape: vec![1, n as i64],
            role: Role::Action,
            action: Some(Action {
                clip: None,
                scale: vec![1.0; n],
                offset: vec![0.0; n],
                si_per_unit: vec![1.0; n],
                relative: false,
            }),
            period_ns: None,
        }],
        goal: Goal { velocity: Some([[-1.0, 1.0]; 3]), slew_per_s: None, text: false, timeout_ns: 0 },
        limits: Limits {
            pos: Some(vec![Range { lo: -3.0, hi: 3.0, refuse_lo: -4.0, refuse_hi: 4.0 }; n]),
            vel: bounds(2.0),
            acc: bounds(20.0),
            jerk: bounds(200.0),
            ..Limits::default()
        },
        safe: Safe {
            before_start: None,
            policy_lost: Behaviour::StopAndHold,
            goal_lost: Behaviour::StopAndHold,
            on_exit: Behaviour::StopAndHold,
            command_timeout_ns: 0,
            floating_base: false,
        },
        start: Start { pose: vec![0.0; n], within_pos: vec![0.2; n], within_tilt_rad: None },
    }
}

/// The same as a chunked policy: `chunk` actions, all executed, `delay_ns` after the observation.
pub fn chunked(n: usize, chunk: u32, delay_ns: i64, interpolate: Interpolate) -> Plan {
    let mut plan = plan(n);
    plan.timing.chunk = chunk;
    plan.timing.ticks_per_inference = 2 * chunk;
    plan.timing.action_delay_ns = delay_ns;
    plan.timing.interpolate = interpolate;
    plan.timing.synchronous = false;
    plan.timing.inference_deadline_ns = 100 * MS;
    plan.outputs[0].shape = vec![1, i64::from(chunk), n as i64];
    plan
}

/// The same as a PD-commanded robot with a floating base.
pub fn walker(n: usize) -> Plan {
    let mut plan = plan(n);
    let bounds = |limit: f64| Some(vec![Bound { limit, refuse_beyond: 2.0 * limit }; n]);
    plan.command = Command { kind: CommandKind::PositionPd, host_pd: false, kp: vec![50.0; n], kd: vec![2.0; n] };
    plan.limits = Limits {
        pos: plan.limits.pos.clone(),
        torque: bounds(50.0),
        target_step: bounds(0.5),
        vel_measured: bounds(20.0),
        kp_max: Some(vec![100.0; n]),
        kd_max: Some(vec![5.0; n]),
        ..Limits::default()
    };
    plan.safe.policy_lost = Behaviour::Damp { kd: vec![5.0; n] };
    plan.safe.goal_lost = Behaviour::PolicyZeroGoal;
    plan.safe.on_exit = Behaviour::Damp { kd: vec![5.0; n] };
    plan.safe.floating_base = true;
    plan.start.within_tilt_rad = Some(0.2);
    plan
}

pub fn term(kind: TermKind, dim: usize) -> Term {
    Term { term: kind, dim, per_si: vec![1.0; dim], clip: None, offset: vec![0.0; dim], scale: vec![1.0; dim] }
}

pub fn joint_term(kind: TermKind, n: usize) -> Term {
    term(kind, n)
}

/// A terms input without history.
pub fn terms(terms: Vec<Term>) -> Input {
    let history = History { steps: 1, per_term: false, oldest_first: true, repeat_first: true };
    Input::Terms { name: "obs".into(), terms, history, clip: None }
}

/// A camera and an image input that reads it unchanged: RGB, CHW, 0 to 1.
pub fn with_camera(plan: &mut Plan, source: [u32; 2], target: [u32; 2], resize: Resize) {
    let [height, width] = source;
    let camera = plan.cameras.len();
    plan.cameras.push(Camera { name: format!("camera_{camera}"), height, width, bgr: false, period_ns: 40 * MS });
    plan.inputs.push(Input::Image {
        name: format!("image_{camera}"),
        camera,
        height: target[0],
        width: target[1],
        bgr: false,
        chw: true,
        resize,
        range: [0.0, 1.0],
        mean: [0.0; 3],
        std: [1.0; 3],
        uint8: false,
    });
}

/// Task text as tokens and mask.
pub fn with_text(plan: &mut Plan, length: usize) {
    plan.goal.text = true;
    plan.inputs.push(Input::Tokens { name: "tokens".into(), length, pad_id: 7 });
    plan.inputs.push(Input::TokenMask { name: "mask".into(), length });
}

/// Recurrent state of two numbers.
pub fn with_state(plan: &mut Plan) {
    plan.inputs.push(Input::State { name: "h_in".into(), shape: vec![1, 2], output: "h_out".into() });
    plan.outputs.push(Output {
        name: "h_out".into(),
        shape: vec![1, 2],
        role: Role::State,
        action: None,
        period_ns: None,
    });
}

/// A finite, upright observation.
pub fn observation(n: usize) -> Observation {
    let mut observation = Observation::new(n);
    observation.sample.seq = 1;
    observation.sample.capture_ns = 0;
    observation.sample.pos = (0..n).map(|i| 0.1 * i as f64).collect();
    observation.sample.vel = (0..n).map(|i| 1.0 + i as f64).collect();
    observation.sample.torque = vec![0.0; n];
    observation.sample.ang_vel = [0.1, 0.2, 0.3];
    observation.sample.lin_vel = [1.0, 2.0, 3.0];
    observation
}
