"""Recordings are read back exactly, and nothing that a file may hold does more than be refused."""

import json
import struct
import zlib

import numpy as np
import pytest
import zstandard
from made import BOOT_NS, EPOCH_NS, JOINTS, V1, Recorder, Script, made, plan
from mcap.writer import Writer

from interlock.errors import Exit, InterlockError
from interlock.view.image_file import SIGNATURE, unpack_png
from interlock.view.mcap_file import FRAME, MAGIC
from interlock.view.recording import Recording

SHORT = Script(seconds=2.0, die_s=1.5, limited=[(1.0, 3, 21, 1)])
CLOCK = {"monotonic_ns": BOOT_NS, "realtime_ns": EPOCH_NS, "tai_ns": EPOCH_NS}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return made(tmp_path_factory.mktemp("whole") / "run.mcap", SHORT)


def header(**change):
    facts = {
        "schema": "interlock.recording/1",
        "plan_json": json.dumps(plan(SHORT)),
        "header_json": "{}",
        "joints": JOINTS,
        "clock": V1["interlock.v1.Clock"](**CLOCK),
        "images": "png",
        "codes": {40: "worker-dead"},
        "modes": {0: "Idle"},
    }
    return {**facts, **change}


def written(path, *messages):
    """A recording of exactly these (message name, fields)."""
    recorder = Recorder(path)
    for name, fields in messages:
        recorder.write(name, BOOT_NS, **fields)
    recorder.close()
    return path


def opened(path):
    """The recording, or the code with which it is refused."""
    try:
        return Recording.open(path)
    except InterlockError as error:
        return error.code


def refusal(path):
    with pytest.raises(InterlockError) as caught:
        Recording.open(path)
    error = caught.value
    assert error.exit == Exit.REFUSED
    assert error.problems[0].hint
    return error.code


def test_a_whole_recording_says_what_happened(whole):
    recording = Recording.open(whole)
    assert recording.complete
    assert recording.reason == ""
    assert len(recording.ticks) == 400
    assert recording.joints == JOINTS
    assert recording.ticks.pos.shape == (400, 4)
    assert [(each.before, each.after, each.cause) for each in recording.modes] == [
        ("Idle", "Armed", ""),
        ("Armed", "Running", ""),
        ("Running", "Stopping", "worker-dead"),
        ("Stopping", "Holding", ""),
    ]
    assert [each.request or each.text for each in recording.goals] == [SHORT.task, "arm"]
    assert [(each.value, each.code, each.joint) for each in recording.rewards] == [(-10.0, "velocity", 1)]
    assert recording.chunks[0].actions.shape == (16, 4)
    assert recording.summary.replayable
    assert recording.tick_ns == 5_000_000
    assert recording.epoch_ns == EPOCH_NS


def test_what_a_message_leaves_out_is_filled_as_the_schema_says(tmp_path):
    first = {"tick": 1, "pos": [1, 2, 3, 4], "target": [0] * 4, "sent": True, "kp": [5] * 4, "kd": [1] * 4}
    second = {"tick": 2, "pos": [1, 2, 3, 4], "target": [0] * 4, "sent": True, "velocity": [9] * 4}
    third = {"tick": 3, "pos": [1, 2, 3, 4], "kp": [6] * 4}
    path = written(tmp_path / "run.mcap", ("Header", header()), *[("Tick", each) for each in (first, second, third)])
    ticks = Recording.open(path).ticks
    assert ticks.kp[:, 0].tolist() == [5, 5, 6]
    assert ticks.kd[:, 0].tolist() == [1, 1, 1]
    assert ticks.velocity[:, 0].tolist() == [0, 9, 0]
    assert np.isnan(ticks.torque).all()
    assert np.isnan(ticks.wanted).all()
    assert np.isnan(ticks.quat).all()
    assert np.isnan(ticks.target[2]).all()
    assert ticks.sent.tolist() == [True, True, False]


