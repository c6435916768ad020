//! What goes through the rings: fixed layouts of 64-bit words, native byte order, one field after another.

use interlock_core::guard::SafeCommand;
use interlock_core::sample::{Chunk, GoalState, InferenceTimes, Observation, Sample, MAX_CAMERAS, MAX_TOKENS};

const WORD: usize = 8;
/// Words of a command before the five rows.
pub const COMMAND_HEAD: usize = 4;

/// Slot size of a state ring.
pub const fn state_bytes(n: usize) -> usize {
    Sample::flat_len(n) * WORD
}

/// Slot size of a command ring.
pub const fn command_bytes(n: usize) -> usize {
    (COMMAND_HEAD + 5 * n) * WORD
}

/// Slot size of an observation ring.
pub const fn observation_bytes(n: usize) -> usize {
    (7 + Sample::flat_len(n) + 6 + MAX_TOKENS + n + 2 * MAX_CAMERAS) * WORD
}

/// Slot size of a chunk ring.
pub const fn chunk_bytes(rows: usize, n: usize) -> usize {
    (10 + rows * n) * WORD
}

/// Writes fields one after another; what does not fit is left out, and `encode_*` answers None.
struct Writer<'a> {
    rest: std::slice::ChunksExactMut<'a, u8>,
    fits: bool,
}

impl<'a> Writer<'a> {
    fn new(out: &'a mut [u8]) -> Self {
        Writer { rest: out.chunks_exact_mut(WORD), fits: true }
    }

    fn u64(&mut self, value: u64) {
        match self.rest.next() {
            Some(word) => word.copy_from_slice(&value.to_ne_bytes()),
            None => self.fits = false,
        }
    }

    fn i64(&mut self, value: i64) {
        self.u64(value.cast_unsigned());
    }

    fn f64s(&mut self, values: &[f64]) {
        for value in values {
            self.u64(value.to_bits());
        }
    }
}

/// Reads fields one after another; zero after the end, and `decode_*` answers false.
struct Reader<'a> {
    rest: std::slice::ChunksExact<'a, u8>,
    complete: bool,
}

impl<'a> Reader<'a> {
    fn new(from: &'a [u8]) -> Self {
        Reader { rest: from.chunks_exact(WORD), complete: true }
    }

    fn u64(&mut self) -> u64 {
        if let Some(Ok(word)) = self.rest.next().map(<[u8; WORD]>::try_from) {
            return u64::from_ne_bytes(word);
        }
        self.complete = false;
        0
    }

    fn i64(&mut self) -> i64 {
        self.u64().cast_signed()
    }

    #[allow(clippy::cast_possible_truncation)] // written from a u32
    fn u32(&mut self) -> u32 {
        self.u64() as u32
    }

    fn f64s(&mut self, out: &mut [f64]) {
        for value in out {
            *value = f64::from_bits(self.u64());
        }
    }
}

fn write_flat(to: &mut Writer<'_>, sample: &Sample) {
    to.f64s(&sample.pos);
    to.f64s(&sample.vel);
    to.f64s(&sample.torque);
    to.f64s(&sample.quat);
    to.f64s(&sample.ang_vel);
    to.f64s(&sample.lin_vel);
}

fn read_flat(from: &mut Reader<'_>, sample: &mut Sample) {
    from.f64s(&mut sample.pos);
    from.f64s(&mut sample.vel);
    from.f64s(&mut sample.torque);
    from.f64s(&mut sample.quat);
    from.f64s(&mut sample.ang_vel);
    from.f64s(&mut sample.lin_vel);
}

/// Takes a state payload in ROBOT units into `sample` in SI. False where the payload is too short; `sample` stays then.
pub fn decode_state(from: &[u8], si_per_unit: &[f64], sample: &mut Sample) -> bool {
    if from.len() < state_bytes(sample.pos.len()) {
        return false;
    }
    let mut reader = Reader::new(from);
    read_flat(&mut reader, sample);
    // Torque is N*m and the base is SI on every robot; only what is counted in the joint's unit is converted.
    for ((pos, vel), si) in sample.pos.iter_mut().zip(&mut sample.vel).zip(si_per_unit) {
        *pos *= si;
        *vel *= si;
    }
    reader.complete
}

