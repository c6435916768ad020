//! What runs every tick allocates nothing on this side, shown by an allocator that counts.

use std::path::{Path, PathBuf};

use interlock_core::sample::{Chunk, Sample};
use interlock_rt::counting::{allocations, Counting};
use interlock_rt::engine::{DataRef, Engine, EngineOptions, TensorRef};
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

/// The library named by `INTERLOCK_ORT`, else that of the repository's environment; None skips the test.
fn library() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("INTERLOCK_ORT") {
        return Some(path.into());
    }
    let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/lib");
    let python = std::fs::read_dir(environment).ok()?.flatten().next()?.path();
    let files = std::fs::read_dir(python.join("site-packages/onnxruntime/capi")).ok()?;
    let is_library = |path: &PathBuf| path.to_string_lossy().contains("/libonnxruntime.so");
    files.flatten().map(|entry| entry.path()).find(is_library)
}

#[test]
fn running_the_engine_on_bound_buffers_allocates_nothing_on_this_side() {
    let Some(library) = library() else {
        eprintln!("skipped: no ONNX Runtime library; set INTERLOCK_ORT");
        return;
    };
    let mut engine = Engine::from_bytes(include_bytes!("adder.onnx"), &EngineOptions::new(library)).unwrap();
    let shape: &[i64] = &[1, 3];
    engine.bind(&[("a", shape), ("b", shape)], &[("sum", shape)]).unwrap();
    let values = [1.0_f32, 2.0, 3.0];
    let input = |name| TensorRef { name, shape, data: DataRef::F32(&values) };
    engine.run([input("a"), input("b")]).unwrap();
    let before = allocations();
    for _ in 0..100 {
        engine.run([input("b"), input("a")]).unwrap();
        assert!(engine.results().next().is_some());
    }
    assert_eq!(allocations() - before, 0);
    assert_eq!(engine.results().next().unwrap().data.as_f32().unwrap(), [2.0, 4.0, 6.0]);
}
