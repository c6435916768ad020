//! The targets of one chunk as a function of time.

use crate::plan::Interpolate;
use crate::sample::Chunk;

/// What holds for every chunk of a plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rule {
    pub n: usize,
    pub period_ns: i64,
    pub delay_ns: i64,
    pub valid_ns: i64,
    pub interpolate: Interpolate,
}

impl Rule {
    /// Due time of row `row` of a chunk whose first row is due at `start_ns`.
    pub fn due_ns(&self, start_ns: i64, row: usize) -> i64 {
        let row = i64::try_from(row).unwrap_or(i64::MAX);
        start_ns.saturating_add(self.period_ns.saturating_mul(row))
    }

    /// Share of the seam's difference that is left `since_ns` after it.
    pub fn seam_weight(&self, since_ns: i64) -> f64 {
        let u = fraction(since_ns, self.period_ns).clamp(0.0, 1.0);
        match self.interpolate {
            Interpolate::Hold => 0.0,
            Interpolate::Linear => 1.0 - u,
            Interpolate::Cubic => 1.0 + u * u * (2.0 * u - 3.0),
        }
    }
}

/// An accepted chunk.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Curve {
    pub generation: u32,
    pub seq: u64,
    /// When row 0 is due.
    pub start_ns: i64,
    /// When it may start to act: not before it was there, not before row 0 is due.
    pub takes_over_ns: i64,
    /// From here on it has nothing to say.
    pub until_ns: i64,
    rows: usize,
    actions: Vec<f64>,
}

impl Curve {
    /// A curve without rows, with room for `rows` actions of `n` joints.
    pub fn empty(rows: usize, n: usize) -> Self {
        Curve {
            generation: 0,
            seq: 0,
            start_ns: 0,
            takes_over_ns: 0,
            until_ns: i64::MIN,
            rows: 0,
            actions: vec![0.0; rows.saturating_mul(n)],
        }
    }

    /// Takes a chunk's rows; the caller has checked their number.
    pub fn load(&mut self, rule: &Rule, now_ns: i64, chunk: &Chunk) {
        self.generation = chunk.generation;
        self.seq = chunk.seq;
        self.start_ns = chunk.at_ns.saturating_add(rule.delay_ns);
        self.takes_over_ns = self.start_ns.max(now_ns);
        self.until_ns = rule.due_ns(self.start_ns, chunk.rows.saturating_sub(1)).saturating_add(rule.valid_ns);
        self.rows = chunk.rows;
        for (mine, theirs) in self.actions.iter_mut().zip(&chunk.actions) {
            *mine = *theirs;
        }
    }

    /// Forgets its rows.
    pub fn clear(&mut self) {
        self.rows = 0;
        self.until_ns = i64::MIN;
    }

    pub fn is_valid(&self, now_ns: i64) -> bool {
        self.rows > 0 && now_ns < self.until_ns
    }

    /// The row that is due at `now_ns`.
    pub fn row(&self, rule: &Rule, now_ns: i64) -> usize {
        let since = now_ns.saturating_sub(self.start_ns).max(0);
        let passed = since.checked_div(rule.period_ns).unwrap_or(0);
        usize::try_from(passed).unwrap_or(usize::MAX).min(self.rows.saturating_sub(1))
    }

    /// Adds `weight` times the value at `now_ns` to `out`.
    pub fn add(&self, rule: &Rule, now_ns: i64, weight: f64, out: &mut [f64]) {
        let row = self.row(rule, now_ns);
        let is_last = row.saturating_add(1) >= self.rows;
        let since_ns = now_ns.saturating_sub(rule.due_ns(self.start_ns, row));
        let u = if is_last { 0.0 } else { fraction(since_ns, rule.period_ns).clamp(0.0, 1.0) };
        let before = self.targets(rule, row.saturating_sub(1));
        let here = self.targets(rule, row);
        let next = self.targets(rule, row.saturating_add(1));
        let after = self.targets(rule, row.saturating_add(2));
        let ends = [row > 0, row.saturating_add(2) < self.rows];
        for ((((out, before), here), next), after) in out.iter_mut().zip(before).zip(here).zip(next).zip(after) {
            let value = match rule.interpolate {
                Interpolate::Hold => *here,
                Interpolate::Linear => here + (next - here) * u,
                Interpolate::Cubic => hermite([*before, *here, *next, *after], ends, u),
            };
            *out += weight * value;
        }
    }

    /// Row `row`, or the last one beyond the end.
    fn targets(&self, rule: &Rule, row: usize) -> &[f64] {
        let first = row.min(self.rows.saturating_sub(1)).saturating_mul(rule.n);
        self.actions.get(first..first.saturating_add(rule.n)).unwrap_or(&[])
    }
}

/// `span / period` where the period is positive.
fn fraction(span_ns: i64, period_ns: i64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "spans of at most minutes are exact in f64")]
    let (span, period) = (span_ns as f64, period_ns as f64);
    span / period
}

/// Catmull-Rom between the middle two of four points; one-sided slopes where a neighbour is missing.
fn hermite([before, here, next, after]: [f64; 4], [has_before, has_after]: [bool; 2], u: f64) -> f64 {
    let step = next - here;
    let slope_here = if has_before { (next - before) / 2.0 } else { step };
    let slope_next = if has_after { (after - here) / 2.0 } else { step };
    let (u2, u3) = (u * u, u * u * u);
    here * (2.0 * u3 - 3.0 * u2 + 1.0)
        + slope_here * (u3 - 2.0 * u2 + u)
        + next * (3.0 * u2 - 2.0 * u3)
        + slope_next * (u3 - u2)
}
