//! The control thread: absolute deadlines, shared memory on both sides, nothing that waits for anybody but a synchronous
//! policy's worker, and for that one never longer than its deadline.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

use interlock_core::guard::SafeCommand;
use interlock_core::plan::Plan;
use interlock_core::sample::{Chunk, Sample};

use crate::clock::{self, monotonic_ns};
use crate::counting;
use crate::error::RtError;
use crate::request::{Inbox, Message, Request, WorkerLink};
use crate::shm::{Producer, Ring};
use crate::ticker::{Stamps, Ticker};
use crate::timings::Timings;
use crate::watch::Watch;
use crate::wire;

/// Everything that the thread owns.
pub(crate) struct Control {
    pub ticker: Ticker,
    pub inbox: Inbox,
    pub timings: Arc<Timings>,
    pub driver: DriverEnd,
    pub worker: WorkerEnd,
    /// Ends the loop after the exit behaviour.
    pub quit: Arc<AtomicBool>,
    pub has_quit: bool,
    pub tick_ns: i64,
    /// From a tick's release; None: the policy is asynchronous.
    pub wait_ns: Option<i64>,
}

/// The driver as the control thread sees it.
pub(crate) struct DriverEnd {
    state: Ring,
    seen: u64,
    bytes: Vec<u8>,
    sample: Sample,
    images: Vec<(Ring, u64)>,
    sink: CommandSink,
    watch: Watch,
    is_reported_dead: bool,
}

/// The only way to the actuators; it takes what the guard admitted and nothing else.
struct CommandSink {
    command: Producer,
    bytes: Vec<u8>,
    si_per_unit: Vec<f64>,
    is_dry: bool,
}

impl CommandSink {
    fn send(&mut self, command: &SafeCommand, running: bool) -> bool {
        if self.is_dry {
            return false;
        }
        let encoded = wire::encode_command(command, running, &self.si_per_unit, &mut self.bytes);
        let bytes = encoded.and_then(|len| self.bytes.get(..len));
        bytes.and_then(|bytes| self.command.publish(bytes, monotonic_ns())).is_some()
    }
}

impl DriverEnd {
    pub fn new(
        plan: &Plan,
        state: Ring,
        command: &Ring,
        images: Vec<Ring>,
        watch: Watch,
        is_dry: bool,
    ) -> Result<Self, RtError> {
        let n = plan.n();
        state.expect_bytes("state", wire::state_bytes(n))?;
        command.expect_bytes("command", wire::command_bytes(n))?;
        if images.len() != plan.cameras.len() {
            let what = format!("images: expected {} rings, got {}", plan.cameras.len(), images.len());
            return Err(RtError::new("ring-layout", what, "one ring per camera of the plan"));
        }
        Ok(DriverEnd {
            state,
            seen: 0,
            bytes: vec![0; wire::state_bytes(n)],
            sample: Sample::new(n),
            images: images.into_iter().map(|ring| (ring, 0)).collect(),
            sink: CommandSink {
                command: command.producer()?,
                bytes: vec![0; wire::command_bytes(n)],
                si_per_unit: plan.joints.si_per_unit.clone(),
                is_dry,
            },
            watch,
            is_reported_dead: false,
        })
    }

    /// Reads the newest sample; false when it was read before.
    fn read(&mut self) -> bool {
        if self.state.newest() == self.seen {
            return false;
        }
        let Some(slot) = self.state.latest(&mut self.bytes) else { return false };
        self.seen = slot.seq;
        let bytes = self.bytes.get(..slot.len).unwrap_or(&[]);
        if !wire::decode_state(bytes, &self.sink.si_per_unit, &mut self.sample) {
            return false;
        }
        self.sample.seq = slot.seq;
        self.sample.capture_ns = slot.stamp_ns;
        true
    }
}

