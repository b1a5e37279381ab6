"""A selection task and its training: AdamW over a fixed number of steps, then the score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from math import isfinite
from time import perf_counter
from typing import Any, ClassVar, Literal

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW
from torch.optim.lr_scheduler import OneCycleLR

from femts.errors import RunFailure
from femts.mixers.weight_decay import undecayed
from scripts.bench.selection.networks import Stack, stack

Part = Literal["train", "test"]
Pair = tuple[Tensor, Tensor]
IGNORED = -100  # target of a token that is not scored
SCALES = {"error": 1.0, "accuracy": 1.0, "bits": 8.0}  # from a perfect score to that of knowing nothing
RECIPE: dict[str, Any] = {
    "optimiser": "AdamW",
    "schedule": "one cycle",
    "warm_up": 0.1,
    "weight_decay": 0.01,
    "clip": 1.0,
}
_TEST_SEED = 2**31  # above every seed of a training, so that no test sample is one that was trained on
_AT_ONCE = 256  # samples that are scored together


@dataclass(frozen=True)
class Task(ABC):
    """A task and the sizes that it is run in; every mixer gets the same.

    Attributes:
        name: what the user types.
        measure: of the score, a name of `SCALES`; only `accuracy` is better when higher.
        width: D of a token.
        heads: of the prior.
        layers: blocks.
        length: tokens T of a sequence.
        steps: of AdamW.
        batch: samples of a step.
        rate: largest learning rate.
        scored: samples that the score is taken over.
    """

    name: ClassVar[str]
    measure: ClassVar[str]

    width: int = 64
    heads: int = 4
    layers: int = 2
    length: int = 64
    steps: int = 600
    batch: int = 32
    rate: float = 3e-3
    scored: int = 1024

    @abstractmethod
    def host(self, mixer: str) -> nn.Module:
        """The network around the layers of `mixer`, a name of `femts models` such as `fem_sm`."""

    @abstractmethod
    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        """`count` inputs and targets of a part."""

    @abstractmethod
    def loss(self, answer: Tensor, target: Tensor) -> Tensor:
        """The scalar that is trained on."""

    @abstractmethod
    def score(self, answer: Tensor, target: Tensor) -> float:
        """The measure over all `answer`s to the test part."""

    def data(self) -> str | None:
        """SHA-256 of what is not drawn but read; None where all is drawn."""
        return None

    def blocks(self, mixer: str, **how: Any) -> Stack:
        """What makes the stack of this size; `how` as `stack` takes it."""
        return partial(stack, mixer, self.width, self.heads, self.layers, **how)


@dataclass(frozen=True)
class Choices(Task):
    """Task whose answers are one of several classes; targets of `IGNORED` do not count."""

    measure = "accuracy"

    def loss(self, answer: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(answer.flatten(0, -2), target.flatten(), ignore_index=IGNORED)

    def score(self, answer: Tensor, target: Tensor) -> float:
        scored = target != IGNORED
        return (answer.argmax(-1) == target)[scored].double().mean().item()


def fit(task: Task, mixer: str, seed: int, device: str = "cpu") -> dict[str, Any]:
    """Train `mixer` on `task` and score it; `seed` decides weights and samples, so that all mixers see the same ones.

    Returns:
        `score` on the test part; `losses`, the mean of each tenth of the steps; `parameters` of the network and
        `mixer_parameters` among them; `seconds` of the training alone.

    Raises:
        RunFailure: the loss or the score is no number any more.
    """
    torch.manual_seed(seed)
    model = task.host(mixer).to(device)
    without, named = undecayed(model), list(model.named_parameters())
    groups = [
        {"params": [each for name, each in named if name not in without], "weight_decay": RECIPE["weight_decay"]},
        {"params": [each for name, each in named if name in without], "weight_decay": 0.0},
    ]
    optimiser = AdamW([group for group in groups if group["params"]], lr=task.rate)
    total, warm_up = task.steps + 1, RECIPE["warm_up"]
    schedule = OneCycleLR(optimiser, task.rate, total_steps=total, pct_start=warm_up, cycle_momentum=False)
    generator, losses, started = Generator().manual_seed(seed), torch.zeros(task.steps), perf_counter()
    for step in range(task.steps):
        x, y = (each.to(device) for each in task.draw("train", task.batch, generator))
        loss = task.loss(model(x), y)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        clip_grad_norm_(model.parameters(), RECIPE["clip"])
        optimiser.step()
        schedule.step()
        losses[step] = loss.detach()
    seconds = perf_counter() - started

    model.eval()
    x, y = task.draw("test", task.scored, Generator().manual_seed(_TEST_SEED + seed))
    with torch.no_grad():
        answers = [model(part.to(device)).cpu() for part in x.split(_AT_ONCE)]
    score = task.score(torch.cat(answers), y)
    tenths = [part.mean().item() for part in losses.tensor_split(10) if len(part)]
    if not all(map(isfinite, (score, *tenths))):
        raise RunFailure(f"The score of {mixer} on {task.name} is {score}, its last loss {tenths[-1]}; lower the rate.")
    return {
        "score": score,
        "losses": tenths,
        "parameters": sum(each.numel() for _, each in named),
        "mixer_parameters": sum(each.numel() for name, each in named if "mixer." in name),
        "seconds": seconds,
    }
