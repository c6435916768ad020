//! The plan: contract, robot and binding expanded into numbers.
//!
//! Python expands and binds by name, then hands the result over once, as JSON. Everything here is SI, float64, integer
//! nanoseconds and ROBOT joint order unless a field says otherwise; names exist only for messages.

use serde::{Deserialize, Serialize};

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

/// One graph input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Input {
    /// Concatenated observation terms, float32 `[1, sum(dim) * steps]`.
    Terms {
        /// Tensor name.
        name: String,
        /// Terms in the order of the network.
        terms: Vec<Term>,
        /// History rule; `steps` 1 for none.
        history: History,
        /// Clip of the finished tensor.
        clip: Option<[f64; 2]>,
    },
    /// One camera image, `[1, 3, h, w]` or `[1, h, w, 3]`.
    Image {
        /// Tensor name.
        name: String,
        /// Index into `cameras`.
        camera: usize,
        /// Rows after resizing.
        height: u32,
        /// Columns after resizing.
        width: u32,
        /// The policy wants B, G, R.
        bgr: bool,
        /// Channels first.
        chw: bool,
        /// Resize rule.
        resize: Resize,
        /// Value of a byte 0 and of a byte 255 before normalisation.
        range: [f64; 2],
        /// Subtracted per channel (policy channel order).
        mean: [f64; 3],
        /// Divides per channel, epsilon already added.
        std: [f64; 3],
        /// True: uint8 tensor, no range and no normalisation.
        uint8: bool,
    },
    /// Token ids of the task text, int64 `[1, length]`.
    Tokens {
        /// Tensor name.
        name: String,
        /// Padded length.
        length: usize,
        /// Id of padding.
        pad_id: i64,
    },
    /// 1 for a token, 0 for padding, int64 `[1, length]`.
    TokenMask {
        /// Tensor name.
        name: String,
        /// Padded length.
        length: usize,
    },
    /// Recurrent state, float32, zero at reset; fed from `output` of the previous inference.
    State {
        /// Tensor name.
        name: String,
        /// Full shape.
        shape: Vec<i64>,
        /// Name of the output that carries the next state.
        output: String,
    },
    /// Standard normal noise, float32, from a seeded generator.
    Noise {
        /// Tensor name.
        name: String,
        /// Full shape.
        shape: Vec<i64>,
        /// Seed at reset.
        seed: u64,
    },
}

/// One observation term. Network value = `clip(si * per_si) + offset) * scale`, each per element in POLICY order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    /// What it is.
    pub term: TermKind,
    /// Elements (joint terms: the policy's joint count).
    pub dim: usize,
    /// Policy units per SI unit.
    pub per_si: Vec<f64>,
    /// Clip in policy units, before offset and scale.
    pub clip: Option<[f64; 2]>,
    /// Added after the clip (`-mean` of a mean/std rule).
    pub offset: Vec<f64>,
    /// Multiplied last (`1 / (std + eps)` of a mean/std rule).
    pub scale: Vec<f64>,
}

/// The observation vocabulary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TermKind {
    /// Base linear velocity in the base frame, m/s, 3.
    BaseLinVel,
    /// Base angular velocity in the base frame, rad/s, 3.
    BaseAngVel,
    /// Gravity direction in the base frame, unit vector, 3; (0, 0, -1) when upright.
    ProjectedGravity,
    /// The velocity goal: indices into (`lin_vel_x`, `lin_vel_y`, `ang_vel_z`).
    Goal {
        /// Which parts, in order.
        part: Vec<usize>,
    },
    /// Measured joint position.
    JointPos,
    /// Measured joint position minus default.
    JointPosRel,
    /// Measured joint velocity.
    JointVel,
    /// The previous action, zeros at reset.
    LastAction {
        /// Which of its forms.
        of: LastAction,
    },
    /// cos or sin of phase clocks, one per element of `init_rad`.
    Phase {
        /// Cosine rather than sine.
        cos: bool,
        /// Cycles per second.
        freq_hz: f64,
        /// Phase at reset.
        init_rad: Vec<f64>,
        /// While the velocity goal's norm is below `still_below`, every phase is this.
        still_rad: Option<f64>,
        /// Norm of the velocity goal that counts as standing.
        still_below: f64,
    },
}

/// Forms of the last action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastAction {
    /// As the network wrote it.
    Raw,
    /// After the contract's clip.
    Clipped,
    /// What the guard let out, converted back into action units.
    Applied,
}

/// History rule of a terms input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// Observations kept, 1 for none.
    pub steps: usize,
    /// True: all steps of one term stand together. False: all terms of one step stand together.
    pub per_term: bool,
    /// Oldest first rather than newest first.
    pub oldest_first: bool,
    /// True: filled with the first observation at reset. False: zeros.
    pub repeat_first: bool,
}

