//! What the guard enforces and what acts when the policy may not.

use serde::{Deserialize, Serialize};

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
    /// rad between any two commands (position, `position_pd` target, integrated velocity) less than 250 ms apart, and on
    /// the braking path behind them. Optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_travel: Option<Vec<Bound>>,
    /// rad between command and measured position (position). Optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<Vec<Bound>>,
    /// N*m per second: of the predicted torque of a joint with stiffness (`position_pd`), of the commanded (torque). Optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub torque_rate: Option<Vec<Bound>>,
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
    /// The operator ends the program in good order. A stop or a closed terminal is answered as a lost policy.
    pub on_exit: Behaviour,
    /// What the drives do by themselves once commands stop for this long; 0: nothing.
    pub command_timeout_ns: i64,
    /// Base floats: `hold` alone may not be armed.
    pub floating_base: bool,
}

/// Approved behaviours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", from = "BehaviourText")]
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

/// [`Behaviour`] as it is read: serde lets unknown keys pass beside a variant without a body, but not beside an empty one.
#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
enum BehaviourText {
    StopAndHold {},
    Damp { kd: Vec<f64> },
    GoTo { pose: Vec<f64>, duration_ns: i64, then: AfterMove },
    PolicyZeroGoal {},
}

impl From<BehaviourText> for Behaviour {
    fn from(text: BehaviourText) -> Self {
        match text {
            BehaviourText::StopAndHold {} => Behaviour::StopAndHold,
            BehaviourText::Damp { kd } => Behaviour::Damp { kd },
            BehaviourText::GoTo { pose, duration_ns, then } => Behaviour::GoTo { pose, duration_ns, then },
            BehaviourText::PolicyZeroGoal {} => Behaviour::PolicyZeroGoal,
        }
    }
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
