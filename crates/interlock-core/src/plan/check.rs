//! Refuses at construction whatever could go wrong later: lengths, ranges, contradictions.

use std::fmt;

use super::check_safety::{check_limits, check_safe, check_start};
use super::check_tensors::{check_inputs, check_outputs};
use super::{CommandKind, Plan, SCHEMA};
use crate::code::Code;
use crate::sample::MAX_CAMERAS;

/// Most joints of one robot.
pub const MAX_JOINTS: usize = 128;
/// Longest period, age or delay that a plan may name: ten minutes, ns.
const MAX_NS: i64 = 600_000_000_000;
/// Longest chunk in actions.
const MAX_CHUNK: u32 = 4096;
/// Most chunks that may wait for their first action to be due (`action_delay` over the inference period).
const MAX_WAITING: i64 = 32;
/// Largest side of a raw image.
pub(super) const MAX_SIDE: u32 = 8192;

/// Why a plan was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// Stable code.
    pub code: Code,
    /// Path of the field, such as `limits.pos[3]`.
    pub at: String,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.code.word(), self.at, self.what)
    }
}

impl std::error::Error for PlanError {}

impl PlanError {
    /// A refusal of the field `at`.
    pub fn bad(at: impl Into<String>, what: impl Into<String>) -> Self {
        PlanError { code: Code::BadPlan, at: at.into(), what: what.into() }
    }
}

/// What every check returns.
pub(super) type Checked = Result<(), PlanError>;

/// A refusal of the field `at`.
pub(super) fn refuse<T>(at: impl Into<String>, what: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError::bad(at, what))
}

/// Refuses unless `holds`.
pub(super) fn require(holds: bool, at: &str, what: &str) -> Checked {
    if holds {
        Ok(())
    } else {
        refuse(at, what)
    }
}

/// Refuses a vector of another length than `n` or with a value that is not finite.
pub(super) fn check_vector(at: &str, values: &[f64], n: usize) -> Checked {
    if values.len() != n {
        return refuse(at, format!("expected {n} values, got {}", values.len()));
    }
    match values.iter().position(|value| !value.is_finite()) {
        Some(index) => refuse(format!("{at}[{index}]"), "not finite"),
        None => Ok(()),
    }
}

/// Refuses a vector with an element that does not satisfy `holds`.
pub(super) fn check_each(at: &str, values: &[f64], what: &str, holds: impl Fn(f64) -> bool) -> Checked {
    match values.iter().position(|value| !holds(*value)) {
        Some(index) => refuse(format!("{at}[{index}]"), what),
        None => Ok(()),
    }
}

/// Refuses a `[lo, hi]` that is not finite or upside down.
pub(super) fn check_interval(at: &str, interval: [f64; 2]) -> Checked {
    let [lo, hi] = interval;
    require(lo.is_finite() && hi.is_finite() && lo < hi, at, "expected finite [lo, hi] with lo < hi")
}

impl Plan {
    /// Reads a plan and checks it.
    ///
    /// # Errors
    /// Text that is no plan, or a plan that [`Plan::check`] refuses.
    pub fn from_json(text: &str) -> Result<Plan, PlanError> {
        let plan: Plan = match serde_json::from_str(text) {
            Ok(plan) => plan,
            Err(error) => return refuse("plan", error.to_string()),
        };
        plan.check()?;
        Ok(plan)
    }

    /// Degrees of freedom.
    pub fn n(&self) -> usize {
        self.joints.names.len()
    }

    /// Time between two actions of a chunk.
    pub fn period_ns(&self) -> i64 {
        self.timing.tick_ns.saturating_mul(i64::from(self.timing.ticks_per_period))
    }

    /// Time between two observations offered to the worker.
    pub fn inference_period_ns(&self) -> i64 {
        self.timing.tick_ns.saturating_mul(i64::from(self.timing.ticks_per_inference))
    }

    /// Refuses a plan that contradicts itself. Every stage's constructor calls this first.
    ///
    /// # Errors
    /// The first field found wrong.
    pub fn check(&self) -> Result<(), PlanError> {
        require(self.schema == SCHEMA, "schema", "unknown schema")?;
        check_identity("identity.contract", &self.identity.contract)?;
        check_identity("identity.robot", &self.identity.robot)?;
        check_identity("identity.binding", &self.identity.binding)?;
        check_joints(self)?;
        check_timing(self)?;
        check_command(self)?;
        check_cameras(self)?;
        check_goal(self)?;
        check_inputs(self)?;
        check_outputs(self)?;
        check_limits(self)?;
        check_start(self)?;
        check_safe(self)
    }
}

fn check_identity(at: &str, value: &str) -> Checked {
    let is_hash = value.len() == 64 && value.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    require(is_hash, at, "expected 64 lower-case hex digits")
}

fn check_joints(plan: &Plan) -> Checked {
    let joints = &plan.joints;
    let n = joints.names.len();
    require((1..=MAX_JOINTS).contains(&n), "joints.names", "expected 1 to 128 joints")?;
    for (index, name) in joints.names.iter().enumerate() {
        let is_new = !name.is_empty() && !joints.names.iter().take(index).any(|other| other == name);
        require(is_new, &format!("joints.names[{index}]"), "empty or repeated name")?;
    }
    check_vector("joints.si_per_unit", &joints.si_per_unit, n)?;
    check_each("joints.si_per_unit", &joints.si_per_unit, "must not be zero", |value| value != 0.0)?;
    check_vector("joints.default_pos", &joints.default_pos, n)?;
    let map = &joints.policy_from_robot;
    require(map.len() == n, "joints.policy_from_robot", "must have one entry per joint")?;
    let is_permutation = (0..n).all(|index| map.contains(&index));
    require(is_permutation, "joints.policy_from_robot", "must be a permutation of the robot's joints")
}

