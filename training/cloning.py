"""Behaviour cloning of the expert's chunks."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from interlock.adapters.arm.plant import COLOURS, TASKS

from .checkpoint import FOLDER, Config, load_model_file
from .episodes import Samples

BATCH = 64
LEARNING_RATE = 2e-3
WEIGHT_DECAY = 1e-4
WARM_UP = 100
REPORT_EVERY = 250
PROBE_STEP = 1000  # the loss has left its plateau by then, or one colour stays ungrounded
GROUNDED = 0.30  # unseen mean absolute error of the normalised chunk; on the plateau it is about 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensors:
    """Samples as the network sees them, except that images stay uint8 until they are used."""

    images: Tensor
    states: Tensor
    tokens: Tensor
    chunks: Tensor
    tasks: Tensor


def normalise(samples: Samples, config: Config) -> Tensors:
    """Normalises states and chunks with the statistics of the config."""
    rows = [config["joints"]["each"][name] for name in config["joints"]["order"]]
    mean, std = (np.array([row["state"][k] for row in rows]) for k in ("mean", "std"))
    step_mean, step_std = (np.array([row["action"][k] for row in rows]) for k in ("mean", "std"))
    tokenize = load_model_file().tokenize
    tokens = np.stack([tokenize(config, task, FOLDER / "tokenizer.json") for task in TASKS])
    steps = samples.targets_rad - samples.positions_rad[:, None]
    return Tensors(
        images=torch.from_numpy(samples.images),
        states=_float(samples.positions_rad - mean, std + config["joints"]["eps"]),
        tokens=torch.from_numpy(tokens[samples.tasks]),
        chunks=_float(steps - step_mean, std=step_std),
        tasks=torch.from_numpy(samples.tasks),
    )


def train(
    samples: Tensors,
    unseen: Tensors,
    config: Config,
    *,
    seed: int,
    steps: int,
    say: Callable[[str], None],
) -> nn.Module | None:
    """Trains one network from one seed; None where a colour is not grounded by `PROBE_STEP`."""
    torch.manual_seed(seed)
    draw = torch.Generator().manual_seed(seed)
    model: nn.Module = load_model_file().build(config).to(memory_format=torch.channels_last)
    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)

    def rate(step: int) -> float:
        return min((step + 1) / WARM_UP, 0.5 * (1 + math.cos(math.pi * step / steps)) + 0.01)

    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rate)
    total = 0.0
    for step in range(steps):
        rows = torch.randint(len(samples.tasks), (BATCH,), generator=draw)
        pixels = samples.images[rows].permute(0, 3, 1, 2).to(torch.float32) / 255.0
        predicted = model(_standardise(pixels, config), samples.states[rows], samples.tokens[rows])
        loss = nn.functional.smooth_l1_loss(predicted, samples.chunks[rows], beta=0.1)
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        total += loss.item()
        if (step + 1) % REPORT_EVERY == 0:
            errors = colour_errors(model, unseen, config)
            shown = ", ".join(f"{c} {e:.3f}" for c, e in zip(COLOURS, errors, strict=True))
            say(f"step {step + 1}: loss {total / REPORT_EVERY:.4f}, unseen {shown}")
            total = 0.0
            if step + 1 == PROBE_STEP and errors.max() > GROUNDED:
                say(f"seed {seed} has not understood every colour; trying the next")
                return None
    return model.eval()


@torch.no_grad()
def colour_errors(model: nn.Module, samples: Tensors, config: Config) -> NDArray[np.float64]:
    """Mean absolute error of the normalised chunk for each colour. Shape (3,)."""
    model.eval()
    error = torch.empty(len(samples.tasks))
    for rows in torch.split(torch.arange(len(samples.tasks)), 256):
        pixels = samples.images[rows].permute(0, 3, 1, 2).to(torch.float32) / 255.0
        predicted = model(_standardise(pixels, config), samples.states[rows], samples.tokens[rows])
        error[rows] = (predicted - samples.chunks[rows]).abs().mean(dim=(1, 2))
    model.train()
    return np.array([float(error[samples.tasks == task].mean()) for task in range(len(COLOURS))])


def _standardise(pixels: Tensor, config: Config) -> Tensor:
    image = config["image"]
    mean = torch.tensor(image["mean"])[None, :, None, None]
    std = torch.tensor(image["std"])[None, :, None, None]
    standard: Tensor = (pixels - mean) / (std + image["eps"])
    return standard


def _float(values: NDArray[np.floating], std: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy((values / std).astype(np.float32))
