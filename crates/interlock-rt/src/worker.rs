//! The worker's loop: observation in, chunk out, until the parent is gone.

use std::array;
use std::os::fd::RawFd;

use interlock_core::code::Code;
use interlock_core::plan::Plan;
use interlock_core::preprocess::ImageView;
use interlock_core::sample::{Chunk, Observation, MAX_CAMERAS};

use crate::clock;
use crate::engine::Engine;
use crate::error::RtError;
use crate::last_resort;
use crate::policy::Policy;
use crate::probe::Tap;
use crate::shm::{Producer, Ring, View};
use crate::watch::Watch;
use crate::wire;

/// Longest sleep between two looks at whether the parent lives.
const LOOK_NS: i64 = 50_000_000;
/// Time that an inference still gets after the parent's end.
const GRACE_NS: i64 = 2_000_000_000;

/// What a worker shares with the supervisor and the drivers.
pub struct WorkerLinks {
    /// Observations in.
    pub observation: Ring,
    /// Chunks out.
    pub chunk: Ring,
    /// Cameras, in the plan's order.
    pub images: Vec<Ring>,
    /// Snapshots of probes out; None: nobody wants them, or the policy has none.
    pub probe: Option<Ring>,
}

/// Answers observations of `generation` until the process behind `parent` (a pidfd; below 0: nobody) has ended.
///
/// The first slot of the chunk ring says that the policy is loaded and warm: sequence 0, no rows.
pub fn run(plan: &Plan, engine: Engine, links: &WorkerLinks, generation: u32, parent: RawFd) -> Result<(), RtError> {
    let n = plan.n();
    let mut worker = Worker::new(plan, engine, links, generation)?;
    let watch = if parent >= 0 { Some(Watch::new("parent", parent)?) } else { None };
    let ended = watch.as_ref().map(Watch::ended).unwrap_or_default();
    if watch.is_some() {
        // An inference that hangs must not outlive the parent.
        last_resort::leave_after(ended.clone(), GRACE_NS)?;
    }
    worker.publish(n)?;
    let mut seen = 0;
    while !ended.is_set() {
        if !links.observation.wait_until(seen, clock::monotonic_ns().saturating_add(LOOK_NS)) {
            continue;
        }
        let Some(slot) = links.observation.latest(&mut worker.bytes) else { continue };
        if slot.seq == seen {
            continue;
        }
        seen = slot.seq;
        worker.answer(slot.len);
        worker.publish(n)?;
        worker.tap();
    }
    Ok(())
}

struct Worker<'a> {
    policy: Policy,
    producer: Producer,
    tap: Option<Tap>,
    images: &'a [Ring],
    sizes: Vec<(usize, usize)>,
    generation: u32,
    observation: Observation,
    chunk: Chunk,
    bytes: Vec<u8>,
    out: Vec<u8>,
    /// The last failure that was written to standard error, so that each kind is written once.
    reported: String,
}

impl<'a> Worker<'a> {
    fn new(plan: &Plan, engine: Engine, links: &'a WorkerLinks, generation: u32) -> Result<Self, RtError> {
        let n = plan.n();
        let rows = usize::try_from(plan.timing.chunk).unwrap_or(0);
        links.observation.expect_bytes("observation", wire::observation_bytes(n))?;
        links.chunk.expect_bytes("chunk", wire::chunk_bytes(rows, n))?;
        if links.images.len() != plan.cameras.len() {
            let what = format!("images: expected {} rings, got {}", plan.cameras.len(), links.images.len());
            return Err(RtError::new("ring-layout", what, "one ring per camera of the plan"));
        }
        let sizes: Vec<(usize, usize)> =
            plan.cameras.iter().map(|camera| (camera.height as usize, camera.width as usize)).collect();
        for ((ring, camera), (height, width)) in links.images.iter().zip(&plan.cameras).zip(&sizes) {
            ring.expect_bytes(&camera.name, height.saturating_mul(*width).saturating_mul(3))?;
        }
        let mut chunk = Chunk::new(rows, n);
        chunk.generation = generation;
        Ok(Worker {
            policy: Policy::new(plan, Some(engine))?,
            producer: links.chunk.producer()?,
            tap: links.probe.as_ref().map(|ring| Tap::new(plan, ring.clone())).transpose()?,
            images: &links.images,
            sizes,
            generation,
            observation: Observation::new(n),
            chunk,
            bytes: vec![0; wire::observation_bytes(n)],
            out: vec![0; wire::chunk_bytes(rows, n)],
            reported: String::new(),
        })
    }

    fn answer(&mut self, len: usize) {
        let Worker { policy, images, sizes, generation, observation, chunk, bytes, reported, .. } = self;
        let received_ns = clock::monotonic_ns();
        let complete = bytes.get(..len).is_some_and(|bytes| wire::decode_observation(bytes, observation));
        policy.begin(observation, chunk, received_ns);
        if !complete || observation.generation != *generation {
            // An observation for another generation is answered as this worker, so that nobody takes it for the other.
            chunk.generation = *generation;
            chunk.status = if complete { Code::RetiredGeneration } else { Code::Dimension } as u16;
            return;
        }
        // Pixels are read where the driver put them; whether they were overwritten meanwhile is looked up afterwards.
        let views: [Option<View<'_>>; MAX_CAMERAS] = array::from_fn(|camera| {
            let ring = images.get(camera)?;
            let wanted = observation.image_seq.get(camera).copied().unwrap_or(0);
            ring.view(wanted).or_else(|| ring.view(ring.newest()))
        });
        let pictures: [ImageView<'_>; MAX_CAMERAS] = array::from_fn(|camera| {
            let (height, width) = sizes.get(camera).copied().unwrap_or((0, 0));
            match views.get(camera) {
                Some(Some(view)) => {
                    let slot = view.slot();
                    ImageView { pixels: view.bytes(), height, width, seq: slot.seq, capture_ns: slot.stamp_ns }
                }
                _ => ImageView { pixels: &[], height, width, seq: 0, capture_ns: i64::MIN },
            }
        });
        let used = pictures.get(..images.len()).unwrap_or(&[]);
        if let Err(error) = policy.infer(observation, used, chunk, &clock::monotonic_ns) {
            report(reported, &error);
        }
        chunk.times.received_ns = received_ns;
        if !views.iter().flatten().all(View::is_intact) {
            chunk.rows = 0;
            chunk.status = Code::StaleImage as u16;
        }
    }

    /// Off the path of the command: the answer is on its way.
    fn tap(&mut self) {
        if let Some(tap) = &mut self.tap {
            tap.take(&self.policy, &self.observation, &self.chunk);
        }
    }

    fn publish(&mut self, n: usize) -> Result<(), RtError> {
        let fits = wire::encode_chunk(&self.chunk, n, &mut self.out)
            .and_then(|len| self.out.get(..len))
            .and_then(|bytes| self.producer.publish(bytes, clock::monotonic_ns()));
        fits.map(|_| ()).ok_or_else(|| RtError::new("ring-layout", "chunk: does not fit its ring", ""))
    }
}

/// Standard error is the worker's log; a failing engine says the same every period, so each text is written once.
fn report(reported: &mut String, error: &RtError) {
    let text = error.to_string();
    if *reported != text {
        eprintln!("[{}][worker][ERROR] {text}", clock::triple().realtime_ns);
        *reported = text;
    }
}
