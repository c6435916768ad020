//! Snapshots of tensors that a policy computes and nobody acts on: from the worker, after its answer is on its way, into
//! a ring of their own that anybody may read or leave alone.

use interlock_core::plan::{Output, Plan, Role};
use interlock_core::sample::{Chunk, Observation};
use prost::Message;

use crate::engine::{DataBuf, TensorBuf};
use crate::error::RtError;
use crate::policy::Policy;
use crate::record::schema::{self, v1};
use crate::shm::{Producer, Ring};

/// Time between two snapshots of a probe whose contract names none.
pub const PERIOD_NS: i64 = 50_000_000;
/// Probes of which one snapshot is larger than this together are published only, not recorded: 1.3 MB/s at 20 Hz.
const RECORDED_BYTES: usize = 64 * 1024;
/// Snapshots of every probe that stay in the ring, and bounds of all together.
const KEPT: usize = 4;
const SLOTS: (usize, usize) = (8, 64);
const MOST_DIMS: usize = 8;
/// Output, generation, observation, capture, time of the observation, end of inference, type, number of sizes, sizes.
const HEAD: usize = 8 + MOST_DIMS;
/// The largest element.
const ELEMENT_BYTES: usize = 8;

fn wanted(plan: &Plan) -> impl Iterator<Item = (usize, &Output)> {
    plan.outputs.iter().enumerate().filter(|(_, output)| output.role == Role::Probe)
}

fn elements(shape: &[i64]) -> usize {
    shape.iter().map(|size| usize::try_from(*size).unwrap_or(0)).fold(1, usize::saturating_mul)
}

fn slots(plan: &Plan) -> usize {
    wanted(plan).count().saturating_mul(KEPT).clamp(SLOTS.0, SLOTS.1)
}

/// A ring for the snapshots of a plan's probes; None where it has none.
pub fn ring(plan: &Plan) -> Result<Option<Ring>, RtError> {
    let Some(largest) = wanted(plan).map(|(_, output)| elements(&output.shape)).max() else { return Ok(None) };
    let bytes = largest.saturating_mul(ELEMENT_BYTES).saturating_add(HEAD * 8);
    Ring::create("probe", u32::try_from(slots(plan)).unwrap_or(8), bytes).map(Some)
}

/// The descriptor set of the message in which a snapshot is published and recorded.
pub fn message_schema() -> &'static [u8] {
    schema::descriptors("Probe")
}

/// Whether recording every snapshot costs little.
pub fn is_recorded(plan: &Plan) -> bool {
    let all = wanted(plan).map(|(_, output)| elements(&output.shape)).fold(0, usize::saturating_add);
    all.saturating_mul(4) <= RECORDED_BYTES
}

/// The worker's end.
pub struct Tap {
    ring: Ring,
    /// Claimed at the first snapshot: while the worker before this one lives, the ring is that one's.
    producer: Option<Producer>,
    probes: Vec<Wanted>,
    bytes: Vec<u8>,
}

/// One probe: its place among the outputs, its period, and when the next snapshot is due.
struct Wanted {
    output: usize,
    period_ns: i64,
    next_ns: i64,
}

impl Tap {
    /// Refused for a ring that is too small for the plan's probes.
    pub fn new(plan: &Plan, ring: Ring) -> Result<Self, RtError> {
        let largest = wanted(plan).map(|(_, output)| elements(&output.shape)).max().unwrap_or(0);
        ring.expect_bytes("probe", largest.saturating_mul(ELEMENT_BYTES).saturating_add(HEAD * 8))?;
        let probe = |(output, of): (usize, &Output)| Wanted {
            output,
            period_ns: of.period_ns.unwrap_or(PERIOD_NS),
            next_ns: i64::MIN,
        };
        let probes = wanted(plan).map(probe).collect();
        Ok(Tap { bytes: Vec::with_capacity(ring.slot_bytes()), ring, producer: None, probes })
    }

