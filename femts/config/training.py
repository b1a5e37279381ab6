"""Recipe by which a model is trained, as one frozen dataclass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from femts.config.bounds import Bounds, Count, Natural, NotNegative, Positive, Share, check_bounds
from femts.errors import UsageError

_SPAN = re.compile(r"(?=\d)(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


MAX_STEPS = 1000  # optimiser steps of a default training; chosen on validation, see results/trials.md
VALIDATIONS = 8  # of a training that does not say how often


@dataclass(frozen=True)
class TrainingConfig:
    """The training recipe: a budget of optimiser steps, over which the learning rate warms up and falls to zero.

    Attributes:
        lr: highest learning rate of AdamW.
        betas: AdamW's two decays.
        weight_decay: decoupled decay of all parameters but those that their modules list in `NO_WEIGHT_DECAY`.
        clip: largest gradient norm.
        ema: decay, an optimiser step, of the running average of the weights that is validated and
            kept; 0 keeps the weights as they are.
        batch_size: windows in one batch, over all devices.
        accumulate: batches in one optimiser step.
        channels: channels drawn anew for each step, which the loss is formed of; None takes all of
            a model's up to 16 and draws 8 of more, where the model can.
        max_steps: optimiser steps at most; None takes 1000, or what `max_epochs` makes of the data.
        max_epochs: the same in passes over the training windows; at most one of the two.
        schedule: shape of the learning rate over the budget. After the warm-up `cosine` and
            `linear` fall to zero exactly at its end; `exponential` has no warm-up and falls by the
            epoch.
        warm_up: part of the budget in which the rate rises linearly.
        div_factor: highest over first learning rate of the warm-up.
        hold_epochs: epochs of the exponential schedule at the full rate.
        epoch_decay: factor on the rate in each epoch after them.
        val_every: optimiser steps between two validations; None takes an epoch with `max_epochs`,
            else an eighth of the budget.
        val_windows: validation windows, spread evenly, that a validation scores at most; None takes
            all of them. All are scored once at the end.
        keep: weights that are kept: those of the `best` validation by MSE (by `pinball`, by pinball
            loss), or the `last`, at the end of the schedule, unless their validation error is more
            than 2 percent above the best one's.
        patience: validations in a row after which training stops, because they were no better than
            the best, with `keep` last because they were worse by more than 2 percent.
        seed: decides initial weights, order of the windows and dropout.
        device: `auto` takes CUDA where it is, else the CPU.
        precision: `auto` takes bf16 on CUDA where it is native, else 32. On a CPU `bf16` forms the
            products of the MLP and of the mixer's projection in bfloat16, all else in float32.
        devices: processes that share each batch (DDP). Their weights are those of one process but
            for the order of sums, which the steep features of `linear` and
            `gla` amplify step by step: to 1e-3 of a weight, 1e-7 of a score.
        compile: take the passes of a step through `torch.compile`: a minute or more at the start;
            whether steps are faster then, `python -m scripts.bench train --compile` says. The draws of dropout
            differ from those without.
        max_time: longest time for the whole call (`90s`, `9m`, `1h30m`); where it is shorter than the budget takes, the
            schedule is laid out over it.
        eval_batch_size: windows scored at a time.
        covariates: how columns known in advance, and the calendar, reach a model: `regress` takes their linear effect
            off before it, and puts it back; `model` gives them to it as inputs instead, and refuses one that cannot
            read them; `auto` does both where the model can, so that it learns what is not linear.
        loss: `mse` learns a mean. `mae`, the absolute error, learns a median, which single large values
            draw less. `pinball` learns `quantiles`, and the median is the forecast. Plugins add others.
        metric: what validations choose by, of those that are registered (`femts.evaluation.metrics`); empty takes the
            squared error, or with quantiles their pinball loss. `auto` chooses by `mae`, `mse`, `mase` or
            `wql`, empty by `mae`.
        scaler: what values are scaled by: `standard`, mean and deviation, or `robust`, median and quartiles. Plugins
            add others.
        intervals: what makes half-widths of validation errors: `conformal`, their order statistics. Plugins add others.
        quantiles: levels that `pinball` learns; these bound the intervals of 50, 80, 90 and 95 percent.
    """

    # As in `ModelConfig`, for every model that is trained.
    SEARCH: ClassVar[Mapping[str, str]] = {"lr": "1e-4..1e-2", "weight_decay": "1e-3..1", "batch_size": "16,32,64"}

    lr: Positive = 1e-3
    betas: Annotated[tuple[float, float], Bounds("two numbers in [0, 1)", at_least=0, below=1)] = (0.9, 0.95)
    weight_decay: NotNegative = 0.1
    clip: Positive = 1.0
    ema: Share = 0.998
    batch_size: Count = 32
    accumulate: Count = 1
    channels: Count | None = None
    max_steps: Count | None = None
    max_epochs: Count | None = None
    schedule: Literal["cosine", "linear", "exponential"] = "cosine"
    warm_up: Share = 0.05
    div_factor: Positive = 10.0
    hold_epochs: Count = 2
    epoch_decay: Annotated[float, Bounds("a number above 0 and up to 1", above=0, at_most=1)] = 0.5
    val_every: Count | None = None
    val_windows: Count | None = 512
    keep: Literal["last", "best"] = "last"
    patience: Count = 4
    seed: Natural = 42
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    precision: Literal["auto", "32", "bf16"] = "auto"
    devices: Count = 1
    compile: bool = False
    max_time: str | None = None
    eval_batch_size: Count = 256
    covariates: Literal["auto", "model", "regress"] = "auto"
    loss: str = "mse"
    metric: str = ""
    scaler: str = "standard"
    intervals: str = "conformal"
    quantiles: tuple[float, ...] = (0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975)

    def __post_init__(self) -> None:
        check_bounds(self, "training")
        if self.max_steps is not None and self.max_epochs is not None:
            raise UsageError(
                f"Settings 'training.max_steps' ({self.max_steps}) and 'training.max_epochs' ({self.max_epochs}) set "
                "the same budget; give only one of them."
            )
        if self.max_time is not None:
            parse_span(self.max_time)
        if 0.5 not in self.quantiles or not _rise_within_1(self.quantiles):
            raise UsageError(
                "Setting 'training.quantiles' takes increasing numbers between 0 and 1 that include 0.5, the point "
                f"forecast, not {', '.join(f'{q:g}' for q in self.quantiles)}."
            )

    def steps(self, epoch: int) -> int:
        """Optimiser steps of the budget, where an epoch has `epoch` of them."""
        if self.max_epochs is not None:
            return self.max_epochs * epoch
        return MAX_STEPS if self.max_steps is None else self.max_steps

    @property
    def learned_quantiles(self) -> tuple[float, ...]:
        """Quantiles that come out of the model; none where a mean does."""
        return self.quantiles if self.loss == "pinball" else ()


def _rise_within_1(numbers: tuple[float, ...]) -> bool:
    return all(one < other for one, other in pairwise((0, *numbers, 1)))


def parse_span(text: str) -> float:
    """Seconds in a span such as `90s`, `9m`, `1h30m` or `45`; UsageError for anything else and for none at all."""
    match = _SPAN.fullmatch(str(text).strip().lower())
    seconds = (
        sum(float(part or 0) * unit for part, unit in zip(match.groups(), (3600, 60, 1), strict=True)) if match else 0.0
    )
    if seconds <= 0:
        raise UsageError(f"Time span '{text}' cannot be read; write it as 90s, 9m or 1h30m.")
    return seconds
