//! Histories of observations, in every layout that frameworks use.

use crate::plan::History as Rule;

/// The last `steps` frames of concatenated terms.
#[derive(Debug, Clone, PartialEq)]
pub struct History {
    rule: Rule,
    /// Sizes of the terms in a frame.
    dims: Vec<usize>,
    width: usize,
    /// Frames as a ring, `steps * width`.
    ring: Vec<f32>,
    /// Place of the next frame.
    head: usize,
    is_empty: bool,
}

impl History {
    /// An empty history of frames whose terms have these sizes; `steps` is at least 1.
    pub fn new(rule: &Rule, dims: Vec<usize>) -> Self {
        let width = dims.iter().fold(0usize, |sum, dim| sum.saturating_add(*dim));
        let rule = Rule { steps: rule.steps.max(1), ..rule.clone() };
        let ring = vec![0.0; rule.steps.saturating_mul(width)];
        History { rule, dims, width, ring, head: 0, is_empty: true }
    }

    /// Elements of the finished tensor.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// True until the first frame after a reset.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// Forgets everything; the next frame is the first.
    pub fn reset(&mut self) {
        self.is_empty = true;
        self.head = 0;
        self.ring.fill(0.0);
    }

    /// Appends a frame of all terms; the first one after a reset also fills the past if the rule says so.
    pub fn push(&mut self, frame: &[f32]) {
        let width = self.width.max(1);
        if self.is_empty && self.rule.repeat_first {
            for slot in self.ring.chunks_exact_mut(width) {
                copy(slot, frame);
            }
        } else if let Some(slot) = self.ring.chunks_exact_mut(width).nth(self.head) {
            copy(slot, frame);
        }
        self.is_empty = false;
        self.head = self.head.saturating_add(1).checked_rem(self.rule.steps).unwrap_or(0);
    }

    /// Writes the tensor in the layout of the network.
    pub fn write(&self, out: &mut [f32]) {
        let mut rest = out;
        if self.rule.per_term {
            let mut first = 0usize;
            for dim in &self.dims {
                for step in 0..self.rule.steps {
                    rest = put(rest, self.part(step, first, *dim));
                }
                first = first.saturating_add(*dim);
            }
        } else {
            for step in 0..self.rule.steps {
                rest = put(rest, self.part(step, 0, self.width));
            }
        }
    }

    /// `dim` values of the frame that the layout puts at place `step`.
    fn part(&self, step: usize, first: usize, dim: usize) -> &[f32] {
        let steps = self.rule.steps;
        // The ring's oldest frame lies at `head`, the newest just before it.
        let age_order = if self.rule.oldest_first { step } else { steps.saturating_sub(1).saturating_sub(step) };
        let slot = self.head.saturating_add(age_order).checked_rem(steps).unwrap_or(0);
        let from = slot.saturating_mul(self.width).saturating_add(first);
        self.ring.get(from..from.saturating_add(dim)).unwrap_or(&[])
    }
}

fn copy(slot: &mut [f32], frame: &[f32]) {
    slot.iter_mut().zip(frame).for_each(|(mine, theirs)| *mine = *theirs);
}

/// Copies `part` to the front of `out` and returns what is behind it.
fn put<'a>(out: &'a mut [f32], part: &[f32]) -> &'a mut [f32] {
    let at = part.len().min(out.len());
    let (front, rest) = out.split_at_mut(at);
    copy(front, part);
    rest
}
