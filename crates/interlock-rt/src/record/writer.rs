//! The writer thread: ordinary priority, polls, times itself, survives a full disk by counting what it loses.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;
use std::sync::Arc;

use mcap::McapError;

use super::disk::{Disk, Room};
use super::encode::{self, Encoder};
use super::file::{File, ImageMode, Topic};
use super::image::{pack, CameraShape, Picture};
use super::ring::Consumer;
use super::schema::v1;
use super::shared::Shared;
use super::sink::{Image, Note};
use super::slot::{ChunkSlot, TickSlot};
use crate::clock::{self, Triple};
use crate::probe::Snapshots;
use crate::shm::Ring;

/// Time between two looks at the rings. At 1 kHz that is five ticks of the thousands that fit.
const POLL_NS: i64 = 5_000_000;

/// A camera's ring and how far it has been read.
pub(super) struct Camera {
    pub(super) shape: CameraShape,
    pub(super) ring: Option<Ring>,
    pub(super) seen: u64,
    pub(super) pixels: Vec<u8>,
}

/// Everything the thread owns.
pub(super) struct Writer {
    pub(super) file: Option<File>,
    pub(super) shared: Arc<Shared>,
    pub(super) ticks: Consumer<TickSlot>,
    pub(super) chunks: Consumer<ChunkSlot>,
    pub(super) notes: Receiver<Note>,
    pub(super) images: Receiver<Image>,
    pub(super) cameras: Vec<Camera>,
    pub(super) mode: ImageMode,
    pub(super) disk: Disk,
    pub(super) n: usize,
    /// Triples of a manual clock would not belong to its times.
    pub(super) manual: bool,
    pub(super) encoder: Encoder,
    pub(super) chunk_count: u64,
    pub(super) last_ns: i64,
    pub(super) round_ns: i64,
    pub(super) round_bytes: u64,
    pub(super) probes: Option<Snapshots>,
}

impl Writer {
    /// Runs until the recording is closed and everything is written.
    pub(super) fn run(&mut self) {
        let mut round = clock::monotonic_ns();
        loop {
            let closing = self.shared.closing.load(Relaxed);
            let began = clock::monotonic_ns();
            self.drain();
            self.poll_images();
            self.poll_probes();
            let since = began.saturating_sub(round);
            if since >= self.round_ns {
                round = began;
                self.end_round(closing, since);
            }
            let spent = clock::monotonic_ns().saturating_sub(began).max(0).cast_unsigned();
            self.shared.busy_ns.fetch_add(spent, Relaxed);
            self.shared.longest_ns.fetch_max(spent, Relaxed);
            self.shared.show();
            // What was pushed before closing was seen in the rounds above.
            if closing {
                return self.close();
            }
            clock::sleep_until(began.saturating_add(POLL_NS));
        }
    }

    /// Takes everything that waits.
    fn drain(&mut self) {
        while self.take_chunk() {}
        while self.take_tick() {}
        while let Ok(note) = self.notes.try_recv() {
            self.take_note(&note);
        }
        while let Ok(image) = self.images.try_recv() {
            self.take_image(image.camera, image.capture_ns, &image.pixels);
        }
        self.shared.ticks_dropped.store(self.ticks.dropped() + self.lost_ticks(), Relaxed);
        self.shared.chunks_dropped.store(self.chunks.dropped(), Relaxed);
    }

    /// Ticks that arrived after writing had ended.
    fn lost_ticks(&self) -> u64 {
        self.encoder.ticks.saturating_sub(self.shared.ticks.load(Relaxed))
    }

    fn take_tick(&mut self) -> bool {
        let Writer { ticks, encoder, file, shared, last_ns, .. } = self;
        ticks.pop(|slot| {
            *last_ns = slot.due_ns;
            let messages = encoder.tick(slot);
            if let Some(open) = file {
                let wrote = write_tick(open, slot.due_ns, &messages);
                shared.ticks.fetch_add(u64::from(wrote.is_ok()), Relaxed);
                end_on_error(file, shared, wrote);
            }
        })
    }

    fn take_chunk(&mut self) -> bool {
        let Writer { chunks, file, shared, n, chunk_count, .. } = self;
        chunks.pop(|slot| {
            if let Some(open) = file {
                let wrote = open.write(Topic::Chunk, slot.arrived_ns, &encode::chunk(slot, *n));
                *chunk_count += u64::from(wrote.is_ok());
                end_on_error(file, shared, wrote);
            }
        })
    }

    fn take_note(&mut self, note: &Note) {
        if let Some(open) = &mut self.file {
            let wrote = match note {
                Note::Goal(goal) => open.write(Topic::Goal, goal.stamp_ns, goal),
                Note::Log(log) => open.write(Topic::Log, log.at_ns, log),
            };
            end_on_error(&mut self.file, &self.shared, wrote);
        }
    }

    /// Writes the newest image of every ring; what was overtaken meanwhile is counted.
    fn poll_images(&mut self) {
        for index in 0..self.cameras.len() {
            let camera = &mut self.cameras[index];
            let Some(ring) = camera.ring.as_ref().filter(|ring| ring.newest() > camera.seen) else {
                continue;
            };
            let mut pixels = std::mem::take(&mut camera.pixels);
            if let Some(slot) = ring.latest(&mut pixels) {
                let overtaken = slot.seq.saturating_sub(camera.seen).saturating_sub(1);
                camera.seen = slot.seq;
                self.shared.images_dropped.fetch_add(overtaken, Relaxed);
                self.take_image(index, slot.stamp_ns, pixels.get(..slot.len).unwrap_or(&[]));
            }
            self.cameras[index].pixels = pixels;
        }
    }

