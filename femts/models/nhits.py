"""N-HiTS: "N-HiTS: Neural Hierarchical Interpolation for Time Series Forecasting", Challu et al., AAAI 2023, section
3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from femts.config.bounds import Count, Natural, Share
from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.mixers.ops.dropout import Dropout
from femts.models.base import ForecastModel, Supports
from femts.models.parts.normalise import normalise
from femts.models.registry import register


@dataclass(frozen=True)
class NHiTSConfig(ModelConfig):
    """Settings of `nhits`. Each stack is one block; repeated numbers give a stack of several blocks.

    Attributes:
        pool: kernel size of the max pooling of the look-back, one for each stack.
        downsample: steps of look-back and forecast per coefficient, one for each stack.
        hidden: width of the MLPs.
        n_hidden: number of hidden layers of the MLPs.
        dropout: dropout after each hidden layer.
        n_static, n_known: numbers of static and known inputs, which follow from the data.
    """

    SEARCH: ClassVar[Mapping[str, str]] = {"hidden": "64,128,256,512", "n_hidden": "1..3", "dropout": "0..0.5"}

    pool: tuple[Count, ...] = (2, 2, 1)
    downsample: tuple[Count, ...] = (4, 2, 1)
    hidden: Count = 512
    n_hidden: Count = 2
    dropout: Share = 0.0
    n_static: Natural = 0
    n_known: Natural = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < len(self.pool) == len(self.downsample):
            pool, downsample = (",".join(map(str, numbers)) for numbers in (self.pool, self.downsample))
            raise UsageError(
                f"Settings 'model.pool' ({pool}) and 'model.downsample' ({downsample}) need one number per stack each; "
                "give as many of one as of the other."
            )


class Interpolation(nn.Module):
    """Linear interpolation from coefficients (..., K), one for every `downsample` steps, to (..., steps).

    Computed as a matrix product because the backward pass of `F.interpolate` is not deterministic on CUDA.
    """

    def __init__(self, steps: int, downsample: int) -> None:
        super().__init__()
        self.steps, self.count = steps, -(-steps // downsample)

    def forward(self, coefficients: Tensor) -> Tensor:
        if self.count == self.steps:
            return coefficients
        one_each = torch.eye(self.count, dtype=coefficients.dtype, device=coefficients.device)[None]
        return coefficients @ F.interpolate(one_each, self.steps, mode="linear")[0]


class Stack(nn.Module):
    """Backcast (B, C, L) and forecast (B, C, n_outputs, P) from a look-back (B, C, L) and further inputs (B, F).

    Args:
        config: configuration of the model.
        number: index of the stack. The last stack has no backcast.
        beside: F, the number of further inputs.
        outputs: n_outputs, the number of outputs per step.
    """

    def __init__(self, config: NHiTSConfig, number: int, beside: int, outputs: int) -> None:
        super().__init__()
        pool, downsample, hidden = config.pool[number], config.downsample[number], config.hidden
        self.pool, self.outputs = nn.MaxPool1d(pool, ceil_mode=True), outputs
        self.series = nn.Linear(-(-config.seq_len // pool), hidden)
        self.beside = nn.Linear(beside, hidden, bias=False) if beside else None
        layers: list[nn.Module] = [nn.ReLU(), Dropout(config.dropout)]
        for _ in range(config.n_hidden - 1):
            layers += [nn.Linear(hidden, hidden), nn.ReLU(), Dropout(config.dropout)]
        self.mlp = nn.Sequential(*layers)
        self.ahead = Interpolation(config.pred_len, downsample)
        self.forecast = nn.Linear(hidden, outputs * self.ahead.count)
        last = number == len(config.pool) - 1
        self.back = None if last else Interpolation(config.seq_len, downsample)
        self.backcast = None if self.back is None else nn.Linear(hidden, self.back.count)

    def forward(self, x: Tensor, beside: Tensor | None) -> tuple[Tensor | None, Tensor]:
        hidden = self.series(self.pool(x.flip(-1)))  # pool from the newest step on, so that the remainder is the oldest
        if self.beside is not None:
            hidden = hidden + self.beside(beside)[:, None]  # shared by all channels
        hidden = self.mlp(hidden)
        forecast = self.ahead(self.forecast(hidden).unflatten(-1, (self.outputs, -1)))
        if self.back is None or self.backcast is None:
            return None, forecast
        return self.back(self.backcast(hidden)), forecast


@register(
    "nhits",
    summary="Stacks of MLPs from coarse to fine, each fitted to the residual of the one before (Challu et al. 2023).",
)
class NHiTS(ForecastModel):
    """Forecasts each normalised channel as its last value plus a sum over stacks.

    Each stack max-pools the look-back and computes a few coefficients by an MLP, which are interpolated to a forecast
    and a backcast; the next stack reads the residual. The first layer of every stack also reads the static inputs and
    the known inputs over look-back and horizon, as in NBEATSx (Olivares et al., "Neural basis expansion analysis with
    exogenous variables", International Journal of Forecasting 2023). Starting from the last value follows the authors'
    code. The paper trains on the absolute error, `training.loss=mae`.
    """

    Config: ClassVar[type] = NHiTSConfig
    supports = Supports(known=True, static=True, recursive=False, quantiles=True, channels=1, subsampling=True)
    most_horizons = 3  # with longer look-backs, errors are higher; see results/trials.md

    def __init__(self, config: NHiTSConfig, quantiles: Sequence[float] = ()) -> None:
        super().__init__(config, quantiles)
        beside = config.n_static + config.n_known * (config.seq_len + config.pred_len)
        self.stacks = nn.ModuleList(Stack(config, n, beside, self.n_outputs) for n in range(len(config.pool)))

    def forward(self, batch: Batch) -> Tensor:
        """Forecast (B, P n_outputs, C)."""
        x, mean, deviation = normalise(batch.past)
        left = x.transpose(1, 2)  # (B, C, L)
        forecast = left[..., -1:, None]  # (B, C, 1, 1), for all quantiles and steps
        beside = self._beside(batch, x.dtype)
        for stack in self.stacks:
            backcast, part = stack(left, beside)
            forecast = forecast + part
            left = left if backcast is None else left - backcast
        return forecast.mT.flatten(2).transpose(1, 2) * deviation + mean

    def _beside(self, batch: Batch, dtype: torch.dtype) -> Tensor | None:
        """Static and known inputs, (B, F); None if there are none."""
        known = batch.known_to(self.config.pred_len) if self.config.n_known else None
        static = batch.static if self.config.n_static else None
        given = [each.flatten(1).to(dtype) for each in (known, static) if each is not None]
        return torch.cat(given, dim=1) if given else None
