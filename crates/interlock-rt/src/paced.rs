//! The running supervisor as everybody else sees it: starts the control thread, leaves it messages, reads its boards.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use interlock_core::plan::Plan;

use crate::clock;
use crate::control::{Control, DriverEnd, WorkerEnd};
use crate::error::RtError;
use crate::probe::{self, Snapshots};
use crate::realtime::{self, Granted, Wanted};
use crate::record::{ImageMode, Quota, RecordLog, RecordOptions, RecordStatus, Recorder};
use crate::request::{mailbox, GoalRequest, Inbox, Mailbox, Message, Request, WorkerLink};
use crate::shm::Ring;
use crate::status::Status;
use crate::ticker::{GuardMode, Ticker};
use crate::timings::Timings;
use crate::watch::Watch;
use crate::wire;

/// One worker's rings and process.
pub struct WorkerParts {
    /// Observations out.
    pub observation: Ring,
    /// Chunks in.
    pub chunk: Ring,
    /// Its process.
    pub pidfd: i32,
    /// Which worker it is.
    pub generation: u32,
}

/// What a paced run is made of.
pub struct PacedParts {
    /// The plan.
    pub plan: Plan,
    /// The plan exactly as it was given.
    pub plan_json: String,
    /// Samples in.
    pub state: Ring,
    /// Commands out.
    pub command: Ring,
    /// Cameras, in the plan's order.
    pub images: Vec<Ring>,
    /// Snapshots of probes, where the policy has any.
    pub probes: Option<Ring>,
    /// The first worker.
    pub worker: WorkerParts,
    /// The driver's process.
    pub driver_pidfd: i32,
    /// File to record into.
    pub recording: Option<PathBuf>,
    /// Facts for its header; what the kernel granted is added under `granted`.
    pub header_json: String,
    /// What is kept of images.
    pub record_images: ImageMode,
    /// What to ask of the kernel.
    pub realtime: Wanted,
    /// Send nothing.
    pub dry: bool,
}

/// What is handed to the thread when it starts.
struct Prepared {
    driver: DriverEnd,
    worker: WorkerEnd,
    inbox: Inbox,
}

#[derive(Default)]
struct Ending {
    has_ended: Mutex<bool>,
    changed: Condvar,
}

/// A supervisor that is paced by the clock.
pub struct Paced {
    plan: Plan,
    plan_json: String,
    header_json: String,
    recording: Option<PathBuf>,
    record_images: ImageMode,
    image_rings: Vec<Ring>,
    probes: Option<Ring>,
    offset_ns: AtomicI64,
    realtime: Wanted,
    mailbox: Mailbox,
    status: Status,
    timings: Arc<Timings>,
    quit: Arc<AtomicBool>,
    ending: Arc<Ending>,
    goals: AtomicU64,
    prepared: Mutex<Option<Prepared>>,
    running: Mutex<Running>,
    /// Held by whoever stops; nobody else waits for it.
    stopping: Mutex<()>,
}