def test_a_recording_without_a_tick_is_still_a_recording(tmp_path):
    recording = Recording.open(written(tmp_path / "run.mcap", ("Header", header()), ("Clock", CLOCK)))
    assert len(recording.ticks) == 0
    assert recording.ticks.pos.shape == (0, 4)
    assert recording.span == (0.0, 0.0)
    assert not recording.complete
    assert recording.reason == "it has no summary"


def test_a_recording_that_was_cut_off_gives_what_is_whole_and_says_so(whole, tmp_path):
    data = whole.read_bytes()
    complete = Recording.open(whole)
    seen = set()
    for cut in np.linspace(len(MAGIC), len(data) - 1, 60).astype(int):
        path = tmp_path / "cut.mcap"
        path.write_bytes(data[:cut])
        recording = opened(path)
        if isinstance(recording, str):
            assert recording == "recording-format"
            continue
        count = len(recording.ticks)
        seen.add(count)
        assert not recording.complete
        assert recording.reason
        assert np.array_equal(recording.ticks.target, complete.ticks.target[:count])
    assert len(seen) >= 3


@pytest.mark.parametrize("seed", range(40))
def test_a_damaged_recording_is_refused_or_ends_early_and_does_nothing_else(whole, tmp_path, seed):
    random = np.random.default_rng(seed)
    data = bytearray(whole.read_bytes())
    for place in random.integers(0, len(data), size=random.integers(1, 6)):
        data[place] = random.integers(256)
    path = tmp_path / "run.mcap"
    path.write_bytes(data)
    recording = opened(path)
    if isinstance(recording, str):
        assert recording.startswith("recording-")
    else:
        assert recording.complete == (not recording.reason)


@pytest.mark.parametrize(
    "content", [b"", b"\x89MC", b"not a recording", b"\x80\x04\x95pickle", b"PK\x03\x04", b"\x1f\x8b\x08"]
)
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "run.mcap"
    path.write_bytes(content)
    assert refusal(path) == "recording-format"


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    assert refusal(tmp_path / "nothing.mcap") == "recording-missing"
    assert refusal(tmp_path) == "recording-missing"


def test_mcap_files_of_other_programs_are_refused(tmp_path):
    path = tmp_path / "run.mcap"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("std_msgs/String", "ros2msg", b"string data")
        channel = writer.register_channel("/chatter", "cdr", schema)
        writer.add_message(channel, 1, b"\x00\x01\x00\x00", 1)
        writer.finish()
    assert refusal(path) == "recording-format"


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "interlock.recording/2"},
        {"plan_json": "not json"},
        {"plan_json": "[]"},
        {"plan_json": "[" * 100_000},
        {"header_json": "7"},
        {"joints": [str(each) for each in range(257)]},
    ],
)
def test_a_header_that_this_version_does_not_understand_is_refused(tmp_path, change):
    assert refusal(written(tmp_path / "run.mcap", ("Header", header(**change)))) == "recording-schema"


def test_ticks_that_do_not_fit_the_header_are_refused(tmp_path):
    wide = ("Tick", {"pos": [0] * 5})
    assert refusal(written(tmp_path / "wide.mcap", ("Header", header()), wide)) == "recording-schema"
    assert refusal(written(tmp_path / "first.mcap", wide, ("Header", header()))) == "recording-schema"
    assert refusal(written(tmp_path / "twice.mcap", ("Header", header()), ("Header", header()))) == "recording-schema"
    chunk = ("Chunk", {"rows": 3, "actions": [0] * 4})
    assert refusal(written(tmp_path / "chunk.mcap", ("Header", header()), chunk)) == "recording-schema"


def test_a_schema_that_lies_about_our_messages_is_refused(tmp_path):
    path = tmp_path / "run.mcap"
    for lie in (b"garbage", V1["interlock.v1.Log"]().SerializeToString()):
        with path.open("wb") as file:
            writer = Writer(file)
            writer.start()
            schema = writer.register_schema("interlock.v1.Header", "protobuf", lie)
            channel = writer.register_channel("/interlock/header", "protobuf", schema)
            writer.add_message(channel, 1, b"\x0a\x01a", 1)
            writer.finish()
        assert refusal(path) == "recording-schema"


