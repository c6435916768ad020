# ruff: noqa: INP001 - a file of a checkpoint, not of a package
"""The reach-block policy: its network and its reference pre- and postprocessing.

Stands alone: needs torch and numpy, the `config.json` and the `tokenizer.json` beside it. Training and the export
of a checkpoint read this same file.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

Config = dict[str, Any]


class ReachBlock(nn.Module):
    """Image, joint positions and task text in, a chunk of joint targets out.

    The text modulates the convolutions (FiLM), a spatial softmax turns what they see into points in the picture, and
    a small network turns points and joint positions into the chunk.
    """

    grid_x: Tensor
    grid_y: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__()
        shape = config["network"]
        widths: list[int] = shape["conv_widths"]
        tokens: int = config["language"]["length"]
        size: int = config["image"]["size_hw"][0]
        self.chunk: int = config["timing"]["chunk"]
        self.joints = len(config["joints"]["order"])

        self.embed = nn.Embedding(shape["vocabulary"], shape["embedding"], padding_idx=0)
        self.text = nn.Sequential(nn.Linear(tokens * shape["embedding"], shape["text"]), nn.ReLU())
        inputs = [3, *widths[:-1]]
        strides: list[int] = shape["conv_strides"]
        self.convs = nn.ModuleList(
            nn.Conv2d(i, o, k, stride=s, padding=k // 2)
            for i, o, k, s in zip(inputs, widths, shape["conv_kernels"], strides, strict=True)
        )
        self.films = nn.ModuleList(nn.Linear(shape["text"], 2 * width) for width in widths)
        self.head = nn.Sequential(
            nn.Linear(2 * widths[-1] + shape["text"] + self.joints, shape["hidden"]),
            nn.ReLU(),
            nn.Linear(shape["hidden"], shape["hidden"]),
            nn.ReLU(),
            nn.Linear(shape["hidden"], self.chunk * self.joints),
        )
        for stride in strides:
            size = (size + stride - 1) // stride
        axis = torch.linspace(-1.0, 1.0, size)
        self.register_buffer("grid_x", axis.repeat(size), persistent=False)
        self.register_buffer("grid_y", axis.repeat_interleave(size), persistent=False)

    def forward(self, image: Tensor, state: Tensor, tokens: Tensor) -> Tensor:
        """Predicts one chunk; everything is normalised as `config.json` says.

        Args:
            image: Normalised RGB. Shape (batch, 3, height, width), float32.
            state: Normalised joint positions. Shape (batch, joints), float32.
            tokens: Token ids of the task. Shape (batch, length), int64.

        Returns:
            Normalised joint targets relative to the joint positions of `state`. Shape (batch, chunk, joints).
        """
        text = self.text(self.embed(tokens).flatten(1))
        seen = image
        for conv, film in zip(self.convs, self.films, strict=True):
            scale, shift = film(text)[:, :, None, None].chunk(2, dim=1)
            seen = functional.relu(conv(seen) * (1.0 + scale) + shift)
        weights = torch.softmax(seen.flatten(2), dim=2)
        points = torch.cat([(weights * self.grid_x).sum(2), (weights * self.grid_y).sum(2)], dim=1)
        chunk: Tensor = self.head(torch.cat([points, text, state], dim=1))
        return chunk.reshape(-1, self.chunk, self.joints)


def build(config: Config) -> nn.Module:
    """Makes the untrained network that `config.json` describes."""
    return ReachBlock(config)


def tokenize(config: Config, task_text: str, tokenizer_path: str | Path) -> NDArray[np.int64]:
    """Turns a task into token ids, padded on the right. Shape (length,).

    Raises:
        ValueError: The task has more tokens than the policy takes.
    """
    vocabulary = json.loads(Path(tokenizer_path).read_text(encoding="utf-8"))["model"]["vocab"]
    language = config["language"]
    words = re.findall(r"\w+|[^\w\s]+", language["template"].replace("{task}", task_text).lower())
    length: int = language["length"]
    if len(words) > length:
        msg = f"task: expected at most {length} tokens, got {len(words)}: {task_text!r}"
        raise ValueError(msg)
    ids = [vocabulary.get(word, vocabulary[language["unknown"]]) for word in words]
    return np.array(ids + [vocabulary[language["pad"]]] * (length - len(ids)), dtype=np.int64)


def preprocess(
    config: Config,
    image_u8_hwc: NDArray[np.uint8],
    joint_pos_rad: NDArray[np.float64],
    task_text: str,
    tokenizer_path: str | Path,
) -> tuple[Tensor, Tensor, Tensor]:
    """Makes the three inputs of `forward`, batch of one, from a raw observation.

    Args:
        config: Contents of `config.json`.
        image_u8_hwc: RGB picture. Shape (height, width, 3).
        joint_pos_rad: Measured joint positions in `joints.order`. Shape (joints,), rad.
        task_text: What the operator asks, such as `reach the red block`.
        tokenizer_path: The `tokenizer.json` of the checkpoint.
    """
    image, eps = config["image"], config["joints"]["eps"]
    height, width = image["size_hw"]
    if image_u8_hwc.shape != (height, width, 3):
        msg = f"image: expected shape ({height}, {width}, 3), got {image_u8_hwc.shape}"
        raise ValueError(msg)
    low, high = image["range"]
    pixels = torch.from_numpy(np.ascontiguousarray(image_u8_hwc)).permute(2, 0, 1).to(torch.float32) / 255.0
    pixels = pixels * (high - low) + low
    mean = torch.tensor(image["mean"], dtype=torch.float32)[:, None, None]
    std = torch.tensor(image["std"], dtype=torch.float32)[:, None, None]
    pixels = (pixels - mean) / (std + image["eps"])
    mean_rad, std_rad = _statistics(config, "state")
    state = (np.asarray(joint_pos_rad, dtype=np.float64) - mean_rad) / (std_rad + eps)
    tokens = torch.from_numpy(tokenize(config, task_text, tokenizer_path))
    return pixels[None], torch.from_numpy(state).to(torch.float32)[None], tokens[None]


def postprocess(config: Config, raw: Tensor, joint_pos_rad: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turns the output of `forward` into joint position targets.

    Args:
        config: Contents of `config.json`.
        raw: Output of `forward` for a batch of one. Shape (1, chunk, joints).
        joint_pos_rad: The joint positions that were given to `preprocess`. Shape (joints,), rad.

    Returns:
        Targets; row k is due `action_delay_ms + k / control_rate_hz` after the observation. Shape (chunk, joints), rad.
    """
    mean_rad, std_rad = _statistics(config, "action")
    step_rad = raw[0].detach().to(torch.float64).numpy() * std_rad + mean_rad
    return np.asarray(step_rad + np.asarray(joint_pos_rad, dtype=np.float64), dtype=np.float64)


def _statistics(config: Config, which: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    joints = config["joints"]
    rows = [joints["each"][name][which] for name in joints["order"]]
    return np.array([row["mean"] for row in rows]), np.array([row["std"] for row in rows])
