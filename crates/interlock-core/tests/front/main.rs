//! The data flow from observation to wanted action, as claims.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "small literal numbers; equality is meant where it is written"
)]

mod align;
mod decode;
mod frozen;
mod history;
mod images;
mod plan_check;
mod plans;
mod preprocess;
mod schedule;
mod terms;
