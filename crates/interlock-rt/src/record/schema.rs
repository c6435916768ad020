//! Messages of a recording and the schemas that go into the file with them.

#[allow(missing_docs, clippy::pedantic)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/interlock.v1.rs"));
}

#[allow(missing_docs, clippy::pedantic)]
pub mod foxglove {
    include!(concat!(env!("OUT_DIR"), "/foxglove.rs"));
}

/// Tag that a reader checks.
pub const SCHEMA: &str = "interlock.recording/1";

macro_rules! descriptors {
    ($($message:literal),*) => {
        /// The descriptor set of a message of this name, with nothing in it but what the message needs.
        pub(crate) fn descriptors(message: &str) -> &'static [u8] {
            match message {
                $($message => include_bytes!(concat!(env!("OUT_DIR"), "/", $message, ".fds")),)*
                _ => &[],
            }
        }
    };
}

descriptors!(
    "Header",
    "Clock",
    "Tick",
    "Chunk",
    "Goal",
    "ModeChange",
    "Reward",
    "Log",
    "Summary",
    "Probe",
    "CompressedImage",
    "RawImage"
);
