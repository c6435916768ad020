//! What the core may not touch: clocks, threads, shared memory, process handles, ONNX Runtime, recordings.

pub mod clock;
pub mod counting;
pub mod engine;
pub mod error;
pub mod policy;
pub mod realtime;
pub mod record;
pub mod shm;
pub mod watch;
pub mod wire;
pub mod worker;
