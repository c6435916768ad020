//! The two ends that others hold: the control thread's and everybody else's.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::SyncSender;
use std::sync::Arc;

use super::ring::Producer;
use super::schema::v1;
use super::shared::{RecordStatus, Shared};
use super::slot::{ChunkSlot, TickSlot};
use crate::clock;

/// How long a producer on a manual clock sleeps before it looks again for room.
const ROOM_POLL_NS: i64 = 200_000;

/// The control thread's end. Nothing here waits, allocates or enters the kernel, except on a manual clock.
pub struct RecordSink {
    pub(super) ticks: Producer<TickSlot>,
    pub(super) chunks: Producer<ChunkSlot>,
    pub(super) shared: Arc<Shared>,
    /// On a manual clock the producer waits for room instead of dropping.
    pub(super) waits: bool,
    pub(super) record_ns: i64,
}

impl RecordSink {
    /// Records one tick; `fill` writes every field, for the slot still holds an old tick. False: dropped and counted.
    pub fn tick(&mut self, fill: impl FnOnce(&mut TickSlot)) -> bool {
        let began = clock::monotonic_ns();
        wait_for_room(self.waits, &self.ticks, &self.shared);
        let before = self.record_ns;
        let kept = self.ticks.push(|slot| {
            slot.record_ns = before;
            fill(slot);
        });
        self.record_ns = clock::monotonic_ns().saturating_sub(began);
        kept
    }

    /// Records one chunk that arrived. False: dropped and counted.
    pub fn chunk(&mut self, fill: impl FnOnce(&mut ChunkSlot)) -> bool {
        wait_for_room(self.waits, &self.chunks, &self.shared);
        self.chunks.push(fill)
    }

    /// Whether what is pushed still reaches the file.
    pub fn is_writing(&self) -> bool {
        !self.shared.ended.load(Relaxed)
    }

    /// Ticks and chunks that wait to be written.
    pub fn waiting(&self) -> (u64, u64) {
        (self.ticks.waiting(), self.chunks.waiting())
    }

    /// How long the last call of [`RecordSink::tick`] took.
    pub fn last_ns(&self) -> i64 {
        self.record_ns
    }
}

fn wait_for_room<T>(waits: bool, ring: &Producer<T>, shared: &Shared) {
    while waits && ring.is_full() && !shared.gone.load(Relaxed) {
        clock::sleep_until(clock::monotonic_ns().saturating_add(ROOM_POLL_NS));
    }
}

/// What threads without deadlines send.
pub(super) enum Note {
    Goal(v1::Goal),
    Log(v1::Log),
}

/// An image handed over.
pub(super) struct Image {
    pub(super) camera: usize,
    pub(super) capture_ns: i64,
    pub(super) pixels: Vec<u8>,
}

/// The end for goals, requests, log lines and, on a manual clock, images. Cloned freely; never used by the control thread.
#[derive(Clone)]
pub struct RecordLog {
    pub(super) notes: SyncSender<Note>,
    pub(super) images: SyncSender<Image>,
    pub(super) shared: Arc<Shared>,
    pub(super) waits: bool,
}

impl RecordLog {
    /// What the operator asked, as it is handed to the control thread.
    pub fn goal(&self, seq: u64, stamp_ns: i64, velocity: Option<&[f64]>, text: &str, tokens: &[i64]) {
        let velocity = velocity.map(<[f64]>::to_vec).unwrap_or_default();
        let (text, tokens) = (text.to_owned(), tokens.to_vec());
        self.send(Note::Goal(v1::Goal { seq, stamp_ns, velocity, text, tokens, request: String::new() }));
    }

    /// A request of the operator or of a watcher.
    pub fn request(&self, stamp_ns: i64, request: &str) {
        self.send(Note::Goal(v1::Goal { stamp_ns, request: request.to_owned(), ..v1::Goal::default() }));
    }

    /// A line for people.
    pub fn log(&self, at_ns: i64, module: &str, level: &str, text: &str) {
        let (module, level, text) = (module.to_owned(), level.to_owned(), text.to_owned());
        self.send(Note::Log(v1::Log { at_ns, module, level, text }));
    }

    /// An image that does not come through a ring.
    pub fn image(&self, camera: usize, capture_ns: i64, pixels: &[u8]) {
        let ended = self.shared.images_ended.load(Relaxed);
        let image = Image { camera, capture_ns, pixels: pixels.to_vec() };
        if ended || !hand_over(&self.images, image, self.waits) {
            self.shared.images_dropped.fetch_add(1, Relaxed);
        }
    }

    /// How the recording is doing.
    pub fn status(&self) -> RecordStatus {
        self.shared.status()
    }

    fn send(&self, note: Note) {
        if !hand_over(&self.notes, note, self.waits) {
            self.shared.logs_dropped.fetch_add(1, Relaxed);
        }
    }
}

fn hand_over<T>(to: &SyncSender<T>, item: T, waits: bool) -> bool {
    if waits {
        to.send(item).is_ok()
    } else {
        to.try_send(item).is_ok()
    }
}
