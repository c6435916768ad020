//! The stages of one tick in their order, and who may command in it.
//!
//! Twice per tick: [`Supervisor::observe`] takes what was measured and says whether the worker gets an observation;
//! [`Supervisor::act`] takes what the worker answered, if it did, and says what is sent. A synchronous policy's answer
//! arrives between the two; an asynchronous one's has arrived before.

mod arming;
mod goal;
mod outcome;
mod transitions;
mod watch;

use crate::align::Align;
use crate::code::Code;
use crate::fallback::{Cause, Fallback};
use crate::guard::{Guard, Ruling, RulingKind, Situation};
use crate::mode::{Event, Mode};
use crate::plan::{CommandKind, Plan, PlanError, Safe, Start, Timing};
use crate::sample::{Chunk, Observation, Sample};
use crate::schedule::{Schedule, Wanted};
pub use arming::Readiness;
use goal::GoalKeeper;
pub use outcome::{Counters, Outcome, Tally};
use watch::Watch;

/// What to do about the worker in this tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// [`Supervisor::observation`] goes to the worker now; a synchronous policy's answer is waited for.
    pub due: bool,
    /// Sequence number of that observation.
    pub seq: u64,
}

/// Alignment, schedule, modes, guard and fallback of one robot with one policy.
#[derive(Debug)]
pub struct Supervisor {
    kind: CommandKind,
    timing: Timing,
    safe: Safe,
    start: Start,
    align: Align,
    schedule: Schedule,
    guard: Guard,
    fallback: Fallback,
    goal: GoalKeeper,
    watch: Watch,
    ready: Readiness,
    mode: Mode,
    level: u8,
    cause: Code,
    is_quitting: bool,
    generation: u32,
    next_generation: u32,
    observation: Observation,
    target: Vec<f64>,
    tick: u64,
    /// Ticks since the policy started; `None` before its first.
    policy_tick: Option<u64>,
    starts_period: bool,
    /// Until when the first action may be waited for; `None` once there was one.
    first_by_ns: Option<i64>,
    offered_seq: u64,
    was_clean: bool,
    counters: Counters,
}

impl Supervisor {
    /// Idle, with nothing measured.
    ///
    /// # Errors
    /// A plan that [`Plan::check`] refuses.
    pub fn new(plan: &Plan) -> Result<Self, PlanError> {
        let guard = Guard::new(plan)?;
        Supervisor::with_guard(plan, guard)
    }

    /// The simulation gate's comparison run without limits. Not for anything that moves.
    ///
    /// # Errors
    /// A plan that [`Plan::check`] refuses.
    pub fn without_limits(plan: &Plan) -> Result<Self, PlanError> {
        let guard = Guard::without_limits(plan)?;
        Supervisor::with_guard(plan, guard)
    }

    fn with_guard(plan: &Plan, guard: Guard) -> Result<Self, PlanError> {
        let n = plan.n();
        Ok(Supervisor {
            kind: plan.command.kind,
            timing: plan.timing.clone(),
            safe: plan.safe.clone(),
            start: plan.start.clone(),
            align: Align::new(plan)?,
            schedule: Schedule::new(plan)?,
            guard,
            fallback: Fallback::new(plan),
            goal: GoalKeeper::new(plan),
            watch: Watch::new(plan.timing.inference_deadline_ns),
            ready: Readiness::default(),
            mode: Mode::Idle,
            level: 0,
            cause: Code::None,
            is_quitting: false,
            generation: 0,
            next_generation: 0,
            observation: Observation::new(n),
            target: vec![0.0; n],
            tick: 0,
            policy_tick: None,
            starts_period: false,
            first_by_ns: None,
            offered_seq: 0,
            was_clean: true,
            counters: Counters::default(),
        })
    }

