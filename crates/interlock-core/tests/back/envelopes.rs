//! The short form of `guard_million`, in every test run, and as properties over arbitrary seeds.

use proptest::prelude::*;

use crate::envelope;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_position_command_leaves_the_envelope(seed in any::<u32>()) {
        envelope::position_run(u64::from(seed), 300);
    }

    #[test]
    fn no_velocity_command_leaves_the_envelope(seed in any::<u32>()) {
        envelope::velocity_run(u64::from(seed), 300);
    }

    #[test]
    fn no_pd_target_leaves_the_envelope(seed in any::<u32>()) {
        envelope::spring_run(u64::from(seed), 300);
    }

    #[test]
    fn no_torque_leaves_the_envelope(seed in any::<u32>()) {
        envelope::torque_run(u64::from(seed), 300);
    }
}
