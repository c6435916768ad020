//! Which action is wanted now, chosen by time.
//!
//! Row `k` of a chunk is due at `at_ns + action_delay + k * period` and stands until the next row is due, the last one
//! for `action_valid_ns`. What the latency overtook is never executed.
//!
//! **Handover.** A chunk takes over at `max(arrival, its first row's due time)`; until then the older one goes on. With
//! `hold` the target changes there at once. With `linear` and `cubic` the difference between what was wanted at that
//! instant and the new chunk's curve fades out within one period (linearly, or as `1 - 3u^2 + 2u^3`), so a handover
//! never makes a step of its own. Everything is a function of times and chunks, not of how often it is asked.

mod curve;

use std::collections::VecDeque;

use crate::code::Code;
use crate::plan::{Plan, PlanError};
use crate::sample::Chunk;
use curve::{Curve, Rule};

/// Chunks taken and dropped, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScheduleCounters {
    /// Chunks accepted.
    pub accepted: u64,
    /// Rows of accepted chunks whose time had passed on arrival.
    pub late_rows: u64,
    /// Of another generation than the one in charge.
    pub retired_generation: u64,
    /// Older than, or the same as, one already seen; or from before the start.
    pub old_sequence: u64,
    /// Reported by the worker as failed.
    pub failed: u64,
    /// Wrong number of rows or values.
    pub dimension: u64,
    /// NaN or infinity inside.
    pub not_finite: u64,
    /// Observation from the future.
    pub early: u64,
    /// Every row was over on arrival.
    pub overdue: u64,
    /// Accepted, but a newer chunk was due no later.
    pub superseded: u64,
}

/// What is wanted at one instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// Whether there is an action.
    pub valid: bool,
    /// `None`, or `NoValidAction`.
    pub code: Code,
    /// Generation of its chunk.
    pub generation: u32,
    /// Sequence number of its chunk's observation.
    pub seq: u64,
    /// Row of the chunk.
    pub row: u32,
    /// When that row was due.
    pub due_ns: i64,
    /// Until when this chunk has something to say.
    pub until_ns: i64,
    /// When the next accepted chunk becomes due, if one waits.
    pub upcoming_ns: Option<i64>,
}

impl Wanted {
    /// Nothing is wanted.
    pub const NOTHING: Wanted = Wanted {
        valid: false,
        code: Code::NoValidAction,
        generation: 0,
        seq: 0,
        row: 0,
        due_ns: 0,
        until_ns: 0,
        upcoming_ns: None,
    };
}

/// The chunk in use, those waiting for their time, and the seam between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    rule: Rule,
    rows: usize,
    ticks_per_period: u64,
    ticks_per_inference: u64,
    generation: u32,
    last_seq: u64,
    last_at_ns: i64,
    active: Curve,
    /// In order of their time.
    waiting: VecDeque<Curve>,
    spare: Vec<Curve>,
    /// From when, and by how much each joint then differed from the active curve.
    seam_ns: i64,
    seam: Vec<f64>,
    /// What stood before the first chunk.
    pose: Vec<f64>,
    has_pose: bool,
    counters: ScheduleCounters,
}

impl Schedule {
    /// An empty schedule: nothing is wanted.
    ///
    /// # Errors
    /// A plan that [`Plan::check`] refuses.
    pub fn new(plan: &Plan) -> Result<Self, PlanError> {
        plan.check()?;
        let n = plan.n();
        let rows = usize::try_from(plan.timing.chunk).unwrap_or(usize::MAX);
        let delayed = plan.timing.action_delay_ns.checked_div(plan.inference_period_ns()).unwrap_or(0);
        let slots = usize::try_from(delayed).unwrap_or(0).saturating_add(2);
        let rule = Rule {
            n,
            period_ns: plan.period_ns(),
            delay_ns: plan.timing.action_delay_ns,
            valid_ns: plan.timing.action_valid_ns,
            interpolate: plan.timing.interpolate,
        };
        Ok(Schedule {
            rule,
            rows,
            ticks_per_period: u64::from(plan.timing.ticks_per_period),
            ticks_per_inference: u64::from(plan.timing.ticks_per_inference),
            generation: 0,
            last_seq: 0,
            last_at_ns: i64::MIN,
            active: Curve::empty(rows, n),
            waiting: VecDeque::with_capacity(slots),
            spare: (0..slots).map(|_| Curve::empty(rows, n)).collect(),
            seam_ns: i64::MIN,
            seam: vec![0.0; n],
            pose: vec![0.0; n],
            has_pose: false,
            counters: ScheduleCounters::default(),
        })
    }

