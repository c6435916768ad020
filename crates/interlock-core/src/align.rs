//! Holds the newest joint sample and image stamps, and says whether they are fresh enough to act on.

use crate::code::Code;
use crate::plan::{Input, Plan, PlanError};
use crate::sample::{Observation, Sample, MAX_CAMERAS};

/// Samples and image stamps that were not taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AlignCounters {
    /// Samples taken.
    pub samples: u64,
    /// Same sequence number as before.
    pub duplicate: u64,
    /// Lower sequence number, or captured before the one held.
    pub out_of_order: u64,
    /// Captured later than now by more than an admissible age: another clock.
    pub future: u64,
    /// Wrong number of joints.
    pub dimension: u64,
    /// Image stamps not taken.
    pub images: u64,
}

/// How fresh everything is at one instant. `state` counts at every tick, `image` and `skew` where an observation is
/// offered: between two offers nobody reads the images. Ages in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// `None`, `StaleState` (what is held is too old) or `DriverStuck` (and nothing new arrived for as long).
    pub state: Code,
    /// `None` or `StaleImage`; `None` for a policy without images.
    pub image: Code,
    /// `None` or `Skew`; `None` for a policy without images.
    pub skew: Code,
    /// Age of the joint sample, `i64::MAX` before the first.
    pub state_age_ns: i64,
    /// Age of the oldest image that the policy reads, 0 for a policy without images.
    pub image_age_ns: i64,
    /// Largest difference of capture times inside the observation.
    pub skew_ns: i64,
}

impl Freshness {
    /// The first thing wrong with an observation made now, `None` if nothing is.
    pub fn code(&self) -> Code {
        [self.state, self.image, self.skew].into_iter().find(|code| *code != Code::None).unwrap_or(Code::None)
    }
}

/// The newest of everything measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Align {
    sample: Sample,
    has_sample: bool,
    arrived_ns: i64,
    image_seq: [u64; MAX_CAMERAS],
    image_ns: [i64; MAX_CAMERAS],
    /// Which cameras the policy reads.
    needed: [bool; MAX_CAMERAS],
    cameras: usize,
    max_age_state_ns: i64,
    max_age_image_ns: i64,
    max_skew_ns: i64,
    excused_ns: i64,
    excused_until_ns: i64,
    counters: AlignCounters,
}

impl Align {
    /// Nothing measured yet.
    ///
    /// # Errors
    /// A plan that [`Plan::check`] refuses.
    pub fn new(plan: &Plan) -> Result<Self, PlanError> {
        plan.check()?;
        let mut needed = [false; MAX_CAMERAS];
        for input in &plan.inputs {
            if let Input::Image { camera, .. } = input {
                needed.iter_mut().skip(*camera).take(1).for_each(|slot| *slot = true);
            }
        }
        Ok(Align {
            sample: Sample::new(plan.n()),
            has_sample: false,
            arrived_ns: i64::MIN,
            image_seq: [0; MAX_CAMERAS],
            image_ns: [i64::MIN; MAX_CAMERAS],
            needed,
            cameras: plan.cameras.len(),
            max_age_state_ns: plan.timing.max_age_state_ns,
            max_age_image_ns: plan.timing.max_age_image_ns,
            max_skew_ns: plan.timing.max_skew_ns,
            excused_ns: 0,
            excused_until_ns: i64::MIN,
            counters: AlignCounters::default(),
        })
    }

    /// Forgets what was measured, for a driver that starts afresh. Counters stay.
    pub fn reset(&mut self) {
        self.has_sample = false;
        self.arrived_ns = i64::MIN;
        self.image_seq = [0; MAX_CAMERAS];
        self.image_ns = [i64::MIN; MAX_CAMERAS];
    }

    /// We ourselves were late by `late_ns`: what is held now has aged while nobody looked, which is not the sensor's
    /// fault. Ages are judged that much milder until a healthy sensor has had one maximum age of time to deliver. Never
    /// by more than one maximum age, so nothing older than twice that is ever acted on.
    pub fn excuse(&mut self, now_ns: i64, late_ns: i64) {
        if late_ns > 0 {
            self.excused_ns = late_ns.min(self.max_age_state_ns);
            self.excused_until_ns = now_ns.saturating_add(self.max_age_state_ns);
        }
    }

    /// How much age is forgiven at `now_ns`.
    pub fn excused_ns(&self, now_ns: i64) -> i64 {
        if now_ns < self.excused_until_ns {
            self.excused_ns
        } else {
            0
        }
    }

