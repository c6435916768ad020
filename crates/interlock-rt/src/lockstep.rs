//! All stages in one process on a manual clock: the same supervisor, pipeline and recording, bit for bit repeatable.

use std::path::PathBuf;

use interlock_core::plan::{Camera, Plan};
use interlock_core::preprocess::ImageView;
use interlock_core::sample::{Chunk, Observation, Sample};

use crate::engine::Engine;
use crate::error::RtError;
use crate::policy::Policy;
use crate::record::{ImageMode, Quota, RecordLog, RecordOptions, RecordStatus, Recorder};
use crate::request::{GoalRequest, Request};
use crate::status::Status;
use crate::ticker::{Done, GuardMode, Stamps, Ticker};
use crate::wire;

/// Where and how a lockstep run is recorded.
pub struct LockstepRecording {
    /// File that does not exist yet.
    pub path: PathBuf,
    /// The plan exactly as it was given.
    pub plan_json: String,
    /// Facts for the header.
    pub header_json: String,
    /// What is kept of images.
    pub images: ImageMode,
}

/// What the operator does before the next tick.
enum Asked {
    Request(Request),
    Goal(Box<GoalRequest>),
}

struct Picture {
    pixels: Vec<u8>,
    seq: u64,
    capture_ns: i64,
    is_new: bool,
}

/// The stages, the images and the worker's pretended latency.
pub struct Lockstep {
    ticker: Ticker,
    status: Status,
    policy: Policy,
    cameras: Vec<Camera>,
    pictures: Vec<Picture>,
    asked: Vec<Asked>,
    goals: u64,
    generation: u32,
    sample: Sample,
    rows: Vec<f64>,
    /// None: synchronous, answered in the tick.
    latency_ns: Option<i64>,
    /// The chunk being made, when it will be there, and an observation that came meanwhile.
    chunk: Chunk,
    ready_ns: Option<i64>,
    waiting: Option<Observation>,
    recorder: Option<Recorder>,
    log: Option<RecordLog>,
    last_ns: i64,
}

impl Lockstep {
    /// Idle at the beginning of time.
    pub fn new(
        plan: &Plan,
        engine: Engine,
        guard: GuardMode,
        recording: Option<LockstepRecording>,
    ) -> Result<Self, RtError> {
        let mut recorder = recording.map(|recording| record(plan, &recording)).transpose()?;
        let status = Status::new()?;
        let sink = recorder.as_mut().and_then(Recorder::sink);
        let mut ticker = Ticker::new(plan, guard, sink, status.clone())?;
        let (n, rows) = (plan.n(), usize::try_from(plan.timing.chunk).unwrap_or(0));
        ticker.set_generation(1);
        let picture = |_: &Camera| Picture { pixels: vec![], seq: 0, capture_ns: i64::MIN, is_new: false };
        Ok(Lockstep {
            ticker,
            status,
            policy: Policy::new(plan, Some(engine))?,
            pictures: plan.cameras.iter().map(picture).collect(),
            cameras: plan.cameras.clone(),
            asked: Vec::new(),
            goals: 0,
            generation: 1,
            sample: Sample::new(n),
            rows: vec![0.0; 5 * n],
            latency_ns: (!plan.timing.synchronous).then_some(plan.timing.manual_latency_ns),
            chunk: Chunk::new(rows, n),
            ready_ns: None,
            waiting: None,
            log: recorder.as_ref().and_then(Recorder::log),
            recorder,
            last_ns: i64::MIN,
        })
    }

    /// Asks for something in the next tick.
    pub fn request(&mut self, request: Request) {
        if let Some(log) = &self.log {
            log.request(self.last_ns.max(0), request.word());
        }
        self.asked.push(Asked::Request(request));
    }

    /// Gives a goal in the next tick.
    pub fn set_goal(&mut self, velocity: Option<&[f64]>, tokens: Option<&[i64]>, text: &str) -> Result<(), RtError> {
        self.goals += 1;
        let stamp_ns = self.last_ns.max(0);
        let goal = GoalRequest::new(self.goals, stamp_ns, velocity, tokens)?;
        if let Some(log) = &self.log {
            log.goal(self.goals, stamp_ns, velocity, text, tokens.unwrap_or(&[]));
        }
        self.asked.push(Asked::Goal(Box::new(goal)));
        Ok(())
    }

    /// Gives a new image.
    pub fn image(&mut self, camera: usize, pixels: &[u8], capture_ns: i64) -> Result<(), RtError> {
        let refuse = |what: String| RtError::new("dimension", what, "");
        let shape = self.cameras.get(camera).ok_or_else(|| refuse(format!("no camera {camera}")))?;
        let expected = (shape.height as usize).saturating_mul(shape.width as usize).saturating_mul(3);
        let picture = self.pictures.get_mut(camera).filter(|_| pixels.len() == expected);
        let picture = picture
            .ok_or_else(|| refuse(format!("{}: expected {expected} bytes, got {}", shape.name, pixels.len())))?;
        picture.pixels.clear();
        picture.pixels.extend_from_slice(pixels);
        (picture.seq, picture.capture_ns, picture.is_new) = (picture.seq + 1, capture_ns, true);
        if let Some(log) = &self.log {
            log.image(camera, capture_ns, pixels);
        }
        Ok(())
    }