fn check_timing(plan: &Plan) -> Checked {
    let timing = &plan.timing;
    let spans = [
        ("timing.tick_ns", timing.tick_ns, 1_000),
        ("timing.action_delay_ns", timing.action_delay_ns, 0),
        ("timing.inference_deadline_ns", timing.inference_deadline_ns, 1),
        ("timing.action_valid_ns", timing.action_valid_ns, 1),
        ("timing.manual_latency_ns", timing.manual_latency_ns, 0),
        ("timing.max_age_state_ns", timing.max_age_state_ns, 1),
        ("timing.max_age_image_ns", timing.max_age_image_ns, 1),
        ("timing.max_skew_ns", timing.max_skew_ns, 1),
        ("timing.latency_budget_ns", timing.latency_budget_ns, 1),
    ];
    for (at, span, least) in spans {
        if span < least || span > MAX_NS {
            return refuse(at, format!("expected {least} to {MAX_NS} ns, got {span}"));
        }
    }
    require(timing.ticks_per_period > 0, "timing.ticks_per_period", "must not be zero")?;
    require(timing.ticks_per_inference > 0, "timing.ticks_per_inference", "must not be zero")?;
    require((1..=MAX_CHUNK).contains(&timing.chunk), "timing.chunk", "expected 1 to 4096 actions")?;
    require(plan.period_ns() <= MAX_NS, "timing.ticks_per_period", "the policy period is too long")?;
    require(plan.inference_period_ns() <= MAX_NS, "timing.ticks_per_inference", "the inference period is too long")?;
    let execute = timing.ticks_per_inference.checked_div(timing.ticks_per_period).unwrap_or(0);
    let is_multiple = execute.checked_mul(timing.ticks_per_period) == Some(timing.ticks_per_inference);
    require(is_multiple, "timing.ticks_per_inference", "must be a whole number of policy periods")?;
    require(execute <= timing.chunk, "timing.chunk", "is shorter than the time between two inferences")?;
    let is_covered = execute < timing.chunk || timing.action_valid_ns >= plan.period_ns();
    require(
        is_covered,
        "timing.action_valid_ns",
        "must be at least one policy period: the last action would end early",
    )?;
    let waits_in_tick = !timing.synchronous || timing.inference_deadline_ns <= timing.tick_ns;
    require(waits_in_tick, "timing.inference_deadline_ns", "must not be longer than a tick of a synchronous policy")?;
    let waiting = timing.action_delay_ns.checked_div(plan.inference_period_ns()).unwrap_or(i64::MAX);
    require(waiting < MAX_WAITING, "timing.action_delay_ns", "must be below 32 inference periods")
}

fn check_command(plan: &Plan) -> Checked {
    let (command, n) = (&plan.command, plan.n());
    let is_pd = command.kind == CommandKind::PositionPd;
    require(is_pd || !command.host_pd, "command.host_pd", "only a position_pd command has a PD law")?;
    for (at, gains) in [("command.kp", &command.kp), ("command.kd", &command.kd)] {
        if is_pd || !gains.is_empty() {
            check_vector(at, gains, n)?;
            check_each(at, gains, "must not be negative", |value| value >= 0.0)?;
        }
    }
    require(command.kp.len() == command.kd.len(), "command.kd", "kp and kd come together")
}

fn check_cameras(plan: &Plan) -> Checked {
    require(plan.cameras.len() <= MAX_CAMERAS, "cameras", "more cameras than a sample can carry")?;
    for (index, camera) in plan.cameras.iter().enumerate() {
        let at = format!("cameras[{index}]");
        let is_new = !plan.cameras.iter().take(index).any(|other| other.name == camera.name);
        require(is_new && !camera.name.is_empty(), &at, "empty or repeated name")?;
        let sides = 1..=MAX_SIDE;
        require(sides.contains(&camera.height) && sides.contains(&camera.width), &at, "image size out of range")?;
        require((1..=MAX_NS).contains(&camera.period_ns), &at, "period out of range")?;
    }
    Ok(())
}

fn check_goal(plan: &Plan) -> Checked {
    let goal = &plan.goal;
    for (index, range) in goal.velocity.iter().flatten().enumerate() {
        let [lo, hi] = *range;
        let is_range = lo.is_finite() && hi.is_finite() && lo <= hi;
        require(is_range, &format!("goal.velocity[{index}]"), "expected finite [lo, hi] with lo <= hi")?;
    }
    for slew in goal.slew_per_s.iter().flatten() {
        require(slew.is_finite() && *slew > 0.0, "goal.slew_per_s", "must be positive")?;
    }
    require(goal.slew_per_s.is_none() || goal.velocity.is_some(), "goal.slew_per_s", "there is no velocity goal")?;
    require((0..=MAX_NS).contains(&goal.timeout_ns), "goal.timeout_ns", "out of range")
}