#[derive(Default)]
struct Running {
    thread: Option<JoinHandle<()>>,
    recorder: Option<Recorder>,
    log: Option<RecordLog>,
    /// Kept after the recorder is closed.
    last: Option<RecordStatus>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn link(plan: &Plan, parts: &WorkerParts) -> Result<WorkerLink, RtError> {
    let rows = usize::try_from(plan.timing.chunk).unwrap_or(0);
    parts.observation.expect_bytes("observation", wire::observation_bytes(plan.n()))?;
    parts.chunk.expect_bytes("chunk", wire::chunk_bytes(rows, plan.n()))?;
    Ok(WorkerLink {
        observation: parts.observation.producer()?,
        chunk: parts.chunk.clone(),
        watch: Watch::new("worker", parts.pidfd)?,
        generation: parts.generation,
    })
}

impl Paced {
    /// Checks that everything fits together. Nothing runs yet.
    pub fn new(parts: PacedParts) -> Result<Self, RtError> {
        let PacedParts { plan, plan_json, state, command, images, worker, driver_pidfd, .. } = parts;
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&parts.header_json)
            .map_err(|error| RtError::new("header", format!("header_json: expected an object: {error}"), ""))?;
        let watch = Watch::new("driver", driver_pidfd)?;
        let driver = DriverEnd::new(&plan, state, &command, images.clone(), watch, parts.dry)?;
        let worker = WorkerEnd::new(&plan, link(&plan, &worker)?);
        let (mailbox, inbox) = mailbox();
        let status = Status::new()?;
        Ok(Paced {
            plan,
            plan_json,
            header_json: parts.header_json,
            recording: parts.recording,
            record_images: parts.record_images,
            image_rings: images,
            probes: parts.probes,
            offset_ns: AtomicI64::new(0),
            realtime: parts.realtime,
            mailbox,
            timings: Arc::new(Timings::shown(&status)),
            status,
            quit: Arc::default(),
            ending: Arc::default(),
            goals: AtomicU64::new(0),
            prepared: Mutex::new(Some(Prepared { driver, worker, inbox })),
            running: Mutex::default(),
            stopping: Mutex::default(),
        })
    }

    /// Starts the threads and says what the kernel granted. Once.
    pub fn start(&self) -> Result<Granted, RtError> {
        let refuse = |what: &str| RtError::new("started", what, "make a new supervisor for another run");
        let prepared = locked(&self.prepared).take().ok_or_else(|| refuse("this supervisor was started before"))?;
        let (granted_in, granted) = sync_channel(1);
        let (ticker_in, ticker) = sync_channel::<Ticker>(1);
        let (ending, quit, timings) = (Arc::clone(&self.ending), Arc::clone(&self.quit), Arc::clone(&self.timings));
        let (tick_ns, deadline_ns) = (self.plan.timing.tick_ns, self.plan.timing.inference_deadline_ns);
        let wait_ns = self.plan.timing.synchronous.then_some(deadline_ns);
        let wanted = self.realtime;
        let body = move || {
            // What was granted goes into the recording's header, so the recording begins after this.
            let given = realtime::apply(wanted);
            let _ = granted_in.send(given.clone());
            if let Ok(ticker) = ticker.recv() {
                let Prepared { driver, worker, inbox } = prepared;
                let mut control =
                    Control { ticker, inbox, timings, driver, worker, quit, has_quit: false, tick_ns, wait_ns };
                // A panic ends the commands, and with them what the drives' own timeout does begins.
                if catch_unwind(AssertUnwindSafe(|| control.run())).is_err() {
                    control.ticker.end(0, true);
                }
            }
            realtime::release(&given);
            *locked(&ending.has_ended) = true;
            ending.changed.notify_all();
        };
        let thread = std::thread::Builder::new().name("control".into()).spawn(body);
        let thread = thread.map_err(|error| RtError::new("thread", error.to_string(), ""))?;
        let granted = granted.recv().map_err(|_| refuse("the control thread ended while starting"))?;

        let mut running = locked(&self.running);
        running.recorder = self.recorder(&granted)?;
        running.log = running.recorder.as_ref().and_then(Recorder::log);
        if let Some(recorder) = &running.recorder {
            recorder.show_on(self.status.clone());
        }
        let now = clock::triple();
        let offset_ns = now.realtime_ns.saturating_sub(now.monotonic_ns);
        let offset_ns = running.recorder.as_ref().map_or(offset_ns, Recorder::offset_ns);
        self.offset_ns.store(offset_ns, Relaxed);
        if let (Some(recorder), Some(ring)) = (&running.recorder, &self.probes) {
            if probe::is_recorded(&self.plan) {
                recorder.record_probes(Snapshots::new(&self.plan, ring.clone(), offset_ns));
            }
        }
        let sink = running.recorder.as_mut().and_then(Recorder::sink);
        let made = Ticker::new(&self.plan, GuardMode::On, sink, self.status.clone())?;
        ticker_in.send(made).map_err(|_| refuse("the control thread ended while starting"))?;
        running.thread = Some(thread);
        Ok(granted)
    }

