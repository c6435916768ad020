//! The operator's goal: a stream like any other, with a range, a slew and an age.

use crate::code::Code;
use crate::plan::{Goal, Plan};
use crate::sample::{GoalState, MAX_TOKENS};

/// The goal that stands, and the one the policy is given.
#[derive(Debug)]
pub(super) struct GoalKeeper {
    plan: Goal,
    tick_s: f64,
    asked: [f64; 3],
    is_zero_forced: bool,
    is_set: bool,
    state: GoalState,
}

impl GoalKeeper {
    pub fn new(plan: &Plan) -> Self {
        GoalKeeper {
            plan: plan.goal.clone(),
            tick_s: super::seconds(plan.timing.tick_ns),
            asked: [0.0; 3],
            is_zero_forced: false,
            is_set: false,
            state: GoalState::default(),
        }
    }

    /// Takes what the operator asks; a velocity outside its range is brought inside.
    pub fn set(&mut self, now_ns: i64, velocity: Option<[f64; 3]>, tokens: Option<&[i64]>) -> Result<(), Code> {
        if velocity.is_some_and(|velocity| velocity.iter().any(|part| !part.is_finite())) {
            return Err(Code::NotFinite);
        }
        let has_place = velocity.is_none() || self.plan.velocity.is_some();
        let has_text = tokens.is_none() || self.plan.text;
        if !has_place || !has_text || tokens.is_some_and(|tokens| tokens.len() > MAX_TOKENS) {
            return Err(Code::Dimension);
        }
        if let (Some(velocity), Some(ranges)) = (velocity, self.plan.velocity) {
            for ((asked, wanted), [lo, hi]) in self.asked.iter_mut().zip(velocity).zip(ranges) {
                *asked = wanted.min(hi).max(lo);
            }
        }
        if let Some(tokens) = tokens {
            self.state.tokens.fill(0);
            self.state.tokens.iter_mut().zip(tokens).for_each(|(mine, theirs)| *mine = *theirs);
            self.state.token_count = tokens.len();
        }
        self.is_set = true;
        self.state.stamp_ns = now_ns;
        self.state.seq = self.state.seq.saturating_add(1);
        Ok(())
    }

    /// Moves the velocity given to the policy towards the one asked for, for as many ticks as passed.
    pub fn advance(&mut self, ticks: u32) {
        let time_s = self.tick_s * f64::from(ticks);
        let slew = self.plan.slew_per_s.unwrap_or([f64::INFINITY; 3]);
        for ((given, asked), slew) in self.state.velocity.iter_mut().zip(self.asked).zip(slew) {
            let target = if self.is_zero_forced { 0.0 } else { asked };
            let most = slew * time_s;
            *given += (target - *given).min(most).max(-most);
        }
    }

    /// A policy starts from standstill: with a slew the velocity begins at zero.
    pub fn restart(&mut self) {
        self.is_zero_forced = false;
        if self.plan.slew_per_s.is_some() {
            self.state.velocity = [0.0; 3];
        } else {
            self.state.velocity = self.asked;
        }
    }

    pub fn force_zero(&mut self, is_forced: bool) {
        self.is_zero_forced = is_forced;
    }

    pub fn is_zero_forced(&self) -> bool {
        self.is_zero_forced
    }

    /// Whether the goal is older than it may be.
    pub fn is_lost(&self, now_ns: i64) -> bool {
        let age_ns = now_ns.saturating_sub(self.state.stamp_ns);
        self.plan.timeout_ns > 0 && (!self.is_set || age_ns > self.plan.timeout_ns)
    }

    /// Whether everything is there that the policy needs to be told.
    pub fn is_complete(&self) -> bool {
        !self.plan.text || self.state.token_count > 0
    }

    pub fn state(&self) -> &GoalState {
        &self.state
    }
}
