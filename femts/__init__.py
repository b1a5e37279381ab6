"""femts: time-series forecasting with Free Energy Mixers. Names are loaded on first use, so that
importing is instant."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from femts._version import __version__

if TYPE_CHECKING:
    from femts.analysis.audit.run import audit
    from femts.analysis.backtest.cutoffs import Cutoffs
    from femts.analysis.backtest.run import backtest, backtest_scores
    from femts.analysis.report import report
    from femts.analysis.tune.run import tune
    from femts.config.model import ModelConfig
    from femts.data.catalog import CATALOG, DatasetCard
    from femts.data.listing import datasets
    from femts.data.loading import load_dataset
    from femts.data.panel import Panel, load_panel
    from femts.errors import AgeWarning, FemtsError, GapWarning, RunFailure, UsageError
    from femts.experiments.run import pairs, table
    from femts.forecaster.combine import mean_of
    from femts.forecaster.forecaster import Forecaster
    from femts.forecaster.load import load
    from femts.forecaster.panel_forecaster import PanelForecaster
    from femts.forecaster.trained import Trained
    from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig
    from femts.mixers.priors.base import BoundPrior, Prior, visible
    from femts.mixers.priors.registry import register_prior
    from femts.models.base import ForecastModel
    from femts.models.fem import SegmentForecaster
    from femts.models.registry import register
    from femts.training.train import train

# The home of each public name. `models` is the package of that name, which can be called.
_HOME = {
    "AgeWarning": "femts.errors",
    "BoundPrior": "femts.mixers.priors.base",
    "CATALOG": "femts.data.catalog",
    "Cutoffs": "femts.analysis.backtest.cutoffs",
    "DatasetCard": "femts.data.catalog",
    "FemtsError": "femts.errors",
    "ForecastModel": "femts.models.base",
    "Forecaster": "femts.forecaster.forecaster",
    "FreeEnergyMixer": "femts.mixers",
    "FreeEnergyMixerConfig": "femts.mixers",
    "GapWarning": "femts.errors",
    "ModelConfig": "femts.config.model",
    "Panel": "femts.data.panel",
    "PanelForecaster": "femts.forecaster.panel_forecaster",
    "Prior": "femts.mixers.priors.base",
    "RunFailure": "femts.errors",
    "SegmentForecaster": "femts.models.fem",
    "Trained": "femts.forecaster.trained",
    "UsageError": "femts.errors",
    "audit": "femts.analysis.audit.run",
    "backtest": "femts.analysis.backtest.run",
    "backtest_scores": "femts.analysis.backtest.run",
    "datasets": "femts.data.listing",
    "load": "femts.forecaster.load",
    "load_dataset": "femts.data.loading",
    "load_panel": "femts.data.panel",
    "mean_of": "femts.forecaster.combine",
    "pairs": "femts.experiments.run",
    "register": "femts.models.registry",
    "register_prior": "femts.mixers.priors.registry",
    "report": "femts.analysis.report",
    "table": "femts.experiments.run",
    "train": "femts.training.train",
    "tune": "femts.analysis.tune.run",
    "visible": "femts.mixers.priors.base",
}

__all__ = [
    "CATALOG",
    "AgeWarning",
    "BoundPrior",
    "Cutoffs",
    "DatasetCard",
    "FemtsError",
    "ForecastModel",
    "Forecaster",
    "FreeEnergyMixer",
    "FreeEnergyMixerConfig",
    "GapWarning",
    "ModelConfig",
    "Panel",
    "PanelForecaster",
    "Prior",
    "RunFailure",
    "SegmentForecaster",
    "Trained",
    "UsageError",
    "__version__",
    "audit",
    "backtest",
    "backtest_scores",
    "datasets",
    "load",
    "load_dataset",
    "load_panel",
    "mean_of",
    "models",
    "pairs",
    "register",
    "register_prior",
    "report",
    "table",
    "train",
    "tune",
    "visible",
]


def __getattr__(name: str) -> Any:
    if name in ("errors", "models"):
        return import_module(f"femts.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'femts' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
