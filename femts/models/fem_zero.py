"""Forecasts without training: a small pretrained Free Energy Mixer that weighs closed-form forecasts, and their median.

Both forecast each column from its own past. The weights are part of the package; `scripts/pretrain` trained them on
synthetic series and on public ones that no table of femts is scored on (`femts models fem_zero` lists them).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor
from torch.nn import functional as F

from femts.config.bounds import Count
from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.base import ForecastModel, Supports
from femts.models.parts.expert_network import LEVELS as NETWORK_LEVELS
from femts.models.parts.expert_network import Network, NetworkConfig
from femts.models.parts.experts import NAMES
from femts.models.parts.zero_shot import (
    NAIVE_FLOOR,
    Array,
    SeriesBatch,
    Units,
    aligned,
    expert_medians,
    in_units,
    mean_loss,
    median_of,
    network_quantiles,
    network_weights,
    padded_length,
    quantiles_of,
)
from femts.models.registry import register
from femts.text import quote

PACKAGED = Path(__file__).parent / "weights" / "fem_zero.safetensors"
SHA256 = "19ce6b5f94d294d288cf29b9140c76c2a2d2f599437b1a1ff44971f358c53846"  # of the packaged weights
LEVELS = (50.0, 80.0, 90.0, 95.0, 99.0)  # of the intervals, in percent
# Distance to the median of the quantiles .95, .975 and .995 over that of .9, as measured on held-out series: 1.34 to 1.43,
# 1.67 to 2.48 and 2.4 to 6.7 on thirteen real sets, 1.35, 1.73 and 2.8 in the median of synthetic ones.
TAILS = (1.38, 1.79, 3.1)
QUANTILES = (0.005, 0.025, 0.05, *NETWORK_LEVELS, 0.95, 0.975, 0.995)
# Default number of forecasts to score per split, over all columns: a mean with this model has its intervals from them.
FORECASTS = 1024
LEAST_WINDOWS, MOST_WINDOWS = 16, 128
YEARS = {7: 364, 5: 260}  # days of a year in whole weeks, by those of a week


@dataclass(frozen=True)
class ZeroShotConfig(ModelConfig):
    """Settings of `simple_ensemble`.

    Attributes:
        season: season length in steps, 1 for no season; None takes the season of the data.
        further: a longer season in steps, of which the first is used; None takes that of the data, such as the week if
            the step divides a day. Beside a week of days there is the year otherwise.
        windows: largest number of windows to score per split, for a panel at least one per series; None takes 1,024
            forecasts over all columns, and 16 to 128 windows.
    """

    season: Count | None = None
    further: tuple[Count, ...] | None = None
    windows: Count | None = None

    def for_data(self, season: int, rows: int) -> Self:
        """Fill in season and windows if they are not set."""
        windows = min(max(LEAST_WINDOWS, FORECASTS // self.n_channels), MOST_WINDOWS)
        return replace(
            self,
            season=season if self.season is None else self.season,
            windows=windows if self.windows is None else self.windows,
        )


@dataclass(frozen=True)
class FemZeroConfig(ZeroShotConfig):
    """Settings of `fem_zero`, in addition to those of `simple_ensemble`.

    Attributes:
        weights: file of weights that `scripts/pretrain` wrote; None takes those of the package.
        sha256: expected hash of the weights; None accepts any of the file, and those of the package as released.
        network: sizes of the network, which follow from the weights.
    """

    weights: str | None = None
    sha256: str | None = None
    network: NetworkConfig | None = None

    def for_data(self, season: int, rows: int) -> Self:
        """Fill in season, windows, hash and sizes.

        Raises:
            UsageError: The weights cannot be read or do not match `sha256`.
        """
        if self.network is not None:
            raise UsageError("Setting 'model.network' is determined by the weights; remove it.")
        weights = read_weights(self.weights, self.sha256)
        return replace(super().for_data(season, rows), sha256=weights.sha256, network=weights.network)


@dataclass(frozen=True, eq=False)
class Weights:
    """Contents of a file of weights.

    Attributes:
        sha256: hash of the file.
        network: sizes of the network.
        tensors: its weights by name, in half precision.
        card: what they were trained on and how, in plain types.
    """

    sha256: str
    network: NetworkConfig
    tensors: dict[str, Tensor]
    card: dict[str, Any]


def read_weights(path: str | None = None, expected: str | None = None) -> Weights:
    """Read a file of weights; None takes the one of the package.

    Raises:
        UsageError: It cannot be read, is no such file, does not have the `expected` hash, or is of another version of
            the network.
    """
    file = PACKAGED if path is None else Path(path)
    try:
        content = file.read_bytes()
    except OSError as error:
        remedy = "install femts again" if path is None else "give a file that a pretraining wrote with model.weights"
        raise UsageError(f"The weights {quote(file)} cannot be read ({error.strerror}); {remedy}.") from error
    found = hashlib.sha256(content).hexdigest()
    wanted = expected or (SHA256 if path is None else found)
    if found != wanted:
        remedy = "restore the file, or leave model.sha256 open to use these"
        if path is None:
            remedy = "install femts again" if wanted == SHA256 else "install the version of femts that has these"
        raise UsageError(f"The weights {quote(file)} have the hash {found[:12]}, not {quote(wanted)[:12]}; {remedy}.")
    try:
        card = json.loads(safetensors_metadata(content)["card"])
        network, tensors = NetworkConfig.from_record(card["recipe"]["network"]), load(content)
    except (SafetensorError, ValueError, LookupError, TypeError) as error:
        raise UsageError(
            f"{quote(file)} holds no weights of fem_zero; give a file that a pretraining wrote with model.weights."
        ) from error
    with torch.device("meta"):
        fitting = Network(network).state_dict()
    shapes, expected_shapes = ({name: value.shape for name, value in of.items()} for of in (tensors, fitting))
    if shapes != expected_shapes or card.get("experts") != list(NAMES):
        raise UsageError(
            f"The weights {quote(file)} are of another version of fem_zero; use those of the package, or pretrain new ones "
            "with this version."
        )
    return Weights(found, network, tensors, card)


class ZeroShot(ForecastModel):
    """A model whose forecast of a look-back needs no training; its `season` has to be set."""

    supports = Supports(channels=1, raw=True)
    most_rows = 2048

    def __init__(self, config: Any, quantiles: tuple[float, ...] = ()) -> None:
        super().__init__(config, quantiles)
        self.most_windows = config.windows

    @classmethod
    def longest_look_back(cls, season: int) -> int:
        """`most_rows`, or four seasons if they are longer."""
        return max(cls.most_rows, 4 * season)

    def graph_forecast(self, past: Tensor, steps: int) -> Tensor:
        """Point forecasts (B, steps, C) of look-backs (B, L, C), NaN for missing values, in operators that graphs have.

        All look-backs are padded to one length, so a look-back with few values is forecast slightly differently.
        """
        length, channels = past.shape[1:]
        ahead = -(-self.horizon(steps) // self.patch) * self.patch
        before = padded_length(length) - length
        x = F.pad(past.double().transpose(1, 2).flatten(0, 1).T, (0, 0, before, ahead), value=torch.nan)
        made = self.from_batch(*in_units(x, *self.seasons(), ahead))[:, :steps]  # (B C, steps)
        return made.unflatten(0, (-1, channels)).transpose(1, 2)

    @property
    def patch(self) -> int:
        """Number of steps of which horizons are multiples."""
        return 1

    def horizon(self, steps: int) -> int:
        """Horizon at which `steps` steps are forecast: the usual one at least, because forecasts depend on it, and a
        shorter forecast is the beginning of a longer one."""
        return max(steps, self.config.pred_len)

    def from_batch(self, batch: SeriesBatch, units: Units) -> Tensor:
        """Point forecasts (B, H) of histories, in their units."""
        raise NotImplementedError

    def histories(self, batch: Batch) -> list[Array]:
        """Look-backs (L,) of all windows and columns, columns fastest."""
        values = batch.past.detach().cpu().double().transpose(1, 2)  # (B, C, L)
        return list(values.flatten(0, 1).numpy())

    def seasons(self) -> tuple[int, int]:
        """The season and a longer one, or the season again; raise UsageError if no season was set."""
        season, further = self.config.season, self.config.further or ()
        if season is None:
            raise UsageError("This model has no season; set model.season to the season length in steps, or to 1.")
        return season, next((each for each in further if each > season), YEARS.get(season, season))

    def forward(self, batch: Batch) -> Tensor:
        """Forecast raw look-backs, NaN for missing values: (B, P, C), or (B, P Q, C) with quantiles."""
        made = self.rolled_out(batch, self.config.pred_len)
        return made.flatten(1, 2) if self.quantiles else made


@register(
    "simple_ensemble",
    "Median of thirteen closed-form forecasts, such as the seasonal naive and an autoregression; fast.",
)
class SimpleEnsemble(ZeroShot):
    """The median of the experts that `fem_zero` weighs."""

    Config: ClassVar[type[ModelConfig]] = ZeroShotConfig

    def from_batch(self, batch: SeriesBatch, units: Units) -> Tensor:
        """The median of the experts, (B, H)."""
        return median_of(batch, units)

    def rolled_out(self, batch: Batch, steps: int) -> Tensor:
        """Forecast `steps` steps at once, (B, steps, C)."""
        made = expert_medians(self.histories(batch), *self.seasons(), self.horizon(steps))[:, :steps]  # (B C, steps)
        return torch.from_numpy(made).unflatten(0, (len(batch.past), -1)).transpose(1, 2)


@register("fem_zero", "Free Energy Mixer pretrained on other series: forecasts without training, own intervals; fast.")
class FemZero(ZeroShot):
    """A pretrained network that reads what closed-form forecasts ("experts") would have said in the past and says ahead,
    and answers with weights over them and quantiles."""

    Config: ClassVar[type[ModelConfig]] = FemZeroConfig
    levels = LEVELS
    filled: Tensor

    def __init__(self, config: FemZeroConfig) -> None:
        super().__init__(config, QUANTILES)
        self.network = Network(config.network or NetworkConfig()).requires_grad_(False)
        self.register_buffer("filled", torch.tensor(False))  # whether the weights were read; a run folder holds them

    @property
    def patch(self) -> int:
        """Steps of a token."""
        return self.network.config.patch

    @classmethod
    def about(cls) -> Sequence[str]:
        """The card of the weights in the package."""
        card = read_weights().card
        recipe, done, scores = card["recipe"], card["progress"], card["scores"]
        files = ", ".join(f"{name} ({count} series)" for name, count in card["sources"].items())
        held = ", ".join(f"{kind} {mase:.3f} / {sql:.3f}" for kind, (mase, sql) in scores.items() if " " not in kind)
        return (
            f"pretrained for {done['cpu_hours']:.1f} hours of one core: {done['steps']:,} steps on {done['series']:,} "
            f"series, seed {recipe['seed']}; {100 * recipe['share']:.0f} % are real where there are some of a season, "
            "the others synthetic (results/pretrained.md)",
            f"real series: {files}; every tenth is held out, and none is in a table that femts is scored on, apart from "
            "the past of some series of M3",
            f"MASE / SQL on held-out series, over the MASE of the seasonal naive forecast: {held}",
            f"licence of the weights: MIT, as femts; sha256 {SHA256}",
        )

    def read_weights(self) -> None:
        """Read the weights, unless they came from a run folder; raise UsageError as `read_weights` of the module."""
        if not self.filled:
            tensors = read_weights(self.config.weights, self.config.sha256).tensors
            self.network.load_state_dict({name: value.float() for name, value in tensors.items()})
            self.filled.fill_(True)

    def rolled_out(self, batch: Batch, steps: int) -> Tensor:
        """Forecast `steps` steps at once, (B, steps, Q, C)."""
        self.read_weights()
        histories, horizon = self.histories(batch), self.horizon(steps)
        made = network_quantiles(self.network, histories, *self.seasons(), horizon)[:, :steps]
        return at_levels(torch.from_numpy(made)).unflatten(0, (len(batch.past), -1)).permute(0, 2, 3, 1)

    def from_batch(self, batch: SeriesBatch, units: Units) -> Tensor:
        """The median forecast of the network, (B, H)."""
        return quantiles_of(self.network, batch, units)[..., NETWORK_LEVELS.index(0.5)]

    def expert_weights(self, batch: Batch) -> Tensor:
        """Weights of the experts (`femts.models.parts.experts.NAMES`) in the forecast of each window and column,
        (B, C, P, K)."""
        self.read_weights()
        made = network_weights(self.network, self.histories(batch), *self.seasons(), self.config.pred_len)
        return torch.from_numpy(made).unflatten(0, (len(batch.past), -1))


@register("fem_zero_tuned", "`fem_zero`, trained further on the table for a few hundred steps.")
class FemZeroTuned(FemZero):
    """The pretrained network, trained further on windows of the table. Each step draws one column of each window, and
    learns from all origins in it, as the pretraining does."""

    supports = replace(FemZero.supports, fine_tuned=True)
    training_defaults: ClassVar[Mapping[str, Any]] = {
        **{"lr": 3e-4, "weight_decay": 0.0, "ema": 0.98, "metric": "pinball", "keep": "best"},
        **{"batch_size": 16, "max_steps": 200, "val_windows": 24},
    }

    def __init__(self, config: FemZeroConfig) -> None:
        super().__init__(config)
        self.network.requires_grad_(True)

    def prepare(self, series: Tensor, observed: Tensor | None = None) -> None:
        """Read the pretrained weights."""
        self.read_weights()

    def loss(self, batch: Batch, channels: Tensor | None = None) -> Tensor:
        """Mean quantile loss over all origins of one column of each window, drawn at random, over that of the seasonal
        naive forecast."""
        assert batch.raw is not None and batch.future is not None
        future = batch.future.detach().cpu().double()
        if batch.future_observed is not None:
            future = future.masked_fill(~batch.future_observed.cpu(), torch.nan)
        past = (batch.raw.values - batch.raw.mean) / batch.raw.scale
        window = torch.arange(len(past))
        drawn = torch.randint(past.shape[2], window.shape)
        histories, futures = (list(each[window, :, drawn].numpy()) for each in (past, future))
        ahead = -(-self.config.pred_len // self.patch) * self.patch
        series, _ = aligned(histories, *self.seasons(), padded_length(past.shape[1]), ahead, futures)
        quantile, naive = mean_loss(self.network, series)
        return quantile / naive.clamp(min=NAIVE_FLOOR)


def at_levels(quantiles: Tensor) -> Tensor:
    """Quantiles (..., 15) at `QUANTILES` from those of the network, (..., 9): the outer ones are `TAILS` times as far
    from the median as the outermost of the network."""
    median = quantiles[..., NETWORK_LEVELS.index(0.5), None]
    lower, upper = quantiles[..., :1] - median, quantiles[..., -1:] - median
    tails = torch.tensor(TAILS, dtype=quantiles.dtype)
    return torch.cat([median + tails.flip(0) * lower, quantiles, median + tails * upper], dim=-1)


def safetensors_metadata(content: bytes) -> dict[str, str]:
    """Metadata of the `content` of a safetensors file."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return dict(header.get("__metadata__", {}))
