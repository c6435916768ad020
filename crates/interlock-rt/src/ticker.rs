//! One tick's second half as the paced loop and lockstep share it: act, send, record, show.

use std::collections::BTreeMap;

use interlock_core::code::Code;
use interlock_core::guard::{RulingKind, SafeCommand};
use interlock_core::mode::Mode;
use interlock_core::plan::Plan;
use interlock_core::sample::{Chunk, Sample};
use interlock_core::supervisor::{Offer, Readiness, Supervisor};

use crate::error::RtError;
use crate::record::{Events, RecordSink};
use crate::request::{GoalRequest, Request};
use crate::status::{Snapshot, Status};

/// Chunks whose arrival is remembered: more than wait at a time.
const ARRIVALS: usize = 64;
/// Ticks between two looks at the counts per code.
const TALLY_TICKS: u64 = 64;

/// When each step of a tick happened, monotonic nanoseconds; 0: it did not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Release.
    pub due_ns: i64,
    /// The thread ran.
    pub woke_ns: i64,
    /// The newest sample was aligned.
    pub observed_ns: i64,
    /// The guard had ruled.
    pub acted_ns: i64,
    /// The command was on its way.
    pub sent_ns: i64,
}

/// What one tick did, in plain numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Done {
    /// Ordinal.
    pub tick: u64,
    /// Release.
    pub due_ns: i64,
    /// Mode number.
    pub mode: u8,
    /// Level number.
    pub level: u8,
    /// 0 pass, 1 limited, 2 refused.
    pub ruling: u8,
    /// Codes that acted.
    pub codes: u64,
    /// A command was sent.
    pub sent: bool,
    /// A simulation may let go of the robot; see [`Ticker::act`].
    pub running: bool,
    /// Kind on the wire.
    pub kind: u8,
    /// An observation was offered.
    pub offered: bool,
}

/// Name of every mode number, as people see them.
pub fn mode_names() -> BTreeMap<u32, String> {
    Mode::ALL.iter().map(|mode| (*mode as u32, format!("{mode:?}"))).collect()
}

/// A supervisor with its recording and its status.
pub struct Ticker {
    supervisor: Supervisor,
    record: Option<RecordSink>,
    status: Status,
    snapshot: Snapshot,
    events: Events,
    is_floating: bool,
    has_commanded: bool,
    generation: u32,
    /// Newest observation offered and newest answered.
    exchanged: (u64, u64),
    /// Sequence number, arrival and rows of the newest chunks, by sequence number modulo their count.
    arrivals: [(u64, i64, u32); ARRIVALS],
}

/// Where the arrival of a chunk is kept.
fn arrival(arrivals: &mut [(u64, i64, u32); ARRIVALS], seq: u64) -> &mut (u64, i64, u32) {
    let index = usize::try_from(seq).unwrap_or(0) % ARRIVALS;
    &mut arrivals[index]
}

/// Whether the guard's limits act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardMode {
    /// The only mode for anything that moves.
    On,
    /// The simulation gate's comparison run on a manual clock.
    SimulationOnlyOff,
}

impl Ticker {
    /// Idle.
    pub fn new(plan: &Plan, guard: GuardMode, record: Option<RecordSink>, status: Status) -> Result<Self, RtError> {
        let made = match guard {
            GuardMode::On => Supervisor::new(plan),
            GuardMode::SimulationOnlyOff => Supervisor::without_limits(plan),
        };
        let supervisor =
            made.map_err(|error| RtError::new(error.code.word(), format!("{}: {}", error.at, error.what), ""))?;
        Ok(Ticker {
            supervisor,
            record,
            status,
            snapshot: Snapshot::default(),
            events: Events::default(),
            is_floating: plan.safe.floating_base,
            has_commanded: false,
            generation: 0,
            exchanged: (0, 0),
            arrivals: [(0, 0, 0); ARRIVALS],
        })
    }

    /// The stages.
    pub fn supervisor(&mut self) -> &mut Supervisor {
        &mut self.supervisor
    }

