"""Bad files, through the real command line: refused with code, hint and next command; nothing written, nothing run."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle  # noqa: TID251  (written here, to show that nobody reads it)
import shutil
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import CommandLine
from small import CONTRACT, MODEL, ROBOT, graph, matrix, place

REFUSED = 5
SECRET = "root:x:0:0"
TAG = '!!python/object/apply:os.system ["touch {canary}"]'
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
)
JUNK = bytes(range(256)) * 16


class Canary:
    """Whoever unpickles this leaves a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return (os.system, (f"touch {self.path}",))


@pytest.fixture(scope="module")
def interlock():
    with CommandLine() as line:
        yield line


@pytest.fixture(scope="module")
def template(interlock, tmp_path_factory) -> Path:
    folder = place(tmp_path_factory.mktemp("small"))
    for step in (
        ("freeze", "checkpoint", "--contract", "contract.yaml", "-o", "small.policy"),
        ("build", "small.policy"),
    ):
        done = interlock(*step, cwd=folder)
        assert done.code == 0, done.said
    return folder


@pytest.fixture
def here(template, tmp_path) -> Path:
    """A working folder of its own, with everything right so far."""
    return shutil.copytree(template, tmp_path / "here", symlinks=True)


def listing(folder: Path) -> dict[str, str]:
    """Every file with its content; opens nothing that is not a plain file."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        elif path.is_file() and os.access(path, os.R_OK) and path.stat().st_size < 1 << 26:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = f"mode {path.stat().st_mode:o}"
    return found


def refused(
    interlock: CommandLine,
    here: Path,
    *arguments: object,
    code: int = REFUSED,
    word: str = "",
    plain: bool = False,
    machine: bool = True,
) -> None:
    """Runs once for people and, with `machine`, once for machines; both refuse well and leave everything as it was."""
    before = listing(here.parent)
    done = interlock(*arguments, cwd=here, plain=plain)
    shown = f"interlock {' '.join(map(str, arguments))}\n{done.said}"
    assert done.code == code, shown
    assert "Traceback" not in done.said, shown
    assert SECRET not in done.said, shown
    assert done.err.startswith("error["), shown
    for start in ("error[", "hint: ", "next: interlock "):
        assert done.lines(start), f"no line {start!r}\n{shown}"
    assert len(done.said) < 20_000, f"{len(done.said)} characters"
    if word:
        assert f"error[{word}]" in done.err, shown
    if machine:
        answer = interlock(*arguments, "--json", cwd=here, plain=plain)
        assert answer.code == code, answer.said
        found = answer.json()
        assert found["exit"] == code, found
        assert found["next"].startswith("interlock "), found
        assert [each["code"] for each in found["problems"] if not each["code"] or not each["hint"]] == [], found
        assert answer.err == "", answer.err
    after = listing(here.parent)
    assert after == before, f"{set(after.items()) ^ set(before.items())}\n{shown}"
    assert not (here.parent / "canary").exists(), "something was executed"


# ---- text files: contract, robot, answers


def as_bytes(content: bytes) -> Callable[[Path], None]:
    return lambda path: _write(path, content)


def _write(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def _cut(path: Path) -> None:
    content = path.read_bytes()
    _write(path, content[: len(content) // 2])


def _tagged(path: Path) -> None:
    tag = TAG.format(canary=path.parents[1] / "canary")
    _write(path, path.read_bytes() + f"\nmore: {tag}\n".encode())


def _folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def _pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _endless(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def _loop(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


def _huge(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(1 << 40)


def _gone(path: Path) -> None:
    path.unlink()


TEXTS: dict[str, Callable[[Path], None]] = {
    "missing": _gone,
    "empty": as_bytes(b""),
    "truncated": _cut,
    "not text": as_bytes(JUNK),
    "latin-1": lambda path: _write(path, path.read_bytes() + "# größer".encode("latin-1")),
    "a list": as_bytes(b"- one\n- two\n"),
    "a number": as_bytes(b"42\n"),
    "not YAML": as_bytes(b"{[}\n"),
    "NUL": lambda path: _write(path, path.read_bytes() + b"\0"),
    "python tag": _tagged,
    "anchor bomb": as_bytes(BOMB.encode()),
    "too deep": as_bytes(b"[" * 20_000),
    "twice": lambda path: _write(path, path.read_bytes() * 2),
    "huge": _huge,
    "folder": _folder,
    "pipe": _pipe,
    "endless": _endless,
    "loop": _loop,
    "pickle": lambda path: _write(path, pickle.dumps(Canary(path.parents[1] / "canary"))),
}


RUN = ("run", "small.policy", "--sim", "--lockstep")
OF_A_FOLDER = (*((verb, "small.policy") for verb in ("build", "verify", "show")), RUN)
OF_A_ROBOT = (("build", "small.policy"), RUN, ("freeze", "checkpoint", "--robot", "robot.yaml", "-o", "new.policy"))


def one_of(calls: tuple, damage: str, table: dict) -> tuple:
    """`check` sees every damage; the other verbs take turns, all of them in the slow suite."""
    return calls[list(table).index(damage) % len(calls)]


@pytest.mark.parametrize("damage", TEXTS)
def test_a_bad_robot_file_is_refused(interlock, here, damage):
    TEXTS[damage](here / "robot.yaml")
    refused(interlock, here, "check", "small.policy")
    other = one_of(OF_A_ROBOT, damage, TEXTS)
    if (damage, other[0]) != ("missing", "build"):  # build goes without one
        refused(interlock, here, *other, machine=False)


@pytest.mark.slow
@pytest.mark.parametrize("damage", TEXTS)
def test_a_bad_robot_file_is_refused_by_every_verb(interlock, here, damage):
    TEXTS[damage](here / "robot.yaml")
    for other in OF_A_ROBOT:
        if (damage, other[0]) != ("missing", "build"):
            refused(interlock, here, *other)


def test_a_robot_file_that_was_named_must_be_there(interlock, here):
    refused(interlock, here, "build", "small.policy", "--robot", "nowhere.yaml", word="robot-missing")
    refused(interlock, here, "go", "checkpoint", "--robot", "nowhere.yaml", word="robot-missing")


@pytest.mark.parametrize("damage", TEXTS)
def test_a_bad_contract_is_refused(interlock, here, damage):
    TEXTS[damage](here / "contract.yaml")
    refused(interlock, here, "freeze", "checkpoint", "--contract", "contract.yaml", "-o", "new.policy", machine=False)
    TEXTS[damage](here / "small.policy" / "contract.yaml")
    refused(interlock, here, "check", "small.policy")
    refused(interlock, here, *one_of(OF_A_FOLDER, damage, TEXTS), machine=False)


@pytest.mark.slow
@pytest.mark.parametrize("damage", TEXTS)
def test_a_bad_contract_is_refused_by_every_verb(interlock, here, damage):
    TEXTS[damage](here / "small.policy" / "contract.yaml")
    for call in OF_A_FOLDER:
        refused(interlock, here, *call)


@pytest.mark.parametrize("damage", TEXTS)
def test_bad_answers_are_refused(interlock, here, damage):
    answers = here / "answers.yaml"
    answers.write_text("name: small\n")
    TEXTS[damage](answers)
    refused(
        interlock, here, "freeze", "checkpoint", "--contract", "contract.yaml", "--answers", "answers.yaml",
        "-o", "new.policy",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("sim: {mjcf: ../../../../etc/passwd}", "path-outside"),
        ("sim: {mjcf: /etc/passwd}", "path-outside"),
        ("sim: {mjcf: arm.xml/../../secret.xml}", "path-outside"),
    ],
)
def test_a_robot_file_names_nothing_outside_its_folder(interlock, here, line, word):
    (here / "robot.yaml").write_text(ROBOT.replace("sim: {mjcf: arm.xml, step_ms: 1}", line))
    refused(interlock, here, "check", "small.policy", word=word)
    refused(interlock, here, "run", "small.policy", "--sim", "--lockstep", word=word)


@pytest.mark.parametrize(
    "content", [b"", JUNK, MODEL[:60].encode(), b"<mujoco/>"], ids=["empty", "junk", "cut", "bare"]
)
def test_a_bad_simulation_model_is_refused(interlock, here, content):
    (here / "arm.xml").write_bytes(content)
    refused(interlock, here, "run", "small.policy", "--sim", "--lockstep")
    refused(interlock, here, "run", "small.policy", "--sim")


def test_a_policy_that_reads_outside_its_folder_is_refused(interlock, here):
    outside = CONTRACT.replace("files: source/", "files: ../../../etc/")
    (here / "contract.yaml").write_text(outside)
    refused(
        interlock, here, "freeze", "checkpoint", "--contract", "contract.yaml", "-o", "new.policy", word="path-outside"
    )


@pytest.mark.parametrize("file", ["robot.yaml", "contract.yaml"])
def test_an_unreadable_file_is_refused(interlock, here, file):
    (here / file).chmod(0)
    arguments = {
        "robot.yaml": ("check", "small.policy"),
        "contract.yaml": ("freeze", "checkpoint", "--contract", "contract.yaml", "-o", "new.policy"),
    }
    refused(interlock, here, *arguments[file], plain=True)


# ---- checkpoints


def _bare(here: Path) -> Path:
    folder = here / "checkpoint"
    shutil.rmtree(folder)
    folder.mkdir()
    return folder


def _torch_file(path: Path) -> None:
    """What `torch.save` writes: a zip archive with a pickle inside, here a hostile one."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Canary(path.parents[2] / "canary")))
        archive.writestr("archive/version", "3\n")


