//! Measurements and goals to the numbers a network reads.

pub mod frame;
pub mod history;
mod phase;
pub mod terms;
