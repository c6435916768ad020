//! Torque commands: bounded in torque; refused where the robot moves faster than it may.

use super::brake::within;
use super::ruling::Ruling;
use crate::code::Code;
use crate::plan::{Bound, Limits};

/// Differences below this are rounding, N*m.
const SAME: f64 = 1e-9;

/// Every joint's torque.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Torques {
    torque: Vec<Bound>,
    vel_measured: Vec<Bound>,
    sent: Vec<f64>,
}

impl Torques {
    pub fn new(limits: &Limits, n: usize) -> Self {
        let free = Bound { limit: f64::INFINITY, refuse_beyond: f64::INFINITY };
        let all = |bounds: &Option<Vec<Bound>>| bounds.clone().unwrap_or_else(|| vec![free; n]);
        Torques { torque: all(&limits.torque), vel_measured: all(&limits.vel_measured), sent: vec![0.0; n] }
    }

    pub fn start(&mut self) {
        self.sent.fill(0.0);
    }

    /// The first limit, in the guard's order, that is exceeded beyond refusal.
    pub fn refusal(&self, velocities: &[f64], wanted: &[f64]) -> Option<(Code, usize)> {
        let beyond = |code: Code, bounds: &[Bound], values: &[f64]| {
            let is_beyond = |(bound, value): (&Bound, &f64)| value.abs() > bound.refuse_beyond;
            bounds.iter().zip(values).position(is_beyond).map(|index| (code, index))
        };
        let unknown = velocities.iter().position(|velocity| !velocity.is_finite());
        unknown
            .map(|index| (Code::NotFinite, index))
            .or_else(|| beyond(Code::Torque, &self.torque, wanted))
            .or_else(|| beyond(Code::MeasuredVelocity, &self.vel_measured, velocities))
    }

    /// Brings every torque inside its limit.
    pub fn follow(&mut self, velocities: &[f64], wanted: &[f64], ruling: &mut Ruling) {
        let joints = self.torque.iter().zip(&self.vel_measured).zip(&mut self.sent).zip(velocities).zip(wanted);
        for (index, ((((torque, vel), sent), velocity), wanted)) in joints.enumerate() {
            *sent = within(*wanted, -torque.limit, torque.limit);
            if (*sent - wanted).abs() > SAME {
                ruling.limit(Code::Torque, index);
            }
            if velocity.abs() > vel.limit {
                ruling.notice(Code::MeasuredVelocity, index);
            }
        }
    }

    pub fn write(&self, torque: &mut [f64]) {
        torque.iter_mut().zip(&self.sent).for_each(|(torque, sent)| *torque = *sent);
    }
}
