"""femts: time-series forecasting with Free Energy Mixers. Names are loaded on first use, so that
importing is instant."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from femts._version import __version__

if TYPE_CHECKING:
    from femts.analysis.audit.run import audit
    from femts.analysis.backtest import backtest
    from femts.analysis.check import Check, check
    from femts.analysis.compare import Comparison, compare
    from femts.analysis.report import report
    from femts.analysis.rolling_scores import backtest_scores
    from femts.analysis.tune import tune
    from femts.analysis.update import Update, update
    from femts.config.model import ModelConfig
    from femts.data.catalog import CATALOG, DatasetCard
    from femts.data.dataset import Dataset
    from femts.data.listing import datasets
    from femts.data.loading import load_dataset
    from femts.errors import (
        AccuracyWarning,
        AgeWarning,
        CellWarning,
        FemtsError,
        ForecastWarning,
        GapWarning,
        RunFailure,
        ScaleWarning,
        UnitsWarning,
        UsageError,
    )
    from femts.experiments.leaderboard import leaderboard
    from femts.experiments.run import pairs, score_tasks, table
    from femts.forecaster.combine import mean_of
    from femts.forecaster.forecaster import Forecaster, load
    from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig
    from femts.mixers.priors.base import BoundPrior, Prior, visible
    from femts.mixers.priors.registry import register_prior
    from femts.models.base import ForecastModel
    from femts.models.fem import SegmentForecaster
    from femts.models.registry import register
    from femts.training.train import train
    from femts.training.zero_shot import forecast

# Modules and the public names loaded from them. `models` is the package of that name, which is callable.
_NAMES = {
    "femts.analysis.audit.run": ("audit",),
    "femts.analysis.backtest": ("backtest",),
    "femts.analysis.check": ("Check", "check"),
    "femts.analysis.compare": ("Comparison", "compare"),
    "femts.analysis.report": ("report",),
    "femts.analysis.rolling_scores": ("backtest_scores",),
    "femts.analysis.tune": ("tune",),
    "femts.analysis.update": ("Update", "update"),
    "femts.config.model": ("ModelConfig",),
    "femts.data.catalog": ("CATALOG", "DatasetCard"),
    "femts.data.listing": ("datasets",),
    "femts.data.dataset": ("Dataset",),
    "femts.data.loading": ("load_dataset",),
    "femts.errors": (
        "AccuracyWarning",
        "AgeWarning",
        "CellWarning",
        "FemtsError",
        "ForecastWarning",
        "GapWarning",
        "RunFailure",
        "ScaleWarning",
        "UnitsWarning",
        "UsageError",
    ),
    "femts.experiments.leaderboard": ("leaderboard",),
    "femts.experiments.run": ("pairs", "score_tasks", "table"),
    "femts.forecaster.combine": ("mean_of",),
    "femts.forecaster.forecaster": ("Forecaster", "load"),
    "femts.mixers": ("FreeEnergyMixer", "FreeEnergyMixerConfig"),
    "femts.mixers.priors.base": ("BoundPrior", "Prior", "visible"),
    "femts.mixers.priors.registry": ("register_prior",),
    "femts.models.base": ("ForecastModel",),
    "femts.models.fem": ("SegmentForecaster",),
    "femts.models.registry": ("register",),
    "femts.training.train": ("train",),
    "femts.training.zero_shot": ("forecast",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "CATALOG",
    "AccuracyWarning",
    "AgeWarning",
    "BoundPrior",
    "CellWarning",
    "Check",
    "Comparison",
    "Dataset",
    "DatasetCard",
    "FemtsError",
    "ForecastModel",
    "ForecastWarning",
    "Forecaster",
    "FreeEnergyMixer",
    "FreeEnergyMixerConfig",
    "GapWarning",
    "ModelConfig",
    "Prior",
    "RunFailure",
    "ScaleWarning",
    "SegmentForecaster",
    "UnitsWarning",
    "Update",
    "UsageError",
    "__version__",
    "audit",
    "backtest",
    "backtest_scores",
    "check",
    "compare",
    "datasets",
    "forecast",
    "leaderboard",
    "load",
    "load_dataset",
    "mean_of",
    "models",
    "pairs",
    "register",
    "register_prior",
    "report",
    "score_tasks",
    "table",
    "train",
    "tune",
    "update",
    "visible",
]


def __getattr__(name: str) -> Any:
    if name in ("errors", "mlflow", "models"):
        return import_module(f"femts.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'femts' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
