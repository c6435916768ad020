//! What the core may not touch: clocks, threads, shared memory, process handles, ONNX Runtime, recordings.

pub mod clock;
pub mod error;
pub mod shm;