    /// Takes what was measured by the tick due at `now_ns`. `skipped`: ticks due since the last call that the operating
    /// system let pass. `sample`: the newest, repeated or none if nothing came.
    pub fn observe(&mut self, now_ns: i64, skipped: u32, sample: Option<&Sample>) -> Offer {
        let ticks = skipped.saturating_add(1);
        self.count_ticks(skipped);
        // What came in; the align stage counts what it does not take.
        if let Some(sample) = sample {
            self.align.take(now_ns, sample).unwrap_or_default();
        }
        self.goal.advance(ticks);
        let late_ns = self.timing.tick_ns.saturating_mul(i64::from(skipped));
        self.watch.excuse(late_ns);
        self.align.excuse(now_ns, late_ns);
        self.take_over_from_drives(skipped);
        // Whoever cannot see or is not told where to go may not go on.
        let is_inference_tick = self.advance_policy(ticks);
        self.check_senses(now_ns, is_inference_tick);
        self.check_goal(now_ns);
        // What the worker is given.
        let due = is_inference_tick && self.uses_policy();
        self.offered_seq = 0;
        if due {
            self.offer(now_ns);
        }
        Offer { due, seq: self.offered_seq }
    }

    /// The observation of the last offer.
    pub fn observation(&self) -> &Observation {
        &self.observation
    }

    /// Decides what is sent in the tick due at `now_ns`. `chunk`: the newest that arrived.
    pub fn act(&mut self, now_ns: i64, chunk: Option<&Chunk>) -> Outcome<'_> {
        // What the policy wants now, chosen by time.
        let chunk_refused = chunk.map_or(Code::None, |chunk| self.take(now_ns, chunk));
        self.check_worker(now_ns);
        let wanted = if self.uses_policy() { self.schedule.at(now_ns, &mut self.target) } else { Wanted::NOTHING };

        // The guard admits it, or the policy is lost and the safe behaviour acts in this very tick.
        let (mut ruling, is_admitted) = self.judge(now_ns, &wanted);
        if matches!(chunk_refused, Code::NotFinite | Code::Dimension) {
            // The schedule looked first, but this is the guard's list.
            ruling.refuse(chunk_refused, None);
        }
        let sends = !matches!(self.mode, Mode::Idle | Mode::Faulted);
        if sends && !is_admitted {
            self.fallback.step(&mut self.guard, self.align.sample(), self.mode);
        }
        if self.mode == Mode::Stopping && self.fallback.is_done() {
            self.apply(now_ns, Event::StopDone).unwrap_or_default();
        }

