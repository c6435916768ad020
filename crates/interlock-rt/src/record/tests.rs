use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use interlock_core::code::Code;
use interlock_core::guard::RulingKind;
use mcap::read::{LinearReader, Options};
use mcap::MessageStream;
use prost::Message;

use super::schema::foxglove;
use super::*;

const PLAN: &str = r#"{
  "schema": "interlock.plan/1", "identity": {"contract": "c", "robot": "r", "binding": "b"},
  "timing": {"tick_ns": 1000000, "ticks_per_period": 20, "ticks_per_inference": 20, "chunk": 4, "action_delay_ns": 0,
    "handover": "replace", "interpolate": "hold", "synchronous": false, "inference_deadline_ns": 20000000,
    "action_valid_ns": 20000000, "manual_latency_ns": 0, "max_age_state_ns": 5000000, "max_age_image_ns": 50000000,
    "max_skew_ns": 5000000, "latency_budget_ns": 50000000},
  "joints": {"names": ["one", "two"], "si_per_unit": [1, 1], "policy_from_robot": [0, 1], "default_pos": [0, 0]},
  "command": {"kind": "position", "host_pd": false, "kp": [], "kd": []},
  "cameras": [{"name": "front", "height": 1, "width": 2, "bgr": false, "period_ns": 33000000}],
  "inputs": [], "outputs": [], "goal": {"velocity": null, "slew_per_s": null, "text": true, "timeout_ns": 0},
  "limits": {"pos": null, "vel": null, "acc": null, "jerk": null, "torque": null, "target_step": null,
    "vel_measured": null, "kp_max": null, "kd_max": null},
  "safe": {"before_start": null, "policy_lost": {"do": "stop_and_hold"}, "goal_lost": {"do": "stop_and_hold"},
    "on_exit": {"do": "stop_and_hold"}, "command_timeout_ns": 0, "floating_base": false},
  "start": {"pose": [0, 0], "within_pos": [1, 1], "within_tilt_rad": null}
}"#;

fn plan() -> Plan {
    serde_json::from_str(PLAN).unwrap()
}

const OPEN: Quota = Quota { reserve_bytes: 0, file_bytes: u64::MAX };

fn options(plan: &Plan) -> RecordOptions<'_> {
    RecordOptions {
        plan,
        plan_json: PLAN,
        header_json: "{\"run\": 1}",
        images: ImageMode::Png,
        image_rings: vec![],
        quota: OPEN,
        manual_clock: false,
    }
}

/// A folder of this test that goes away with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("interlock-record-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("run.mcap")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn fill(slot: &mut TickSlot, tick: u64) {
    slot.tick = tick;
    slot.due_ns = i64::try_from(tick).unwrap() * 1_000_000;
    slot.sample.pos.fill(f64::from(u32::try_from(tick).unwrap()) * 0.1);
    (slot.commanded, slot.sent) = (true, true);
}

/// Messages of one topic, decoded.
fn messages<T: Message + Default>(bytes: &[u8], topic: &str) -> Vec<T> {
    let of_topic = MessageStream::new(bytes).unwrap().map(Result::unwrap).filter(|each| each.channel.topic == topic);
    of_topic.map(|each| T::decode(&*each.data).unwrap()).collect()
}