def _pickle_as_onnx(here: Path) -> None:
    content = pickle.dumps(Canary(here.parent / "canary"))
    (here / "checkpoint" / "small.onnx").write_bytes(content)


def _external(here: Path, location: str, content: bytes | None = None) -> None:
    folder = _bare(here)
    (folder / "small.onnx").write_bytes(graph(external=location))
    if content is not None:
        (folder / location).write_bytes(content)


def _linked_weights(here: Path) -> None:
    _external(here, "w.bin")
    (here.parent / "elsewhere.bin").write_bytes(matrix().tobytes())
    (here / "checkpoint" / "w.bin").symlink_to(here.parent / "elsewhere.bin")


def _safetensors(here: Path, header: bytes, size: int | None = None, body: bytes = b"") -> None:
    """Beside a configuration of our own, weights that are not what they say."""
    from interlock.adapters import arm

    shutil.rmtree(here / "checkpoint")
    shutil.copytree(Path(arm.__file__).parent / "reach_block", here / "checkpoint")
    length = len(header) if size is None else size
    content = struct.pack("<Q", length) + header + body
    (here / "checkpoint" / "model.safetensors").write_bytes(content)
    config = json.loads((here / "checkpoint" / "config.json").read_text())
    config["files_sha256"]["model.safetensors"] = hashlib.sha256(content).hexdigest()
    (here / "checkpoint" / "config.json").write_text(json.dumps(config))


