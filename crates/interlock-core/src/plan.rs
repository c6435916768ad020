//! The plan: contract, robot and binding expanded into numbers.
//!
//! Python expands and binds by name, then hands the result over once, as JSON. Everything here is SI, float64, integer
//! nanoseconds and ROBOT joint order unless a field says otherwise; names exist only for messages.

mod check;
mod check_safety;
mod check_tensors;
mod safety;
mod tensors;

use serde::{Deserialize, Serialize};

pub use check::{PlanError, MAX_JOINTS};
pub(crate) use check_tensors::elements;
pub use safety::{AfterMove, Behaviour, Bound, Limits, Range, Safe, Start};
pub use tensors::{Action, History, Input, LastAction, Output, Resize, Role, Term, TermKind};

/// Version tag that a plan must carry.
pub const SCHEMA: &str = "interlock.plan/1";

/// One policy bound to one robot, ready to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Identities of what this plan was made from.
    pub identity: Identity,
    /// Periods, deadlines and ages.
    pub timing: Timing,
    /// The joints, in robot order.
    pub joints: Joints,
    /// How the robot is commanded.
    pub command: Command,
    /// The cameras, in the order in which image inputs refer to them.
    pub cameras: Vec<Camera>,
    /// What the graph reads.
    pub inputs: Vec<Input>,
    /// What the graph writes.
    pub outputs: Vec<Output>,
    /// What the operator may ask.
    pub goal: Goal,
    /// What the guard enforces.
    pub limits: Limits,
    /// What acts when the policy may not.
    pub safe: Safe,
    /// Where the robot must be before the policy may start.
    pub start: Start,
}

/// SHA-256 (lower-case hex) of the canonical JSON of each part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Expanded contract.
    pub contract: String,
    /// Expanded robot.
    pub robot: String,
    /// Contract, robot, calibration and index maps together.
    pub binding: String,
}

/// Periods in nanoseconds; policy and inference periods are whole multiples of the tick.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timing {
    /// Servo period: the guard runs once per tick.
    pub tick_ns: i64,
    /// Ticks per policy period, the time between two actions of a chunk.
    pub ticks_per_period: u32,
    /// Ticks between two observations offered to the worker.
    pub ticks_per_inference: u32,
    /// Actions in one chunk.
    pub chunk: u32,
    /// Time from the observation to the first action of its chunk being due; training's `action_delay`.
    pub action_delay_ns: i64,
    /// How a new chunk takes over from the running one.
    pub handover: Handover,
    /// What is sent between two actions of a chunk.
    pub interpolate: Interpolate,
    /// True: the tick waits for the chunk of its own observation. False: chunks arrive when they arrive.
    pub synchronous: bool,
    /// Synchronous: longest wait inside one tick, from its release. Asynchronous: from the offer to the chunk.
    pub inference_deadline_ns: i64,
    /// How long after its due time the LAST action of a chunk may still be executed. Earlier actions end where the next begins.
    pub action_valid_ns: i64,
    /// Declared inference latency on the manual clock (asynchronous policies only).
    pub manual_latency_ns: i64,
    /// Oldest admissible joint and IMU sample at a tick.
    pub max_age_state_ns: i64,
    /// Oldest admissible image at the offer.
    pub max_age_image_ns: i64,
    /// Largest admissible difference between the capture times inside one observation.
    pub max_skew_ns: i64,
    /// Sensor capture to command, for reports and gates.
    pub latency_budget_ns: i64,
}

/// Chunk handover rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Handover {
    /// From the moment the newer chunk is there, its actions are used.
    Replace,
}

/// Interpolation between two actions of one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interpolate {
    /// The action stands until the next is due.
    Hold,
    /// Straight line to the next action.
    Linear,
    /// Cubic Hermite (Catmull-Rom) through the neighbouring actions; continuous velocity.
    Cubic,
}

/// The joints of the robot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Joints {
    /// Full names, robot order; their number is the degrees of freedom `n`.
    pub names: Vec<String>,
    /// SI value = robot value x this (rad per deg, 0.01 per percent, 1).
    pub si_per_unit: Vec<f64>,
    /// `policy_from_robot[i]` is the robot index of the policy's joint `i`.
    pub policy_from_robot: Vec<usize>,
    /// The contract's default pose, SI, robot order; used by `joint_pos_rel` and by `offset: default`.
    pub default_pos: Vec<f64>,
}

/// How the robot is commanded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// What the contract's action means once decoded.
    pub kind: CommandKind,
    /// True: the robot takes torque and the supervisor runs `kp*(target-q)-kd*dq` every tick.
    pub host_pd: bool,
    /// Proportional gains, N*m/rad, robot order; empty where the kind has none.
    pub kp: Vec<f64>,
    /// Derivative gains, N*m*s/rad.
    pub kd: Vec<f64>,
}

/// Kinds of command; the guard's list depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandKind {
    /// A position trajectory.
    Position,
    /// The far end of a spring: `kp*(target - q) - kd*dq`.
    PositionPd,
    /// Joint velocity.
    Velocity,
    /// Joint torque.
    Torque,
}

/// One camera as the robot gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Camera {
    /// Name shared by contract and robot.
    pub name: String,
    /// Rows of a raw image.
    pub height: u32,
    /// Columns of a raw image.
    pub width: u32,
    /// Bytes are B, G, R rather than R, G, B.
    pub bgr: bool,
    /// Time between two images.
    pub period_ns: i64,
}

/// What the operator may ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// Ranges of (`lin_vel_x` m/s, `lin_vel_y` m/s, `ang_vel_z` rad/s), absent for a policy without velocity goal.
    pub velocity: Option<[[f64; 2]; 3]>,
    /// Largest change per second of each part; absent: immediate.
    pub slew_per_s: Option<[f64; 3]>,
    /// Whether the policy takes a task text.
    pub text: bool,
    /// Goals older than this are lost; 0: a goal stands until replaced.
    pub timeout_ns: i64,
}