#[test]
fn everything_pushed_before_closing_is_in_the_file_on_the_epoch_s_timeline() {
    let (folder, plan) = (Folder::new("all"), plan());
    let mut recorder = Recorder::create(&folder.file(), options(&plan)).unwrap();
    let (mut sink, log) = (recorder.sink().unwrap(), recorder.log().unwrap());
    assert!(recorder.sink().is_none());
    for tick in 0..500 {
        assert!(sink.tick(|slot| fill(slot, tick)));
    }
    sink.chunk(|slot| {
        let mut chunk = interlock_core::sample::Chunk::new(4, 2);
        (chunk.seq, chunk.rows) = (7, 3);
        slot.set_chunk(&chunk);
    });
    log.goal(1, 5, None, "reach the red block", &[3, 4]);
    log.request(6, "arm");
    log.image(0, 40, &[1, 2, 3, 4, 5, 6]);
    let status = recorder.close();
    assert_eq!((status.ticks, status.ticks_dropped, status.images, status.replayable), (500, 0, 1, true));

    let bytes = std::fs::read(folder.file()).unwrap();
    let first = MessageStream::new(&bytes).unwrap().next().unwrap().unwrap();
    assert_eq!(first.channel.topic, "/interlock/header");
    let header = v1::Header::decode(&*first.data).unwrap();
    assert_eq!((header.schema.as_str(), header.plan_json.as_str()), (schema::SCHEMA, PLAN));
    let clock = header.clock.unwrap();
    for message in MessageStream::new(&bytes).unwrap().map(Result::unwrap) {
        if message.channel.topic == "/interlock/tick" {
            let tick = v1::Tick::decode(&*message.data).unwrap();
            let epoch = tick.due_ns + clock.realtime_ns - clock.monotonic_ns;
            assert_eq!(message.log_time, epoch.cast_unsigned());
        }
    }
    let ticks: Vec<v1::Tick> = messages(&bytes, "/interlock/tick");
    assert!(ticks.iter().map(|tick| tick.tick).eq(0..500));
    assert_eq!(ticks[3].pos, [3.0 * 0.1; 2]);
    assert!(ticks[1..].iter().any(|tick| tick.record_ns > 0));
    let chunks: Vec<v1::Chunk> = messages(&bytes, "/interlock/chunk");
    assert_eq!((chunks[0].seq, chunks[0].actions.len()), (7, 6));
    let goals: Vec<v1::Goal> = messages(&bytes, "/interlock/goal");
    assert_eq!((goals[0].text.as_str(), goals[1].request.as_str()), ("reach the red block", "arm"));
    assert_eq!(messages::<foxglove::CompressedImage>(&bytes, "/camera/front")[0].format, "png");
    let summary: Vec<v1::Summary> = messages(&bytes, "/interlock/summary");
    assert_eq!((summary[0].ticks, summary[0].chunks, summary[0].replayable), (500, 1, true));
}

#[test]
fn every_schema_in_the_file_describes_its_message() {
    use prost_types::FileDescriptorSet;
    let (folder, plan) = (Folder::new("schema"), plan());
    Recorder::create(&folder.file(), options(&plan)).unwrap().close();
    let bytes = std::fs::read(folder.file()).unwrap();
    let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
    assert_eq!(summary.channels.len(), 11);
    for channel in summary.channels.values() {
        let schema = channel.schema.as_ref().unwrap();
        let set = FileDescriptorSet::decode(&*schema.data).unwrap();
        let mut names = set
            .file
            .iter()
            .flat_map(|file| file.message_type.iter().map(|each| format!("{}.{}", file.package(), each.name())));
        assert!(names.any(|name| name == schema.name), "{}", schema.name);
    }
}

/// Blocks or fails on request.
#[derive(Clone, Default)]
struct Gate {
    closed: Arc<AtomicBool>,
    room: Arc<AtomicU64>,
    taken: Arc<AtomicU64>,
}

