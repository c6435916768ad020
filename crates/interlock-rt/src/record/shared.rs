//! What the threads of one recording tell each other, without locks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

use crate::clock;
use crate::probe::Snapshots;
use crate::status::{Recorded, Status};

/// How a recording is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // independent facts, read by name
pub struct RecordStatus {
    /// Bytes in the file.
    pub bytes: u64,
    /// Bytes per second over the last second.
    pub rate: u64,
    /// Ticks written.
    pub ticks: u64,
    /// Ticks lost between control thread and writer.
    pub ticks_dropped: u64,
    /// Chunks lost likewise.
    pub chunks_dropped: u64,
    /// Images written.
    pub images: u64,
    /// Images overtaken or not taken.
    pub images_dropped: u64,
    /// Goals, requests and log lines lost.
    pub logs_dropped: u64,
    /// Room ran low: no more images.
    pub images_ended: bool,
    /// Room ran out or writing failed: nothing is written any more.
    pub ended: bool,
    /// Nothing that a replay needs is missing so far.
    pub replayable: bool,
    /// Longest single round of the writer.
    pub writer_longest_ns: u64,
    /// All rounds together.
    pub writer_busy_ns: u64,
    /// Why it ended early.
    pub error: String,
}

#[derive(Default)]
pub(super) struct Shared {
    pub(super) closing: AtomicBool,
    pub(super) ended: AtomicBool,
    pub(super) images_ended: AtomicBool,
    /// The writer thread has returned.
    pub(super) gone: AtomicBool,
    pub(super) bytes: AtomicU64,
    pub(super) rate: AtomicU64,
    pub(super) ticks: AtomicU64,
    pub(super) ticks_dropped: AtomicU64,
    pub(super) chunks_dropped: AtomicU64,
    pub(super) images: AtomicU64,
    pub(super) images_dropped: AtomicU64,
    pub(super) logs_dropped: AtomicU64,
    pub(super) busy_ns: AtomicU64,
    pub(super) longest_ns: AtomicU64,
    error: Mutex<String>,
    board: OnceLock<Status>,
    probes: Mutex<Option<Snapshots>>,
}

impl Shared {
    /// Keeps the first reason.
    pub(super) fn fail(&self, reason: String) {
        let mut error = self.error.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if error.is_empty() {
            *error = reason;
        }
        self.ended.store(true, Relaxed);
    }

    /// Where watchers see it.
    pub(super) fn show_on(&self, status: Status) {
        // The first stays.
        let _ = self.board.set(status);
    }

    /// Snapshots to be written from now on.
    pub(super) fn record_probes(&self, snapshots: Snapshots) {
        *self.probes.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(snapshots);
    }

    /// What [`Shared::record_probes`] was given, once.
    pub(super) fn take_probes(&self) -> Option<Snapshots> {
        self.probes.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
    }

    /// Shows how things stand. The writer thread only.
    pub(super) fn show(&self) {
        let Some(board) = self.board.get() else { return };
        board.show_recorded(&Recorded {
            at_ns: clock::monotonic_ns().max(0).cast_unsigned(),
            bytes: self.bytes.load(Relaxed),
            bytes_per_s: self.rate.load(Relaxed),
            ticks: self.ticks.load(Relaxed),
            ticks_dropped: self.ticks_dropped.load(Relaxed),
            chunks_dropped: self.chunks_dropped.load(Relaxed),
            images: self.images.load(Relaxed),
            images_dropped: self.images_dropped.load(Relaxed),
            logs_dropped: self.logs_dropped.load(Relaxed),
            images_ended: self.images_ended.load(Relaxed).into(),
            ended: self.ended.load(Relaxed).into(),
            writer_longest_ns: self.longest_ns.load(Relaxed),
            writer_busy_ns: self.busy_ns.load(Relaxed),
        });
    }

    pub(super) fn status(&self) -> RecordStatus {
        let lost = self.ticks_dropped.load(Relaxed) + self.chunks_dropped.load(Relaxed);
        RecordStatus {
            bytes: self.bytes.load(Relaxed),
            rate: self.rate.load(Relaxed),
            ticks: self.ticks.load(Relaxed),
            ticks_dropped: self.ticks_dropped.load(Relaxed),
            chunks_dropped: self.chunks_dropped.load(Relaxed),
            images: self.images.load(Relaxed),
            images_dropped: self.images_dropped.load(Relaxed),
            logs_dropped: self.logs_dropped.load(Relaxed),
            images_ended: self.images_ended.load(Relaxed),
            ended: self.ended.load(Relaxed),
            replayable: lost == 0 && self.logs_dropped.load(Relaxed) == 0 && !self.ended.load(Relaxed),
            writer_longest_ns: self.longest_ns.load(Relaxed),
            writer_busy_ns: self.busy_ns.load(Relaxed),
            error: self.error.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone(),
        }
    }
}
