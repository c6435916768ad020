//! Recording: send first, record after.
//!
//! The control thread copies each tick into a ring of preallocated slots; a writer thread turns slots into protobuf
//! messages in one MCAP file. Nothing that the writer, the disk or a camera does can delay the control thread.

mod disk;
mod encode;
mod file;
mod image;
pub(crate) mod ring;
pub mod schema;
mod shared;
mod sink;
mod slot;
#[cfg(test)]
mod tests;
mod writer;

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::sync_channel;
use std::sync::Arc;
use std::thread::JoinHandle;

use interlock_core::code::Code;
use interlock_core::mode::Mode;
use interlock_core::plan::Plan;

use crate::clock::{self, Triple};
use crate::error::RtError;
use crate::probe::Snapshots;
use crate::shm::Ring;
use crate::status::Status;
pub use disk::Quota;
use disk::{Disk, Room};
pub use file::ImageMode;
use file::{File, Output, Topic};
use image::CameraShape;
use schema::v1;
pub use shared::RecordStatus;
use shared::Shared;
pub use sink::{RecordLog, RecordSink};
pub use slot::{ChunkSlot, Events, TickSlot};
use writer::{Camera, Writer};

/// Slots between control thread and writer: four seconds at 1 kHz.
const TICK_SLOTS: usize = 4096;
const CHUNK_SLOTS: usize = 128;
/// Notes that may wait.
const NOTES: usize = 1024;
/// Images that may wait, where they are handed over one by one.
const IMAGES: usize = 16;
/// Time between two chunks of the file, clock triples and looks at the disk: what a crash can lose.
const ROUND_NS: i64 = 1_000_000_000;
/// Bytes collected before the kernel is entered.
const BUFFER_BYTES: usize = 256 * 1024;

/// What a recording is made with.
pub struct RecordOptions<'a> {
    /// What runs.
    pub plan: &'a Plan,
    /// The plan exactly as it was given.
    pub plan_json: &'a str,
    /// Identities, versions, host and what the kernel granted, written by the caller.
    pub header_json: &'a str,
    /// What is kept of images.
    pub images: ImageMode,
    /// The cameras' rings, in the plan's order; empty where images are handed over one by one.
    pub image_rings: Vec<Ring>,
    /// Room that it may take.
    pub quota: Quota,
    /// True: times are a manual clock's, and a producer waits for room instead of dropping.
    pub manual_clock: bool,
}

/// A recording that is being written.
pub struct Recorder {
    shared: Arc<Shared>,
    sink: Option<RecordSink>,
    log: Option<RecordLog>,
    thread: Option<JoinHandle<()>>,
    offset_ns: i64,
}

/// Where a recording goes.
struct Place {
    output: Box<dyn Output>,
    disk: Disk,
    /// Called once the file is closed.
    at_end: Box<dyn FnOnce() + Send>,
    round_ns: i64,
}

impl Recorder {
    /// Begins a file that does not exist yet. Refused with `no-recording` when it cannot be written or there is no room:
    /// without a recording nothing may be armed.
    pub fn create(path: &Path, options: RecordOptions<'_>) -> Result<Self, RtError> {
        let refuse =
            |what: String| RtError::new(Code::NoRecording.word(), what, "choose another folder or free some room");
        let fail = |error: std::io::Error| refuse(format!("{}: {error}", path.display()));
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
        let disk = Disk { folder: Some(folder.clone()), quota: options.quota };
        if disk.room(0) == Room::None {
            let reserve = options.quota.reserve_bytes >> 20;
            return Err(refuse(format!("{}: less than {reserve} MiB would stay free", folder.display())));
        }
        let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(fail)?;
        let synced = file.try_clone().map_err(fail)?;
        let at_end: Box<dyn FnOnce() + Send> = Box::new(move || {
            let _ = synced.sync_all();
            let _ = sync_folder(&folder);
        });
        Self::start(Place { output: Box::new(file), disk, at_end, round_ns: ROUND_NS }, options)
    }

