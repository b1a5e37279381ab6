#!/usr/bin/env python3
"""What a training step costs: models against each other, and the trainer against the bare step, in one run.

    scripts/step_cost.py [--models sm fem_sm ...] [--repeats 9] [--threads N] [--seq-len 1024] [--pred-len 96]

Random data of ETTh1's shape, batches of 32. The models take turns, and ratios are medians over the pairs of a turn, so a
machine that changes its speed meanwhile does not change them. The trainer's row compares a whole epoch of `femts train`,
without its validation, with the same number of bare steps.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import torch

from femts.data.windows import Windows
from femts.models.base import ForecastModel
from femts.models.registry import build_config, build_model
from femts.training.config import TrainingConfig
from femts.training.device import resolve_place
from femts.training.state import TrainState
from femts.training.stopping import Deadline

BATCH, BATCHES, CHANNELS = 32, 20, 7


class Bare:
    """A model with its optimiser and nothing else around the step."""

    def __init__(self, name: str, windows: Windows) -> None:
        config = build_config(name, seq_len=windows.seq_len, pred_len=windows.pred_len, n_channels=CHANNELS, settings={})
        self.model: ForecastModel = build_model(name, config)
        self.windows = windows
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)

    def run(self, batches: int) -> float:
        """Seconds of `batches` steps: gather, loss, gradient, clipping, AdamW."""
        started = time.perf_counter()
        for number in range(batches):
            self.optimizer.zero_grad()
            index = torch.arange(number * BATCH, (number + 1) * BATCH)
            self.model.loss(*self.windows.gather(index)).backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
        return time.perf_counter() - started


def through_trainer(bare: Bare, val: Windows) -> float:
    """Seconds of one epoch of the trainer over the same windows, its validation of one window included."""
    from femts.training.loop import run_epochs

    training = TrainingConfig(device="cpu", max_epochs=1)
    deadline = Deadline(None, 0.0, 0)
    with tempfile.TemporaryDirectory() as folder:
        place, state = resolve_place(training), TrainState()
        end = run_epochs(bare.model, bare.windows, val, training, place, state, Path(folder), deadline, False, False)
    return float(end.history[-1]["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["sm", "fem_sm", "fem_gla", "fem_aft", "fem_mamba"])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--seq-len", type=int, default=1024)
    parser.add_argument("--pred-len", type=int, default=96)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)

    span = options.seq_len + options.pred_len
    rows = BATCHES * BATCH + span - 1
    series = torch.randn(rows, CHANNELS)
    windows = Windows(series, options.seq_len, options.pred_len, 0, rows)
    val = Windows(series, options.seq_len, options.pred_len, 0, span)

    bares = {name: Bare(name, windows) for name in options.models}
    for bare in bares.values():
        bare.run(1)
    turns = [{name: bare.run(1) for name, bare in bares.items()} for _ in range(options.repeats)]
    first = options.models[0]
    print(f"torch {torch.__version__}, {options.threads} threads, L={options.seq_len}, P={options.pred_len}, batch {BATCH}")
    print(f"{'model':<12}{'step':>10}{'against ' + first:>16}")
    for name in options.models:
        step = statistics.median(turn[name] for turn in turns)
        ratio = statistics.median(turn[name] / turn[first] for turn in turns)
        print(f"{name:<12}{step * 1e3:>7.0f} ms{ratio:>16.2f}")

    name = options.models[min(1, len(options.models) - 1)]
    through_trainer(bares[name], val)  # imports and first use
    pairs = []
    for _ in range(options.repeats):  # half of the bare steps before the trainer and half after it, against drift
        before = bares[name].run(BATCHES // 2)
        trainer = through_trainer(bares[name], val)
        pairs.append((trainer, before + bares[name].run(BATCHES // 2)))
    ratio = statistics.median(trainer / bare for trainer, bare in pairs)
    print(f"{name} through the trainer: {ratio:.3f} of {BATCHES} bare steps")


if __name__ == "__main__":
    main()