    /// Starts afresh: only chunks of `generation` for observations after `after_seq` count from here on. `pose` is the
    /// target that stands now (SI, robot order), from which `linear` and `cubic` lead into the first chunk.
    pub fn begin(&mut self, generation: u32, after_seq: u64, pose: &[f64]) {
        self.generation = generation;
        self.last_seq = after_seq;
        self.last_at_ns = i64::MIN;
        self.clear();
        self.has_pose = pose.len() == self.pose.len() && pose.iter().all(|value| value.is_finite());
        self.pose.iter_mut().zip(pose).for_each(|(mine, theirs)| *mine = *theirs);
    }

    /// Drops every chunk: nothing is wanted until the next one.
    pub fn clear(&mut self) {
        self.active.clear();
        self.seam_ns = i64::MIN;
        self.has_pose = false;
        while let Some(curve) = self.waiting.pop_front() {
            self.spare.push(curve);
        }
    }

    /// Puts another generation in charge. The chunk in use goes on until the first of the new generation takes over.
    pub fn put_in_charge(&mut self, generation: u32) {
        self.generation = generation;
        while let Some(curve) = self.waiting.pop_front() {
            self.spare.push(curve);
        }
    }

    /// Whether an observation goes to the worker at this tick, counted from the start of the policy.
    pub fn offer_due(&self, tick: u64) -> bool {
        tick.checked_rem(self.ticks_per_inference) == Some(0)
    }

    /// The ordinal of the policy period that a tick lies in.
    pub fn period(&self, tick: u64) -> u64 {
        tick.checked_div(self.ticks_per_period).unwrap_or(0)
    }

    /// What was taken and dropped so far.
    pub fn counters(&self) -> ScheduleCounters {
        self.counters
    }

    /// Takes a chunk that arrived by `now_ns`, or counts why not.
    ///
    /// # Errors
    /// `RetiredGeneration`, `OldSequence`, the worker's own status, `Dimension`, `NotFinite`, `WorkerError` for an
    /// observation that lies in the future, `NoValidAction` if all of it is over already.
    pub fn accept(&mut self, now_ns: i64, chunk: &Chunk) -> Result<(), Code> {
        self.advance(now_ns);
        self.refuse(now_ns, chunk)?;
        let start_ns = chunk.at_ns.saturating_add(self.rule.delay_ns);
        while self.waiting.back().is_some_and(|last| last.start_ns >= start_ns) {
            count(&mut self.counters.superseded);
            self.waiting.pop_back().into_iter().for_each(|curve| self.spare.push(curve));
        }
        if self.spare.is_empty() {
            count(&mut self.counters.superseded);
            self.waiting.pop_front().into_iter().for_each(|curve| self.spare.push(curve));
        }
        let Some(mut curve) = self.spare.pop() else { return Err(Code::Dimension) };
        curve.load(&self.rule, now_ns, chunk);
        self.waiting.push_back(curve);
        count(&mut self.counters.accepted);
        Ok(())
    }