/// The worker as the control thread sees it.
pub(crate) struct WorkerEnd {
    link: WorkerLink,
    seen: u64,
    chunk: Chunk,
    bytes: Vec<u8>,
    out: Vec<u8>,
    n: usize,
    is_reported_dead: bool,
}

impl WorkerEnd {
    pub fn new(plan: &Plan, link: WorkerLink) -> Self {
        let (n, rows) = (plan.n(), usize::try_from(plan.timing.chunk).unwrap_or(0));
        let mut end = WorkerEnd {
            link,
            seen: 0,
            chunk: Chunk::new(rows, n),
            bytes: vec![0; wire::chunk_bytes(rows, n)],
            out: vec![0; wire::observation_bytes(n)],
            n,
            is_reported_dead: false,
        };
        end.begin();
        end
    }

    /// What was answered before belongs to nobody.
    fn begin(&mut self) {
        self.seen = self.link.chunk.newest();
        self.is_reported_dead = false;
    }

    /// Puts another worker in place and leaves the old one in the message.
    fn replace(&mut self, link: &mut WorkerLink) {
        std::mem::swap(&mut self.link, link);
        self.begin();
    }

    fn is_alive(&self) -> bool {
        !self.link.watch.has_ended() && self.link.chunk.newest() > 0
    }

    /// Takes the newest chunk if it is a new one; true then.
    fn poll(&mut self) -> bool {
        if self.link.chunk.newest() == self.seen {
            return false;
        }
        let Some(slot) = self.link.chunk.latest(&mut self.bytes) else { return false };
        self.seen = slot.seq;
        self.bytes.get(..slot.len).is_some_and(|bytes| wire::decode_chunk(bytes, self.n, &mut self.chunk))
    }

    /// Waits until the chunk for `seq` is there, or time is up.
    fn wait(&mut self, seq: u64, until_ns: i64) -> bool {
        while self.link.chunk.wait_until(self.seen, until_ns) {
            if self.poll() && self.chunk.seq >= seq {
                return true;
            }
            if monotonic_ns() >= until_ns {
                break;
            }
        }
        false
    }

    fn offer(&mut self, observation: &interlock_core::sample::Observation) {
        let encoded = wire::encode_observation(observation, &mut self.out);
        if let Some(bytes) = encoded.and_then(|len| self.out.get(..len)) {
            self.link.observation.publish(bytes, observation.at_ns);
        }
    }
}

impl Control {
    /// Runs until the program was asked to end and the robot is at rest.
    pub fn run(&mut self) {
        self.ticker.set_generation(self.worker.link.generation);
        let allocations = counting::allocations();
        let mut due_ns = monotonic_ns().saturating_add(self.tick_ns);
        loop {
            clock::sleep_until(due_ns);
            let woke_ns = monotonic_ns();
            // What was overslept is missed, and each of it is a sample of lateness as well.
            let mut skipped = 0;
            while woke_ns.saturating_sub(due_ns) >= self.tick_ns {
                self.timings.lateness_ns.push(woke_ns.saturating_sub(due_ns));
                due_ns = due_ns.saturating_add(self.tick_ns);
                skipped += 1;
            }
            self.timings.lateness_ns.push(woke_ns.saturating_sub(due_ns));
            let handoff_ns = self.tick(due_ns, woke_ns, skipped);
            self.ticker.show(counting::allocations().saturating_sub(allocations));
            let work_ns = monotonic_ns().saturating_sub(woke_ns).saturating_sub(handoff_ns);
            self.timings.work_ns.push(work_ns);
            if self.ticker.is_finished() {
                break;
            }
            due_ns = due_ns.saturating_add(self.tick_ns);
        }
        self.ticker.end(counting::allocations().saturating_sub(allocations), false);
    }

