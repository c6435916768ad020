//! Guard, modes, fallback and supervisor, as claims.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "small literal numbers; equality is meant where it is written"
)]

mod arming;
mod behaviours;
mod checker;
mod envelope;
mod envelopes;
mod guard_list;
mod losses;
mod modes;
#[path = "../front/plans.rs"]
mod plans;
mod rig;
mod springs;
mod ticks;
mod trajectory;
