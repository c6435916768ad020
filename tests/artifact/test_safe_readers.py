"""safetensors and npz: hostile bytes are refused with a code and a hint, nothing runs, nothing blows up."""

import io
import json
import pickle  # noqa: TID251  (makes hostile files)
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.artifact.arrays import read_arrays, write_arrays
from interlock.artifact.observations import Observations, flat_states, read_observations
from interlock.artifact.safetensors import check_weights
from interlock.errors import InterlockError


def weights(entries, data, *, header=None):
    text = header if header is not None else json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(2,), at=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(at)}


GOOD = weights({"w": entry()}, np.ones(2, "<f4").tobytes())


def test_a_whole_file_passes():
    facts = check_weights(GOOD, where="model.safetensors")
    assert facts.tensors == {"w": ("F32", (2,))}
    assert facts.parameters == 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 7,
        GOOD[:-1],
        GOOD[:20],
        GOOD + b"\0",
        weights({}, b"x"),
        (1 << 60).to_bytes(8, "little") + b"{}",
        weights(None, b"", header=b"[]"),
        weights(None, b"", header=b"not json"),
        weights(None, b"", header=b"[" * 100_000),
        weights(None, np.ones(2, "<f4").tobytes(), header=b'{"w":' + json.dumps(entry()).encode() + b',"w":'
                + json.dumps(entry()).encode() + b"}"),
        weights({"a": entry(), "b": entry(at=(4, 12))}, b"\0" * 12),  # overlapping
        weights({"a": entry(), "b": entry(at=(12, 20))}, b"\0" * 20),  # a hole
        weights({"w": entry(shape=(3,))}, b"\0" * 8),
        weights({"w": entry(at=(8, 0))}, b"\0" * 8),
        weights({"w": entry(at=(-8, 0))}, b"\0" * 8),
        weights({"w": entry(shape=(-2,))}, b"\0" * 8),
        weights({"w": entry(shape=(True, 2))}, b"\0" * 8),
        weights({"w": entry(dtype="OBJ")}, b"\0" * 8),
        weights({"w": {**entry(), "extra": 1}}, b"\0" * 8),
        weights({"../w": entry()}, b"\0" * 8),
        weights({"a/../w": entry()}, b"\0" * 8),
        weights({"w\n": entry()}, b"\0" * 8),
        weights({"__metadata__": {"a": 1}, "w": entry()}, b"\0" * 8),
    ],
)  # fmt: skip
def test_a_malformed_file_is_refused(content):
    with pytest.raises(InterlockError) as caught:
        check_weights(content, where="model.safetensors")
    assert caught.value.code == "safetensors-malformed"
    assert caught.value.problems[0].hint


@pytest.mark.parametrize(
    ("dtype", "raw"),
    [("F32", np.array([1, np.nan], "<f4")), ("F32", np.array([1, np.inf], "<f4")), ("F16", np.array([1, np.nan], "<f2")),
     ("F64", np.array([1, -np.inf], "<f8")), ("BF16", np.array([0x3F80, 0x7FC0], "<u2"))],
)  # fmt: skip
def test_weights_that_are_not_finite_are_refused(dtype, raw):
    content = weights({"w": entry(dtype=dtype, at=(0, raw.nbytes))}, raw.tobytes())
    with pytest.raises(InterlockError) as caught:
        check_weights(content, where="model.safetensors")
    assert caught.value.code == "weights-not-finite"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=6), st.integers(0, len(GOOD)))
def test_damaged_safetensors_never_crash(flips, size):
    content = bytearray(GOOD)
    for at, value in flips:
        content[at] = value
    try:
        check_weights(bytes(content[:size]), where="x")
    except InterlockError as refusal:
        refused_as(refusal, "safetensors-malformed", "weights-not-finite")


def refused_as(refusal, *codes):
    assert refusal.code in codes