/// Resize rules; each is equal to its named reference within one grey level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resize {
    /// Sizes are equal already.
    None,
    /// `OpenCV` `INTER_NEAREST`.
    Nearest,
    /// `OpenCV` `INTER_LINEAR`: half-pixel centres, no antialias.
    Bilinear,
    /// `OpenCV` `INTER_AREA` for shrinking.
    Area,
}

/// One graph output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// Tensor name.
    pub name: String,
    /// Full shape.
    pub shape: Vec<i64>,
    /// What it is for.
    pub role: Role,
    /// Present exactly where `role` is `action`.
    pub action: Option<Action>,
}

/// Roles of outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The chunk of actions.
    Action,
    /// A scalar that says how sure the policy is.
    Confidence,
    /// Parameters of an action distribution.
    Distribution,
    /// An intermediate tensor for diagnosis.
    Probe,
    /// Next recurrent state.
    State,
}

/// How an action row becomes SI targets. Per element, POLICY joint order:
/// `target_si = (clip(raw) * scale + offset) * si_per_unit [+ q at the observation]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Clip of the raw action.
    pub clip: Option<[f64; 2]>,
    /// Policy units per raw unit.
    pub scale: Vec<f64>,
    /// Policy units.
    pub offset: Vec<f64>,
    /// SI per policy unit.
    pub si_per_unit: Vec<f64>,
    /// Added to the joint position measured at the observation.
    pub relative: bool,
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

/// A limit and the point beyond which nothing is limited but refused. `limit <= refuse_beyond`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// Commands are brought back to this.
    pub limit: f64,
    /// Commands beyond this are refused.
    pub refuse_beyond: f64,
}

/// A two-sided position range with its refusal range around it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// Lower limit.
    pub lo: f64,
    /// Upper limit.
    pub hi: f64,
    /// Below this: refused. `refuse_lo <= lo`.
    pub refuse_lo: f64,
    /// Above this: refused. `refuse_hi >= hi`.
    pub refuse_hi: f64,
}

/// What the guard enforces, one entry per joint (robot order). Absent: not applicable to this kind of command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// rad: of the command (position, `position_pd`), of the measured position extrapolated by braking (velocity).
    pub pos: Option<Vec<Range>>,
    /// rad/s of the command.
    pub vel: Option<Vec<Bound>>,
    /// rad/s^2 of the command.
    pub acc: Option<Vec<Bound>>,
    /// rad/s^3 of the command.
    pub jerk: Option<Vec<Bound>>,
    /// N*m: predicted `kp*(target-q)-kd*dq+ff`, or commanded.
    pub torque: Option<Vec<Bound>>,
    /// rad the target may move per policy period.
    pub target_step: Option<Vec<Bound>>,
    /// rad/s measured: beyond `limit` counted, beyond `refuse_beyond` refused.
    pub vel_measured: Option<Vec<Bound>>,
    /// Largest gains.
    pub kp_max: Option<Vec<f64>>,
    /// Largest gains.
    pub kd_max: Option<Vec<f64>>,
}

/// What acts when the policy may not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Safe {
    /// Moves from arming to the start envelope; absent: nothing moves and the robot must already be there.
    pub before_start: Option<Behaviour>,
    /// Policy late, dead, refused.
    pub policy_lost: Behaviour,
    /// Operator link gone.
    pub goal_lost: Behaviour,
    /// Operator asked to stop or the program ends.
    pub on_exit: Behaviour,
    /// What the drives do by themselves once commands stop for this long; 0: nothing.
    pub command_timeout_ns: i64,
    /// Base floats: `hold` alone may not be armed.
    pub floating_base: bool,
}

/// Approved behaviours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Behaviour {
    /// Brake inside the limits, then hold the position reached.
    StopAndHold,
    /// `kp` 0, `kd` per joint (N*m*s/rad).
    Damp {
        /// Damping, robot order.
        kd: Vec<f64>,
    },
    /// Smooth move to a pose, then `then`.
    GoTo {
        /// rad, robot order.
        pose: Vec<f64>,
        /// At least this long.
        duration_ns: i64,
        /// What follows.
        then: AfterMove,
    },
    /// The same policy with a zero velocity goal (only as `goal_lost` or `on_exit`).
    PolicyZeroGoal,
}

/// What follows a `go_to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterMove {
    /// Hold the pose.
    Hold,
    /// Let the drives go.
    TorqueOff,
}

/// Where the robot must be before the policy may start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// rad, robot order.
    pub pose: Vec<f64>,
    /// Largest distance of each joint from `pose`.
    pub within_pos: Vec<f64>,
    /// Largest tilt of the base; absent for a fixed base.
    pub within_tilt_rad: Option<f64>,
}