    /// Everything that keeps a chunk out, in the order of the guard.
    fn refuse(&mut self, now_ns: i64, chunk: &Chunk) -> Result<(), Code> {
        let counters = &mut self.counters;
        if chunk.generation != self.generation {
            count(&mut counters.retired_generation);
            return Err(Code::RetiredGeneration);
        }
        if chunk.seq <= self.last_seq || chunk.at_ns < self.last_at_ns {
            count(&mut counters.old_sequence);
            return Err(Code::OldSequence);
        }
        if chunk.at_ns > now_ns {
            count(&mut counters.early);
            return Err(Code::WorkerError);
        }
        self.last_seq = chunk.seq;
        self.last_at_ns = chunk.at_ns;
        if chunk.status != Code::None as u16 {
            count(&mut counters.failed);
            return Err(Code::from_u16(chunk.status).unwrap_or(Code::WorkerError));
        }
        let used = chunk.actions.get(..chunk.rows.saturating_mul(self.rule.n)).unwrap_or(&[]);
        if used.is_empty() || chunk.rows > self.rows {
            count(&mut counters.dimension);
            return Err(Code::Dimension);
        }
        if !used.iter().all(|value| value.is_finite()) {
            count(&mut counters.not_finite);
            return Err(Code::NotFinite);
        }
        let start_ns = chunk.at_ns.saturating_add(self.rule.delay_ns);
        let passed = now_ns.saturating_sub(start_ns).max(0).checked_div(self.rule.period_ns).unwrap_or(0);
        let rows = i64::try_from(chunk.rows).unwrap_or(i64::MAX);
        let until_ns = self.rule.due_ns(start_ns, chunk.rows.saturating_sub(1)).saturating_add(self.rule.valid_ns);
        if now_ns >= until_ns {
            count(&mut counters.overdue);
            return Err(Code::NoValidAction);
        }
        let late = u64::try_from(passed.min(rows.saturating_sub(1))).unwrap_or(0);
        counters.late_rows = counters.late_rows.saturating_add(late);
        Ok(())
    }

    /// Writes what is wanted at `now_ns` to `out` (SI, robot order) and says where it comes from. `out` is left alone
    /// when nothing is wanted. Times must not go backwards.
    pub fn at(&mut self, now_ns: i64, out: &mut [f64]) -> Wanted {
        self.advance(now_ns);
        let upcoming_ns = self.waiting.front().map(|next| next.takes_over_ns);
        if out.len() != self.rule.n {
            return Wanted { code: Code::Dimension, upcoming_ns, ..Wanted::NOTHING };
        }
        if !self.active.is_valid(now_ns) {
            return Wanted { upcoming_ns, ..Wanted::NOTHING };
        }
        out.fill(0.0);
        self.add_wanted(now_ns, out);
        let row = self.active.row(&self.rule, now_ns);
        Wanted {
            valid: true,
            code: Code::None,
            generation: self.active.generation,
            seq: self.active.seq,
            row: u32::try_from(row).unwrap_or(u32::MAX),
            due_ns: self.rule.due_ns(self.active.start_ns, row),
            until_ns: self.active.until_ns,
            upcoming_ns,
        }
    }

    /// Lets every waiting chunk take over whose time has come.
    fn advance(&mut self, now_ns: i64) {
        while self.waiting.front().is_some_and(|next| next.takes_over_ns <= now_ns) {
            let Some(mut next) = self.waiting.pop_front() else { return };
            let seam_ns = next.takes_over_ns;
            // seam = what stood until now - what the new curve says; computed in place, the old seam is part of it.
            let is_led = self.active.is_valid(seam_ns) || self.has_pose;
            let weight = self.rule.seam_weight(seam_ns.saturating_sub(self.seam_ns));
            if self.active.is_valid(seam_ns) {
                self.seam.iter_mut().for_each(|value| *value *= weight);
                self.active.add(&self.rule, seam_ns, 1.0, &mut self.seam);
            } else {
                self.seam.iter_mut().zip(&self.pose).for_each(|(value, pose)| *value = *pose);
            }
            if is_led {
                next.add(&self.rule, seam_ns, -1.0, &mut self.seam);
            } else {
                self.seam.fill(0.0);
            }
            self.seam_ns = seam_ns;
            self.has_pose = false;
            std::mem::swap(&mut self.active, &mut next);
            self.spare.push(next);
        }
    }

    fn add_wanted(&self, now_ns: i64, out: &mut [f64]) {
        self.active.add(&self.rule, now_ns, 1.0, out);
        let weight = self.rule.seam_weight(now_ns.saturating_sub(self.seam_ns));
        if weight != 0.0 {
            out.iter_mut().zip(&self.seam).for_each(|(value, seam)| *value += weight * seam);
        }
    }
}

fn count(counter: &mut u64) {
    *counter = counter.saturating_add(1);
}
