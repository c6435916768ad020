//! One supervisor, one robot that does what it is told, one policy that answers: stepped tick by tick.

use interlock_core::code::Code;
use interlock_core::guard::{Ruling, Wire};
use interlock_core::mode::{Event, Mode};
use interlock_core::plan::Plan;
use interlock_core::sample::{Chunk, Observation, Sample};
use interlock_core::schedule::Wanted;
use interlock_core::supervisor::{Readiness, Supervisor};

pub const READY: Readiness = Readiness { worker: true, driver: true, recording: true };

/// What one tick did, owned.
#[derive(Debug, Clone)]
pub struct Seen {
    pub mode: Mode,
    pub cause: Code,
    pub ruling: Ruling,
    pub wanted: Wanted,
    pub wire: Option<Wire>,
    pub target: Vec<f64>,
    pub torque: Vec<f64>,
    pub kp: Vec<f64>,
    pub kd: Vec<f64>,
    pub is_offered: bool,
    pub is_violation: bool,
    pub tick: u64,
}

pub struct Rig {
    pub supervisor: Supervisor,
    pub plan: Plan,
    pub now_ns: i64,
    pub sample: Sample,
    /// The robot answers: its sample advances and follows the command.
    pub is_sampling: bool,
    /// Its positions are no numbers.
    pub is_unknown: bool,
    /// The worker answers within the tick.
    pub is_answering: bool,
    /// What the policy answers, from time and joint; rows are a period apart.
    pub policy: fn(f64, usize) -> f64,
    pub spoil: fn(&mut Chunk),
    pub last_observation: Option<Observation>,
}

/// The same plan with refusals of motion so far away that only limits act.
pub fn generous(mut plan: Plan) -> Plan {
    let limits = &mut plan.limits;
    for bounds in [&mut limits.vel, &mut limits.acc, &mut limits.jerk].into_iter().flatten() {
        for bound in bounds {
            bound.refuse_beyond = 1e4 * bound.limit;
        }
    }
    plan
}

pub fn calm(_time: f64, _joint: usize) -> f64 {
    0.0
}

impl Rig {
    pub fn new(plan: Plan) -> Self {
        let n = plan.joints.names.len();
        let mut sample = Sample::new(n);
        sample.pos.copy_from_slice(&plan.start.pose);
        sample.vel.fill(0.0);
        let mut supervisor = Supervisor::new(&plan).unwrap();
        supervisor.set_ready(READY);
        supervisor.set_generation(1);
        Rig {
            supervisor,
            plan,
            now_ns: 0,
            sample,
            is_sampling: true,
            is_unknown: false,
            is_answering: true,
            policy: calm,
            spoil: |_| (),
            last_observation: None,
        }
    }

    /// Armed and running.
    pub fn running(plan: Plan) -> Self {
        let mut rig = Rig::new(plan);
        rig.tick();
        rig.event(Event::Arm).unwrap();
        rig.tick();
        rig.event(Event::Start).unwrap();
        rig.tick();
        assert_eq!(rig.supervisor.mode(), Mode::Running);
        rig
    }

    pub fn event(&mut self, event: Event) -> Result<(), Code> {
        self.supervisor.event(self.now_ns, event)
    }

    pub fn tick(&mut self) -> Seen {
        self.skip(0)
    }

    /// One tick after `skipped` that never ran.
    pub fn skip(&mut self, skipped: u32) -> Seen {
        self.now_ns += self.plan.timing.tick_ns * (1 + i64::from(skipped));
        if self.is_sampling {
            self.sample.seq += 1;
            self.sample.capture_ns = self.now_ns;
        }
        if self.is_unknown {
            self.sample.pos.fill(f64::NAN);
        }
        let offer = self.supervisor.observe(self.now_ns, skipped, Some(&self.sample));
        let mut chunk = None;
        if offer.due {
            self.last_observation = Some(self.supervisor.observation().clone());
        }
        if offer.due && self.is_answering {
            chunk = Some(self.answer(self.supervisor.observation().seq));
        }
        let seen = see(&mut self.supervisor, self.now_ns, chunk.as_ref(), offer.due);
        if self.is_sampling {
            self.follow(&seen);
        }
        seen
    }

    /// What the policy answers to the observation made now.
    pub fn answer(&self, seq: u64) -> Chunk {
        let n = self.plan.joints.names.len();
        let rows = self.plan.timing.chunk as usize;
        let mut chunk = Chunk::new(rows, n);
        (chunk.generation, chunk.seq, chunk.at_ns, chunk.rows) = (1, seq, self.now_ns, rows);
        let period = (self.plan.timing.tick_ns * i64::from(self.plan.timing.ticks_per_period)) as f64 * 1e-9;
        for (index, action) in chunk.actions.iter_mut().enumerate() {
            *action = (self.policy)(self.now_ns as f64 * 1e-9 + (index / n) as f64 * period, index % n);
        }
        (self.spoil)(&mut chunk);
        chunk
    }

    pub fn tick_with(&mut self, chunk: &Chunk) -> Seen {
        self.now_ns += self.plan.timing.tick_ns;
        self.sample.seq += 1;
        self.sample.capture_ns = self.now_ns;
        let offer = self.supervisor.observe(self.now_ns, 0, Some(&self.sample));
        see(&mut self.supervisor, self.now_ns, Some(chunk), offer.due)
    }

    fn follow(&mut self, seen: &Seen) {
        let h = self.plan.timing.tick_ns as f64 * 1e-9;
        for (joint, target) in seen.target.iter().enumerate() {
            let was = self.sample.pos[joint];
            match seen.wire {
                Some(Wire::Position | Wire::PositionPd)
                    if seen.kp.iter().all(|kp| *kp == 0.0) && seen.kd[joint] > 0.0 =>
                {
                    self.sample.vel[joint] *= 0.8;
                    self.sample.pos[joint] += h * self.sample.vel[joint];
                    continue;
                }
                Some(Wire::Position) => self.sample.pos[joint] = *target,
                Some(Wire::PositionPd) => self.sample.pos[joint] += 0.3 * (target - was),
                _ => continue,
            }
            self.sample.vel[joint] = (self.sample.pos[joint] - was) / h;
        }
    }

    /// Ticks until `holds`, at most `most`; the ticks it took.
    pub fn until(&mut self, most: usize, mut holds: impl FnMut(&Seen) -> bool) -> usize {
        (1..=most).find(|_| holds(&self.tick())).expect("never happened")
    }
}

fn see(supervisor: &mut Supervisor, now_ns: i64, chunk: Option<&Chunk>, is_offered: bool) -> Seen {
    let outcome = supervisor.act(now_ns, chunk);
    let values = |pick: fn(&interlock_core::guard::SafeCommand) -> &[f64]| {
        outcome.command.map(|command| pick(command).to_vec()).unwrap_or_default()
    };
    Seen {
        mode: outcome.mode,
        cause: outcome.cause,
        ruling: outcome.ruling,
        wanted: outcome.wanted,
        wire: outcome.command.map(interlock_core::guard::SafeCommand::wire),
        target: values(|command| command.target()),
        torque: values(|command| command.torque()),
        kp: values(|command| command.kp()),
        kd: values(|command| command.kd()),
        is_offered,
        is_violation: outcome.is_violation,
        tick: outcome.tick,
    }
}
