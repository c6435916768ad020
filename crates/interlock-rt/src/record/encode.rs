//! From the control thread's slots to messages. Keeps what it needs of the tick before.

use interlock_core::code::Code;
use interlock_core::guard::RulingKind;

use super::schema::v1;
use super::slot::{ChunkSlot, TickSlot};

/// Value of one violation on the reward channel.
const VIOLATION: f64 = -10.0;

/// Counts and the tick before.
#[derive(Default)]
pub(super) struct Encoder {
    tick: v1::Tick,
    mode: Option<u8>,
    kp: Vec<f64>,
    kd: Vec<f64>,
    pub(super) ticks: u64,
    pub(super) limited: u64,
    pub(super) refused: u64,
    pub(super) missed: u64,
}

/// One tick's messages.
pub(super) struct Messages<'a> {
    pub(super) tick: &'a v1::Tick,
    pub(super) mode: Option<v1::ModeChange>,
    pub(super) reward: Option<v1::Reward>,
}

impl Encoder {
    /// Repeats gains in the next tick, so that a chunk of the file can be read alone.
    pub(super) fn repeat_gains(&mut self) {
        self.kp.clear();
        self.kd.clear();
    }

    /// The messages of one tick.
    pub(super) fn tick(&mut self, slot: &TickSlot) -> Messages<'_> {
        self.count(slot);
        let mode = self.mode_change(slot);
        let reward = Self::reward(slot);
        self.fill(slot);
        Messages { tick: &self.tick, mode, reward }
    }

    fn count(&mut self, slot: &TickSlot) {
        self.ticks += 1;
        self.missed = slot.missed;
        self.limited += u64::from(slot.ruling.kind == RulingKind::Limited);
        self.refused += u64::from(slot.ruling.kind == RulingKind::Refused);
    }

    fn mode_change(&mut self, slot: &TickSlot) -> Option<v1::ModeChange> {
        let before = self.mode.replace(slot.mode);
        let changed = before != Some(slot.mode);
        changed.then(|| v1::ModeChange {
            tick: slot.tick,
            at_ns: slot.due_ns,
            from: before.unwrap_or(slot.mode).into(),
            to: slot.mode.into(),
            level: slot.level.into(),
            cause: slot.cause.into(),
        })
    }

    fn reward(slot: &TickSlot) -> Option<v1::Reward> {
        let ruling = &slot.ruling;
        let code = ruling.refusal.or_else(|| ruling.codes.iter().next()).unwrap_or(Code::None);
        slot.is_violation.then(|| v1::Reward {
            tick: slot.tick,
            at_ns: slot.due_ns,
            channel: "constraint_violation".to_owned(),
            value: VIOLATION,
            code: (code as u16).into(),
            joint: joint(ruling.codes.joint(code)),
            ruling: ruling.kind as u32,
        })
    }

    fn fill(&mut self, slot: &TickSlot) {
        let to = &mut self.tick;
        (to.tick, to.due_ns, to.woke_ns, to.captured_ns) =
            (slot.tick, slot.due_ns, slot.woke_ns, slot.sample.capture_ns);
        (to.observed_ns, to.chunk_arrived_ns) = (slot.observed_ns, slot.chunk_arrived_ns);
        (to.acted_ns, to.sent_ns) = (slot.acted_ns, slot.sent_ns);
        to.record_ns = u32::try_from(slot.record_ns).unwrap_or(u32::MAX);
        (to.mode, to.level, to.cause) = (slot.mode.into(), slot.level.into(), slot.cause.into());
        to.ruling = slot.ruling.kind as u32;
        to.codes.clear();
        to.joints.clear();
        for code in slot.ruling.codes.iter() {
            to.codes.push((code as u16).into());
            to.joints.push(joint(slot.ruling.codes.joint(code)));
        }

        let sample = &slot.sample;
        to.sample_seq = sample.seq;
        set(&mut to.pos, &sample.pos);
        set(&mut to.vel, &sample.vel);
        set(&mut to.torque, if sample.torque.iter().all(|value| value.is_nan()) { &[] } else { &sample.torque });
        set(&mut to.quat, &sample.quat);
        set(&mut to.ang_vel, &sample.ang_vel);
        set(&mut to.lin_vel, &sample.lin_vel);
        set(&mut to.wanted, if slot.wanted_valid { &slot.wanted } else { &[] });

        (to.sent, to.kind) = (slot.sent, slot.kind.into());
        set(&mut to.target, if slot.commanded { &slot.target } else { &[] });
        set(&mut to.velocity, if slot.commanded { unless_zero(&slot.velocity) } else { &[] });
        set(&mut to.torque_command, if slot.commanded { unless_zero(&slot.torque) } else { &[] });
        set(&mut to.kp, if slot.commanded { changed(&mut self.kp, &slot.kp) } else { &[] });
        set(&mut to.kd, if slot.commanded { changed(&mut self.kd, &slot.kd) } else { &[] });

        (to.generation, to.chunk_seq, to.row, to.goal_seq) = (slot.generation, slot.chunk_seq, slot.row, slot.goal_seq);
        (to.offered, to.observation_seq) = (slot.offered, slot.observation_seq);
        (to.missed, to.chunks_dropped) = (slot.missed, slot.chunks_dropped);
        to.events.clear();
        to.events.extend(slot.events.as_slice().iter().map(|&number| u32::from(number)));
    }
}

