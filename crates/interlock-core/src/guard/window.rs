//! Net travel within a window of time: however fast a joint may be for a moment, this is how far it gets in 250 ms.
//!
//! The rule is one about ranges, so that it can always be kept: everything that was commanded within the last window and
//! everything on the braking path from here lie within `limit` of each other. Whoever keeps it can brake and still keep
//! it, because braking only follows a path that was looked at already.

use std::collections::VecDeque;

use crate::plan::Bound;

/// Length of the window, s.
const WINDOW_S: f64 = 0.25;
/// Kept from the limit so that rounding never crosses it, rad.
const MARGIN: f64 = 1e-9;

/// Where one joint was commanded to be within the last window. Without a limit nothing is kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Window {
    limit: f64,
    refuse_beyond: f64,
    /// Ticks in the window.
    length: u64,
    tick: u64,
    /// Smallest position first, with the tick in which it was commanded; behind it only later and larger ones.
    low: VecDeque<(u64, f64)>,
    /// The same for the largest.
    high: VecDeque<(u64, f64)>,
}

impl Window {
    pub fn new(bound: Option<Bound>, h: f64) -> Self {
        let length = ticks(h);
        let room = if bound.is_some() { usize::try_from(length).unwrap_or(0).saturating_add(1) } else { 0 };
        Window {
            limit: bound.map_or(f64::INFINITY, |bound| (bound.limit - MARGIN).max(0.0)),
            refuse_beyond: bound.map_or(f64::INFINITY, |bound| bound.refuse_beyond),
            length,
            tick: 0,
            low: VecDeque::with_capacity(room),
            high: VecDeque::with_capacity(room),
        }
    }

    /// Begins with a joint that has been at `position` for a whole window.
    pub fn start(&mut self, position: f64) {
        self.low.clear();
        self.high.clear();
        self.push(position);
    }

    /// A tick in which `position` was commanded.
    pub fn push(&mut self, position: f64) {
        if self.limit == f64::INFINITY {
            return;
        }
        self.tick = self.tick.saturating_add(1);
        let oldest = self.tick.saturating_sub(self.length);
        keep(&mut self.low, oldest, self.tick, position, |last| last >= position);
        keep(&mut self.high, oldest, self.tick, position, |last| last <= position);
    }

    /// Between which positions a joint has to stay from here on, braking included. Where something stronger than this
    /// limit made the travel longer already, everything in between is as good.
    pub fn bounds(&self) -> (f64, f64) {
        match (self.low.front(), self.high.front()) {
            (Some((_, low)), Some((_, high))) => {
                let (lo, hi) = (high - self.limit, low + self.limit);
                (lo.min(hi), lo.max(hi))
            }
            _ => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    /// Largest distance between two points of one braking path.
    pub fn limit(&self) -> f64 {
        self.limit
    }

    /// Whether being at `position` would be a travel beyond refusal.
    pub fn refuses(&self, position: f64) -> bool {
        let (lo, hi) = self.bounds();
        let beyond = self.refuse_beyond - self.limit;
        position > hi + beyond || position < lo - beyond
    }
}

/// Adds to a queue whose values only grow (or only fall) towards its end; what is older than `oldest` leaves it.
fn keep(queue: &mut VecDeque<(u64, f64)>, oldest: u64, tick: u64, position: f64, is_covered: impl Fn(f64) -> bool) {
    while queue.front().is_some_and(|(then, _)| *then <= oldest) {
        queue.pop_front();
    }
    while queue.back().is_some_and(|(_, last)| is_covered(*last)) {
        queue.pop_back();
    }
    queue.push_back((tick, position));
}

/// Whole ticks that cover the window, at least one.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a quarter second over at least a microsecond"
)]
fn ticks(h: f64) -> u64 {
    (WINDOW_S / h - 1e-6).ceil().max(1.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUND: Bound = Bound { limit: 1.0 + MARGIN, refuse_beyond: 3.0 };

    proptest! {
        #[test]
        fn the_bounds_are_those_of_the_last_window(
            path in prop::collection::vec(-5.0..5.0_f64, 1..80),
            tick_ms in 1_u16..400,
        ) {
            let h = f64::from(tick_ms) * 1e-3;
            let length = 250_usize.div_ceil(usize::from(tick_ms));
            let mut window = Window::new(Some(BOUND), h);
            window.start(path[0]);
            for (index, position) in path.iter().enumerate().skip(1) {
                window.push(*position);
                let seen = &path[(index + 1).saturating_sub(length)..=index];
                let (low, high) = seen.iter().fold((f64::MAX, f64::MIN), |(low, high), p| (low.min(*p), high.max(*p)));
                let (lo, hi) = window.bounds();
                let (from, to) = (f64::min(high - 1.0, low + 1.0), f64::max(high - 1.0, low + 1.0));
                prop_assert!((lo - from).abs() < 1e-12 && (hi - to).abs() < 1e-12);
            }
            prop_assert!(window.low.capacity() <= length + 4, "nothing grows");
        }
    }

    #[test]
    fn without_a_limit_nothing_is_bounded_or_kept() {
        let mut window = Window::new(None, 0.001);
        window.start(1.0);
        window.push(1e6);
        assert_eq!(window.bounds(), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(!window.refuses(-1e9));
        assert!(window.low.is_empty());
    }

    #[test]
    fn a_travel_beyond_refusal_is_counted_from_anywhere_in_the_window() {
        let mut window = Window::new(Some(BOUND), 0.1);
        window.start(0.0);
        window.push(0.5);
        assert!(!window.refuses(2.99) && window.refuses(3.01));
        assert!(!window.refuses(-2.49) && window.refuses(-2.51));
    }
}
