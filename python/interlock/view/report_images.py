"""What the cameras saw: images over the whole run, and those around stops."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from interlock.view.messages import FOREIGN
from interlock.view.page import NOTHING, Column, Html, grid, join, note, paragraph, picture, section, table, tag
from interlock.view.plan_facts import has_cameras
from interlock.view.png import SIGNATURE, png
from interlock.view.recording import Image, Recording
from interlock.view.report_words import clause, number
from interlock.view.timeline import Change, longest_still

F64 = NDArray[np.float64]

OVERVIEW = 8  # per camera
BEFORE, AFTER = 3, 5  # images around a stop
MOST_BYTES = 16_000_000  # of all images on the page; beyond it fewer are shown
LARGE_BYTES = 150_000  # images beyond it are made smaller
WIDEST = 320  # pixels of an image that is made smaller
MOVED_RAD = 2e-3  # joints moved more than this between two identical images: the camera did not see it


def cameras(recording: Recording, stops: Sequence[Change]) -> Html:
    """Pictures per camera, with times; an image equal to the one before it is marked."""
    if not recording.images:
        return section("cameras", "Cameras", paragraph(_absent(recording)))
    budget = MOST_BYTES // max(len(recording.images), 1)
    return section(
        "cameras",
        "Cameras",
        *[_camera(recording, name, images, stops, budget) for name, images in recording.images.items()],
        note(
            "A red frame marks an image that is identical to the one recorded just before it although a joint moved "
            f"more than {MOVED_RAD:g} rad between them: what a frozen camera looks like."
        ),
    )


def _absent(recording: Recording) -> str:
    if not has_cameras(recording):
        return "This policy uses no camera."
    return "No image was recorded."


def _camera(recording: Recording, name: str, images: Sequence[Image], stops: Sequence[Change], budget: int) -> Html:
    if not images:
        return join([tag("h3", name), paragraph("No image was recorded.")])
    digests = [_digest(image) for image in images]
    poses = _poses(recording, images)
    affordable = max(budget // LARGE_BYTES, 1)
    shown = sorted({round(float(each)) for each in np.linspace(0, len(images) - 1, min(OVERVIEW, affordable))})

    def pictures(chosen: Sequence[int]) -> Html:
        return grid([_image(recording, name, images, digests, poses, each) for each in chosen], "images")

    parts = [tag("h3", name), _numbers(recording, images, digests, poses), pictures(shown)]
    for stop in stops:
        affordable -= len(shown)
        shown = _around(images, stop)[: max(affordable, 0)]
        if shown:
            at = recording.second(stop.at_ns)
            parts += [
                paragraph(f"Around the stop at {at:.2f} s, where {clause(stop.cause)}:", css="sub"),
                pictures(shown),
            ]
    return join(parts)


def _around(images: Sequence[Image], stop: Change) -> list[int]:
    first = int(np.searchsorted([image.captured_ns for image in images], stop.at_ns, side="right"))
    return list(range(max(first - BEFORE, 0), min(first + AFTER, len(images))))


def _poses(recording: Recording, images: Sequence[Image]) -> F64:
    """Measured joint positions when each image was captured. Shape (images, n), rad."""
    ticks = recording.ticks
    captured = np.array([image.captured_ns for image in images])
    newest = np.searchsorted(ticks.due_ns, captured, side="right") - 1
    return ticks.pos[np.clip(newest, 0, ticks.due_ns.size - 1)]


def _numbers(recording: Recording, images: Sequence[Image], digests: Sequence[bytes], poses: F64) -> Html:
    captured = np.array([image.captured_ns for image in images], dtype=np.float64)
    gaps = np.diff(captured) / 1e6
    still = longest_still(digests)
    standing: object = "none"
    if still is not None:
        first, last = still
        moved = _spread(poses[first : last + 1])
        begin, end = recording.second(images[first].captured_ns), recording.second(images[last].captured_ns)
        standing = f"{number(last - first + 1)} from {begin:.2f} to {end:.2f} s; " + (
            f"the joints moved {moved:.3f} rad meanwhile" if moved > MOVED_RAD else "the joints stood still"
        )
        if moved > MOVED_RAD:
            standing = tag("b", standing)
    row = [
        number(len(images)),
        f"{np.median(gaps):.1f}" if gaps.size else NOTHING,
        f"{gaps.max():.1f}" if gaps.size else NOTHING,
        standing,
    ]
    return table(
        [
            Column("images"),
            Column("median gap", "ms"),
            Column("longest gap", "ms"),
            Column("most identical in a row", number=False),
        ],
        [row],
    )


def _image(
    recording: Recording, camera: str, images: Sequence[Image], digests: Sequence[bytes], poses: F64, index: int
) -> Html:
    second = recording.second(images[index].captured_ns) + 0.0
    same = index > 0 and digests[index] == digests[index - 1]
    is_frozen = same and _spread(poses[index - 1 : index + 1]) > MOVED_RAD
    said = " · same as before although the robot moved" if is_frozen else " · same as before" if same else ""
    packed = _packed(images[index])
    if packed is None:
        return paragraph(f"{second:.2f} s: not a readable image", css="note")
    return picture(
        f"data:image/png;base64,{b64encode(packed).decode()}",
        f"Camera {camera} at {second:.2f} s{said}",
        caption=f"{second:.2f} s{said}",
        css="image frozen" if is_frozen else "image",
    )


def _spread(poses: F64) -> float:
    """Largest distance that one joint covered, rad; 0 where nothing was measured."""
    finite = np.isfinite(poses).all(axis=1)
    return float(np.ptp(poses[finite], axis=0).max()) if finite.any() else 0.0


def _packed(image: Image) -> bytes | None:
    """A PNG that is small enough for a page; None for what is no image."""
    try:
        recorded = image.data
        if recorded.startswith(SIGNATURE) and len(recorded) <= LARGE_BYTES:
            return recorded
        return png(_smaller(image.pixels()))
    except FOREIGN:
        return None


def _smaller(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """At most about `WIDEST` pixels wide: the mean of each block. Shape (height, width, 3)."""
    step = -(-pixels.shape[1] // WIDEST)
    height, width = (each // step * step for each in pixels.shape[:2])
    blocks = pixels[:height, :width].reshape(height // step, step, width // step, step, 3)
    means: NDArray[np.uint8] = blocks.mean(axis=(1, 3)).astype(np.uint8)
    return means


def _digest(image: Image) -> bytes:
    try:
        return sha256(image.data).digest()
    except FOREIGN:
        return b""