    /// Takes what was measured, and says whether the worker gets an observation.
    pub fn observe(&mut self, due_ns: i64, skipped: u32, sample: Option<&Sample>) -> Offer {
        self.events.clear();
        self.snapshot.missed += u64::from(skipped);
        self.supervisor.observe(due_ns, skipped, sample)
    }

    /// Another worker answers from the next start on.
    pub fn set_generation(&mut self, generation: u32) {
        self.generation = generation;
        self.supervisor.set_generation(generation);
    }

    /// Says what is there; a recording that ended early is not.
    pub fn set_ready(&mut self, worker: bool, driver: bool) {
        let recording = self.record.as_ref().is_none_or(RecordSink::is_writing);
        (self.snapshot.worker_alive, self.snapshot.driver_alive) = (worker.into(), driver.into());
        self.supervisor.set_ready(Readiness { worker, driver, recording });
    }

    /// Grants a request or counts why not.
    pub fn request(&mut self, due_ns: i64, request: Request) {
        self.events.push(request as u8);
        let outcome = self.supervisor.event(due_ns, request.event());
        self.snapshot.requests += 1;
        self.note(outcome);
    }

    /// Something that nobody asked for.
    pub fn happened(&mut self, due_ns: i64, request: Request) {
        self.events.push(request as u8);
        // Events that happen by themselves are never refused.
        let _ = self.supervisor.event(due_ns, request.event());
    }

    /// Takes a goal or counts why not.
    pub fn goal(&mut self, due_ns: i64, goal: &GoalRequest) {
        let tokens = goal.tokens.as_ref().and_then(|(ids, count)| ids.get(..*count));
        let outcome = self.supervisor.set_goal(due_ns, goal.velocity, tokens);
        if outcome.is_ok() {
            self.snapshot.goal_seq = goal.seq;
        }
        self.snapshot.requests += 1;
        self.note(outcome);
    }

    fn note(&mut self, outcome: Result<(), Code>) {
        self.snapshot.request_code = outcome.err().unwrap_or(Code::None) as u64;
        self.snapshot.requests_refused += u64::from(outcome.is_err());
    }

    /// How long recording took in the last tick.
    pub fn record_ns(&self) -> i64 {
        self.record.as_ref().map_or(0, RecordSink::last_ns)
    }

    /// Whether the program was asked to end and the robot is at rest.
    pub fn is_finished(&self) -> bool {
        self.supervisor.is_finished()
    }

    /// A synchronous policy did not answer in time.
    pub fn late(&mut self) {
        self.snapshot.late += 1;
    }