    /// Takes a sample read at `now_ns`; an older, repeated or impossible one is counted and dropped.
    ///
    /// # Errors
    /// `Dimension`, `OldSequence` (repeated or out of order) or `Skew` (captured in the future: another clock).
    pub fn take(&mut self, now_ns: i64, sample: &Sample) -> Result<(), Code> {
        let n = self.sample.pos.len();
        let counters = &mut self.counters;
        if sample.pos.len() != n || sample.vel.len() != n || sample.torque.len() != n {
            counters.dimension = counters.dimension.saturating_add(1);
            return Err(Code::Dimension);
        }
        if self.has_sample && sample.seq == self.sample.seq {
            counters.duplicate = counters.duplicate.saturating_add(1);
            return Err(Code::OldSequence);
        }
        let is_older = sample.seq < self.sample.seq || sample.capture_ns < self.sample.capture_ns;
        if self.has_sample && is_older {
            counters.out_of_order = counters.out_of_order.saturating_add(1);
            return Err(Code::OldSequence);
        }
        if sample.capture_ns.saturating_sub(now_ns) > self.max_age_state_ns {
            counters.future = counters.future.saturating_add(1);
            return Err(Code::Skew);
        }
        counters.samples = counters.samples.saturating_add(1);
        self.sample.copy_from(sample);
        self.has_sample = true;
        self.arrived_ns = now_ns;
        Ok(())
    }

    /// Takes the stamp of a camera's newest image.
    ///
    /// # Errors
    /// `Dimension` for an unknown camera, `OldSequence`, or `Skew` (captured in the future).
    pub fn take_image(&mut self, now_ns: i64, camera: usize, seq: u64, capture_ns: i64) -> Result<(), Code> {
        let refused = self.refuse_image(now_ns, camera, seq, capture_ns);
        if refused == Code::None {
            self.image_seq.iter_mut().skip(camera).take(1).for_each(|slot| *slot = seq);
            self.image_ns.iter_mut().skip(camera).take(1).for_each(|slot| *slot = capture_ns);
            return Ok(());
        }
        self.counters.images = self.counters.images.saturating_add(1);
        Err(refused)
    }

    fn refuse_image(&self, now_ns: i64, camera: usize, seq: u64, capture_ns: i64) -> Code {
        let (Some(last_seq), Some(last_ns)) = (self.image_seq.get(camera), self.image_ns.get(camera)) else {
            return Code::Dimension;
        };
        if camera >= self.cameras {
            Code::Dimension
        } else if seq <= *last_seq || capture_ns < *last_ns {
            Code::OldSequence
        } else if capture_ns.saturating_sub(now_ns) > self.max_age_image_ns {
            Code::Skew
        } else {
            Code::None
        }
    }

    /// The newest sample; its values are NaN before the first.
    pub fn sample(&self) -> &Sample {
        &self.sample
    }

    /// Whether any sample was taken since the start or the last reset.
    pub fn has_sample(&self) -> bool {
        self.has_sample
    }

    /// What was dropped so far.
    pub fn counters(&self) -> AlignCounters {
        self.counters
    }

    /// Puts the newest sample and image stamps into an observation.
    pub fn fill(&self, observation: &mut Observation) {
        observation.sample.copy_from(&self.sample);
        observation.image_seq = self.image_seq;
        observation.image_ns = self.image_ns;
    }

    /// Whether what is held may be acted on at `now_ns`.
    pub fn freshness(&self, now_ns: i64) -> Freshness {
        let state_age_ns = if self.has_sample { now_ns.saturating_sub(self.sample.capture_ns) } else { i64::MAX };
        let excused_ns = self.excused_ns(now_ns);
        let max_age_state_ns = self.max_age_state_ns.saturating_add(excused_ns);
        let is_stuck = self.has_sample && now_ns.saturating_sub(self.arrived_ns) > max_age_state_ns;
        let state = match (state_age_ns > max_age_state_ns, is_stuck) {
            (_, true) => Code::DriverStuck,
            (true, false) => Code::StaleState,
            (false, false) => Code::None,
        };

        let (mut oldest, mut newest) = (self.sample.capture_ns, self.sample.capture_ns);
        let (mut image_age_ns, mut is_seen) = (0, true);
        for ((needed, seq), stamp) in self.needed.iter().zip(&self.image_seq).zip(&self.image_ns) {
            if *needed {
                is_seen &= *seq > 0;
                oldest = oldest.min(*stamp);
                newest = newest.max(*stamp);
                image_age_ns = image_age_ns.max(now_ns.saturating_sub(*stamp));
            }
        }
        let skew_ns = newest.saturating_sub(oldest);
        let is_stale = !is_seen || image_age_ns > self.max_age_image_ns.saturating_add(excused_ns);
        Freshness {
            state,
            image: if is_stale { Code::StaleImage } else { Code::None },
            skew: if skew_ns > self.max_skew_ns { Code::Skew } else { Code::None },
            state_age_ns,
            image_age_ns,
            skew_ns,
        }
    }
}
