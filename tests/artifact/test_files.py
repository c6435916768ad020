"""Reading and writing that cannot be led out of a folder, and that is whole or absent."""

import os
from pathlib import Path

import pytest

from interlock.artifact import files
from interlock.artifact.files import list_files, read_file, safe_name, staged_folder, write_file
from interlock.errors import InterlockError


@pytest.mark.parametrize(
    "name",
    ["", "/etc/passwd", "..", "../x", "a/../b", "a//b", "./a", "a/.", "a\\b", "a\x00b", "a\nb", "a/" + "b" * 256,
     "x/" * 600 + "y", "e\u0301"],
)  # fmt: skip
def test_names_that_could_leave_the_folder_are_refused(name):
    with pytest.raises(InterlockError) as caught:
        safe_name(name, where="manifest")
    assert caught.value.code == "path-escape"


@pytest.mark.parametrize("name", ["a", "a/b.onnx", "upstream/deploy.yaml", "é", ".hidden"])
def test_plain_names_pass(name):
    assert safe_name(name, where="manifest") == name


def test_a_link_to_a_file_outside_is_never_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(secret)
    with pytest.raises(InterlockError) as caught:
        read_file(root, "link")
    assert caught.value.code == "file-kind"


def test_a_link_on_the_way_is_never_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("x")
    root = tmp_path / "root"
    root.mkdir()
    (root / "folder").symlink_to(tmp_path / "real")
    with pytest.raises(InterlockError) as caught:
        read_file(root, "folder/file")
    assert caught.value.code == "file-kind"


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InterlockError) as caught:
        read_file(tmp_path, "pipe")
    assert caught.value.code == "file-kind"


def test_a_file_beyond_the_limit_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)  # sparse: a file that lies about its size
    with pytest.raises(InterlockError) as caught:
        read_file(tmp_path, "large")
    assert caught.value.code == "file-size"


@pytest.mark.parametrize("make", [lambda p: p.symlink_to("/etc"), os.mkfifo])
def test_listing_refuses_what_is_no_regular_file(tmp_path, make):
    (tmp_path / "a").mkdir()
    make(tmp_path / "a" / "odd")
    with pytest.raises(InterlockError) as caught:
        list_files(tmp_path)
    assert caught.value.code == "file-kind"
    assert list_files(tmp_path, links="skip") == []


def test_too_many_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_FILES", 3)
    for index in range(5):
        (tmp_path / str(index)).touch()
    with pytest.raises(InterlockError) as caught:
        list_files(tmp_path)
    assert caught.value.code == "folder-size"


def test_a_write_that_fails_leaves_the_old_content_and_no_trace(tmp_path, monkeypatch):
    write_file(tmp_path, "a/file", b"old")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(OSError, match="no space"):
        write_file(tmp_path, "a/file", b"new")
    assert (tmp_path / "a" / "file").read_bytes() == b"old"
    assert [each.name for each in (tmp_path / "a").iterdir()] == ["file"]


def test_file_and_folder_are_made_durable_before_a_write_counts(tmp_path, monkeypatch):
    synced = []
    real = os.fsync

    def noted(handle):
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        real(handle)

    monkeypatch.setattr(os, "fsync", noted)
    write_file(tmp_path, "file", b"content")
    assert synced[0].startswith(str(tmp_path / ".tmp-"))
    assert synced[-1] == str(tmp_path)


def test_a_folder_that_fails_half_way_leaves_nothing(tmp_path):
    def half(target):
        with staged_folder(target) as staging:
            write_file(staging, "a", b"1")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError):
        half(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_a_new_folder_takes_the_place_of_an_old_one_whole(tmp_path):
    target = tmp_path / "folder"
    for content in (b"1", b"2"):
        with staged_folder(target) as staging:
            write_file(staging, content.decode(), content)
    assert [each.name for each in target.iterdir()] == ["2"]
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]
