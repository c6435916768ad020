//! One MCAP file: channels, times, chunks that are closed often enough to lose little in a crash.

use std::collections::BTreeMap;
use std::io::Write;

use mcap::records::MessageHeader;
use mcap::write::NoSeek;
use mcap::{Compression, McapError, WriteOptions};
use prost::Message;

use super::schema;
use crate::clock::Triple;

/// Where the bytes go. A file, or a stand-in that fails or stalls in tests.
pub(super) trait Output: Write + Send {}
impl<T: Write + Send> Output for T {}

/// Chunks end at this size even before their second is over, so that writing one never takes long.
const CHUNK_BYTES: u64 = 4 * 1024 * 1024;
/// Against level 3 (measured 2026-11, 29 joints at 1 kHz): 736 for 734 bytes a tick at half the time.
const ZSTD_LEVEL: u32 = 1;

/// Channels of everything but images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    Header,
    Clock,
    Tick,
    Chunk,
    Goal,
    Mode,
    Reward,
    Log,
    Summary,
    Probe,
}

impl Topic {
    /// With name of the channel and of the message.
    const ALL: [(Topic, &'static str, &'static str); 10] = [
        (Topic::Header, "/interlock/header", "Header"),
        (Topic::Clock, "/interlock/clock", "Clock"),
        (Topic::Tick, "/interlock/tick", "Tick"),
        (Topic::Chunk, "/interlock/chunk", "Chunk"),
        (Topic::Goal, "/interlock/goal", "Goal"),
        (Topic::Mode, "/interlock/mode", "ModeChange"),
        (Topic::Reward, "/interlock/reward", "Reward"),
        (Topic::Log, "/interlock/log", "Log"),
        (Topic::Summary, "/interlock/summary", "Summary"),
        (Topic::Probe, "/interlock/probe", "Probe"),
    ];
}

/// What cameras leave behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageMode {
    /// Compressed without loss.
    Png,
    /// As the camera gave them.
    Raw,
    /// Nothing.
    None,
}

impl ImageMode {
    /// The word used in headers and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            ImageMode::Png => "png",
            ImageMode::Raw => "raw",
            ImageMode::None => "none",
        }
    }
}

/// An open recording.
pub(super) struct File {
    writer: mcap::Writer<NoSeek<Box<dyn Output>>>,
    topics: BTreeMap<Topic, u16>,
    cameras: Vec<u16>,
    /// Epoch minus monotonic.
    offset_ns: i64,
    buffer: Vec<u8>,
    sequence: u32,
}

impl File {
    /// Writes the beginning of a file.
    pub(super) fn create(
        output: Box<dyn Output>,
        start: Triple,
        cameras: &[String],
        images: ImageMode,
    ) -> Result<Self, McapError> {
        let mut writer = WriteOptions::new()
            .compression(Some(Compression::Zstd))
            .compression_level(ZSTD_LEVEL)
            .compression_threads(0)
            .chunk_size(Some(CHUNK_BYTES))
            // A chunk is written in one piece or not at all.
            .disable_seeking(true)
            .library(concat!("interlock ", env!("CARGO_PKG_VERSION")))
            .create(NoSeek::new(output))?;
        let none = BTreeMap::new();
        let mut topics = BTreeMap::new();
        for (topic, name, message) in Topic::ALL {
            let schema = format!("interlock.v1.{message}");
            let schema = writer.add_schema(&schema, "protobuf", schema::descriptors(message))?;
            topics.insert(topic, writer.add_channel(schema, name, "protobuf", &none)?);
        }
        let mut channels = vec![];
        let message = match images {
            ImageMode::Png => Some("CompressedImage"),
            ImageMode::Raw => Some("RawImage"),
            ImageMode::None => None,
        };
        if let Some(message) = message {
            let schema = format!("foxglove.{message}");
            let schema = writer.add_schema(&schema, "protobuf", schema::descriptors(message))?;
            for camera in cameras {
                channels.push(writer.add_channel(schema, &format!("/camera/{camera}"), "protobuf", &none)?);
            }
        }
        let offset_ns = start.realtime_ns.saturating_sub(start.monotonic_ns);
        Ok(File { writer, topics, cameras: channels, offset_ns, buffer: vec![], sequence: 0 })
    }

    /// Nanoseconds since the epoch of a monotonic time.
    pub(super) fn epoch_ns(&self, monotonic_ns: i64) -> u64 {
        monotonic_ns.saturating_add(self.offset_ns).max(0).cast_unsigned()
    }

    /// Appends one message that happened at `at_ns`.
    pub(super) fn write(&mut self, topic: Topic, at_ns: i64, message: &impl Message) -> Result<(), McapError> {
        let channel = self.topics.get(&topic).copied().unwrap_or_default();
        self.append(channel, at_ns, message)
    }

    /// Appends one image message.
    pub(super) fn write_image(&mut self, camera: usize, at_ns: i64, message: &impl Message) -> Result<(), McapError> {
        match self.cameras.get(camera).copied() {
            Some(channel) => self.append(channel, at_ns, message),
            None => Ok(()),
        }
    }

    fn append(&mut self, channel_id: u16, at_ns: i64, message: &impl Message) -> Result<(), McapError> {
        self.buffer.clear();
        // A vector grows as needed, so encoding into it cannot fail.
        let _ = message.encode(&mut self.buffer);
        let time = self.epoch_ns(at_ns);
        let header = MessageHeader { channel_id, sequence: self.sequence, log_time: time, publish_time: time };
        self.sequence = self.sequence.wrapping_add(1);
        self.writer.write_to_known_channel(&header, &self.buffer)
    }

    /// Ends the chunk: what was written so far survives the end of this process.
    pub(super) fn flush(&mut self) -> Result<(), McapError> {
        self.writer.flush()
    }

    /// Writes the end of the file.
    pub(super) fn finish(&mut self) -> Result<(), McapError> {
        self.writer.finish().map(|_| ())
    }
}