    /// Writes the header and starts the writer.
    fn start(place: Place, options: RecordOptions<'_>) -> Result<Self, RtError> {
        let Place { output, disk, at_end, round_ns } = place;
        let refuse = |error: mcap::McapError| RtError::new(Code::NoRecording.word(), format!("recording: {error}"), "");
        let plan = options.plan;
        let shared = Arc::new(Shared::default());
        let now = clock::triple();
        // A manual clock starts at zero, when the recording does.
        let start = if options.manual_clock { Triple { monotonic_ns: 0, ..now } } else { now };
        let cameras: Vec<String> = plan.cameras.iter().map(|camera| camera.name.clone()).collect();
        let counted = Counted { inner: output, shared: Arc::clone(&shared) };
        let buffered = std::io::BufWriter::with_capacity(BUFFER_BYTES, counted);
        let mut file = File::create(Box::new(buffered), start, &cameras, options.images).map_err(refuse)?;
        file.write(Topic::Header, start.monotonic_ns, &header(&options, start)).map_err(refuse)?;
        writer::write_clock(&mut file, start).map_err(refuse)?;
        file.flush().map_err(refuse)?;

        let n = plan.joints.names.len();
        let (tick_in, ticks) = ring::ring(TICK_SLOTS, || TickSlot::new(n));
        let (chunk_in, chunks) = ring::ring(CHUNK_SLOTS, || ChunkSlot::new(plan.timing.chunk as usize, n));
        let (notes_in, notes) = sync_channel(NOTES);
        let (images_in, images) = sync_channel(IMAGES);
        let waits = options.manual_clock;
        let sink = RecordSink { ticks: tick_in, chunks: chunk_in, shared: Arc::clone(&shared), waits, record_ns: 0 };
        let log = RecordLog { notes: notes_in, images: images_in, shared: Arc::clone(&shared), waits };
        let mut writer = Writer {
            file: Some(file),
            shared: Arc::clone(&shared),
            ticks,
            chunks,
            notes,
            images,
            cameras: self::cameras(plan, options.image_rings),
            mode: options.images,
            disk,
            n,
            manual: options.manual_clock,
            encoder: encode::Encoder::default(),
            chunk_count: 0,
            last_ns: start.monotonic_ns,
            round_ns,
            round_bytes: 0,
            probes: None,
        };
        let thread = std::thread::Builder::new().name("record".to_owned());
        let thread = thread.spawn(move || {
            set_ordinary_priority();
            if catch_unwind(AssertUnwindSafe(|| writer.run())).is_err() {
                writer.shared.fail("the writer panicked".to_owned());
            }
            let shared = Arc::clone(&writer.shared);
            // Closes the file before it is forced to the disk.
            drop(writer);
            at_end();
            shared.gone.store(true, Relaxed);
        });
        let thread =
            thread.map_err(|error| RtError::new(Code::NoRecording.word(), format!("writer thread: {error}"), ""))?;
        let offset_ns = start.realtime_ns.saturating_sub(start.monotonic_ns);
        Ok(Recorder { shared, sink: Some(sink), log: Some(log), thread: Some(thread), offset_ns })
    }

    /// The control thread's end; there is one.
    pub fn sink(&mut self) -> Option<RecordSink> {
        self.sink.take()
    }

    /// The end for everybody else; None after closing.
    pub fn log(&self) -> Option<RecordLog> {
        self.log.clone()
    }

    /// How it is doing.
    pub fn status(&self) -> RecordStatus {
        self.shared.status()
    }

    /// Nanoseconds since the epoch minus monotonic ones, the same for the whole file.
    pub fn offset_ns(&self) -> i64 {
        self.offset_ns
    }

    /// Writes snapshots of probes from now on. Once.
    pub fn record_probes(&self, snapshots: Snapshots) {
        self.shared.record_probes(snapshots);
    }

    /// Shows from now on how it is doing. Once.
    pub fn show_on(&self, status: Status) {
        self.shared.show_on(status);
    }

    /// Ends the file and forces it to the disk. Everything pushed before is in it.
    pub fn close(&mut self) -> RecordStatus {
        self.log = None;
        self.shared.closing.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.shared.status()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close();
    }
}

fn header(options: &RecordOptions<'_>, start: Triple) -> v1::Header {
    v1::Header {
        schema: schema::SCHEMA.to_owned(),
        plan_json: options.plan_json.to_owned(),
        header_json: options.header_json.to_owned(),
        clock: Some(v1::Clock {
            monotonic_ns: start.monotonic_ns,
            realtime_ns: start.realtime_ns,
            tai_ns: start.tai_ns,
        }),
        manual_clock: options.manual_clock,
        images: options.images.word().to_owned(),
        joints: options.plan.joints.names.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        codes: Code::ALL.iter().map(|code| (u32::from(*code as u16), code.word().to_owned())).collect(),
        // The names of the design, capitalised.
        modes: Mode::ALL.iter().map(|mode| (u32::from(*mode as u8), format!("{mode:?}"))).collect(),
    }
}

fn cameras(plan: &Plan, rings: Vec<Ring>) -> Vec<Camera> {
    let mut rings = rings.into_iter();
    let camera = |camera: &interlock_core::plan::Camera| {
        let (name, width, height, bgr) = (camera.name.clone(), camera.width, camera.height, camera.bgr);
        let shape = CameraShape { name, width, height, bgr };
        let ring = rings.next();
        let pixels = if ring.is_some() { vec![0; shape.bytes()] } else { vec![] };
        Camera { shape, ring, seen: 0, pixels }
    };
    plan.cameras.iter().map(camera).collect()
}

/// Counts bytes on their way out.
struct Counted {
    inner: Box<dyn Output>,
    shared: Arc<Shared>,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.shared.bytes.fetch_add(count as u64, Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// A thread inherits its maker's scheduler; this one must never run before the control thread.
fn set_ordinary_priority() {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: a valid struct; 0 is the calling thread. Lowering one's own priority needs no right.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const parameters) };
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}