/// The message of one chunk.
pub(super) fn chunk(slot: &ChunkSlot, n: usize) -> v1::Chunk {
    let (chunk, times) = (&slot.chunk, slot.chunk.times);
    v1::Chunk {
        tick: slot.tick,
        generation: chunk.generation,
        seq: chunk.seq,
        at_ns: chunk.at_ns,
        status: chunk.status.into(),
        refused: slot.refused.into(),
        confidence: chunk.confidence,
        rows: u32::try_from(chunk.rows).unwrap_or(u32::MAX),
        actions: chunk.actions.iter().take(chunk.rows.saturating_mul(n)).copied().collect(),
        received_ns: times.received_ns,
        preprocessed_ns: times.preprocessed_ns,
        inferred_ns: times.inferred_ns,
        decoded_ns: times.decoded_ns,
        arrived_ns: slot.arrived_ns,
    }
}

fn joint(joint: Option<usize>) -> i32 {
    joint.and_then(|joint| i32::try_from(joint).ok()).unwrap_or(-1)
}

fn set(to: &mut Vec<f64>, from: &[f64]) {
    to.clear();
    to.extend_from_slice(from);
}

/// Bit patterns count: -0.0 is written.
fn unless_zero(values: &[f64]) -> &[f64] {
    if values.iter().all(|value| value.to_bits() == 0) {
        &[]
    } else {
        values
    }
}

fn changed<'a>(before: &mut Vec<f64>, now: &'a [f64]) -> &'a [f64] {
    let same = before.len() == now.len() && before.iter().zip(now).all(|(a, b)| a.to_bits() == b.to_bits());
    if same {
        return &[];
    }
    set(before, now);
    now
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot() -> TickSlot {
        let mut slot = TickSlot::new(2);
        (slot.commanded, slot.sent) = (true, true);
        slot.kp = vec![50.0, 50.0];
        slot.target = vec![0.1, -0.1];
        slot
    }

    #[test]
    fn gains_are_written_when_they_change_and_when_asked_for() {
        let mut encoder = Encoder::default();
        let mut slot = slot();
        let mut seen = vec![];
        for step in 0..4 {
            if step == 2 {
                encoder.repeat_gains();
            }
            if step == 3 {
                slot.kp[1] = 40.0;
            }
            seen.push(encoder.tick(&slot).tick.kp.clone());
        }
        assert_eq!(seen, [vec![50.0, 50.0], vec![], vec![50.0, 50.0], vec![50.0, 40.0]]);
    }

    #[test]
    fn a_violation_is_rewarded_once_and_named_after_what_refused_it() {
        let mut slot = slot();
        slot.ruling.codes.add(Code::Position, Some(0));
        slot.ruling.codes.add(Code::Velocity, Some(1));
        slot.ruling.kind = RulingKind::Refused;
        slot.ruling.refusal = Some(Code::Velocity);
        let mut encoder = Encoder::default();
        let mut found = vec![];
        for is_violation in [true, false, false] {
            slot.is_violation = is_violation;
            found.extend(encoder.tick(&slot).reward);
        }
        assert_eq!((found.len(), found[0].code, found[0].joint), (1, 21, 1));
        assert_eq!((encoder.ticks, encoder.refused), (3, 3));
    }

    #[test]
    fn a_mode_is_written_once_per_change_with_its_cause() {
        let mut encoder = Encoder::default();
        let mut slot = slot();
        let mut changes = vec![];
        for (mode, cause) in [(0, 0), (1, 0), (1, 0), (5, 40)] {
            (slot.mode, slot.cause) = (mode, cause);
            changes.extend(encoder.tick(&slot).mode.map(|change| (change.from, change.to, change.cause)));
        }
        assert_eq!(changes, [(0, 0, 0), (0, 1, 0), (1, 5, 40)]);
    }

    #[test]
    fn no_command_writes_none_and_a_dry_run_writes_what_it_would_have_sent() {
        let mut slot = slot();
        let mut encoder = Encoder::default();
        (slot.commanded, slot.sent) = (false, false);
        let none = encoder.tick(&slot).tick;
        assert!(none.target.is_empty() && none.kp.is_empty() && !none.sent);
        slot.commanded = true;
        let dry = encoder.tick(&slot).tick;
        assert!(dry.target.len() == 2 && dry.kp.len() == 2 && !dry.sent);
    }
}
