//! What flows between the stages. Owned buffers are made once and refilled; nothing here allocates after construction.

/// Joint and base measurements at one capture time, SI, robot order. NaN where the robot does not give a quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Sequence number of the driver.
    pub seq: u64,
    /// Capture time, monotonic clock.
    pub capture_ns: i64,
    /// rad.
    pub pos: Vec<f64>,
    /// rad/s.
    pub vel: Vec<f64>,
    /// N*m.
    pub torque: Vec<f64>,
    /// Base orientation, w x y z.
    pub quat: [f64; 4],
    /// Base angular velocity in the base frame, rad/s.
    pub ang_vel: [f64; 3],
    /// Base linear velocity in the base frame, m/s.
    pub lin_vel: [f64; 3],
}

impl Sample {
    /// An empty sample for `n` joints.
    pub fn new(n: usize) -> Self {
        Sample {
            seq: 0,
            capture_ns: i64::MIN,
            pos: vec![f64::NAN; n],
            vel: vec![f64::NAN; n],
            torque: vec![f64::NAN; n],
            quat: [1.0, 0.0, 0.0, 0.0],
            ang_vel: [f64::NAN; 3],
            lin_vel: [f64::NAN; 3],
        }
    }

    /// Overwrites this sample without allocating, as long as both have the same joints.
    pub fn copy_from(&mut self, other: &Sample) {
        self.seq = other.seq;
        self.capture_ns = other.capture_ns;
        self.pos.clone_from(&other.pos);
        self.vel.clone_from(&other.vel);
        self.torque.clone_from(&other.torque);
        self.quat = other.quat;
        self.ang_vel = other.ang_vel;
        self.lin_vel = other.lin_vel;
    }

    /// Values in the flat layout of the wire: pos, vel, torque, quat, `ang_vel`, `lin_vel`.
    pub const fn flat_len(n: usize) -> usize {
        n.saturating_mul(3).saturating_add(10)
    }
}

/// Longest task text in tokens.
pub const MAX_TOKENS: usize = 64;
/// Most cameras of one robot.
pub const MAX_CAMERAS: usize = 8;

/// The operator's goal that stood when the observation was made.
#[derive(Debug, Clone, PartialEq)]
pub struct GoalState {
    /// Increases with every change.
    pub seq: u64,
    /// When it was last confirmed.
    pub stamp_ns: i64,
    /// (`lin_vel_x`, `lin_vel_y`, `ang_vel_z`) after slew, SI.
    pub velocity: [f64; 3],
    /// Token ids of the task text.
    pub tokens: [i64; MAX_TOKENS],
    /// How many of them count.
    pub token_count: usize,
}

impl Default for GoalState {
    fn default() -> Self {
        GoalState { seq: 0, stamp_ns: 0, velocity: [0.0; 3], tokens: [0; MAX_TOKENS], token_count: 0 }
    }
}

/// Everything aligned to one instant, for the worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Increases by one per observation offered.
    pub seq: u64,
    /// Model generation that it is for.
    pub generation: u32,
    /// The tick's due time: actions of its chunk count from here.
    pub at_ns: i64,
    /// Ordinal of the policy period since reset; phase clocks count it.
    pub period: u64,
    /// Changes whenever history, recurrent state and noise must start afresh.
    pub episode: u32,
    /// Joints and base.
    pub sample: Sample,
    /// The goal.
    pub goal: GoalState,
    /// What was last sent as target, SI, robot order; NaN before the first command.
    pub applied: Vec<f64>,
    /// Sequence number of each camera's newest image, 0 for none.
    pub image_seq: [u64; MAX_CAMERAS],
    /// Its capture time.
    pub image_ns: [i64; MAX_CAMERAS],
}

impl Observation {
    /// An empty observation for `n` joints.
    pub fn new(n: usize) -> Self {
        Observation {
            seq: 0,
            generation: 0,
            at_ns: 0,
            period: 0,
            episode: 0,
            sample: Sample::new(n),
            goal: GoalState::default(),
            applied: vec![f64::NAN; n],
            image_seq: [0; MAX_CAMERAS],
            image_ns: [i64::MIN; MAX_CAMERAS],
        }
    }
}

/// When each step of one inference happened, monotonic nanoseconds; 0: not reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InferenceTimes {
    /// The worker saw the observation.
    pub received_ns: i64,
    /// Tensors were ready.
    pub preprocessed_ns: i64,
    /// The engine returned.
    pub inferred_ns: i64,
    /// Actions were in physical units.
    pub decoded_ns: i64,
}

/// A policy's answer: decoded actions with the times at which they are due.
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    /// Generation of the worker that made it.
    pub generation: u32,
    /// Sequence number of its observation.
    pub seq: u64,
    /// Its observation's time.
    pub at_ns: i64,
    /// [`crate::code::Code`] number; 0: usable.
    pub status: u16,
    /// Confidence output, NaN where the policy has none.
    pub confidence: f64,
    /// Actions in use, at most `capacity`.
    pub rows: usize,
    /// Row-major `[rows, n]`, SI, robot order.
    pub actions: Vec<f64>,
    /// Stage times.
    pub times: InferenceTimes,
}

impl Chunk {
    /// An empty chunk that can take `rows` actions of `n` joints.
    pub fn new(rows: usize, n: usize) -> Self {
        Chunk {
            generation: 0,
            seq: 0,
            at_ns: 0,
            status: 0,
            confidence: f64::NAN,
            rows: 0,
            actions: vec![0.0; rows.saturating_mul(n)],
            times: InferenceTimes::default(),
        }
    }
}