def test_the_same_arrays_give_the_same_bytes():
    arrays = {"b": np.arange(6.0).reshape(2, 3), "a": np.array(["x", "yz"])}
    assert write_arrays(arrays) == write_arrays(dict(reversed(arrays.items())))
    back = read_arrays(write_arrays(arrays), where="x")
    assert back["a"].tolist() == ["x", "yz"]
    np.testing.assert_array_equal(back["b"], arrays["b"])


class Canary:
    """Unpickling it writes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def test_an_object_array_is_refused_and_its_pickle_never_runs(tmp_path):
    canary = tmp_path / "canary"
    out = io.BytesIO()
    np.savez(out, a=np.array([Canary(canary)], dtype=object))
    canary.unlink(missing_ok=True)
    with pytest.raises(InterlockError) as caught:
        read_arrays(out.getvalue(), where="samples.npz")
    assert caught.value.code == "pickle-refused"
    assert not canary.exists()


def npz(entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return out.getvalue()


def npy(header, data=b""):
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        pickle.dumps([1]),
        npz({"a.txt": b"x"}),
        npz({"../a.npy": b"x"}),
        npz({"a.npy": b"x"}),
        npz({"a.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", b"\0" * 8)}),
        npz({"a.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", b"\0" * 8)}),
        npz({"a.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,)}")}),
        npz({"a.npy": npy("__import__('os')")}),
        npz({"a.npy": npy("(" * 500)}),
    ],
)
def test_a_malformed_npz_is_refused(content):
    with pytest.raises(InterlockError) as caught:
        read_arrays(content, where="samples.npz")
    assert caught.value.code in {"npz-malformed", "pickle-refused"}


def test_a_bomb_is_refused_before_it_is_unpacked():
    bomb = npz({"a.npy": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (50000000,)}", b"\0" * 50_000_000)})
    assert len(bomb) < 100_000
    with pytest.raises(InterlockError) as caught:
        read_arrays(bomb, where="samples.npz", limit=1_000_000)
    assert caught.value.code == "npz-size"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_npz_never_crash(data):
    content = bytearray(write_arrays({"a": np.arange(5.0)}))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        read_arrays(bytes(content), where="x", limit=1 << 20)
    except InterlockError as refusal:
        refused_as(refusal, "npz-malformed", "npz-size", "pickle-refused")


def observations(count=4):
    state = flat_states(count, 2)
    state[:, :2] = np.arange(count * 2).reshape(count, 2)
    return Observations(
        joints=("a", "b"), state=state, images={"front": np.zeros((count, 3, 4, 3), np.uint8)},
        goal=np.zeros((count, 3)), tasks=("go",), task=np.zeros(count, np.int64), origin="dataset",
    )  # fmt: skip


def test_observations_come_back_as_they_were():
    kept = read_observations(observations().content(), where="x")
    assert kept.content() == observations().content()
    assert kept.text(0) == "go"


def test_joints_are_reordered_by_name():
    turned = observations().ordered(("b", "a"))
    np.testing.assert_array_equal(turned.joint_pos, observations().joint_pos[:, ::-1])
    with pytest.raises(InterlockError) as caught:
        observations().ordered(("a", "c"))
    assert caught.value.code == "samples-joints"


@pytest.mark.parametrize(
    "change",
    [{"joints": np.array(["a", "a"])}, {"joints": None}, {"joint_pos": np.full((4, 2), np.nan)},
     {"joint_pos": np.zeros((0, 2))}, {"joint_pos": np.zeros((4, 3))}, {"joint_vel": np.zeros((3, 2))},
     {"goal": np.full((4, 3), np.inf)}, {"image.front": np.zeros((4, 3, 4, 3))}, {"tasks": np.array(["x"]), "task": np.array([0, 0, 0, 1])}],
)  # fmt: skip
def test_observations_that_contradict_themselves_are_refused(change):
    arrays = {"joints": np.array(["a", "b"]), "joint_pos": np.zeros((4, 2)), **change}
    content = write_arrays({name: each for name, each in arrays.items() if each is not None})
    with pytest.raises(InterlockError) as caught:
        read_observations(content, where="samples.npz")
    assert caught.value.code == "samples-malformed"