        // What is told about it.
        let is_violation = self.was_clean && ruling.kind != RulingKind::Pass;
        self.was_clean = ruling.kind == RulingKind::Pass;
        self.counters.violations = self.counters.violations.saturating_add(u64::from(is_violation));
        self.counters.note(&ruling);
        Outcome {
            tick: self.tick,
            due_ns: now_ns,
            mode: self.mode,
            level: self.level,
            cause: self.cause,
            ruling,
            command: sends.then(|| self.guard.command()),
            target: &self.target,
            wanted,
            sample_seq: self.align.sample().seq,
            offered_seq: self.offered_seq,
            chunk_refused,
            is_violation,
            is_goal_zeroed: self.goal.is_zero_forced(),
        }
    }

    /// Something happened, or somebody asks for something.
    ///
    /// # Errors
    /// `WrongMode`, or what is missing: `NotReady`, `NoRecording`, `StaleState`, `DriverStuck`, `StaleImage`, `Skew`,
    /// `NotFinite`, `OutsideLimits`, `OutsideStart`, `GoalLost`, `BadPlan`. Nothing changed then.
    pub fn event(&mut self, now_ns: i64, event: Event) -> Result<(), Code> {
        self.is_quitting |= matches!(event, Event::Quit);
        match event {
            Event::PolicyLost(code) => self.counters.lost_by.add(code),
            Event::DriverLost => self.counters.lost_by.add(Code::DriverDead),
            _ => {}
        }
        self.apply(now_ns, event)
    }

    /// Gives the camera's newest image stamp.
    pub fn image(&mut self, now_ns: i64, camera: usize, seq: u64, capture_ns: i64) {
        self.align.take_image(now_ns, camera, seq, capture_ns).unwrap_or_default();
    }

    /// Gives the operator's goal; to be repeated before it times out.
    ///
    /// # Errors
    /// `NotFinite`, or `Dimension` for a part that the policy does not have.
    pub fn set_goal(&mut self, now_ns: i64, velocity: Option<[f64; 3]>, tokens: Option<&[i64]>) -> Result<(), Code> {
        self.goal.set(now_ns, velocity, tokens)
    }

    /// Says what the outside knows to be there.
    pub fn set_ready(&mut self, ready: Readiness) {
        self.ready = ready;
    }

    /// The worker whose chunks count from the next start on.
    pub fn set_generation(&mut self, generation: u32) {
        self.next_generation = generation;
    }

    /// The mode now.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What the last stop was for.
    pub fn cause(&self) -> Code {
        self.cause
    }

    /// Whether the program was asked to end and nothing is left to be brought to rest.
    pub fn is_finished(&self) -> bool {
        self.is_quitting && matches!(self.mode, Mode::Idle | Mode::Holding | Mode::Faulted)
    }

    /// Sums over all ticks.
    pub fn counters(&self) -> Counters {
        Counters { schedule: self.schedule.counters(), align: self.align.counters(), ..self.counters }
    }

    /// The same without copying: what the schedule and the align stage counted stands as they were at the start.
    pub fn own_counters(&self) -> &Counters {
        &self.counters
    }

    /// What the schedule counted.
    pub fn schedule_counters(&self) -> crate::schedule::ScheduleCounters {
        self.schedule.counters()
    }

    fn uses_policy(&self) -> bool {
        match self.mode {
            Mode::Running | Mode::Degraded => true,
            Mode::Armed | Mode::Stopping | Mode::Holding => self.fallback.uses_policy(),
            Mode::Idle | Mode::Takeover | Mode::Faulted => false,
        }
    }

    fn count_ticks(&mut self, skipped: u32) {
        let (counters, skipped) = (&mut self.counters, u64::from(skipped));
        counters.executed = counters.executed.saturating_add(1);
        counters.missed = counters.missed.saturating_add(skipped);
        counters.planned = counters.executed.saturating_add(counters.missed);
        self.tick = counters.planned;
    }

    /// Counts the policy's own ticks; true if one of those passed is an inference tick.
    fn advance_policy(&mut self, ticks: u32) -> bool {
        let (from, to) = match self.policy_tick {
            Some(last) => (last.saturating_add(1), last.saturating_add(u64::from(ticks))),
            None => (0, 0),
        };
        self.policy_tick = Some(to);
        let passes = |every: u32| {
            let start = to.saturating_sub(to.checked_rem(u64::from(every)).unwrap_or(0));
            start >= from
        };
        self.starts_period = passes(self.timing.ticks_per_period);
        passes(self.timing.ticks_per_inference)
    }

    fn offer(&mut self, now_ns: i64) {
        let observation = &mut self.observation;
        observation.seq = observation.seq.saturating_add(1);
        observation.generation = self.generation;
        observation.at_ns = now_ns;
        observation.period = self.schedule.period(self.policy_tick.unwrap_or(0));
        observation.goal.clone_from(self.goal.state());
        self.align.fill(observation);
        observation.applied.copy_from_slice(sent(self.kind, &self.guard));
        self.offered_seq = observation.seq;
        self.watch.offered(observation.seq, now_ns);
        self.counters.offered = self.counters.offered.saturating_add(1);
    }

    /// After a pause of ours that was longer than the drives wait they have acted by themselves: what goes on from the
    /// last command would leap back to it, so motion begins afresh where the robot is. A spring's policy goes on, since
    /// its torque is limited by what is measured anyway.
    fn take_over_from_drives(&mut self, skipped: u32) {
        let gap_ns = self.timing.tick_ns.saturating_mul(i64::from(skipped).saturating_add(1));
        let (waits_ns, sends) = (self.safe.command_timeout_ns, !matches!(self.mode, Mode::Idle | Mode::Faulted));
        if skipped == 0 || waits_ns == 0 || gap_ns < waits_ns || !sends {
            return;
        }
        let (sample, is_policy) = (self.align.sample(), self.uses_policy());
        if is_policy && matches!(self.kind, CommandKind::Position | CommandKind::Velocity) {
            self.guard.start(sample);
        } else if !is_policy && !self.fallback.is_passive() {
            self.guard.start(sample);
            let cause = if self.fallback.is_travelling() { self.fallback.cause() } else { Cause::Hold };
            self.fallback.begin(cause, &self.guard, sample);
        }
    }

    /// The measured state counts in every tick, images when they are about to be offered.
    fn check_senses(&mut self, now_ns: i64, is_inference_tick: bool) {
        let freshness = self.align.freshness(now_ns);
        let code = if is_inference_tick { freshness.code() } else { freshness.state };
        if self.uses_policy() && code != Code::None {
            self.lose(now_ns, code);
        }
        // Nobody travels blind: a robot that does not answer would leap to wherever the way has led once it does.
        let travels =
            matches!(self.mode, Mode::Armed | Mode::Stopping | Mode::Holding) && self.fallback.is_travelling();
        let is_known = self.align.sample().pos.iter().all(|position| position.is_finite());
        let blind = if is_known { freshness.state } else { Code::NotFinite };
        if travels && blind != Code::None {
            self.lose(now_ns, blind);
            self.cause = blind;
            if self.fallback.is_travelling() {
                self.fallback.begin(Cause::Hold, &self.guard, self.align.sample());
            }
        }
    }

    fn check_goal(&mut self, now_ns: i64) {
        if !matches!(self.mode, Mode::Running | Mode::Degraded) {
            return;
        }
        let is_lost = self.goal.is_lost(now_ns);
        if self.fallback.is_policy(Cause::GoalLost) {
            self.goal.force_zero(is_lost);
        } else if is_lost {
            self.apply(now_ns, Event::GoalLost).unwrap_or_default();
        }
    }

    /// Takes a chunk. A policy that answers with an error or with what is no action is lost; what merely comes from
    /// another worker or too late is dropped.
    fn take(&mut self, now_ns: i64, chunk: &Chunk) -> Code {
        if !self.uses_policy() {
            return Code::WrongMode;
        }
        if chunk.generation == self.generation {
            self.watch.answered(chunk.seq);
        }
        let Err(code) = self.schedule.accept(now_ns, chunk) else { return Code::None };
        self.counters.dropped_by.add(code);
        let is_harmless = matches!(code, Code::RetiredGeneration | Code::OldSequence | Code::NoValidAction);
        if !is_harmless {
            self.lose(now_ns, code);
        }
        code
    }

    fn check_worker(&mut self, now_ns: i64) {
        if self.uses_policy() && !self.timing.synchronous && self.watch.is_late(now_ns) {
            self.lose(now_ns, Code::WorkerLate);
        }
    }

    /// The guard's ruling on what the policy wants, and whether it may be sent.
    fn judge(&mut self, now_ns: i64, wanted: &Wanted) -> (Ruling, bool) {
        if !self.uses_policy() {
            return (Ruling::default(), false);
        }
        if !wanted.valid && self.first_by_ns.is_some_and(|by_ns| now_ns <= by_ns) {
            // The first action is still on its way: the robot is held as it was when armed.
            return (Ruling::default(), false);
        }
        let situation = Situation {
            now_ns,
            sample: self.align.sample(),
            mode: self.mode,
            starts_period: self.starts_period,
            excused_ns: self.align.excused_ns(now_ns),
        };
        let ruling = self.guard.admit(&situation, wanted, &self.target);
        match ruling.refusal {
            Some(Code::NoValidAction) if self.watch.is_waiting() => self.lose(now_ns, Code::WorkerLate),
            Some(code) => self.lose(now_ns, code),
            None => {
                self.first_by_ns = None;
                self.fallback.note_policy();
            }
        }
        (ruling, !ruling.is_refused())
    }
}

/// What was sent last, in the terms of the policy's actions.
fn sent(kind: CommandKind, guard: &Guard) -> &[f64] {
    let command = guard.command();
    match kind {
        CommandKind::Position | CommandKind::PositionPd => command.target(),
        CommandKind::Velocity => command.velocity(),
        CommandKind::Torque => command.torque(),
    }
}

#[allow(clippy::cast_precision_loss, reason = "spans of a plan are at most ten minutes")]
fn seconds(span_ns: i64) -> f64 {
    span_ns as f64 * 1e-9
}
