//! What one tick did, and what all ticks did so far.

use crate::align::AlignCounters;
use crate::code::Code;
use crate::guard::{Ruling, RulingKind, SafeCommand};
use crate::mode::Mode;
use crate::schedule::{ScheduleCounters, Wanted};

/// Codes lie below this number.
const CODES: usize = 128;

/// Occurrences per code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally([u64; CODES]);

impl Default for Tally {
    fn default() -> Self {
        Tally([0; CODES])
    }
}

impl Tally {
    pub(super) fn add(&mut self, code: Code) {
        let slot = self.0.iter_mut().skip(usize::from(code as u16)).take(1);
        slot.for_each(|count| *count = count.saturating_add(1));
    }

    /// How often a code occurred.
    pub fn get(&self, code: Code) -> u64 {
        self.0.get(usize::from(code as u16)).copied().unwrap_or(0)
    }

    /// Codes that occurred, with how often.
    pub fn iter(&self) -> impl Iterator<Item = (Code, u64)> + '_ {
        Code::ALL.iter().map(|code| (*code, self.get(*code))).filter(|(_, count)| *count > 0)
    }
}

/// Sums over all ticks. `planned = executed + missed`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Ticks that were due.
    pub planned: u64,
    /// Ticks that ran.
    pub executed: u64,
    /// Ticks that the operating system skipped.
    pub missed: u64,
    /// Ticks in which a command of the policy was limited.
    pub limited: u64,
    /// Ticks in which a command of the policy was refused.
    pub refused: u64,
    /// Beginnings of a limited or refused stretch: the `constraint_violation` events.
    pub violations: u64,
    /// Offers made to the worker.
    pub offered: u64,
    /// Ticks per limiting or noticed code.
    pub limited_by: Tally,
    /// Refused commands per code.
    pub refused_by: Tally,
    /// Chunks not taken, per code.
    pub dropped_by: Tally,
    /// Losses of the policy, per code.
    pub lost_by: Tally,
    /// What the schedule took and dropped.
    pub schedule: ScheduleCounters,
    /// Samples and image stamps not taken.
    pub align: AlignCounters,
}

impl Counters {
    pub(super) fn note(&mut self, ruling: &Ruling) {
        match ruling.kind {
            RulingKind::Pass => {}
            RulingKind::Limited => self.limited = self.limited.saturating_add(1),
            RulingKind::Refused => self.refused = self.refused.saturating_add(1),
        }
        let refusal = ruling.refusal;
        if let Some(code) = refusal {
            self.refused_by.add(code);
        }
        for code in ruling.codes.iter().filter(|code| Some(*code) != refusal) {
            self.limited_by.add(code);
        }
    }
}

/// What one tick did: everything that the recording needs.
#[derive(Debug)]
pub struct Outcome<'a> {
    /// Ordinal of the tick since construction, skipped ones counted.
    pub tick: u64,
    /// When it was due.
    pub due_ns: i64,
    /// Mode after the tick.
    pub mode: Mode,
    /// Level of the ladder, 0 for the policy itself.
    pub level: u8,
    /// What the last stop was for; `None` while nothing went wrong.
    pub cause: Code,
    /// What the guard said to the policy's command; pass while no policy commands.
    pub ruling: Ruling,
    /// What is to be sent; `None`: nothing.
    pub command: Option<&'a SafeCommand>,
    /// What the policy wanted, SI, robot order; meaningful while `wanted.valid`.
    pub target: &'a [f64],
    /// Which action that was.
    pub wanted: Wanted,
    /// Sequence number of the sample it acted on.
    pub sample_seq: u64,
    /// Sequence number of the observation offered in this tick, 0 for none.
    pub offered_seq: u64,
    /// Why the chunk given in this tick was not used, `None` if it was or there was none; `WrongMode` while no policy acts.
    pub chunk_refused: Code,
    /// The first tick of a limited or refused stretch: one `constraint_violation`.
    pub is_violation: bool,
    /// The policy is given a zero goal because the operator's is gone or the robot is to stop.
    pub is_goal_zeroed: bool,
}
