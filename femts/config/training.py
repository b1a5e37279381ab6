"""Training recipe as a frozen dataclass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from femts.config.bounds import Bounds, Count, Natural, NotNegative, Positive, Share, check_bounds
from femts.errors import UsageError, reads

_SPAN = re.compile(r"(?=\d)(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


MAX_STEPS = 1000  # default number of optimiser steps; chosen on validation splits, see results/trials.md
VALIDATIONS = 8  # default number of validations per training


@dataclass(frozen=True)
class TrainingConfig:
    """The training recipe: a budget of optimiser steps, over which the learning rate warms up and decays to zero.

    Attributes:
        lr: peak learning rate of AdamW.
        betas: decay rates of AdamW.
        weight_decay: decoupled weight decay, except for the parameters that modules list in `NO_WEIGHT_DECAY`.
        clip: maximum gradient norm.
        ema: decay per optimiser step of the exponential moving average of the weights, which is validated and kept; 0
            for no averaging.
        batch_size: windows per batch, over all devices.
        accumulate: batches per optimiser step.
        channels: number of channels sampled in each step for the loss; None uses all of up to 16 channels and samples 8
            of more, if the model supports it.
        max_steps: maximum number of optimiser steps; None uses 1000, or `max_epochs` if given.
        max_epochs: the same in passes over the training windows; at most one of the two may be set.
        schedule: shape of the learning rate over the budget. After the warm-up, `cosine` and `linear` decay to zero
            exactly at the end; `exponential` has no warm-up and decays once per epoch.
        warm_up: fraction of the budget over which the learning rate increases linearly.
        div_factor: ratio of the peak to the initial learning rate of the warm-up.
        hold_epochs: epochs of the exponential schedule at the full learning rate.
        epoch_decay: factor on the learning rate in each epoch after these.
        val_every: optimiser steps between validations; None uses an epoch with `max_epochs`, otherwise an eighth of the
            budget.
        val_windows: maximum number of windows per validation, spread evenly; None uses all. The final validation uses
            all windows.
        keep: weights to keep: those of the `best` validation by MSE (pinball loss for `pinball`), or the `last`, at the
            end of the schedule, unless their validation error is more than 2 percent above the best.
        patience: number of consecutive validations without improvement after which training stops; if `keep` is `last`,
            those more than 2 percent worse than the best.
        seed: random seed for initial weights, window order and dropout.
        device: `auto` uses CUDA if available, otherwise the CPU.
        precision: `auto` uses bf16 on CUDA devices that support it natively, otherwise 32. On a CPU, `bf16` computes
            the products of the MLP and of the mixer's projection in bfloat16, and everything else in float32.
        devices: number of processes that share each batch (DDP). Weights differ from those of one process only by the
            order of sums, which the steep features of `linear` and `gla` amplify from step to step: to 1e-3 of a
            weight, 1e-7 of a score.
        compile: use `torch.compile`, which takes a minute or more at the start; `python -m scripts.bench train
            --compile` measures whether steps are then faster. Dropout masks differ from those without.
        graph: `on` replays training steps from a CUDA graph, instead of launching each operation: the same step, for
            devices that compute faster than Python launches. Not for several devices or `compile`; the last, smaller
            batches of an epoch and models that read raw rows are trained as with `off`. `auto` is `off`, since it has
            not been measured on a device so far.
        max_time: time limit of the whole call (`90s`, `9m`, `1h30m`); if the budget takes longer, the schedule is
            fitted to the time limit.
        eval_batch_size: windows per batch in scoring.
        covariates: how future covariates and the calendar are used: `regress` subtracts their linear effect before the
            model and adds it back; `model` passes them to the model as inputs, and refuses models that cannot read
            them; `auto` does both if the model supports it, so that it learns nonlinear effects.
        loss: `mse` forecasts the mean. `mae`, the absolute error, forecasts the median, which is less sensitive to
            outliers. `pinball` forecasts `quantiles`, with the median as point forecast. Plugins add others.
        metric: registered metric for model selection on the validation split (`femts.evaluation.metrics`); by default
            the squared error or, for quantile models, the pinball loss. `auto` accepts `mae`, `mse`, `mase` and `wql`,
            `mae` by default.
        scaler: scaling of values: `standard`, mean and standard deviation, or `robust`, median and quartiles. Plugins
            add others.
        intervals: method for half-widths of intervals: `conformal`, order statistics of validation errors. Plugins add
            others.
        quantiles: quantiles forecast by `pinball`; these bound the intervals of 50, 80, 90 and 95 percent.
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
    graph: Literal["auto", "on", "off"] = "auto"
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
            text = (
                "Setting 'training.quantiles' takes increasing numbers between 0 and 1 that include 0.5, the point "
                f"forecast, not {', '.join(f'{q:g}' for q in self.quantiles)}."
            )
            raise UsageError(text, argument="training.quantiles", value=self.quantiles)

    def steps(self, epoch: int) -> int:
        """Optimiser steps in the budget, given the number of steps per epoch."""
        if self.max_epochs is not None:
            return self.max_epochs * epoch
        return MAX_STEPS if self.max_steps is None else self.max_steps

    @property
    def learned_quantiles(self) -> tuple[float, ...]:
        """Quantiles forecast by the model; empty unless the loss is `pinball`."""
        return self.quantiles if self.loss == "pinball" else ()


def _rise_within_1(numbers: tuple[float, ...]) -> bool:
    return all(one < other for one, other in pairwise((0, *numbers, 1)))


@reads("training.max_time")
def parse_span(text: str) -> float:
    """Parse a time span such as `90s`, `9m`, `1h30m` or `45` as seconds; UsageError if it is invalid or 0."""
    match = _SPAN.fullmatch(str(text).strip().lower())
    seconds = (
        sum(float(part or 0) * unit for part, unit in zip(match.groups(), (3600, 60, 1), strict=True)) if match else 0.0
    )
    if seconds <= 0:
        raise UsageError(f"Time span '{text}' cannot be read; write it as 90s, 9m or 1h30m.")
    return seconds
