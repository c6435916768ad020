//! How the supervisor gets from one mode to another: what the table allows, what must hold, what then begins.

use super::{arming, sent, Supervisor};
use crate::code::Code;
use crate::fallback::Cause;
use crate::mode::{next, Event, Mode, Step};

impl Supervisor {
    pub(super) fn lose(&mut self, now_ns: i64, code: Code) {
        self.counters.lost_by.add(code);
        self.apply(now_ns, Event::PolicyLost(code)).unwrap_or_default();
    }

    pub(super) fn apply(&mut self, now_ns: i64, event: Event) -> Result<(), Code> {
        let stops = matches!(self.mode, Mode::Stopping | Mode::Holding);
        if matches!(event, Event::PolicyLost(_)) && stops && !self.fallback.uses_policy() {
            return Ok(());
        }
        match next(self.mode, event) {
            Step::Stay => Ok(()),
            Step::Refuse => Err(Code::WrongMode),
            Step::To(mode) => {
                self.check_request(now_ns, event)?;
                self.enter(now_ns, mode, event);
                Ok(())
            }
        }
    }

    /// What must hold before a person's request is granted; what happens by itself is never refused.
    fn check_request(&self, now_ns: i64, event: Event) -> Result<(), Code> {
        let sample = self.align.sample();
        let is_at_start = arming::check_start(&self.start, sample);
        match event {
            Event::Arm | Event::Recover => {
                self.ready.check()?;
                self.check_fresh(now_ns)?;
                self.guard.check_inside(sample).map_err(|(code, _)| code)?;
                arming::check_policy_lost(&self.safe.policy_lost, self.safe.floating_base)?;
                is_at_start.or_else(|code| self.safe.before_start.as_ref().map(|_| ()).ok_or(code))
            }
            Event::Start => {
                self.ready.check()?;
                self.check_fresh(now_ns)?;
                is_at_start?;
                let is_told = self.fallback.is_policy(Cause::GoalLost) || !self.goal.is_lost(now_ns);
                match (self.fallback.is_done(), self.goal.is_complete(), is_told) {
                    (true, true, true) => Ok(()),
                    (true, true, false) => Err(Code::GoalLost),
                    _ => Err(Code::NotReady),
                }
            }
            // Nobody there yet whose commands could be taken: holding instead would drop a robot that balances.
            Event::Takeover => Err(Code::NotReady),
            Event::Disarm if self.mode == Mode::Armed && !self.fallback.is_done() => Err(Code::NotReady),
            _ => Ok(()),
        }
    }

    fn check_fresh(&self, now_ns: i64) -> Result<(), Code> {
        match self.align.freshness(now_ns).code() {
            Code::None => Ok(()),
            code => Err(code),
        }
    }

    fn enter(&mut self, now_ns: i64, mode: Mode, event: Event) {
        let had_policy = self.uses_policy();
        let was = self.mode;
        self.mode = mode;
        let sample = self.align.sample();
        match mode {
            Mode::Idle => {
                self.level = 0;
                self.schedule.clear();
            }
            Mode::Armed => {
                self.level = 0;
                self.cause = Code::None;
                if was == Mode::Holding && had_policy {
                    // The policy keeps its balance until it is started again.
                    return;
                }
                if was == Mode::Idle || self.fallback.is_passive() {
                    self.guard.start(sample);
                }
                let is_at_start = arming::check_start(&self.start, sample).is_ok();
                let cause = if is_at_start { Cause::Hold } else { Cause::BeforeStart };
                self.fallback.begin(cause, &self.guard, sample);
            }
            Mode::Running => self.begin_policy(now_ns),
            Mode::Takeover => self.fallback.begin(Cause::Hold, &self.guard, sample),
            Mode::Degraded => {
                self.level = self.level.saturating_add(1);
                self.cause = event.cause();
            }
            // Drives that are let go or damped stay so: ending the program does not stiffen them again.
            Mode::Stopping if was == Mode::Holding && self.fallback.is_passive() => {}
            Mode::Stopping => {
                self.cause = event.cause();
                let asked = match event {
                    Event::GoalLost => Cause::GoalLost,
                    Event::Quit => Cause::OnExit,
                    // "Stop" and a closed terminal stop; going somewhere to rest is for an orderly exit.
                    _ => Cause::PolicyLost,
                };
                // A policy that does not run now is not started in order to stop.
                let cause = if self.fallback.is_policy(asked) && !had_policy { Cause::PolicyLost } else { asked };
                self.fallback.begin(cause, &self.guard, sample);
                self.goal.force_zero(self.fallback.uses_policy());
            }
            Mode::Holding => {}
            Mode::Faulted => self.cause = event.cause(),
        }
    }

    /// A new episode: nothing of the one before counts any more.
    fn begin_policy(&mut self, now_ns: i64) {
        let timing = &self.timing;
        let first_ns = timing.action_delay_ns.saturating_add(timing.inference_deadline_ns);
        let slack_ns = timing.tick_ns.saturating_mul(2);
        self.first_by_ns = Some(now_ns.saturating_add(first_ns).saturating_add(slack_ns));
        self.observation.episode = self.observation.episode.saturating_add(1);
        self.policy_tick = None;
        self.generation = self.next_generation;
        self.schedule.begin(self.generation, self.observation.seq, sent(self.kind, &self.guard));
        self.guard.put_in_charge(self.generation);
        self.watch.restart();
        self.goal.restart();
    }
}