    /// One tick with a flat sample (SI, robot order). Times must increase.
    pub fn step(&mut self, now_ns: i64, flat: &[f64], capture_ns: i64) -> Result<Done, RtError> {
        if now_ns <= self.last_ns || !wire::sample_from_flat(flat, &mut self.sample) {
            let what =
                format!("expected a time after {} and 3n + 10 values, got {now_ns}, {}", self.last_ns, flat.len());
            return Err(RtError::new("dimension", what, ""));
        }
        self.last_ns = now_ns;
        self.sample.seq += 1;
        self.sample.capture_ns = capture_ns;
        for (camera, picture) in self.pictures.iter_mut().enumerate().filter(|(_, picture)| picture.is_new) {
            picture.is_new = false;
            self.ticker.supervisor().image(now_ns, camera, picture.seq, picture.capture_ns);
        }
        self.ticker.set_ready(true, true);
        let offer = self.ticker.observe(now_ns, 0, Some(&self.sample));
        self.take_requests(now_ns);

        // A synchronous policy answers in the tick; an asynchronous one after its declared latency, one at a time.
        let has_arrived = match self.latency_ns {
            None => offer.due && self.infer_now(now_ns)?,
            Some(_) => self.ready_ns.take_if(|ready_ns| *ready_ns <= now_ns).is_some(),
        };
        let mut stamps = Stamps { due_ns: now_ns, woke_ns: now_ns, observed_ns: now_ns, ..Stamps::default() };
        let (rows, n) = (&mut self.rows, self.sample.pos.len());
        rows.fill(0.0);
        let chunk = has_arrived.then_some((&self.chunk, now_ns));
        let done = self.ticker.act(&mut stamps, &self.sample, chunk, &|| now_ns, &mut |command, _| {
            let parts = [command.target(), command.velocity(), command.torque(), command.kp(), command.kd()];
            rows.chunks_exact_mut(n).zip(parts).for_each(|(row, part)| row.copy_from_slice(part));
            true
        });
        if let Some(latency_ns) = self.latency_ns {
            if offer.due {
                self.waiting = Some(self.ticker.supervisor().observation().clone());
            }
            if self.ready_ns.is_none() {
                if let Some(observation) = self.waiting.take() {
                    self.ready_ns = Some(now_ns.saturating_add(latency_ns));
                    self.infer(&observation, now_ns)?;
                }
            }
        }
        self.ticker.show(0);
        Ok(done)
    }

    fn take_requests(&mut self, now_ns: i64) {
        for asked in self.asked.drain(..) {
            match asked {
                Asked::Goal(goal) => self.ticker.goal(now_ns, &goal),
                Asked::Request(request @ (Request::WorkerDead | Request::DriverDead)) => {
                    // The next worker is there at once; what the dead one was about to say never comes.
                    self.generation += 1;
                    self.ready_ns = None;
                    self.waiting = None;
                    self.policy.reset();
                    self.ticker.set_generation(self.generation);
                    self.ticker.happened(now_ns, request);
                }
                Asked::Request(request) => self.ticker.request(now_ns, request),
            }
        }
    }

    fn infer_now(&mut self, now_ns: i64) -> Result<bool, RtError> {
        let observation = self.ticker.supervisor().observation().clone();
        self.infer(&observation, now_ns).map(|()| true)
    }

    fn infer(&mut self, observation: &Observation, now_ns: i64) -> Result<(), RtError> {
        let view = |(camera, picture): (&Camera, &'_ Picture)| ImageView {
            // Borrowed for the call below; the pictures do not change meanwhile.
            pixels: &[],
            height: camera.height as usize,
            width: camera.width as usize,
            seq: picture.seq,
            capture_ns: picture.capture_ns,
        };
        let mut views: Vec<ImageView<'_>> = self.cameras.iter().zip(&self.pictures).map(view).collect();
        views.iter_mut().zip(&self.pictures).for_each(|(view, picture)| view.pixels = &picture.pixels);
        self.policy.infer(observation, &views, &mut self.chunk, &|| now_ns)
    }

    /// The last command, `[5, n]`: target, velocity, torque, kp, kd; zeros when nothing was sent.
    pub fn command(&self) -> &[f64] {
        &self.rows
    }

    /// The loop's boards.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// How the recording is doing, or did.
    pub fn recording(&self) -> Option<RecordStatus> {
        self.recorder.as_ref().map(Recorder::status)
    }

    /// Ends the recording.
    pub fn close(&mut self) {
        self.log = None;
        self.ticker.end(0, false);
        if let Some(recorder) = &mut self.recorder {
            recorder.close();
        }
    }
}

fn record(plan: &Plan, recording: &LockstepRecording) -> Result<Recorder, RtError> {
    let options = RecordOptions {
        plan,
        plan_json: &recording.plan_json,
        header_json: &recording.header_json,
        images: recording.images,
        image_rings: vec![],
        quota: Quota::default(),
        manual_clock: true,
    };
    Recorder::create(&recording.path, options)
}