impl Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        while self.closed.load(SeqCst) {
            std::thread::yield_now();
        }
        let taken = self.taken.fetch_add(bytes.len() as u64, SeqCst) + bytes.len() as u64;
        let room = self.room.load(SeqCst);
        if room > 0 && taken > room {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn start(gate: &Gate, options: RecordOptions<'_>) -> Result<Recorder, RtError> {
    let disk = Disk { folder: None, quota: options.quota };
    Recorder::start(
        Place { output: Box::new(gate.clone()), disk, at_end: Box::new(|| {}), round_ns: ROUND_NS },
        options,
    )
}

#[test]
fn a_stalled_disk_costs_ticks_and_never_the_control_thread_s_time() {
    let (gate, plan) = (Gate::default(), plan());
    let mut recorder = start(&gate, options(&plan)).unwrap();
    let (mut sink, log) = (recorder.sink().unwrap(), recorder.log().unwrap());
    gate.closed.store(true, SeqCst);
    // The writer hangs in its next write to the disk. If pushing waited for it, this loop would never end.
    let pushes = 10 * TICK_SLOTS as u64;
    let mut kept = 0;
    for tick in 0..pushes {
        kept += u64::from(sink.tick(|slot| fill(slot, tick)));
        sink.chunk(|slot| slot.tick = tick);
        log.log(0, "test", "info", "a line");
    }
    // Whatever had not reached the disk's buffer fits the ring once; the writer may have drained it before it hung.
    while kept == pushes {
        kept -= 1;
        kept += u64::from(sink.tick(|slot| fill(slot, pushes)));
    }
    gate.closed.store(false, SeqCst);
    let status = recorder.close();
    assert!(status.ticks_dropped > 0 && status.chunks_dropped > 0 && status.logs_dropped > 0);
    assert!(!status.replayable && status.error.is_empty());
}

#[test]
fn a_full_disk_ends_the_recording_and_nothing_else() {
    let (gate, plan) = (Gate::default(), plan());
    let mut recorder = start(&gate, options(&plan)).unwrap();
    let mut sink = recorder.sink().unwrap();
    gate.room.store(gate.taken.load(SeqCst) + 1, SeqCst);
    // Far more than the ring holds: all of it is still taken, whatever the disk says.
    let mut tick = 0;
    while !recorder.status().ended {
        sink.tick(|slot| fill(slot, tick));
        tick += 1;
    }
    let status = recorder.close();
    assert!(status.error.contains("writing failed"), "{}", status.error);
    assert!(!status.replayable);
    assert!(status.ticks < tick);
}

#[test]
fn a_file_that_cannot_be_begun_is_refused_so_that_nothing_is_armed() {
    let (folder, plan) = (Folder::new("refused"), plan());
    let code = |path: &Path, quota| {
        let made = Recorder::create(path, RecordOptions { quota, ..options(&plan) });
        made.err().map_or("none", |error| error.code)
    };
    assert_eq!(code(Path::new("/dev/full"), OPEN), "no-recording");
    assert_eq!(code(Path::new("/nonexistent/run.mcap"), OPEN), "no-recording");
    assert_eq!(code(&folder.file(), Quota { reserve_bytes: u64::MAX, ..OPEN }), "no-recording");
    assert!(!folder.file().exists());
    std::fs::write(folder.file(), b"somebody's").unwrap();
    assert_eq!(code(&folder.file(), OPEN), "no-recording");
    assert_eq!(std::fs::read(folder.file()).unwrap(), b"somebody's");

    let gate = Gate::default();
    gate.room.store(1, SeqCst);
    assert_eq!(start(&gate, options(&plan)).err().unwrap().code, "no-recording");
}

#[test]
fn where_room_runs_out_images_end_first_and_the_file_is_still_whole() {
    let (folder, plan) = (Folder::new("quota"), plan());
    let quota = Quota { reserve_bytes: 0, file_bytes: 80_000 };
    let output = Box::new(std::fs::File::create(folder.file()).unwrap());
    let place = Place { output, disk: Disk { folder: None, quota }, at_end: Box::new(|| {}), round_ns: 20_000_000 };
    let mut recorder = Recorder::start(place, RecordOptions { quota, ..options(&plan) }).unwrap();
    let (mut sink, log) = (recorder.sink().unwrap(), recorder.log().unwrap());
    let (mut tick, mut images_ended_first) = (0, false);
    let mut noise = 1_u64;
    while !recorder.status().ended {
        sink.tick(|slot| {
            fill(slot, tick);
            for value in slot.target.iter_mut().chain(&mut slot.sample.vel) {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *value = f64::from_bits(noise >> 2);
            }
        });
        log.image(0, 0, &[0; 6]);
        tick += 1;
        images_ended_first |= recorder.status().images_ended && !recorder.status().ended;
        clock::sleep_until(clock::monotonic_ns() + 500_000);
    }
    let status = recorder.close();
    assert!(images_ended_first && status.images_dropped > 0);
    assert!(status.error.contains("no room"), "{}", status.error);
    let bytes = std::fs::read(folder.file()).unwrap();
    let summary: Vec<v1::Summary> = messages(&bytes, "/interlock/summary");
    assert!(summary[0].images_ended && !summary[0].replayable);
}

#[test]
fn on_a_manual_clock_the_producer_waits_and_nothing_is_lost() {
    let (folder, plan) = (Folder::new("manual"), plan());
    let mut recorder =
        Recorder::create(&folder.file(), RecordOptions { manual_clock: true, ..options(&plan) }).unwrap();
    let (mut sink, log) = (recorder.sink().unwrap(), recorder.log().unwrap());
    let total = 3 * TICK_SLOTS as u64;
    for tick in 0..total {
        assert!(sink.tick(|slot| fill(slot, tick)));
        if tick % 100 == 0 {
            log.image(0, 0, &[0; 6]);
        }
    }
    let status = recorder.close();
    assert_eq!((status.ticks, status.ticks_dropped, status.images_dropped), (total, 0, 0));
    assert!(!sink.waits || sink.tick(|slot| fill(slot, 0)), "a closed recording does not make its producer wait");
}

#[test]
fn images_come_from_the_cameras_rings_and_overtaken_ones_are_counted() {
    let (folder, plan) = (Folder::new("images"), plan());
    let ring = Ring::create("images", 4, 6).unwrap();
    let options = RecordOptions { image_rings: vec![ring.clone()], images: ImageMode::Raw, ..options(&plan) };
    let mut recorder = Recorder::create(&folder.file(), options).unwrap();
    let mut camera = ring.producer().unwrap();
    for image in 1..=40_u8 {
        camera.publish(&[image; 6], i64::from(image)).unwrap();
    }
    let status = recorder.close();
    assert_eq!(status.images + status.images_dropped, 40);
    let images: Vec<foxglove::RawImage> = messages(&std::fs::read(folder.file()).unwrap(), "/camera/front");
    assert_eq!(images.last().unwrap().data, [40; 6]);
    assert!(status.replayable);
}

#[test]
fn a_violation_leaves_a_reward_beside_its_tick() {
    let (folder, plan) = (Folder::new("reward"), plan());
    let mut recorder = Recorder::create(&folder.file(), options(&plan)).unwrap();
    let mut sink = recorder.sink().unwrap();
    for tick in 0..3 {
        sink.tick(|slot| {
            fill(slot, tick);
            slot.ruling = interlock_core::guard::Ruling::default();
            slot.is_violation = tick == 1;
            if tick > 0 {
                slot.ruling.codes.add(Code::Position, Some(1));
                slot.ruling.kind = RulingKind::Refused;
            }
        });
    }
    recorder.close();
    let rewards: Vec<v1::Reward> = messages(&std::fs::read(folder.file()).unwrap(), "/interlock/reward");
    assert_eq!(rewards.len(), 1);
    let reward = &rewards[0];
    assert_eq!((reward.channel.as_str(), reward.value), ("constraint_violation", -10.0));
    assert_eq!((reward.tick, reward.code, reward.joint, reward.ruling), (1, 20, 1, 2));
}

const CHILD: &str = "INTERLOCK_RECORD_CHILD";

/// Not a claim: the process that the next test kills.
#[test]
fn child_that_records_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let plan = plan();
    let mut recorder = Recorder::create(Path::new(&path), options(&plan)).unwrap();
    let mut sink = recorder.sink().unwrap();
    let begin = clock::monotonic_ns();
    for tick in 0..30_000 {
        clock::sleep_until(begin + i64::try_from(tick).unwrap() * 1_000_000);
        sink.tick(|slot| fill(slot, tick));
    }
}

