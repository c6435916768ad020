//! The hot path of Interlock. Pure: no operating system, no clock, no allocation after construction, no panics.
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::disallowed_types,
        clippy::disallowed_methods
    )
)]

pub mod align;
pub mod code;
pub mod decode;
pub mod fallback;
pub mod guard;
pub mod mode;
pub mod observe;
pub mod plan;
pub mod preprocess;
pub mod sample;
pub mod schedule;
pub mod supervisor;