def _config(here: Path, content: bytes) -> None:
    _safetensors(here, b"{}")
    (here / "checkpoint" / "config.json").write_bytes(content)


def _deploy(here: Path, text: str) -> None:
    (here / "checkpoint" / "deploy.yaml").write_text(text)


def _deep(here: Path) -> None:
    path = here / "checkpoint"
    for _ in range(60):
        path /= "d"
    path.mkdir(parents=True)


CHECKPOINTS: dict[str, Callable[[Path], object]] = {
    "missing": lambda here: shutil.rmtree(here / "checkpoint"),
    "empty folder": _bare,
    "a text file": lambda here: (_bare(here) / "README.md").write_text("hello"),
    "empty graph": lambda here: (_bare(here) / "small.onnx").write_bytes(b""),
    "truncated graph": lambda here: (_bare(here) / "small.onnx").write_bytes(graph()[:80]),
    "junk for a graph": lambda here: (_bare(here) / "small.onnx").write_bytes(JUNK),
    "pickle for a graph": _pickle_as_onnx,
    "graph of another shape": lambda here: (_bare(here) / "small.onnx").write_bytes(graph(shape=7)),
    "torch file": lambda here: _torch_file(_bare(here) / "policy.pt"),
    "pickle": lambda here: (_bare(here) / "model.pkl").write_bytes(pickle.dumps(Canary(here.parent / "canary"))),
    "external data missing": lambda here: _external(here, "w.bin"),
    "external data too short": lambda here: _external(here, "w.bin", b"\0" * 7),
    "external data outside": lambda here: _external(here, "../../../../../../etc/passwd"),
    "external data absolute": lambda here: _external(here, "/etc/passwd"),
    "external data linked": _linked_weights,
    "huge file": lambda here: os.truncate(here / "checkpoint" / "small.onnx", 1 << 40),
    "pipe": lambda here: os.mkfifo(_bare(here) / "small.onnx"),
    "link": lambda here: (_bare(here) / "small.onnx").symlink_to("/etc/passwd"),
    "a folder for a graph": lambda here: (_bare(here) / "small.onnx").mkdir(),
    "folders without end": _deep,
    "name of another writing": lambda here: Path(os.fsdecode(os.fsencode(_bare(here)) + b"/\xff\xfe.onnx")).write_bytes(
        graph()[:40]
    ),
    "weights: header too large": lambda here: _safetensors(here, b"{}", size=1 << 62),
    "weights: not JSON": lambda here: _safetensors(here, b"{nope}  "),
    "weights: a list": lambda here: _safetensors(here, b"[]      "),
    "weights: beyond the end": lambda here: _safetensors(
        here, json.dumps({"w": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 1 << 42]}}).encode()
    ),
    "weights: overlapping": lambda here: _safetensors(
        here,
        json.dumps({k: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} for k in ("a", "b")}).encode(),
        body=b"\0" * 4,
    ),
    "configuration: truncated": lambda here: _config(here, b'{"type": "interlock-vla", "for'),
    "configuration: junk": lambda here: _config(here, JUNK),
    "configuration: a list": lambda here: _config(here, b'["interlock-vla"]'),
    "configuration: bare": lambda here: _config(here, b'{"type": "interlock-vla"}'),
    "configuration: too deep": lambda here: _config(here, b'{"a":' * 20_000),
    "configuration: other weights": lambda here: _config(here, b'{"type": "interlock-vla", "format": 1}'),
}


