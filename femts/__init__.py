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
    from femts.data.dataset import load_dataset
    from femts.forecaster.forecaster import Forecaster
    from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig
    from femts.training.train import train

    load = Forecaster.load

__all__ = [
    "Cutoffs",
    "Forecaster",
    "FreeEnergyMixer",
    "FreeEnergyMixerConfig",
    "__version__",
    "audit",
    "backtest",
    "backtest_scores",
    "load",
    "load_dataset",
    "report",
    "train",
]

_HOME = {
    "Cutoffs": "femts.analysis.backtest.cutoffs",
    "Forecaster": "femts.forecaster.forecaster",
    "FreeEnergyMixer": "femts.mixers",
    "FreeEnergyMixerConfig": "femts.mixers",
    "audit": "femts.analysis.audit.run",
    "backtest": "femts.analysis.backtest.run",
    "backtest_scores": "femts.analysis.backtest.run",
    "load_dataset": "femts.data.dataset",
    "report": "femts.analysis.report",
    "train": "femts.training.train",
}


def __getattr__(name: str) -> Any:
    if name == "load":
        return import_module("femts.forecaster.forecaster").Forecaster.load
    if name not in _HOME:
        raise AttributeError(f"module 'femts' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
