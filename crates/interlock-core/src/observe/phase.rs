//! Phase clocks of gaits.

use std::f64::consts::TAU;

/// A clock that all elements of one phase term share.
///
/// The phase of a policy period is `init + 2 pi * frequency * (period - started) * period length`. While the goal asks
/// to stand, it is the declared phase of standing; when motion starts again, the clock starts again at `init`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Clock {
    cycles_per_period: f64,
    still_rad: Option<f64>,
    still_below: f64,
    started: u64,
    is_still: bool,
}

impl Clock {
    pub fn new(freq_hz: f64, period_ns: i64, still_rad: Option<f64>, still_below: f64) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "periods are at most minutes")]
        let seconds = period_ns as f64 * 1e-9;
        Clock { cycles_per_period: freq_hz * seconds, still_rad, still_below, started: 0, is_still: false }
    }

    pub fn reset(&mut self) {
        self.started = 0;
        self.is_still = false;
    }

    /// Notes whether the goal asks to stand in this period.
    pub fn turn(&mut self, period: u64, goal: [f64; 3]) {
        let [x, y, yaw] = goal;
        let is_still = self.still_rad.is_some() && (x * x + y * y + yaw * yaw).sqrt() < self.still_below;
        if self.is_still && !is_still {
            self.started = period;
        }
        self.is_still = is_still;
    }

    /// Phase of an element that starts at `init_rad`.
    pub fn phase_rad(&self, period: u64, init_rad: f64) -> f64 {
        if let (true, Some(still_rad)) = (self.is_still, self.still_rad) {
            return still_rad;
        }
        #[allow(clippy::cast_precision_loss, reason = "exact for 2^53 periods")]
        let periods = period.saturating_sub(self.started) as f64;
        let turns = self.cycles_per_period * periods;
        init_rad + TAU * (turns - turns.floor())
    }
}