    /// Copies what is due of what `policy` computed for `observation`; `chunk` is its answer. Never waits.
    pub fn take(&mut self, policy: &Policy, observation: &Observation, chunk: &Chunk) {
        let (at_ns, inferred_ns) = (observation.at_ns, chunk.times.inferred_ns);
        if inferred_ns == 0 {
            return;
        }
        for probe in self.probes.iter_mut().filter(|probe| at_ns >= probe.next_ns) {
            // On a grid, so that the period holds on the average; a grid that was left behind begins anew.
            let on_grid_ns = probe.next_ns.saturating_add(probe.period_ns);
            probe.next_ns = if on_grid_ns > at_ns { on_grid_ns } else { at_ns.saturating_add(probe.period_ns) };
            let Some(tensor) = policy.results().nth(probe.output) else { continue };
            let head = [
                probe.output as u64,
                u64::from(chunk.generation),
                observation.seq,
                observation.sample.capture_ns.cast_unsigned(),
                at_ns.cast_unsigned(),
                inferred_ns.cast_unsigned(),
            ];
            if !encode(&head, tensor, &mut self.bytes) {
                continue;
            }
            if self.producer.is_none() {
                self.producer = self.ring.producer().ok();
            }
            if let Some(producer) = &mut self.producer {
                producer.publish(&self.bytes, inferred_ns);
            }
        }
    }
}

/// False for a tensor of too many sizes.
fn encode(head: &[u64; 6], tensor: &TensorBuf, to: &mut Vec<u8>) -> bool {
    to.clear();
    if tensor.shape.len() > MOST_DIMS {
        return false;
    }
    let kind = kinds().iter().position(|name| *name == tensor.data.element_type().name()).unwrap_or(0);
    let sizes = tensor.shape.iter().map(|size| size.cast_unsigned()).chain(std::iter::repeat(0)).take(MOST_DIMS);
    for word in head.iter().copied().chain([kind as u64, tensor.shape.len() as u64]).chain(sizes) {
        to.extend_from_slice(&word.to_le_bytes());
    }
    match &tensor.data {
        DataBuf::F32(values) => values.iter().for_each(|value| to.extend_from_slice(&value.to_le_bytes())),
        DataBuf::F64(values) => values.iter().for_each(|value| to.extend_from_slice(&value.to_le_bytes())),
        DataBuf::I64(values) => values.iter().for_each(|value| to.extend_from_slice(&value.to_le_bytes())),
        DataBuf::I32(values) => values.iter().for_each(|value| to.extend_from_slice(&value.to_le_bytes())),
        DataBuf::U8(values) | DataBuf::Bool(values) => to.extend_from_slice(values),
    }
    true
}

const fn kinds() -> [&'static str; 6] {
    ["float32", "float64", "int64", "int32", "uint8", "bool"]
}

/// A reader's end: every snapshot once, in order, as a message; what was overwritten meanwhile is counted.
pub struct Snapshots {
    ring: Ring,
    names: Vec<String>,
    slots: u64,
    seen: u64,
    bytes: Vec<u8>,
    offset_ns: i64,
    dropped: u64,
}

impl Snapshots {
    /// From now on. `offset_ns`: epoch minus monotonic, as the run's recording has it.
    pub fn new(plan: &Plan, ring: Ring, offset_ns: i64) -> Self {
        let names = plan.outputs.iter().map(|output| output.name.clone()).collect();
        let bytes = vec![0; ring.slot_bytes()];
        Snapshots { seen: ring.newest(), slots: slots(plan) as u64, ring, names, bytes, offset_ns, dropped: 0 }
    }

    /// The next one that is still there.
    pub fn take(&mut self) -> Option<v1::Probe> {
        while self.seen < self.ring.newest() {
            let oldest = self.ring.newest().saturating_sub(self.slots).saturating_add(1);
            let seq = oldest.max(self.seen.saturating_add(1));
            self.dropped += seq.saturating_sub(self.seen).saturating_sub(1);
            self.seen = seq;
            let len = self.ring.read(seq, &mut self.bytes).map(|slot| slot.len);
            let probe = len.and_then(|len| self.bytes.get(..len)).and_then(|bytes| self.decode(bytes));
            if probe.is_some() {
                return probe;
            }
            self.dropped += 1;
        }
        None
    }

