//! The limits typed again: an observer that sees nothing but what was sent and the tick.
#![allow(
    dead_code,
    clippy::many_single_char_names,
    reason = "each test binary uses some of it; p, v, a, j are what they are called"
)]

/// Rounding of one position of a few rad, with room for a difference of differences.
const EPSILON: f64 = 4.0 * f64::EPSILON;

#[derive(Debug, Clone, Copy)]
pub struct Envelope {
    pub lo: f64,
    pub hi: f64,
    pub vel: f64,
    pub acc: f64,
    pub jerk: f64,
}

/// Successive positions of one joint, differentiated.
#[derive(Debug, Clone, Copy)]
pub struct Observer {
    h: f64,
    pub p: f64,
    pub v: f64,
    pub a: f64,
}

impl Observer {
    pub fn at_rest(h: f64, p: f64) -> Self {
        Observer { h, p, v: 0.0, a: 0.0 }
    }

    /// What is wrong with `p` as the next position.
    pub fn see(&mut self, p: f64, envelope: &Envelope) -> Result<(), String> {
        let h = self.h;
        let v = (p - self.p) / h;
        let a = (v - self.v) / h;
        let j = (a - self.a) / h;
        let size = 1.0 + p.abs();
        let was = *self;
        *self = Observer { h, p, v, a };
        let says = |what: &str| Err(format!("{what}: {was:?} then p {p} v {v} a {a} j {j}, limits {envelope:?}"));
        if !p.is_finite() || p < envelope.lo || p > envelope.hi {
            return says("position");
        }
        if v.abs() > envelope.vel * (1.0 + 1e-9) + EPSILON * size / h {
            return says("velocity");
        }
        if a.abs() > envelope.acc * (1.0 + 1e-9) + 2.0 * EPSILON * size / (h * h) {
            return says("acceleration");
        }
        if j.abs() > envelope.jerk * (1.0 + 1e-9) + 4.0 * EPSILON * size / (h * h * h) {
            return says("jerk");
        }
        Ok(())
    }
}

/// The commanded positions of one joint over the last 250 ms: no two of them further apart than the limit.
#[derive(Debug, Clone)]
pub struct TravelObserver {
    ticks: usize,
    seen: std::collections::VecDeque<f64>,
}

impl TravelObserver {
    pub fn at_rest(h: f64, p: f64) -> Self {
        let ticks = usize::max(1, (0.25 / h - 1e-6).ceil() as usize);
        TravelObserver { ticks, seen: std::collections::VecDeque::from(vec![p; ticks]) }
    }

    /// How far `p`, as the next position, is from the one of the window that is furthest away.
    pub fn see(&mut self, p: f64) -> f64 {
        let travel = self.seen.iter().map(|before| (p - before).abs()).fold(0.0, f64::max);
        self.seen.pop_front();
        self.seen.push_back(p);
        assert_eq!(self.seen.len(), self.ticks);
        travel
    }

    /// Between which values every next one stays within `limit` of all of them.
    pub fn bounds(&self, limit: f64) -> (f64, f64) {
        let low = self.seen.iter().copied().fold(f64::INFINITY, f64::min);
        let high = self.seen.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (lo, hi) = (high - limit, low + limit);
        (lo.min(hi), lo.max(hi))
    }
}

/// xorshift64*: numbers that are the same everywhere.
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Uniform in `[low, high)`.
    pub fn within(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.next() >> 11) as f64 / (1u64 << 53) as f64)
    }

    /// Uniform in the logarithm.
    pub fn scale(&mut self, low: f64, high: f64) -> f64 {
        self.within(low.ln(), high.ln()).exp()
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.within(0.0, 1.0) < probability
    }

    pub fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }
}

/// What a policy may want of one joint, unfriendly on purpose; values around `[centre - reach, centre + reach]`.
#[derive(Debug, Clone)]
pub struct Adversary {
    kind: u64,
    centre: f64,
    reach: f64,
    rate: f64,
    time: f64,
    value: f64,
    left: u64,
}

impl Adversary {
    pub fn new(numbers: &mut Numbers, centre: f64, reach: f64, h: f64) -> Self {
        let mut adversary = Adversary { kind: 0, centre, reach, rate: 1.0, time: 0.0, value: centre, left: 0 };
        adversary.change(numbers, h);
        adversary
    }

    fn change(&mut self, numbers: &mut Numbers, h: f64) {
        self.kind = numbers.below(9);
        self.rate = numbers.scale(0.05, 0.4 / h);
        self.time = 0.0;
        self.left = 5 + numbers.below(120);
    }

    /// The next wanted value; `now` is what was sent last. One in ten thousand is no number or absurd.
    pub fn next(&mut self, numbers: &mut Numbers, now: f64, h: f64) -> f64 {
        if self.left == 0 {
            self.change(numbers, h);
        }
        self.left -= 1;
        self.time += h;
        if numbers.chance(1e-4) {
            return [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e9][numbers.below(5) as usize];
        }
        let (low, high) = (self.centre - self.reach, self.centre + self.reach);
        self.value = match self.kind {
            // Steps that stand.
            0 if self.left.is_multiple_of(10) => numbers.within(low, high),
            // Noise over everything.
            1 => numbers.within(low, high),
            // Sinusoids up to and beyond what can be followed.
            2 => self.centre + self.reach * (self.rate * self.time).sin(),
            3 => now + 0.02 * self.reach * (10.0 * self.rate * self.time).sin(),
            // Ramps against a limit.
            4 => self.value + self.rate * h * 0.3,
            5 => self.value - self.rate * h * 0.3,
            // Bang-bang between the limits and just beyond.
            6 => {
                if ((self.time * self.rate * 2.0) as u64).is_multiple_of(2) {
                    low
                } else {
                    high
                }
            }
            // Small noise around the last command.
            7 => now + numbers.within(-1.0, 1.0) * 1e-3 * self.reach,
            // Stands still, also between steps.
            _ => self.value,
        };
        self.value = self.value.clamp(low - 0.3 * self.reach, high + 0.3 * self.reach);
        self.value
    }
}
