"""`python -m training`: episodes, training, checkpoint and evaluation in one reproducible command."""

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable

import torch

from . import checkpoint, cloning, results
from .episodes import generate
from .export import export_difference
from .observations import write_observations

TRAINING = range(300)  # seeds of episodes
HELD_BACK = range(900_000, 900_020)
STEPS = 3000
NETWORK_SEEDS = range(5)
LARGEST_DIFFERENCE = 1e-5  # of the exported graph, normalised actions


def main() -> int:
    """Runs everything and returns 0 if the targets are met."""
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1), help="processes and threads")
    parser.add_argument("--evaluate", action="store_true", help="only evaluate the checkpoint that is there")
    arguments = parser.parse_args()
    started = time.monotonic()

    def say(text: str) -> None:
        sys.stdout.write(f"{time.monotonic() - started:6.0f} s  {text}\n")
        sys.stdout.flush()

    torch.set_num_threads(arguments.workers)
    torch.use_deterministic_algorithms(mode=True)
    if not arguments.evaluate:
        _train(arguments.workers, say)
        say(f"checkpoint written to {checkpoint.FOLDER.name}/, with {write_observations()} example observations")
    difference = export_difference()
    say(f"exported graph against torch: largest difference {difference:.1e}")
    met = results.measure(arguments.workers, difference, say) and difference < LARGEST_DIFFERENCE
    say("targets met" if met else "targets missed")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    say(f"processor time {sum(each.ru_utime + each.ru_stime for each in used) / 60:.0f} min")
    return 0 if met else 1


def _train(workers: int, say: Callable[[str], None]) -> None:
    """Trains from one seed after another until every colour is grounded, and writes the checkpoint."""
    samples, unseen = generate(TRAINING, workers), generate(HELD_BACK, workers)
    say(f"{len(samples)} samples of {len(TRAINING)} expert episodes, {len(unseen)} held back")
    steps_rad = samples.targets_rad - samples.positions_rad[:, None]
    config = checkpoint.make_config(samples.positions_rad, steps_rad, checkpoint.write_tokenizer())
    seen, held_back = cloning.normalise(samples, config), cloning.normalise(unseen, config)
    for seed in NETWORK_SEEDS:
        model = cloning.train(seen, held_back, config, seed=seed, steps=STEPS, say=say)
        if model is not None:
            checkpoint.write(model, config)
            return
    msg = f"no network grounded every colour, seeds {NETWORK_SEEDS}"
    raise RuntimeError(msg)


if __name__ == "__main__":
    sys.exit(main())