@pytest.mark.parametrize("damage", CHECKPOINTS)
def test_a_bad_checkpoint_is_refused(interlock, here, damage):
    CHECKPOINTS[damage](here)
    contract = () if damage.split(":")[0] in {"weights", "configuration"} else ("--contract", "contract.yaml")
    refused(interlock, here, "freeze", "checkpoint", *contract, "-o", "new.policy")
    if damage != "graph of another shape":  # without a contract everything is asked, which is another answer
        refused(interlock, here, "go", "checkpoint", "-o", "new.policy", machine=False)


SIDE_FILES = {
    "python tag": f"joint_ids_map: [0]\nstep_dt: {TAG}\n",
    "anchor bomb": f"joint_ids_map: [0]\n{BOMB}",
    "empty map": "joint_ids_map:\n",
    "a list": "- joint_ids_map\n",
    "too deep": "joint_ids_map: " + "[" * 20_000,
    "huge numbers": "joint_ids_map: [0, 1, 2]\nstep_dt: 1e400\nstiffness: [1e999]\n",
}


@pytest.mark.parametrize("damage", SIDE_FILES)
def test_a_bad_side_file_is_refused_and_its_tags_are_not_executed(interlock, here, damage):
    _deploy(here, SIDE_FILES[damage].replace("{canary}", str(here.parent / "canary")))
    refused(interlock, here, "freeze", "checkpoint", "-o", "new.policy")


def _npz(**arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _claims() -> bytes:
    """An array whose header claims petabytes."""
    head = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1125899906842624,), }"
    head += b" " * (118 - len(head)) + b"\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("joint_pos.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
    return buffer.getvalue()


def _zip_bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("joint_pos.npy", np.lib.format.magic(1, 0) + b"\0" * (64 << 20))
    return buffer.getvalue()


