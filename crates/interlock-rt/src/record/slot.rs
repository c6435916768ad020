//! What the control thread copies for the writer: plain numbers, made once, refilled in place.

use interlock_core::guard::{Ruling, SafeCommand};
use interlock_core::sample::{Chunk, Sample};
use interlock_core::supervisor::Outcome;

/// Most requests that one tick keeps.
pub const MAX_EVENTS: usize = 8;

/// Numbers of the requests taken in one tick; what does not fit is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Events {
    numbers: [u8; MAX_EVENTS],
    count: usize,
}

impl Events {
    /// Empties it.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Appends one.
    pub fn push(&mut self, number: u8) {
        if let Some(free) = self.numbers.get_mut(self.count) {
            *free = number;
            self.count += 1;
        }
    }

    /// The list.
    pub fn as_slice(&self) -> &[u8] {
        &self.numbers[..self.count]
    }
}

/// One executed tick. Times are monotonic nanoseconds, 0 where something did not happen. Joint values are SI, robot order.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)] // independent facts, each with a column of its own
pub struct TickSlot {
    /// Ordinal of the tick.
    pub tick: u64,
    /// Its release.
    pub due_ns: i64,
    /// The control thread ran.
    pub woke_ns: i64,
    /// The newest sample was aligned.
    pub observed_ns: i64,
    /// The chunk in use arrived.
    pub chunk_arrived_ns: i64,
    /// The guard had ruled.
    pub acted_ns: i64,
    /// The command was on its way.
    pub sent_ns: i64,
    /// Mode number.
    pub mode: u8,
    /// Level number.
    pub level: u8,
    /// Code that led to the mode.
    pub cause: u16,
    /// The guard's answer.
    pub ruling: Ruling,
    /// First tick of a limited or refused stretch.
    pub is_violation: bool,
    /// The sample in use; its capture time is the tick's.
    pub sample: Sample,
    /// `wanted` holds a value.
    pub wanted_valid: bool,
    /// What the schedule asked for.
    pub wanted: Vec<f64>,
    /// There was a command.
    pub commanded: bool,
    /// It was sent: not in a dry run.
    pub sent: bool,
    /// Its kind number.
    pub kind: u8,
    /// rad.
    pub target: Vec<f64>,
    /// rad/s.
    pub velocity: Vec<f64>,
    /// N*m.
    pub torque: Vec<f64>,
    /// N*m/rad.
    pub kp: Vec<f64>,
    /// N*m*s/rad.
    pub kd: Vec<f64>,
    /// Generation in charge.
    pub generation: u32,
    /// Chunk in use.
    pub chunk_seq: u64,
    /// Its row.
    pub row: u32,
    /// Goal in force.
    pub goal_seq: u64,
    /// An observation was offered.
    pub offered: bool,
    /// Which.
    pub observation_seq: u64,
    /// Ticks missed so far.
    pub missed: u64,
    /// Chunks not used so far.
    pub chunks_dropped: u64,
    /// Requests taken in this tick.
    pub events: Events,
    /// How long recording the tick before took.
    pub(super) record_ns: i64,
}

impl TickSlot {
    /// An empty tick of `n` joints.
    pub(super) fn new(n: usize) -> Self {
        TickSlot {
            tick: 0,
            due_ns: 0,
            woke_ns: 0,
            observed_ns: 0,
            chunk_arrived_ns: 0,
            acted_ns: 0,
            sent_ns: 0,
            mode: 0,
            level: 0,
            cause: 0,
            ruling: Ruling::default(),
            is_violation: false,
            sample: Sample::new(n),
            wanted_valid: false,
            wanted: vec![0.0; n],
            commanded: false,
            sent: false,
            kind: 0,
            target: vec![0.0; n],
            velocity: vec![0.0; n],
            torque: vec![0.0; n],
            kp: vec![0.0; n],
            kd: vec![0.0; n],
            generation: 0,
            chunk_seq: 0,
            row: 0,
            goal_seq: 0,
            offered: false,
            observation_seq: 0,
            missed: 0,
            chunks_dropped: 0,
            events: Events::default(),
            record_ns: 0,
        }
    }

    /// Copies what the supervisor decided: everything but times, sample, goal, events and counts.
    pub fn set_outcome(&mut self, from: &Outcome<'_>) {
        (self.tick, self.due_ns) = (from.tick, from.due_ns);
        (self.mode, self.level, self.cause) = (from.mode as u8, from.level, from.cause as u16);
        (self.ruling, self.is_violation) = (from.ruling, from.is_violation);
        (self.generation, self.chunk_seq, self.row) = (from.wanted.generation, from.wanted.seq, from.wanted.row);
        (self.offered, self.observation_seq) = (from.offered_seq != 0, from.offered_seq);
        self.set_wanted(from.wanted.valid.then_some(from.target));
        self.set_command(from.command);
    }

    /// Copies a command, taken as sent, without allocating.
    pub fn set_command(&mut self, from: Option<&SafeCommand>) {
        (self.commanded, self.sent) = (from.is_some(), from.is_some());
        if let Some(from) = from {
            self.kind = from.wire() as u8;
            copy(&mut self.target, from.target());
            copy(&mut self.velocity, from.velocity());
            copy(&mut self.torque, from.torque());
            copy(&mut self.kp, from.kp());
            copy(&mut self.kd, from.kd());
        }
    }

    /// Copies what the schedule asked for; None: no action was valid.
    pub fn set_wanted(&mut self, from: Option<&[f64]>) {
        self.wanted_valid = from.is_some();
        copy(&mut self.wanted, from.unwrap_or(&[]));
    }

    /// Copies a sample without allocating.
    pub fn set_sample(&mut self, from: &Sample) {
        copy(&mut self.sample.pos, &from.pos);
        copy(&mut self.sample.vel, &from.vel);
        copy(&mut self.sample.torque, &from.torque);
        (self.sample.seq, self.sample.capture_ns) = (from.seq, from.capture_ns);
        (self.sample.quat, self.sample.ang_vel, self.sample.lin_vel) = (from.quat, from.ang_vel, from.lin_vel);
    }
}

/// One chunk that arrived.
#[derive(Debug, Clone)]
pub struct ChunkSlot {
    /// Tick at which it was taken.
    pub tick: u64,
    /// When it was seen.
    pub arrived_ns: i64,
    /// Code by which the schedule refused it, 0: accepted.
    pub refused: u16,
    /// The chunk.
    pub chunk: Chunk,
}

impl ChunkSlot {
    pub(super) fn new(rows: usize, n: usize) -> Self {
        ChunkSlot { tick: 0, arrived_ns: 0, refused: 0, chunk: Chunk::new(rows, n) }
    }

    /// Copies a chunk without allocating.
    pub fn set_chunk(&mut self, from: &Chunk) {
        copy(&mut self.chunk.actions, &from.actions);
        (self.chunk.generation, self.chunk.seq, self.chunk.at_ns) = (from.generation, from.seq, from.at_ns);
        (self.chunk.status, self.chunk.confidence, self.chunk.rows) = (from.status, from.confidence, from.rows);
        self.chunk.times = from.times;
    }
}

/// Copies what fits.
pub(super) fn copy(to: &mut [f64], from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}