def packed(uncompressed, compression, data, size):
    """A chunk record."""
    body = struct.pack("<QQQI", 0, 0, size, 0) + struct.pack("<I", len(compression)) + compression
    body += struct.pack("<Q", len(data)) + data
    return FRAME.pack(6, len(body)) + body


@pytest.mark.parametrize(
    "record",
    [
        FRAME.pack(6, 2**63),
        FRAME.pack(6, 2**63) + bytes(100),
        FRAME.pack(3, 10) + struct.pack("<HI", 1, 2**32 - 1) + bytes(4),
        packed(b"", b"zstd", zstandard.compress(bytes(300 * 2**20)), 2**40),
        packed(b"", b"zstd", zstandard.compress(bytes(300 * 2**20)), 10),
        packed(b"", b"lz4", b"", 0),
        packed(b"", b"", FRAME.pack(5, 2**63) + bytes(30), 39),
        packed(b"", b"", FRAME.pack(5, 22) + bytes(22), 31),
    ],
)
def test_lengths_that_lie_cost_nothing(tmp_path, record):
    path = tmp_path / "run.mcap"
    path.write_bytes(MAGIC + record)
    assert refusal(path) == "recording-format"


def test_a_record_longer_than_any_recording_has_ends_reading_even_where_the_file_is_that_long(whole, tmp_path):
    path = tmp_path / "run.mcap"
    data = whole.read_bytes()
    first = len(MAGIC) + FRAME.size + FRAME.unpack_from(data, len(MAGIC))[1]
    with path.open("wb") as file:
        file.write(data[:first] + FRAME.pack(6, 2**30))
        file.truncate(2**31)
    assert refusal(path) == "recording-format"


def test_images_are_unpacked_when_asked_and_in_any_order(whole):
    images = Recording.open(whole).images["front"]
    assert len(images) == 20
    last, first = images[-1].pixels(), images[0].pixels()
    assert first.shape == last.shape == (48, 48, 3)
    assert images[0].data.startswith(SIGNATURE)
    assert np.array_equal(first, images[0].pixels())
    assert images[1].captured_ns - images[0].captured_ns == 20 * 5_000_000


def encoded(pixels, filter_):
    """A PNG all of whose rows use one filter."""
    height, width, _ = pixels.shape
    lines = pixels.reshape(height, -1).astype(int)
    left = np.pad(lines, ((0, 0), (3, 0)))[:, :-3]
    up = np.pad(lines, ((1, 0), (0, 0)))[:-1]
    corner = np.pad(left, ((1, 0), (0, 0)))[:-1]
    near = np.stack([left, up, corner])
    paeth = np.take_along_axis(near, np.abs(left + up - corner - near).argmin(axis=0)[None], axis=0)[0]
    guess = [0, left, up, (left + up) // 2, paeth][filter_]
    rows = np.concatenate([np.full((height, 1), filter_), (lines - guess) % 256], axis=1).astype(np.uint8)

    def part(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return SIGNATURE + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows.tobytes())) + part(b"IEND", b"")


@pytest.mark.parametrize("filter_", range(5))
def test_a_png_of_every_filter_is_unpacked_exactly(filter_):
    pixels = np.random.default_rng(filter_).integers(0, 256, (7, 5, 3), dtype=np.uint8)
    assert np.array_equal(unpack_png(encoded(pixels, filter_)), pixels)


def test_a_png_that_lies_about_its_size_is_refused():
    good = encoded(np.zeros((4, 4, 3), dtype=np.uint8), 0)
    head = good.index(b"IHDR") + 4
    for width, height in [(2**31 - 1, 2**31 - 1), (0, 4), (5, 4), (4, 2**24)]:
        with pytest.raises(ValueError, match="PNG"):
            unpack_png(good[:head] + struct.pack(">II", width, height) + good[head + 8 :])
    for bad in (
        good[:-30],
        b"",
        SIGNATURE,
        good.replace(b"IDAT", b"IDOT"),
        good[: head + 8] + b"\x10" + good[head + 9 :],
    ):
        with pytest.raises(ValueError, match="PNG"):
            unpack_png(bad)