/// Takes a flat sample, SI, robot order, as Python gives it. False where its length is another.
pub fn sample_from_flat(flat: &[f64], sample: &mut Sample) -> bool {
    let n = sample.pos.len();
    if flat.len() != Sample::flat_len(n) {
        return false;
    }
    let mut rest = flat;
    let mut take = |out: &mut [f64]| {
        if let Some((head, tail)) = rest.split_at_checked(out.len()) {
            out.copy_from_slice(head);
            rest = tail;
        }
    };
    take(&mut sample.pos);
    take(&mut sample.vel);
    take(&mut sample.torque);
    take(&mut sample.quat);
    take(&mut sample.ang_vel);
    take(&mut sample.lin_vel);
    true
}

/// Writes a command in ROBOT units: positions and velocities divided by SI per unit; torques in N*m and gains in N*m/rad
/// and N*m*s/rad on every robot. `running`: a simulation may let go of the robot.
pub fn encode_command(command: &SafeCommand, running: bool, si_per_unit: &[f64], out: &mut [u8]) -> Option<usize> {
    let mut to = Writer::new(out);
    let (mode, wire) = (command.mode() as u8, command.wire() as u8);
    to.f64s(&[f64::from(mode), f64::from(wire), f64::from(u8::from(running)), 0.0]);
    for row in [command.target(), command.velocity()] {
        row.iter().zip(si_per_unit).for_each(|(value, si)| to.f64s(&[value / si]));
    }
    for row in [command.torque(), command.kp(), command.kd()] {
        to.f64s(row);
    }
    to.fits.then_some(command_bytes(si_per_unit.len()))
}

/// Writes an observation; None where `out` is too small.
pub fn encode_observation(observation: &Observation, out: &mut [u8]) -> Option<usize> {
    let mut to = Writer::new(out);
    to.u64(observation.seq);
    to.u64(u64::from(observation.generation));
    to.i64(observation.at_ns);
    to.u64(observation.period);
    to.u64(u64::from(observation.episode));
    to.u64(observation.sample.seq);
    to.i64(observation.sample.capture_ns);
    write_flat(&mut to, &observation.sample);
    let goal = &observation.goal;
    to.u64(goal.seq);
    to.i64(goal.stamp_ns);
    to.f64s(&goal.velocity);
    to.u64(goal.token_count as u64);
    goal.tokens.iter().for_each(|token| to.i64(*token));
    to.f64s(&observation.applied);
    observation.image_seq.iter().for_each(|seq| to.u64(*seq));
    observation.image_ns.iter().for_each(|ns| to.i64(*ns));
    to.fits.then_some(observation_bytes(observation.applied.len()))
}

/// Reads an observation for the same number of joints. False where the payload is too short.
pub fn decode_observation(from: &[u8], observation: &mut Observation) -> bool {
    let mut reader = Reader::new(from);
    observation.seq = reader.u64();
    observation.generation = reader.u32();
    observation.at_ns = reader.i64();
    observation.period = reader.u64();
    observation.episode = reader.u32();
    observation.sample.seq = reader.u64();
    observation.sample.capture_ns = reader.i64();
    read_flat(&mut reader, &mut observation.sample);
    let goal: &mut GoalState = &mut observation.goal;
    goal.seq = reader.u64();
    goal.stamp_ns = reader.i64();
    reader.f64s(&mut goal.velocity);
    goal.token_count = usize::try_from(reader.u64()).unwrap_or(0).min(MAX_TOKENS);
    goal.tokens.iter_mut().for_each(|token| *token = reader.i64());
    reader.f64s(&mut observation.applied);
    observation.image_seq.iter_mut().for_each(|seq| *seq = reader.u64());
    observation.image_ns.iter_mut().for_each(|ns| *ns = reader.i64());
    reader.complete
}

/// Writes a chunk, as many rows as count; None where `out` is too small.
pub fn encode_chunk(chunk: &Chunk, n: usize, out: &mut [u8]) -> Option<usize> {
    let mut to = Writer::new(out);
    let rows = chunk.actions.len().checked_div(n).map_or(0, |room| room.min(chunk.rows));
    to.u64(u64::from(chunk.generation));
    to.u64(chunk.seq);
    to.i64(chunk.at_ns);
    to.u64(u64::from(chunk.status));
    to.f64s(&[chunk.confidence]);
    to.u64(rows as u64);
    let times = &chunk.times;
    for time in [times.received_ns, times.preprocessed_ns, times.inferred_ns, times.decoded_ns] {
        to.i64(time);
    }
    to.f64s(chunk.actions.get(..rows * n).unwrap_or(&[]));
    to.fits.then_some(chunk_bytes(rows, n))
}

