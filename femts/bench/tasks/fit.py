"""The training of a task: AdamW over a fixed number of steps, then the score."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from time import perf_counter
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR

from femts.bench.tasks.base import Task
from femts.errors import RunFailure
from femts.mixers.weight_decay import undecayed

RECIPE: dict[str, Any] = {
    "optimiser": "AdamW",
    "schedule": "one cycle",
    "warm_up": 0.1,
    "weight_decay": 0.01,
    "clip": 1.0,
}
_TESTED = 2**31  # above every seed of a training, so that no test sample is one that was trained on
_AT_ONCE = 256  # samples that are scored together


@dataclass(frozen=True)
class Outcome:
    """Outcome of a training.

    Attributes:
        score: the measure on the test part.
        losses: mean training loss of each tenth of the steps.
        parameters: weights of the whole network.
        mixer_parameters: those of its mixers.
        seconds: of the training alone.
    """

    score: float
    losses: tuple[float, ...]
    parameters: int
    mixer_parameters: int
    seconds: float


def fit(task: Task, mixer: str, seed: int, device: str = "cpu") -> Outcome:
    """Train `mixer` on `task` and score it; `seed` decides weights and samples, so that all mixers see the same ones.

    Raises:
        RunFailure: the loss is no number any more.
    """
    torch.manual_seed(seed)
    model = task.host(mixer).to(device)
    optimiser = _optimiser(model, task.rate)  # whose first import is no part of the training's time
    started = perf_counter()
    losses = _train(model, optimiser, task, seed, device)
    seconds = perf_counter() - started
    score = _score(model, task, Generator().manual_seed(_TESTED + seed), device)
    if not isfinite(score):
        raise RunFailure(f"The score of {mixer} on {task.NAME} is {score}; try a smaller rate.")
    count = sum(each.numel() for each in model.parameters())
    mixers = sum(each.numel() for name, each in model.named_parameters() if "mixer." in name)
    tenths = [part.mean().item() for part in losses.tensor_split(10) if len(part)]
    return Outcome(score, tuple(tenths), count, mixers, seconds)


def _train(model: nn.Module, optimiser: AdamW, task: Task, seed: int, device: str) -> Tensor:
    """Losses of all steps."""
    generator = Generator().manual_seed(seed)
    total, warm_up = task.steps + 1, RECIPE["warm_up"]
    schedule = OneCycleLR(optimiser, task.rate, total_steps=total, pct_start=warm_up, cycle_momentum=False)
    losses = torch.zeros(task.steps)
    for step in range(task.steps):
        x, y = (each.to(device) for each in task.draw("train", task.batch, generator))
        loss = task.loss(model(x), y)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        clip_grad_norm_(model.parameters(), RECIPE["clip"])
        optimiser.step()
        schedule.step()
        losses[step] = loss.detach()
    return losses


def _optimiser(model: nn.Module, rate: float) -> AdamW:
    """AdamW, without decay where a parameter asks for none."""
    without = undecayed(model)
    decayed = [each for name, each in model.named_parameters() if name not in without]
    plain = [each for name, each in model.named_parameters() if name in without]
    groups = [{"params": decayed, "weight_decay": RECIPE["weight_decay"]}, {"params": plain, "weight_decay": 0.0}]
    return AdamW([group for group in groups if group["params"]], lr=rate)


@torch.no_grad()
def _score(model: nn.Module, task: Task, generator: Generator, device: str) -> float:
    model.eval()
    x, y = task.draw("test", task.scored, generator)
    answers: list[Tensor] = [model(part.to(device)).cpu() for part in x.split(_AT_ONCE)]
    return task.score(torch.cat(answers), y)