    /// One tick; returns the time spent on handing the observation over.
    fn tick(&mut self, due_ns: i64, woke_ns: i64, skipped: u32) -> i64 {
        let mut stamps = Stamps { due_ns, woke_ns, ..Stamps::default() };
        // What was measured, what happened, what was asked.
        let is_fresh = self.driver.read();
        for (camera, (ring, seen)) in self.driver.images.iter_mut().enumerate() {
            let newest = ring.newest();
            if newest != *seen {
                *seen = newest;
                if let Some(slot) = ring.view(newest).map(|view| view.slot()) {
                    self.ticker.supervisor().image(due_ns, camera, slot.seq, slot.stamp_ns);
                }
            }
        }
        let offer = self.ticker.observe(due_ns, skipped, is_fresh.then_some(&self.driver.sample));
        stamps.observed_ns = monotonic_ns();
        self.look_after_processes(due_ns);
        self.read_mail(due_ns);

        // What the policy answers: a synchronous one now, an asynchronous one whenever it did.
        let mut has_chunk = self.worker.poll();
        let mut handoff_ns = 0;
        if let (true, Some(wait_ns)) = (offer.due && self.worker.is_alive(), self.wait_ns) {
            let began_ns = monotonic_ns();
            self.worker.offer(self.ticker.supervisor().observation());
            let has_answered = self.worker.wait(offer.seq, due_ns.saturating_add(wait_ns));
            has_chunk |= has_answered;
            if !has_answered {
                self.ticker.late();
            }
            handoff_ns = monotonic_ns().saturating_sub(began_ns);
        }
        let arrived_ns = monotonic_ns();

        // What is sent, and after that what is recorded.
        let DriverEnd { sample, sink, .. } = &mut self.driver;
        let chunk = has_chunk.then_some((&self.worker.chunk, arrived_ns));
        self.ticker.act(&mut stamps, sample, chunk, &monotonic_ns, &mut |command, running| sink.send(command, running));
        if offer.due && self.wait_ns.is_none() && self.worker.is_alive() {
            let began_ns = monotonic_ns();
            self.worker.offer(self.ticker.supervisor().observation());
            handoff_ns = monotonic_ns().saturating_sub(began_ns);
        }

        if offer.due {
            self.timings.handoff_ns.push(handoff_ns);
        }
        self.timings.observe_ns.push(stamps.observed_ns.saturating_sub(woke_ns));
        self.timings.act_ns.push(stamps.acted_ns.saturating_sub(arrived_ns));
        self.timings.record_ns.push(self.ticker.record_ns());
        if stamps.sent_ns > 0 {
            self.timings.send_ns.push(stamps.sent_ns.saturating_sub(stamps.acted_ns));
            self.timings.capture_to_sent_ns.push(stamps.sent_ns.saturating_sub(sample.capture_ns));
        }
        handoff_ns
    }

    fn look_after_processes(&mut self, due_ns: i64) {
        if self.worker.link.watch.has_ended() && !self.worker.is_reported_dead {
            self.worker.is_reported_dead = true;
            self.ticker.happened(due_ns, Request::WorkerDead);
        }
        let is_driver_alive = !self.driver.watch.has_ended();
        if !is_driver_alive && !self.driver.is_reported_dead {
            self.driver.is_reported_dead = true;
            self.ticker.happened(due_ns, Request::DriverDead);
        }
        self.ticker.set_ready(self.worker.is_alive(), is_driver_alive);
    }

    fn read_mail(&mut self, due_ns: i64) {
        let Control { inbox, ticker, worker, driver, .. } = self;
        while inbox.pop(|message| match message {
            Message::Empty => {}
            Message::Request(request) => ticker.request(due_ns, *request),
            Message::Goal(goal) => ticker.goal(due_ns, goal),
            Message::Worker(link) => {
                if let Some(link) = link {
                    worker.replace(link);
                    ticker.set_generation(worker.link.generation);
                    ticker.set_ready(worker.is_alive(), !driver.watch.has_ended());
                }
            }
        }) {}
        if self.quit.load(Relaxed) && !self.has_quit {
            self.has_quit = true;
            self.ticker.request(due_ns, Request::Quit);
        }
    }
}