#[test]
fn a_killed_process_leaves_a_readable_file_up_to_its_last_second() {
    let folder = Folder::new("killed");
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "record::tests::child_that_records_until_it_is_killed"])
        .env(CHILD, folder.file())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // The beginning, then one chunk each second: after three sizes two seconds are safe.
    let mut sizes = vec![];
    while sizes.len() < 4 && child.try_wait().unwrap().is_none() {
        let size = std::fs::metadata(folder.file()).map_or(0, |file| file.len());
        if sizes.last() != Some(&size) {
            sizes.push(size);
        }
        clock::sleep_until(clock::monotonic_ns() + 10_000_000);
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let bytes = std::fs::read(folder.file()).unwrap();
    let reader = MessageStream::new_with_options(&bytes, Options::IgnoreEndMagic.into()).unwrap();
    let ticks = reader.map_while(Result::ok).filter(|each| each.channel.topic == "/interlock/tick");
    let ticks: Vec<u64> = ticks.map(|each| v1::Tick::decode(&*each.data).unwrap().tick).collect();
    assert!(!ticks.is_empty() && ticks.iter().copied().eq(0..ticks.len() as u64), "{} ticks", ticks.len());
    // No footer: the file does not claim to be whole.
    let ends = LinearReader::new(&bytes).map_or(true, |mut records| records.any(|record| record.is_err()));
    assert!(ends);
}
