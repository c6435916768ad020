//! What the core may not touch: clocks, threads, shared memory, process handles, ONNX Runtime, recordings.

pub mod board;
pub mod cgroup;
pub mod clock;
mod control;
pub mod counting;
pub mod engine;
pub mod error;
pub mod last_resort;
pub mod lockstep;
pub mod paced;
pub mod policy;
pub mod probe;
pub mod realtime;
pub mod record;
pub mod request;
pub mod shm;
pub mod status;
pub mod ticker;
pub mod timings;
pub mod watch;
pub mod wire;
pub mod worker;
