#!/usr/bin/env python
"""Appendix P of the Free Energy Mixer paper: one layer learns the maximum of every channel; softmax attention cannot.

Each sample is a matrix V (T, D) of noise around 0 with one winner of about 1 in every channel, at an index of its own.
The target is the maximum of each channel. Both models read V itself from the last position, right after the mixing,
with the same softmax prior (queries and keys are linear in V). FEM adds the inner gate and the log-sum-exp; it has no
outer gate and no conditioner. Both are trained with AdamW on the mean squared error. A channel counts as correct if the
value nearest to the prediction is the winner.

Samples are generated on demand from one seed each, so memory does not depend on the number of samples.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.mixers import FreeEnergyMixerConfig, component_flags
from femts.mixers.priors.softmax import BoundSoftmax
from femts.mixers.read import FreeEnergyRead, free_energy_read

MARGIN, NOISE = 1.0, 0.05


@dataclass(frozen=True)
class Task:
    """Size of the problem: `seq_len` T, `d_model` D, `heads` H; `samples` for training and `val_samples` for the
    scores."""

    seq_len: int = 128
    d_model: int = 512
    heads: int = 4
    samples: int = 200_000
    val_samples: int = 2_000
    batch: int = 64
    steps: int = 2_000
    lr: float = 1e-2
    seed: int = 42
    device: str = "cpu"

    def draw(self, seed: int) -> tuple[Tensor, Tensor]:
        """A batch V (batch, T, D) and its winners (batch, D)."""
        generator = torch.Generator(self.device).manual_seed(seed)
        shape, device = (self.batch, self.seq_len, self.d_model), self.device
        v = NOISE * torch.randn(shape, generator=generator, device=device)
        winner = torch.randint(self.seq_len, (self.batch, self.d_model), generator=generator, device=device)
        height = MARGIN + NOISE * torch.randn((self.batch, 1, self.d_model), generator=generator, device=device)
        return v.scatter_(1, winner.unsqueeze(1), height), winner

    def training_batches(self) -> Iterator[Tensor]:
        """Yield `steps` batches from `samples` samples, repeating these as needed."""
        distinct = max(1, self.samples // self.batch)
        for step in range(self.steps):
            yield self.draw(self.seed * 1_000_003 + step % distinct)[0]

    def validation_batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        for index in range(max(1, self.val_samples // self.batch)):
            yield self.draw(self.seed * 1_000_003 + 500_000 + index)


class LastRead(nn.Module):
    """Read of the values V themselves at the last position: (B, T, D) -> (B, D). `components` is "LT" for FEM and ""
    for softmax."""

    def __init__(self, d_model: int, heads: int, components: str) -> None:
        super().__init__()
        self.config = FreeEnergyMixerConfig(d_model, heads, use_rope=False, **component_flags(components))
        self.query, self.key = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.inner_gate = nn.Linear(d_model, d_model) if self.config.use_temperature else None
        if self.config.use_lse:
            self.beta_raw = nn.Parameter(torch.zeros(heads, d_model // heads))
        for name, parameter in self.named_parameters():  # appendix K
            if name.endswith("weight"):
                nn.init.normal_(parameter, std=0.02)
            else:
                nn.init.zeros_(parameter)

    def read(self, v: Tensor) -> FreeEnergyRead:
        """Parts of the read, each (B, 1, H, D / H)."""
        heads = (self.config.n_head, -1)
        last = v[:, -1:]  # the last position of a causal layer sees every token
        q, k = self.query(last).unflatten(-1, heads), self.key(v).unflatten(-1, heads)
        prior = BoundSoftmax(q, k, mask=None, causal=False, backend="auto")
        beta = F.softplus(self.beta_raw + 1.8) if self.config.use_lse else None
        lam = None if self.inner_gate is None else torch.sigmoid(self.inner_gate(last)).unflatten(-1, heads)
        return free_energy_read(prior.mix, v.unflatten(-1, heads), beta, lam, None, self.config.value_logexp_cap, None)

    def forward(self, v: Tensor) -> Tensor:
        return self.read(v).f.flatten(1)


@torch.no_grad()
def scores(model: LastRead, task: Task) -> tuple[float, float]:
    """Index accuracy (fraction of channels whose winner is found) and mean squared error on the validation samples."""
    right, squared, batches = 0.0, 0.0, 0
    for v, winner in task.validation_batches():
        prediction = model(v)
        found = (v - prediction.unsqueeze(1)).abs().argmin(dim=1)
        right += (found == winner).double().mean().item()
        squared += F.mse_loss(prediction, v.amax(dim=1)).item()
        batches += 1
    return right / batches, squared / batches


def train(task: Task, components: str, report_every: int = 0) -> tuple[float, float]:
    """Train one model from its seed and return its index accuracy and mean squared error."""
    torch.manual_seed(task.seed)
    model = LastRead(task.d_model, task.heads, components).to(task.device)
    decayed = [parameter for name, parameter in model.named_parameters() if name != "beta_raw"]
    groups: list[dict[str, Any]] = [{"params": decayed}]
    if hasattr(model, "beta_raw"):
        groups.append({"params": [model.beta_raw], "weight_decay": 0.0})
    optimiser = torch.optim.AdamW(groups, lr=task.lr)
    start = time.perf_counter()
    for step, v in enumerate(task.training_batches(), start=1):
        optimiser.zero_grad(set_to_none=True)
        F.mse_loss(model(v), v.amax(dim=1)).backward()
        optimiser.step()
        if report_every and (step % report_every == 0 or step == task.steps):
            accuracy, mse = scores(model, task)
            elapsed = time.perf_counter() - start
            print(f"  step {step:5d}  index accuracy {accuracy:7.2%}  MSE {mse:.4f}  {elapsed:6.0f} s", flush=True)
    return scores(model, task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, field in Task.__dataclass_fields__.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(field.default), default=field.default)
    parser.add_argument("--report-every", type=int, default=200, help="steps between two lines of scores")
    options = vars(parser.parse_args())
    report_every = options.pop("report_every")
    task = Task(**options)
    results = {}
    for name, components in (("FEM", "LT"), ("softmax attention", "")):
        print(f"{name}: {task.steps} steps of {task.batch} samples, T={task.seq_len}, D={task.d_model}, H={task.heads}")
        results[name] = train(task, components, report_every)
    for name, (accuracy, mse) in results.items():
        print(f"{name:18s} index accuracy {accuracy:7.2%}  MSE {mse:.4f}")


if __name__ == "__main__":
    main()
