//! Recording a tick and a chunk on the control thread allocates nothing.

use interlock_core::sample::{Chunk, Sample};
use interlock_rt::counting::{allocations, Counting};
use interlock_rt::record::{ImageMode, Quota, RecordOptions, Recorder};

#[global_allocator]
static COUNTING: Counting = Counting;

const PLAN: &str = include_str!("plan_29.json");

#[test]
fn recording_a_tick_allocates_nothing_on_the_control_thread() {
    let plan = serde_json::from_str(PLAN).unwrap();
    let path = std::env::temp_dir().join(format!("interlock-allocations-{}.mcap", std::process::id()));
    let options = RecordOptions {
        plan: &plan,
        plan_json: PLAN,
        header_json: "{}",
        images: ImageMode::None,
        image_rings: vec![],
        quota: Quota { reserve_bytes: 0, file_bytes: u64::MAX },
        manual_clock: false,
    };
    let mut recorder = Recorder::create(&path, options).unwrap();
    let mut sink = recorder.sink().unwrap();
    let (sample, chunk) = (Sample::new(29), Chunk::new(16, 29));
    let before = allocations();
    assert!(before > 0);
    // Until well after the ring is full: dropping allocates nothing either.
    for tick in 0..20_000 {
        sink.tick(|slot| {
            slot.tick = tick;
            slot.set_sample(&sample);
            slot.set_wanted(Some(&sample.pos));
            slot.set_command(None);
        });
        sink.chunk(|slot| slot.set_chunk(&chunk));
    }
    assert_eq!(allocations() - before, 0);
    recorder.close();
    std::fs::remove_file(path).unwrap();
}
