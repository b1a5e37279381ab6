"""Pretrained models of chronos-forecasting, used zero-shot: nothing is trained.

Chronos-2 reads all columns of a table and future covariates at once (Ansari et al., "Chronos-2: From Univariate to
Universal Forecasting", arXiv 2510.15821, 2025); Chronos-Bolt, the faster successor of the T5 models of Ansari et al.,
"Chronos: Learning the Language of Time Series", TMLR 2024, reads one column at a time. Their weights are stored outside
the run and are downloaded only on request.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.errors import UsageError, warn
from femts.models.base import ForecastModel, Supports
from femts.models.parts.weight_files import CONFIG, check_hash, find_weights, read_weights_config
from femts.models.registry import build_config, check_library, register
from femts.text import quote

AT_A_TIME = 256  # series per forward pass

# Datasets that the published weights were trained on: the pretraining-only and in-domain parts of Chronos's data as
# listed in its paper and that of TiRex (TMLR 2024; Auer et al., arXiv 2505.23719, 2025), whole families if a part such
# as one of M4 is named. Solar of the catalogue is the 137 plants in Alabama of its NREL solar power data. Neither ETT
# nor the weather of Jena is included, and the results of fev-bench state that neither model was trained on ETT.
CHRONOS = (
    *("Brazilian Cities Temperature", "Electricity", "KDD Cup 2018", "London Smart Meters", "M4", "Mexico City Bikes"),
    *("Pedestrian Counts", "Rideshare", "Solar", "Spanish Energy and Weather", "Taxi", "Temperature-Rain", "Uber TLC"),
    *("USHCN", "WeatherBench", "Wiki Daily", "Wind Farms"),
)
# Chronos-2 was trained on parts of these and of the pretraining data of GIFT-Eval (Aksu et al., arXiv 2410.10393,
# 2024). It is not documented which parts, so all that have a name of their own count as seen.
GIFT_EVAL = (
    *("Azure VM Traces", "BDG-2", "Beijing Air Quality", "Beijing Subway", "Borealis", "Borg Cluster Data"),
    *("Buildings 900K", "CDC FluView", "China Air Quality", "Favorita Sales", "GoDaddy", "HZMetro"),
    *("Kaggle Web Traffic", "KDD 2022", "LargeST", "Los-Loop", "PEMS03", "PEMS04", "PEMS07", "PEMS08", "PEMS-BAY"),
    *("Q-Traffic", "Residential Load Power", "Residential PV Power", "Sceaux", "SHMetro"),
    *("Subseasonal", "Wind Power"),
)


@dataclass(frozen=True)
class PretrainedConfig(ModelConfig):
    """Settings of `chronos_bolt`.

    Attributes:
        weights: folder of the weights, or their name on the Hugging Face hub, which is looked up in the local cache.
        revision: revision of a hub name; None takes `main` of the cache, and the run records its commit.
        download: whether to download a hub name that is not in the cache.
        sha256: expected hash of the weights, that of the lines of `sha256sum config.json *.safetensors`; None accepts
            any.
        trained_on: datasets that the weights were trained on; None for those of the published weights.
        quantiles: levels that the weights forecast, which follow from them.
    """

    TRAINED_ON: ClassVar[tuple[str, ...]] = CHRONOS

    weights: str | None = None
    revision: str | None = None
    download: bool = False
    sha256: str | None = None
    trained_on: tuple[str, ...] | None = None
    quantiles: tuple[float, ...] | None = None

    def for_data(self, season: int, rows: int) -> Self:
        """Fill in location, commit, hash and quantiles of the weights.

        Raises:
            UsageError: The weights are not given, do not exist, or do not match `sha256`.
        """
        folder = find_weights(self.weights, self.revision, self.download)
        quantiles = read_weights_config(folder).quantiles
        if self.quantiles not in (None, quantiles):
            raise UsageError("Setting 'model.quantiles' is determined by the weights; remove it.")
        local = os.path.isdir(str(self.weights))
        return replace(
            self,
            weights=os.path.abspath(folder) if local else self.weights,
            revision=None if local else folder.name,  # a snapshot is named after its commit
            sha256=check_hash(folder, self.sha256),
            trained_on=self.TRAINED_ON if self.trained_on is None else self.trained_on,
            quantiles=quantiles,
        )

    def has_seen(self, dataset: str) -> bool:
        """Return whether the weights were trained on `dataset`, matched by its name or the beginning of it."""
        seen = map(_plain, self.TRAINED_ON if self.trained_on is None else self.trained_on)
        return any(name and _plain(dataset).startswith(name) for name in seen)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


@dataclass(frozen=True)
class Chronos2Config(PretrainedConfig):
    """Settings of `chronos2`, in addition to those of `PretrainedConfig`.

    Attributes:
        n_known: number of known inputs, which follows from the data.
    """

    TRAINED_ON: ClassVar[tuple[str, ...]] = (*CHRONOS, *GIFT_EVAL)

    n_known: int = 0


class Pretrained(ForecastModel):
    """A model of chronos-forecasting, with intervals from its own quantiles.

    Its weights are not part of the run, which records their location and hash. Beyond the horizon that the weights
    forecast at once, the library extends their quantiles.
    """

    Config: ClassVar[type[ModelConfig]] = PretrainedConfig
    needs = ("chronos", "pretrained")
    most_rows = 2048
    name: ClassVar[str]  # registered name
    module: ClassVar[str]  # module of the library with the classes below
    architecture: ClassVar[str]  # class of the network in `config.json`
    library: ClassVar[str]  # class of the pipeline

    def __init__(self, config: Any) -> None:
        super().__init__(config, config.quantiles or ())
        self.levels = tuple(
            sorted(_level(low) for low in self.quantiles if low < 0.5 and _mirrored(low) in self.quantiles)
        )
        self.pipeline: Any = None
        self.place: Tensor
        self.register_buffer("place", torch.empty(0), persistent=False)  # tracks the device of the run

    @property
    def n_weights(self) -> int:
        """Number of weights; 0 before they are read."""
        return 0 if self.pipeline is None else sum(p.numel() for p in self.pipeline.model.parameters())

    def read_weights(self) -> None:
        """Read the weights in float32.

        Raises:
            UsageError: The library or the weights are missing, or the weights belong to another model or differ from
                those used in training.
        """
        check_library(self.name)
        folder = find_weights(self.config.weights, self.config.revision)
        check_hash(folder, self.config.sha256)
        found = read_weights_config(folder).architecture
        if found != self.architecture:
            raise UsageError(
                f"Weights in {folder} belong to {quote(found)}, but '{self.name}' needs {self.architecture}."
            )
        from transformers.utils import logging

        logging.disable_progress_bar()  # loading takes a moment only
        module = import_module(self.module)
        options = {"dtype": torch.float32, "local_files_only": True, "use_safetensors": True}
        try:
            model, info = getattr(module, self.architecture).from_pretrained(
                folder, output_loading_info=True, **options
            )
        except Exception as error:  # the library raises errors of many kinds
            reason = str(error).partition("\n")[0]
            raise UsageError(f"Weights in {folder} cannot be read ({quote(reason)}); provide others.") from error
        if info["missing_keys"] or info["mismatched_keys"]:  # the library would initialise these at random
            raise UsageError(f"Weights in {folder} do not match their {CONFIG}; provide a complete set.")
        self.pipeline = getattr(module, self.library)(model.eval())

    def forward(self, batch: Batch) -> Tensor:
        """Forecast look-backs of any scale, NaN for missing values: (B, P Q, C), with the quantiles of a step side by
        side."""
        if self.pipeline is None:
            self.read_weights()
        self.pipeline.model.to(self.place.device)
        values = batch.past.detach().cpu().double().transpose(1, 2)  # (B, C, L)
        # The library does this in float32, which loses the digits of a level far from 0.
        mean = values.nanmean(2, keepdim=True).nan_to_num()
        scale = (values - mean).square().nanmean(2, keepdim=True).sqrt().nan_to_num()
        scale = torch.where(scale > 0, scale, 1.0)
        most, steps = self.pipeline.model_prediction_length, self.config.pred_len
        if steps > most:
            warn(f"{self.name} forecasts {most} steps at once and continues its own quantiles to {steps}.", UserWarning)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the library warns of the same at length
            made = self._forecast(((values - mean) / scale).float(), batch.known_to(steps), steps)  # (B, C, Q, P)
        made = made.double() * scale[..., None] + mean[..., None]
        return made.permute(0, 3, 2, 1).flatten(1, 2)

    def _forecast(self, values: Tensor, known: Tensor | None, steps: int) -> Tensor:
        """Quantiles (B, C, Q, steps) after `values` (B, C, L), with `known` inputs (B, L + steps, K)."""
        raise NotImplementedError


def _level(low: float) -> float:
    return round(100 * (1 - 2 * low), 6)


def _mirrored(low: float) -> float:
    return round(1 - low, 6)


@register("chronos_bolt", "Chronos-Bolt, pretrained: zero-shot, each column separately, own intervals; needs weights.")
class ChronosBolt(Pretrained):
    """Chronos-Bolt: a T5 on patches of one column, with nine quantiles."""

    supports = Supports(channels=1, raw=True)
    name, module = "chronos_bolt", "chronos.chronos_bolt"
    architecture, library = "ChronosBoltModelForForecasting", "ChronosBoltPipeline"

    def _forecast(self, values: Tensor, known: Tensor | None, steps: int) -> Tensor:
        pieces = [self.pipeline.predict(some, steps) for some in values.flatten(0, 1).split(AT_A_TIME)]
        return torch.cat(pieces).unflatten(0, values.shape[:2])


@register("chronos2", "Chronos-2, pretrained: zero-shot, all columns and future covariates; needs weights.")
class Chronos2(Pretrained):
    """Chronos-2: the columns of a window, including past and future covariates, form one group."""

    Config = Chronos2Config
    supports = Supports(known=True, raw=True)
    # it was trained with covariates, on unadjusted values
    training_defaults: ClassVar[dict[str, Any]] = {"covariates": "model"}
    name, module, architecture, library = "chronos2", "chronos.chronos2", "Chronos2Model", "Chronos2Pipeline"

    def _forecast(self, values: Tensor, known: Tensor | None, steps: int) -> Tensor:
        channels, length = values.shape[1:]
        inputs: Any = values
        if known is not None:
            beside = known.detach().cpu().float().transpose(1, 2).clone()  # (B, K, L + steps)
            # before the first value, future covariates only repeat their first row
            began = (~values.isnan()).any(1).cummax(1).values
            beside[..., :length].masked_fill_(~began[:, None], torch.nan)
            unknown = values.new_full((channels, steps), torch.nan)
            counts = {"n_targets": channels, "n_covariates": beside.shape[1], "n_future_covariates": beside.shape[1]}
            inputs = [
                {
                    "context": torch.cat([own, also[:, :length]]),
                    "future_covariates": torch.cat([unknown, also[:, length:]]),
                }
                | counts
                for own, also in zip(values, beside, strict=True)
            ]
        return torch.stack(self.pipeline.predict(inputs, steps, batch_size=AT_A_TIME))


def model_of_weights(settings: Mapping[str, Any]) -> str:
    """Registered name of the model that the weights in the `settings` of `PretrainedConfig` belong to.

    Raises:
        UsageError: The weights do not exist, or belong to another model.
    """
    asked: Any = build_config(ChronosBolt.name, seq_len=1, pred_len=1, n_channels=1, settings=settings)
    folder = find_weights(asked.weights, asked.revision, asked.download)
    found = read_weights_config(folder).architecture
    for kind in (Chronos2, ChronosBolt):
        if kind.architecture == found:
            return kind.name
    raise UsageError(f"Weights in {folder} belong to {quote(found)}; provide those of Chronos-2 or Chronos-Bolt.")