    fn recorder(&self, granted: &Granted) -> Result<Option<Recorder>, RtError> {
        let Some(path) = &self.recording else { return Ok(None) };
        let mut header: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&self.header_json).unwrap_or_default();
        header.insert("granted".into(), serde_json::to_value(granted).unwrap_or_default());
        let options = RecordOptions {
            plan: &self.plan,
            plan_json: &self.plan_json,
            header_json: &serde_json::Value::Object(header).to_string(),
            images: self.record_images,
            image_rings: self.image_rings.clone(),
            quota: Quota::default(),
            manual_clock: false,
        };
        Recorder::create(path, options).map(Some)
    }

    /// Asks for something; the next tick grants it or counts why not.
    pub fn request(&self, request: Request) -> Result<(), RtError> {
        if let Some(log) = &locked(&self.running).log {
            log.request(clock::monotonic_ns(), request.word());
        }
        self.mailbox.send(Message::Request(request))
    }

    /// Gives a goal.
    pub fn set_goal(&self, velocity: Option<&[f64]>, tokens: Option<&[i64]>, text: &str) -> Result<(), RtError> {
        let seq = self.goals.fetch_add(1, Relaxed).wrapping_add(1);
        let stamp_ns = clock::monotonic_ns();
        let goal = GoalRequest::new(seq, stamp_ns, velocity, tokens)?;
        if let Some(log) = &locked(&self.running).log {
            log.goal(seq, stamp_ns, velocity, text, tokens.unwrap_or(&[]));
        }
        let shown = serde_json::json!({ "seq": seq, "stamp_ns": stamp_ns, "velocity": velocity, "text": text });
        self.status.show_goal(&shown.to_string());
        self.mailbox.send(Message::Goal(Box::new(goal)))
    }

    /// A line for people on the recording's timeline; nothing where nothing is recorded.
    pub fn log(&self, module: &str, level: &str, text: &str) {
        if let Some(log) = &locked(&self.running).log {
            log.log(clock::monotonic_ns(), module, level, text);
        }
    }

    /// Connects another worker; its chunks count after the next start.
    pub fn set_worker(&self, parts: &WorkerParts) -> Result<(), RtError> {
        self.mailbox.send(Message::Worker(Some(link(&self.plan, parts)?)))
    }

    /// Nanoseconds since the epoch minus monotonic ones, as the recording has it; 0 before the start.
    pub fn offset_ns(&self) -> i64 {
        self.offset_ns.load(Relaxed)
    }

    /// The loop's boards.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// How the recording is doing, or did.
    pub fn recording(&self) -> Option<RecordStatus> {
        let running = locked(&self.running);
        running.last.clone().or_else(|| running.recorder.as_ref().map(Recorder::status))
    }

    /// Durations of the first ticks.
    pub fn timings(&self) -> &Timings {
        &self.timings
    }

    /// True once the control thread has ended.
    pub fn wait(&self, timeout: Duration) -> bool {
        let ended = locked(&self.ending.has_ended);
        let waited = self.ending.changed.wait_timeout_while(ended, timeout, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Ends the control thread after the exit behaviour and closes the recording.
    pub fn stop(&self) {
        let _one = locked(&self.stopping);
        self.quit.store(true, Relaxed);
        // Taken out first: whoever asks for the status meanwhile must not wait.
        let thread = locked(&self.running).thread.take();
        if let Some(thread) = thread {
            // Its panics were caught inside.
            let _ = thread.join();
        }
        let recorder = {
            let mut running = locked(&self.running);
            running.log = None;
            running.last = running.recorder.as_ref().map(Recorder::status).or(running.last.take());
            running.recorder.take()
        };
        if let Some(mut recorder) = recorder {
            let last = recorder.close();
            locked(&self.running).last = Some(last);
        }
    }
}

impl Drop for Paced {
    fn drop(&mut self) {
        self.stop();
    }
}
