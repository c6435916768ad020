//! Torque commands: bounded in torque and its change; refused where the robot moves faster than it may.

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
    rate: Vec<Bound>,
    /// Tick, s.
    h: f64,
    /// Policy period, s.
    period: f64,
    sent: Vec<f64>,
}

impl Torques {
    pub fn new(limits: &Limits, n: usize, h: f64, period: f64) -> Self {
        let free = Bound { limit: f64::INFINITY, refuse_beyond: f64::INFINITY };
        let all = |bounds: &Option<Vec<Bound>>| bounds.clone().unwrap_or_else(|| vec![free; n]);
        Torques {
            torque: all(&limits.torque),
            vel_measured: all(&limits.vel_measured),
            rate: all(&limits.torque_rate),
            h,
            period,
            sent: vec![0.0; n],
        }
    }

    pub fn start(&mut self) {
        self.sent.fill(0.0);
    }

    /// What goes out now, from elsewhere: changes of torque are counted from it.
    pub fn feel(&mut self, torque: &[f64]) {
        self.sent.iter_mut().zip(torque).for_each(|(sent, torque)| *sent = *torque);
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
            .or_else(|| self.too_sudden(wanted).map(|index| (Code::TorqueRate, index)))
            .or_else(|| beyond(Code::MeasuredVelocity, &self.vel_measured, velocities))
    }

    /// The first joint whose torque would have to change faster than refused, within a policy period.
    fn too_sudden(&self, wanted: &[f64]) -> Option<usize> {
        let is_sudden =
            |((rate, sent), wanted): ((&Bound, &f64), &f64)| (wanted - sent).abs() > rate.refuse_beyond * self.period;
        self.rate.iter().zip(&self.sent).zip(wanted).position(is_sudden)
    }

    /// Brings every torque inside its limits.
    pub fn follow(&mut self, velocities: &[f64], wanted: &[f64], ruling: &mut Ruling) {
        let limits = self.torque.iter().zip(&self.vel_measured).zip(&self.rate);
        let joints = limits.zip(&mut self.sent).zip(velocities).zip(wanted);
        for (index, (((((torque, vel), rate), sent), velocity), wanted)) in joints.enumerate() {
            let in_torque = within(*wanted, -torque.limit, torque.limit);
            let ramp = rate.limit * self.h;
            *sent = within(in_torque, *sent - ramp, *sent + ramp);
            if (in_torque - wanted).abs() > SAME {
                ruling.limit(Code::Torque, index);
            }
            if (*sent - in_torque).abs() > SAME {
                ruling.limit(Code::TorqueRate, index);
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
