//! No admitted command ever leaves the envelope. Slow: over a million generated ticks.
//!
//! `cargo test -p interlock-core --release --test guard_million -- --ignored`
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "small numbers"
)]

#[path = "back/checker.rs"]
mod checker;
#[path = "back/envelope.rs"]
mod envelope;
#[path = "front/plans.rs"]
mod plans;

#[test]
#[ignore = "slow: a million ticks of position commands"]
fn no_position_command_leaves_the_envelope_in_a_million_ticks() {
    let total: u64 = (0..2_000).map(|seed| envelope::position_run(seed, 600)).sum();
    assert!(total >= 1_000_000, "{total}");
}

#[test]
#[ignore = "slow: two hundred thousand ticks of velocity commands"]
fn no_velocity_command_leaves_the_envelope() {
    let total: u64 = (0..400).map(|seed| envelope::velocity_run(seed, 500)).sum();
    assert!(total >= 200_000, "{total}");
}

#[test]
#[ignore = "slow: two hundred thousand ticks of PD targets"]
fn no_pd_target_leaves_the_envelope() {
    let total: u64 = (0..400).map(|seed| envelope::spring_run(seed, 500)).sum();
    assert!(total >= 200_000, "{total}");
}

#[test]
#[ignore = "slow: two hundred thousand ticks of torques"]
fn no_torque_leaves_the_envelope() {
    let total: u64 = (0..400).map(|seed| envelope::torque_run(seed, 500)).sum();
    assert!(total >= 200_000, "{total}");
}