/// Reads a chunk into one made for at least as many rows. False where the payload is short or has more rows.
pub fn decode_chunk(from: &[u8], n: usize, chunk: &mut Chunk) -> bool {
    let mut reader = Reader::new(from);
    chunk.generation = reader.u32();
    chunk.seq = reader.u64();
    chunk.at_ns = reader.i64();
    chunk.status = u16::try_from(reader.u64()).unwrap_or(u16::MAX);
    let mut confidence = [f64::NAN];
    reader.f64s(&mut confidence);
    [chunk.confidence] = confidence;
    chunk.rows = usize::try_from(reader.u64()).unwrap_or(usize::MAX);
    chunk.times = InferenceTimes {
        received_ns: reader.i64(),
        preprocessed_ns: reader.i64(),
        inferred_ns: reader.i64(),
        decoded_ns: reader.i64(),
    };
    let wanted = chunk.rows.checked_mul(n).and_then(|count| chunk.actions.get_mut(..count));
    let Some(actions) = wanted else {
        chunk.rows = 0;
        return false;
    };
    reader.f64s(actions);
    reader.complete
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // copies must be exact
mod tests {
    use super::*;

    fn ramp(count: usize) -> Vec<f64> {
        (0..count)
            .scan(-1.0, |value, _| {
                *value += 0.25;
                Some(*value)
            })
            .collect()
    }

    #[test]
    fn an_observation_survives_the_wire() {
        let mut sent = Observation::new(3);
        sample_from_flat(&ramp(19), &mut sent.sample);
        (sent.seq, sent.generation, sent.at_ns, sent.period, sent.episode) = (7, 2, -5, 11, 3);
        (sent.sample.seq, sent.sample.capture_ns) = (9, 12);
        sent.goal.velocity = [0.5, -0.25, 1.0];
        sent.goal.tokens[..2].copy_from_slice(&[101, -7]);
        (sent.goal.token_count, sent.goal.seq, sent.goal.stamp_ns) = (2, 4, 8);
        sent.applied = ramp(3);
        sent.image_seq[1] = 5;
        sent.image_ns[7] = i64::MAX;
        let mut bytes = vec![0; observation_bytes(3)];
        assert_eq!(encode_observation(&sent, &mut bytes), Some(bytes.len()));
        let mut got = Observation::new(3);
        assert!(decode_observation(&bytes, &mut got));
        assert_eq!(got, sent);
        assert!(!decode_observation(&bytes[..bytes.len() - 8], &mut got));
        assert_eq!(encode_observation(&sent, &mut vec![0; observation_bytes(3) - 8]), None);
    }

    #[test]
    fn a_chunk_survives_the_wire_and_never_overflows_its_buffer() {
        let mut sent = Chunk::new(4, 2);
        (sent.generation, sent.seq, sent.at_ns, sent.status, sent.confidence, sent.rows) = (1, 2, 3, 4, 0.5, 3);
        sent.times = InferenceTimes { received_ns: 1, preprocessed_ns: 2, inferred_ns: 3, decoded_ns: 4 };
        sent.actions[..6].copy_from_slice(&ramp(6));
        let mut bytes = vec![0; chunk_bytes(4, 2)];
        assert_eq!(encode_chunk(&sent, 2, &mut bytes), Some(chunk_bytes(3, 2)));
        let mut got = Chunk::new(4, 2);
        assert!(decode_chunk(&bytes, 2, &mut got));
        assert_eq!(got, sent);
        let mut small = Chunk::new(2, 2);
        assert!(!decode_chunk(&bytes, 2, &mut small));
        assert_eq!(small.rows, 0);
    }

    #[test]
    fn a_state_in_degrees_becomes_radians() {
        let mut flat = ramp(13);
        (flat[0], flat[1], flat[2]) = (180.0, 90.0, 1.5);
        let bytes: Vec<u8> = flat.iter().flat_map(|v| v.to_ne_bytes()).collect();
        let mut sample = Sample::new(1);
        assert!(decode_state(&bytes, &[std::f64::consts::PI / 180.0], &mut sample));
        assert!((sample.pos[0] - std::f64::consts::PI).abs() < 1e-12);
        assert!((sample.vel[0] - std::f64::consts::FRAC_PI_2).abs() < 1e-12);
        assert_eq!(sample.torque[0], 1.5);
        let before = sample.clone();
        assert!(!decode_state(&bytes[..96], &[1.0], &mut sample));
        assert_eq!(sample, before, "what is cut off leaves nothing behind");
    }
}