@pytest.mark.parametrize("damage", ["empty", "junk", "cut", "pickle", "object array", "claims", "bomb", "shape"])
def test_bad_samples_are_refused(interlock, here, damage):
    trap = np.array([Canary(here.parent / "canary")], dtype=object)
    good = _npz(joint_pos=np.zeros((9, 3)))
    content = {
        "empty": lambda: b"",
        "junk": lambda: JUNK,
        "cut": lambda: good[: len(good) // 2],
        "pickle": lambda: pickle.dumps(trap),
        "object array": lambda: _npz(joint_pos=trap),
        "claims": _claims,
        "bomb": _zip_bomb,
        "shape": lambda: _npz(joint_pos=np.zeros((9, 3, 3, 3))),
    }[damage]()
    (here / "samples.npz").write_bytes(content)
    refused(
        interlock, here, "freeze", "checkpoint", "--contract", "contract.yaml", "--samples", "samples.npz",
        "-o", "new.policy",
    )  # fmt: skip


def test_an_unreadable_checkpoint_is_refused(interlock, here):
    (here / "checkpoint" / "small.onnx").chmod(0)
    refused(interlock, here, "freeze", "checkpoint", "--contract", "contract.yaml", "-o", "new.policy", plain=True)


def test_a_place_that_cannot_be_written_is_refused(interlock, here):
    here.chmod(0o500)
    try:
        refused(interlock, here, "freeze", "checkpoint", "--contract", "contract.yaml", "-o", "new.policy", plain=True)
        refused(interlock, here, "robot", "import", "arm.xml", "-o", "new.yaml", plain=True)
        refused(interlock, here, "run", "small.policy", "--sim", "--lockstep", plain=True)
    finally:
        here.chmod(0o700)


# ---- policy folders


def _lock(here: Path, change: Callable[[dict], None]) -> None:
    path = here / "small.policy" / "lock.json"
    lock = json.loads(path.read_text())
    change(lock)
    path.write_text(json.dumps(lock))


def _entry(lock: dict, name: str, size: int) -> None:
    lock["files"][name] = {"sha256": "0" * 64, "bytes": size}


def _swap_weights(here: Path) -> None:
    path = here / "small.policy" / "graph" / "policy.onnx"
    content = bytearray(path.read_bytes())
    content[content.index(matrix().tobytes())] ^= 1
    path.write_bytes(bytes(content))


def _folder_file(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda here: (here / "small.policy" / name).write_bytes(content)


def _relinked(here: Path) -> None:
    path = here / "small.policy" / "graph" / "policy.onnx"
    path.rename(here / "policy.onnx")
    path.symlink_to(here / "policy.onnx")


FOLDERS: dict[str, Callable[[Path], object]] = {
    "missing": lambda here: shutil.rmtree(here / "small.policy"),
    "a file": lambda here: (shutil.rmtree(here / "small.policy"), (here / "small.policy").write_text("x")),
    "lock missing": lambda here: (here / "small.policy" / "lock.json").unlink(),
    "lock empty": _folder_file("lock.json", b""),
    "lock truncated": lambda here: _cut(here / "small.policy" / "lock.json"),
    "lock junk": _folder_file("lock.json", JUNK),
    "lock too deep": _folder_file("lock.json", b"[" * 20_000),
    "lock of a list": _folder_file("lock.json", b"[]"),
    "lock of wrong types": lambda here: _lock(here, lambda lock: lock.update(files=7)),
    "lock names a file outside": lambda here: _lock(here, lambda lock: _entry(lock, "../../../../etc/passwd", 9)),
    "lock names an absolute file": lambda here: _lock(here, lambda lock: _entry(lock, "/etc/passwd", 9)),
    "lock claims a huge file": lambda here: _lock(here, lambda lock: _entry(lock, "graph/policy.onnx", 1 << 60)),
    "lock names a missing file": lambda here: _lock(here, lambda lock: _entry(lock, "graph/more.bin", 9)),
    "graph changed": _swap_weights,
    "graph missing": lambda here: (here / "small.policy" / "graph" / "policy.onnx").unlink(),
    "graph linked": _relinked,
    "graph a pipe": lambda here: _pipe(here / "small.policy" / "graph" / "policy.onnx"),
    "graph huge": lambda here: _huge(here / "small.policy" / "graph" / "policy.onnx"),
    "one file more": _folder_file("graph/extra.bin", b"x"),
    "contract missing": lambda here: (here / "small.policy" / "contract.yaml").unlink(),
    "evidence junk": _folder_file("evidence/build.json", JUNK),
}


MENDED_BY_BUILD = ("graph", "evidence", "one file", "lock claims", "lock names a missing")


@pytest.mark.parametrize("damage", FOLDERS)
def test_a_damaged_policy_folder_is_refused(interlock, here, damage):
    FOLDERS[damage](here)
    refused(interlock, here, "check", "small.policy")
    other = one_of(OF_A_FOLDER, damage, FOLDERS)
    if other[0] != "build" or not damage.startswith(MENDED_BY_BUILD):  # what build writes anew may be damaged before
        refused(interlock, here, *other, machine=False)


@pytest.mark.slow
@pytest.mark.parametrize("damage", FOLDERS)
def test_a_damaged_policy_folder_is_refused_by_every_verb(interlock, here, damage):
    FOLDERS[damage](here)
    for call in OF_A_FOLDER:
        if call[0] != "build" or not damage.startswith(MENDED_BY_BUILD):
            refused(interlock, here, *call)


# ---- recordings

MAGIC = b"\x89MCAP0\r\n"


def _record(kind: int, body: bytes, size: int | None = None) -> bytes:
    return bytes([kind]) + struct.pack("<Q", len(body) if size is None else size) + body


def _string(text: bytes) -> bytes:
    return struct.pack("<I", len(text)) + text


HEADER = _record(1, _string(b"") + _string(b"test"))
FOOTER = _record(2, struct.pack("<QQI", 0, 0, 0))
RECORDINGS = {
    "empty": b"",
    "magic only": MAGIC,
    "junk": JUNK,
    "text": b"not a recording",
    "junk after the magic": MAGIC + JUNK,
    "nothing inside": MAGIC + HEADER + FOOTER + MAGIC,
    "a record of 2^63 bytes": MAGIC + HEADER + _record(4, b"\0" * 16, size=1 << 63),
    "a chunk that claims petabytes": MAGIC
    + HEADER
    + _record(6, struct.pack("<QQQI", 0, 0, 1 << 50, 0) + _string(b"zstd") + struct.pack("<Q", 4) + b"\0" * 4),
    "a schema that is none": MAGIC
    + HEADER
    + _record(3, struct.pack("<H", 1) + _string(b"interlock.v1.Tick") + _string(b"protobuf") + _string(JUNK))
    + FOOTER
    + MAGIC,
    "pickle": pickle.dumps({"a": 1}),
}


@pytest.mark.parametrize("damage", RECORDINGS)
def test_a_bad_recording_is_refused(interlock, here, damage):
    (here / "run.mcap").write_bytes(RECORDINGS[damage])
    refused(interlock, here, "report", "run.mcap")
    refused(interlock, here, "show", "run.mcap", machine=False)


@pytest.mark.parametrize("damage", ["missing", "folder", "pipe", "endless", "loop", "huge"])
def test_what_is_no_recording_is_refused(interlock, here, damage):
    (here / "run.mcap").write_bytes(MAGIC)
    TEXTS[damage](here / "run.mcap")
    refused(interlock, here, "report", "run.mcap")
    refused(interlock, here, "show", "run.mcap", machine=False)


def test_an_unreadable_recording_is_refused(interlock, here):
    (here / "run.mcap").write_bytes(MAGIC)
    (here / "run.mcap").chmod(0)
    refused(interlock, here, "report", "run.mcap", plain=True)


# ---- robot models

MODELS = {
    "empty": b"",
    "junk": JUNK,
    "truncated": MODEL[:120].encode(),
    "another language": b"<html><body/></html>",
    "no joints": b"<mujoco/>",
    "entities": b'<!DOCTYPE m [<!ENTITY a "x"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><mujoco model="&b;"/>',
    "external entity": b'<!DOCTYPE m [<!ENTITY x SYSTEM "file:///etc/passwd">]><mujoco model="&x;"/>',
    "includes": b'<mujoco><include file="/etc/passwd"/></mujoco>',
    "too deep": b"<mujoco>" + b"<worldbody>" * 20_000,
}


@pytest.mark.parametrize("damage", MODELS)
def test_a_bad_model_is_refused(interlock, here, damage):
    (here / "arm.xml").write_bytes(MODELS[damage])
    refused(interlock, here, "robot", "import", "arm.xml", "-o", "new.yaml")


@pytest.mark.parametrize("damage", ["missing", "folder", "pipe", "endless", "loop", "huge"])
def test_what_is_no_model_is_refused(interlock, here, damage):
    TEXTS[damage](here / "arm.xml")
    refused(interlock, here, "robot", "import", "arm.xml", "-o", "new.yaml")


def test_a_robot_file_is_never_overwritten(interlock, here):
    refused(interlock, here, "robot", "import", "arm.xml", "-o", "robot.yaml", code=7, word="output-exists")


# ---- names


NAMES = ("x" * 300, "y/" * 3000, "new\nline", "tab\t[bold]x[/bold]", "\x1b[31mred", "\udcff", "./nowhere")


@pytest.mark.parametrize("verb", ["check", "build", "verify", "freeze", "report", "show", "run", "go"])
def test_strange_names_are_refused(interlock, here, verb):
    for name in NAMES:
        refused(interlock, here, verb, name, machine=False)


def test_what_a_stranger_wrote_passes_for_no_line_of_ours_and_controls_no_terminal(interlock, here):
    done = interlock("check", "\x1b[2Jx\nnext: interlock evil", cwd=here)
    assert done.code == REFUSED
    assert "\x1b" not in done.said
    assert done.lines("next: ") == ["next: interlock freeze SOURCE -o \\x1b[2Jx"]


@pytest.mark.parametrize("verb", ["check", "run"])
def test_one_call_as_a_process_of_its_own(here, verb):
    done = subprocess.run(
        [sys.executable, "-m", "interlock", verb, "nowhere", "--json"],
        cwd=here, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == REFUSED
    assert json.loads(done.stdout)["next"].startswith("interlock ")
    assert done.stderr == ""