    /// The same as a name and an encoded message; waits until there is one or the monotonic clock shows `until_ns`.
    pub fn take_message(&mut self, until_ns: i64) -> Option<(String, Vec<u8>)> {
        let probe = self.take().or_else(|| {
            self.ring.wait_until(self.seen, until_ns);
            self.take()
        })?;
        let message = probe.encode_to_vec();
        Some((probe.name, message))
    }

    /// Snapshots that were overwritten before they were read.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    fn decode(&self, bytes: &[u8]) -> Option<v1::Probe> {
        let (head, data) = bytes.split_at_checked(HEAD * 8)?;
        let words: Vec<u64> = head.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let [output, generation, seq, captured, observed, inferred, kind, dims, sizes @ ..] = words.as_slice() else {
            return None;
        };
        Some(v1::Probe {
            name: self.names.get(usize::try_from(*output).ok()?)?.clone(),
            shape: sizes.get(..usize::try_from(*dims).ok()?)?.to_vec(),
            dtype: (*kinds().get(usize::try_from(*kind).ok()?)?).to_owned(),
            data: data.to_vec(),
            observation_seq: *seq,
            generation: u32::try_from(*generation).ok()?,
            captured_ns: captured.cast_signed(),
            observed_ns: observed.cast_signed(),
            inferred_ns: inferred.cast_signed(),
            epoch_minus_monotonic_ns: self.offset_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let text = include_str!("../tests/plan_29.json");
        let mut plan: Plan = serde_json::from_str(text).unwrap();
        let output = |name: &str, shape, role| Output { name: name.into(), shape, role, action: None, period_ns: None };
        plan.outputs = vec![output("h", vec![1, 2], Role::State), output("z", vec![1, 3], Role::Probe)];
        plan
    }

    fn published(ring: &Ring, count: u64) {
        let mut producer = ring.producer().unwrap();
        let mut bytes = vec![];
        for seq in 1..=count {
            let data = DataBuf::F32(vec![1.5, -2.0, 0.25]);
            let tensor = TensorBuf { name: "z".into(), shape: vec![1, 3], data };
            assert!(encode(&[1, 7, seq, 10, 20, 30], &tensor, &mut bytes));
            producer.publish(&bytes, 30).unwrap();
        }
    }

    #[test]
    fn a_plan_without_probes_has_no_ring() {
        let mut plan = plan();
        plan.outputs.pop();
        assert!(ring(&plan).unwrap().is_none());
    }

    #[test]
    fn a_snapshot_is_read_as_it_was_computed() {
        let plan = plan();
        let ring = ring(&plan).unwrap().unwrap();
        let mut snapshots = Snapshots::new(&plan, ring.clone(), 1000);
        published(&ring, 1);
        let probe = snapshots.take().unwrap();
        assert_eq!((probe.name.as_str(), probe.dtype.as_str(), probe.shape.as_slice()), ("z", "float32", &[1, 3][..]));
        assert_eq!(probe.data, [1.5_f32, -2.0, 0.25].iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
        assert_eq!((probe.observation_seq, probe.generation, probe.captured_ns, probe.inferred_ns), (1, 7, 10, 30));
        assert!(snapshots.take().is_none());
    }

    #[test]
    fn a_reader_that_was_away_gets_what_is_left_and_the_rest_is_counted() {
        let plan = plan();
        let ring = ring(&plan).unwrap().unwrap();
        let mut snapshots = Snapshots::new(&plan, ring.clone(), 0);
        published(&ring, 100);
        let seen: Vec<u64> = std::iter::from_fn(|| snapshots.take()).map(|probe| probe.observation_seq).collect();
        assert_eq!(seen, (93..=100).collect::<Vec<u64>>());
        assert_eq!(snapshots.dropped(), 92);
    }

    #[test]
    fn large_probes_are_not_recorded() {
        let mut plan = plan();
        assert!(is_recorded(&plan));
        plan.outputs[1].shape = vec![1, 20_000];
        assert!(!is_recorded(&plan));
    }
}
