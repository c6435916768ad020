//! What the graph reads and writes.

use serde::{Deserialize, Serialize};

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

/// One observation term. Network value = `(clip(si * per_si) + offset) * scale`, each per element in POLICY order.
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
    /// Of a probe: time between two of its snapshots; absent: the runtime's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<i64>,
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