    /// Writes every snapshot of a probe that came since.
    fn poll_probes(&mut self) {
        if self.probes.is_none() {
            self.probes = self.shared.take_probes();
        }
        let Writer { probes: Some(probes), file, shared, .. } = self else { return };
        while let Some(probe) = probes.take() {
            let Some(open) = file else { continue };
            let wrote = open.write(Topic::Probe, probe.inferred_ns, &probe);
            end_on_error(file, shared, wrote);
        }
    }

    /// Writes one image, then takes the ticks that came meanwhile.
    fn take_image(&mut self, camera: usize, capture_ns: i64, pixels: &[u8]) {
        let ended = self.shared.images_ended.load(Relaxed);
        let open = self.file.as_mut().filter(|_| !ended && self.mode != ImageMode::None);
        let wrote = match (open, self.cameras.get(camera)) {
            (Some(open), Some(at)) => write_image(open, camera, (&at.shape, self.mode), pixels, capture_ns),
            _ => Ok(false),
        };
        let kept = matches!(wrote, Ok(true));
        let counter = if kept { &self.shared.images } else { &self.shared.images_dropped };
        counter.fetch_add(1, Relaxed);
        end_on_error(&mut self.file, &self.shared, wrote.map(|_| ()));
        while self.take_tick() {}
    }

    /// Once a second: clocks, end of the file's chunk, room on the disk.
    fn end_round(&mut self, closing: bool, since_ns: i64) {
        self.encoder.repeat_gains();
        if let Some(open) = &mut self.file {
            let clock = if self.manual { Ok(()) } else { write_clock(open, clock::triple()) };
            let wrote = clock.and_then(|()| open.flush());
            end_on_error(&mut self.file, &self.shared, wrote);
        }
        let bytes = self.shared.bytes.load(Relaxed);
        let rate = u128::from(bytes.saturating_sub(self.round_bytes)) * 1_000_000_000
            / u128::from(since_ns.max(1).cast_unsigned());
        self.round_bytes = bytes;
        self.shared.rate.store(u64::try_from(rate).unwrap_or(u64::MAX), Relaxed);
        let room = self.disk.room(bytes);
        if room >= Room::Low {
            self.shared.images_ended.store(true, Relaxed);
        }
        if room == Room::None && !closing {
            if let Some(mut file) = self.file.take() {
                self.shared.fail("no room left: recording ended".to_owned());
                let _ = self.write_summary(&mut file);
            }
        }
    }

    fn close(&mut self) {
        if let Some(mut file) = self.file.take() {
            let wrote = self.write_summary(&mut file);
            end_on_error(&mut Some(file), &self.shared, wrote);
        }
    }

    /// The last message and the end of the file.
    fn write_summary(&self, file: &mut File) -> Result<(), McapError> {
        let status = self.shared.status();
        let summary = v1::Summary {
            ticks: status.ticks,
            ticks_missed: self.encoder.missed,
            ticks_limited: self.encoder.limited,
            ticks_refused: self.encoder.refused,
            chunks: self.chunk_count,
            images: status.images,
            ticks_dropped: status.ticks_dropped,
            chunks_dropped: status.chunks_dropped,
            images_dropped: status.images_dropped,
            logs_dropped: status.logs_dropped,
            replayable: status.replayable,
            images_ended: status.images_ended,
            writer_busy_ns: status.writer_busy_ns,
            writer_longest_ns: status.writer_longest_ns,
            bytes: status.bytes,
        };
        file.write(Topic::Summary, self.last_ns, &summary)?;
        file.finish()
    }
}

pub(super) fn write_clock(file: &mut File, now: Triple) -> Result<(), McapError> {
    let clock = v1::Clock { monotonic_ns: now.monotonic_ns, realtime_ns: now.realtime_ns, tai_ns: now.tai_ns };
    file.write(Topic::Clock, now.monotonic_ns, &clock)
}

fn write_tick(file: &mut File, at_ns: i64, messages: &encode::Messages<'_>) -> Result<(), McapError> {
    file.write(Topic::Tick, at_ns, messages.tick)?;
    if let Some(mode) = &messages.mode {
        file.write(Topic::Mode, at_ns, mode)?;
    }
    messages.reward.iter().try_for_each(|reward| file.write(Topic::Reward, at_ns, reward))
}

fn write_image(
    file: &mut File,
    index: usize,
    (camera, mode): (&CameraShape, ImageMode),
    pixels: &[u8],
    capture_ns: i64,
) -> Result<bool, McapError> {
    match pack(camera, pixels, file.epoch_ns(capture_ns), mode) {
        Some(Picture::Png(message)) => file.write_image(index, capture_ns, &message)?,
        Some(Picture::Raw(message)) => file.write_image(index, capture_ns, &message)?,
        None => return Ok(false),
    }
    Ok(true)
}

/// After an error nothing more is written, but everything is still taken, so that nobody waits for room.
fn end_on_error(file: &mut Option<File>, shared: &Shared, result: Result<(), McapError>) {
    if let Err(error) = result {
        *file = None;
        shared.fail(format!("writing failed: {error}"));
    }
}