    /// Acts, sends, then records. `chunk`: the newest that arrived, and when. `send` gets a command that the guard
    /// admitted and whether a simulation may let go of the robot: a robot that would fall is kept where it stands until
    /// its policy first commands. It answers whether the command went out: not in a dry run.
    pub fn act(
        &mut self,
        stamps: &mut Stamps,
        sample: &Sample,
        chunk: Option<(&Chunk, i64)>,
        now: &dyn Fn() -> i64,
        send: &mut dyn FnMut(&SafeCommand, bool) -> bool,
    ) -> Done {
        let Ticker { supervisor, record, snapshot, .. } = self;
        if let Some((chunk, arrived_ns)) = chunk {
            snapshot.chunks += 1;
            let rows = u32::try_from(chunk.rows).unwrap_or(0);
            *arrival(&mut self.arrivals, chunk.seq) = (chunk.seq, arrived_ns, rows);
            self.exchanged.1 = chunk.seq;
        }
        let outcome = supervisor.act(stamps.due_ns, chunk.map(|(chunk, _)| chunk));
        stamps.acted_ns = now();

        // Send first.
        let is_refused = outcome.ruling.is_refused();
        self.has_commanded |= outcome.wanted.valid && !is_refused && outcome.command.is_some();
        let running = self.has_commanded || !self.is_floating;
        let is_sent = outcome.command.is_some_and(|command| send(command, running));
        if is_sent {
            snapshot.sent += 1;
            stamps.sent_ns = now();
        }
        let done = Done {
            tick: outcome.tick,
            due_ns: outcome.due_ns,
            mode: outcome.mode as u8,
            level: outcome.level,
            ruling: outcome.ruling.kind as u8,
            codes: outcome.ruling.codes.bits(),
            sent: is_sent,
            running,
            kind: outcome.command.map_or(0, |command| command.wire() as u8),
            offered: outcome.offered_seq > 0,
        };

        let (seq, arrived_ns, rows) = *arrival(&mut self.arrivals, outcome.wanted.seq);
        let in_use = outcome.wanted.valid && seq == outcome.wanted.seq;
        let to_come = rows.saturating_sub(outcome.wanted.row).saturating_sub(1);
        snapshot.actions_left = if in_use { to_come.into() } else { 0 };

        // Record after.
        if let Some(record) = record.as_mut() {
            record.tick(|slot| {
                slot.set_outcome(&outcome);
                slot.set_sample(sample);
                slot.sent = is_sent;
                slot.woke_ns = stamps.woke_ns;
                slot.observed_ns = stamps.observed_ns;
                slot.chunk_arrived_ns = if in_use { arrived_ns } else { 0 };
                slot.acted_ns = stamps.acted_ns;
                slot.sent_ns = stamps.sent_ns;
                slot.goal_seq = snapshot.goal_seq;
                slot.missed = snapshot.missed;
                slot.chunks_dropped = snapshot.dropped;
                slot.events = self.events;
            });
            (snapshot.record_waiting, snapshot.record_chunks_waiting) = record.waiting();
        }
        if outcome.offered_seq > 0 {
            self.exchanged.0 = outcome.offered_seq;
        }
        snapshot.unanswered = self.exchanged.0.saturating_sub(self.exchanged.1);
        snapshot.at_ns = outcome.due_ns.max(0).cast_unsigned();
        (snapshot.ruling, snapshot.commanded) = (done.ruling.into(), is_sent.into());
        (snapshot.mode, snapshot.level) = (u64::from(done.mode), u64::from(done.level));
        (snapshot.cause, snapshot.tick) = (outcome.cause as u64, outcome.tick);
        snapshot.sample_seq = outcome.sample_seq;
        snapshot.executed += 1;
        snapshot.planned = snapshot.executed + snapshot.missed;
        snapshot.limited += u64::from(outcome.ruling.kind == RulingKind::Limited);
        snapshot.refused += u64::from(is_refused);
        snapshot.violations += u64::from(outcome.is_violation);
        snapshot.offered += u64::from(done.offered);
        let chunk_refused = outcome.chunk_refused as u16;
        let taken = supervisor.schedule_counters();
        snapshot.accepted = taken.accepted;
        snapshot.dropped = [taken.retired_generation, taken.old_sequence, taken.failed, taken.dimension]
            .into_iter()
            .chain([taken.not_finite, taken.early, taken.overdue])
            .sum();
        if let (Some((chunk, arrived_ns)), Some(record)) = (chunk, record) {
            record.chunk(|slot| {
                slot.tick = done.tick;
                slot.arrived_ns = arrived_ns;
                slot.refused = chunk_refused;
                slot.set_chunk(chunk);
            });
        }
        done
    }

    /// Shows how things stand at the end of a tick.
    pub fn show(&mut self, control_allocations: u64) {
        self.snapshot.generation = u64::from(self.generation);
        self.snapshot.control_allocations = control_allocations;
        self.status.show(&self.snapshot);
        if self.snapshot.executed.is_multiple_of(TALLY_TICKS) || self.snapshot.ended == 1 {
            self.status.show_tallies(self.supervisor.own_counters());
        }
    }

    /// The loop ends.
    pub fn end(&mut self, control_allocations: u64, has_failed: bool) {
        self.snapshot.ended = 1;
        self.snapshot.failed = u64::from(has_failed);
        self.show(control_allocations);
    }
}
