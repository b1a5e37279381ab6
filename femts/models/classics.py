"""Classical models, fitted by statsforecast to each look-back: AutoETS, AutoCES, AutoARIMA, AutoTheta, the dynamic
optimised theta model, MSTL, the median of four of them, and Croston's method for intermittent demand.

They are not trained on windows: every forecast is a fit to the raw rows of its look-back and equals the library's on
the same rows (Garza et al., "StatsForecast", PyCon 2022; Hyndman & Khandakar, "Automatic Time Series Forecasting: the
forecast Package for R", JSS 2008; Svetunkov et al., "Complex exponential smoothing", NRL 2022; Fiorucci et al., "Models for optimising the theta method", IJF 2016; Bandara et al.,
"MSTL", 2021; Petropoulos & Svetunkov, "A simple combination of univariate models", IJF 2020; Syntetos & Boylan, "The
accuracy of intermittent demand estimates", IJF 2005).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import torch
from torch import Tensor

from femts.config.bounds import Count
from femts.config.model import ModelConfig
from femts.data.batch import Batch
from femts.errors import GapWarning, UsageError, warn
from femts.models.base import ForecastModel, Supports
from femts.models.parts.classic_fit import Fit, forecast_all
from femts.models.registry import register

LEVELS = (50.0, 80.0, 90.0, 95.0, 99.0)  # of the intervals, in percent
QUANTILES = (0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995)  # ends of the intervals, and the median


@dataclass(frozen=True)
class ClassicConfig(ModelConfig):
    """Settings of `auto_ets`, `auto_ces`, `auto_theta` and `dotm`.

    Attributes:
        season: season length in steps, 1 for no season; None takes the season of the data.
        windows: largest number of windows to score per split, since each needs a fit; for a panel at least one per
            series.
    """

    season: Count | None = None
    windows: Count = 24

    def for_data(self, season: int, rows: int) -> Self:
        """Fill in the season of the data if none is set."""
        return replace(self, season=season) if self.season is None else self


@dataclass(frozen=True)
class MstlConfig(ClassicConfig):
    """Settings of `mstl`, in addition to those of `ClassicConfig`.

    Attributes:
        further: further season lengths in steps; None takes those of the data, such as the week if the step divides a
            day. Those that a look-back does not hold twice are ignored, as is a `season` that it does not hold once.
    """

    further: tuple[Count, ...] | None = None


@dataclass(frozen=True)
class ArimaConfig(ClassicConfig):
    """Settings of `auto_arima`, in addition to those of `ClassicConfig`.

    Attributes:
        approximation: approximate likelihoods during the search; None does so for more than 150 rows or a season of
            more than 12 steps, like R's `auto.arima`.
    """

    windows: Count = 8
    approximation: bool | None = None


Member = Literal["auto_ets", "auto_ces", "auto_arima", "dotm"]


@dataclass(frozen=True)
class StatEnsembleConfig(ArimaConfig):
    """Settings of `stat_ensemble`, in addition to those of `ArimaConfig`; members use those that they have.

    Attributes:
        members: models whose median is the forecast.
    """

    members: tuple[Member, ...] = get_args(Member)

    def __post_init__(self) -> None:
        """Check that there are members, each of them once; raises UsageError."""
        super().__post_init__()
        if not self.members or len(set(self.members)) < len(self.members):
            text = f"Setting 'model.members' takes one or more different models, not '{','.join(self.members)}'."
            raise UsageError(text, argument="model.members", value=self.members, remedy={"model.members": None})


class Classic(ForecastModel):
    """A model of statsforecast, named by `library`, with its own intervals."""

    Config: ClassVar[type[ModelConfig]] = ClassicConfig
    supports = Supports(channels=1, raw=True)
    needs = ("statsforecast", "stats")
    levels: tuple[float, ...] = LEVELS
    library: ClassVar[str]

    def __init__(self, config: Any) -> None:
        super().__init__(config, QUANTILES)
        self.most_windows = config.windows

    def fit(self, steps: int) -> Fit:
        """The fit of this model for `steps` steps; raise UsageError if no season was set."""
        config = self.config
        if config.season is None:
            raise UsageError("This model has no season; set model.season to the season length in steps, or to 1.")
        further = getattr(config, "further", None) or ()
        return Fit(self.library, config.season, steps, self.levels, getattr(config, "approximation", None), further)

    def fits(self, steps: int) -> tuple[Fit, ...]:
        """All fits that a forecast of a look-back needs."""
        return (self.fit(steps),)

    def forward(self, batch: Batch) -> Tensor:
        """Forecast raw look-backs, NaN for missing values: (B, P Q, C), or (B, P, C) without quantiles."""
        made = self.rolled_out(batch, self.config.pred_len)
        return made.flatten(1, 2) if self.quantiles else made

    def rolled_out(self, batch: Batch, steps: int) -> Tensor:
        """Forecast `steps` steps at once: (B, S, Q, C), or (B, S, C) without quantiles."""
        if steps < 1:
            raise UsageError(f"A horizon of {steps} steps is not supported; use 1 or more.")
        values = batch.past.detach().cpu().double().transpose(1, 2)  # (B, C, L)
        series = list(np.ascontiguousarray(values.flatten(0, 1).numpy()))
        made, reasons = forecast_all(self.fit(steps), series, torch.get_num_threads())
        if reasons:
            text = f"{self.library} failed on {len(reasons)} of {len(series)} look-backs ({reasons[0]})"
            warn(f"{text}; their forecasts repeat the last value.", GapWarning)
        forecasts = torch.from_numpy(made).unflatten(0, values.shape[:2])  # (B, C, S, Q)
        forecasts = forecasts.permute(0, 2, 3, 1)
        return forecasts if self.quantiles else forecasts[:, :, 0]


@register("auto_ets", "AutoETS by statsforecast, fitted to each look-back: exponential smoothing, own intervals.")
class AutoETS(Classic):
    """Exponential smoothing whose form is chosen by AICc."""

    library = "AutoETS"


@register(
    "auto_ces", "AutoCES by statsforecast, fitted to each look-back: complex exponential smoothing, own intervals."
)
class AutoCES(Classic):
    """Complex exponential smoothing whose season is chosen by AICc."""

    library = "AutoCES"


@register("auto_theta", "AutoTheta by statsforecast, fitted to each look-back: the theta method, own intervals.")
class AutoTheta(Classic):
    """The best of four theta methods."""

    library = "AutoTheta"


@register(
    "dotm", "Dynamic optimised theta by statsforecast, fitted to each look-back: one theta method, own intervals."
)
class DynamicOptimizedTheta(Classic):
    """The theta method with optimised line, level and slope, where the slope is updated at every step."""

    library = "DynamicOptimizedTheta"


@register("mstl", "MSTL by statsforecast, fitted to each look-back: seasons removed by loess, trend by AutoETS.")
class Mstl(Classic):
    """Seasons by loess, then AutoETS; AutoETS alone without a season."""

    Config = MstlConfig
    library = "MSTL"


@register("auto_arima", "AutoARIMA by statsforecast, fitted to each look-back: seasonal ARIMA, own intervals; slow.")
class AutoARIMA(Classic):
    """ARIMA whose orders are chosen by AICc: seasonal, or after MSTL has removed a season of more than 24 steps."""

    Config = ArimaConfig
    library = "AutoARIMA"
    most_rows = 512


@register(
    "stat_ensemble", "Median of auto_ets, auto_ces, auto_arima and dotm at each step, also of their intervals; slow."
)
class StatEnsemble(Classic):
    """The median of the points, and of each quantile, of its `members` (Petropoulos & Svetunkov, 2020), each of which
    reads at most as many rows as by itself."""

    Config = StatEnsembleConfig

    def __init__(self, config: StatEnsembleConfig) -> None:
        super().__init__(config)
        kinds = (MEMBERS[name] for name in config.members)
        self.members = tuple(kind(_settings_of(kind, config)) for kind in kinds)

    def fits(self, steps: int) -> tuple[Fit, ...]:
        """The fits of its members."""
        return tuple(fit for member in self.members for fit in member.fits(steps))

    def rolled_out(self, batch: Batch, steps: int) -> Tensor:
        """Medians of the members' forecasts: (B, S, Q, C)."""
        made = [each.rolled_out(replace(batch, past=batch.past[:, -each.most_rows :]), steps) for each in self.members]
        return torch.stack(made).quantile(0.5, dim=0)


MEMBERS: dict[str, type[Classic]] = {
    "auto_ets": AutoETS,
    "auto_ces": AutoCES,
    "auto_arima": AutoARIMA,
    "dotm": DynamicOptimizedTheta,
}


@register(
    "croston_sba", "Croston's method with Syntetos and Boylan's correction by statsforecast: intermittent demand."
)
class CrostonSBA(Classic):
    """Croston's method, corrected; without its own intervals, which are calibrated on all validation windows."""

    Config = ModelConfig
    library = "CrostonSBA"
    levels = ()

    def __init__(self, config: ModelConfig) -> None:
        ForecastModel.__init__(self, config)

    def fit(self, steps: int) -> Fit:
        """The fit of this model for `steps` steps; it has no season."""
        return Fit(self.library, 1, steps)


def _settings_of(kind: type[Classic], config: ModelConfig) -> ModelConfig:
    """Configuration of a member, from the fields that it shares with the ensemble."""
    return kind.Config(**{field.name: getattr(config, field.name) for field in fields(kind.Config)})
