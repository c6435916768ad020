use interlock_core::align::Align;
use interlock_core::code::Code;
use interlock_core::plan::Resize;
use interlock_core::sample::{Observation, Sample};

use super::plans::{observation, plan, with_camera, MS};

fn sample(seq: u64, capture_ns: i64) -> Sample {
    Sample { seq, capture_ns, ..observation(2).sample }
}

#[test]
fn nothing_is_fresh_before_the_first_sample() {
    let align = Align::new(&plan(2)).unwrap();
    assert!(!align.has_sample());
    assert_eq!(align.freshness(0).code(), Code::StaleState);
}

#[test]
fn a_sample_is_fresh_up_to_its_age_and_no_longer() {
    let mut align = Align::new(&plan(2)).unwrap();
    align.take(100 * MS, &sample(1, 99 * MS)).unwrap();
    assert_eq!(align.freshness(100 * MS).state_age_ns, MS);
    assert_eq!(align.freshness(119 * MS).code(), Code::None);
    assert_eq!(align.freshness(119 * MS + 1).code(), Code::StaleState);
    assert_eq!(align.freshness(120 * MS + 1).code(), Code::DriverStuck);
}

#[test]
fn new_samples_that_are_old_are_stale_but_the_driver_lives() {
    let mut align = Align::new(&plan(2)).unwrap();
    align.take(100 * MS, &sample(1, 70 * MS)).unwrap();
    assert_eq!(align.freshness(100 * MS).code(), Code::StaleState);
}

#[test]
fn a_repeated_sequence_number_is_not_liveness() {
    let mut align = Align::new(&plan(2)).unwrap();
    align.take(0, &sample(1, 0)).unwrap();
    for tick in 1..5 {
        assert_eq!(align.take(tick * 10 * MS, &sample(1, tick * 10 * MS)), Err(Code::OldSequence));
    }
    assert_eq!(align.freshness(40 * MS).code(), Code::DriverStuck);
    assert_eq!(align.counters().duplicate, 4);
}

#[test]
fn out_of_order_and_impossible_samples_change_nothing() {
    let mut align = Align::new(&plan(2)).unwrap();
    align.take(0, &sample(5, 0)).unwrap();
    assert_eq!(align.take(MS, &sample(4, MS)), Err(Code::OldSequence));
    assert_eq!(align.take(MS, &sample(6, -MS)), Err(Code::OldSequence));
    assert_eq!(align.take(MS, &sample(6, 22 * MS)), Err(Code::Skew));
    assert_eq!(align.take(MS, &Sample::new(3)), Err(Code::Dimension));
    assert_eq!(align.sample(), &sample(5, 0));
    let counters = align.counters();
    assert_eq!((counters.out_of_order, counters.future, counters.dimension, counters.samples), (2, 1, 1, 1));
}

#[test]
fn a_restarted_driver_may_count_from_the_start_again() {
    let mut align = Align::new(&plan(2)).unwrap();
    align.take(0, &sample(500, 0)).unwrap();
    align.reset();
    assert_eq!(align.freshness(0).code(), Code::StaleState);
    assert_eq!(align.take(MS, &sample(1, MS)), Ok(()));
}

#[test]
fn a_policy_with_images_needs_every_one_of_them_fresh() {
    let mut plan = plan(2);
    with_camera(&mut plan, [4, 4], [4, 4], Resize::None);
    with_camera(&mut plan, [4, 4], [4, 4], Resize::None);
    let mut align = Align::new(&plan).unwrap();
    align.take(100 * MS, &sample(1, 100 * MS)).unwrap();
    align.take_image(100 * MS, 0, 1, 90 * MS).unwrap();
    assert_eq!(align.freshness(100 * MS).image, Code::StaleImage);
    align.take_image(100 * MS, 1, 1, 70 * MS).unwrap();
    let freshness = align.freshness(100 * MS);
    assert_eq!(freshness.code(), Code::None);
    assert_eq!((freshness.image_age_ns, freshness.skew_ns), (30 * MS, 30 * MS));
    align.take(111 * MS, &sample(2, 111 * MS)).unwrap();
    assert_eq!(align.freshness(111 * MS).code(), Code::Skew);
    align.take_image(111 * MS, 1, 2, 110 * MS).unwrap();
    assert_eq!(align.freshness(111 * MS).code(), Code::None);
    assert_eq!(align.freshness(171 * MS).image, Code::StaleImage);
}

#[test]
fn a_policy_without_images_ignores_cameras() {
    let mut plan = plan(2);
    with_camera(&mut plan, [4, 4], [4, 4], Resize::None);
    plan.inputs.pop();
    let mut align = Align::new(&plan).unwrap();
    align.take(0, &sample(1, 0)).unwrap();
    assert_eq!(align.freshness(0).code(), Code::None);
}

#[test]
fn an_image_stamp_that_goes_back_is_dropped() {
    let mut plan = plan(2);
    with_camera(&mut plan, [4, 4], [4, 4], Resize::None);
    let mut align = Align::new(&plan).unwrap();
    align.take_image(50 * MS, 0, 2, 40 * MS).unwrap();
    assert_eq!(align.take_image(50 * MS, 0, 2, 45 * MS), Err(Code::OldSequence));
    assert_eq!(align.take_image(50 * MS, 0, 3, 39 * MS), Err(Code::OldSequence));
    assert_eq!(align.take_image(50 * MS, 0, 3, 131 * MS), Err(Code::Skew));
    assert_eq!(align.take_image(50 * MS, 1, 1, 40 * MS), Err(Code::Dimension));
    assert_eq!(align.take_image(50 * MS, 99, 1, 40 * MS), Err(Code::Dimension));
    assert_eq!(align.counters().images, 5);
    let mut observation = Observation::new(2);
    align.fill(&mut observation);
    assert_eq!((observation.image_seq[0], observation.image_ns[0]), (2, 40 * MS));
}

#[test]
fn our_own_lateness_does_not_make_a_healthy_sensor_stale() {
    let mut align = Align::new(&plan(2)).unwrap();
    align.take(100 * MS, &sample(1, 99 * MS)).unwrap();
    // Everything stood still from 100 ms to 130 ms: at most 20 ms, one maximum age, are forgiven.
    align.excuse(130 * MS, 15 * MS);
    assert_eq!(align.freshness(130 * MS).code(), Code::None);
    assert_eq!(align.freshness(134 * MS + 1).code(), Code::StaleState, "15 ms more than 20 ms, and no longer");
    align.excuse(135 * MS, 1000 * MS);
    assert_eq!(align.freshness(139 * MS).code(), Code::None);
    assert_eq!(align.freshness(139 * MS + 1).code(), Code::StaleState, "never more than twice the maximum age");
}

#[test]
fn an_excuse_ends_after_one_maximum_age() {
    let mut align = Align::new(&plan(2)).unwrap();
    align.excuse(100 * MS, 10 * MS);
    align.take(119 * MS, &sample(1, 95 * MS)).unwrap();
    assert_eq!(align.freshness(119 * MS).code(), Code::None);
    assert_eq!(align.freshness(120 * MS).code(), Code::StaleState);
}
