"""femts: time-series forecasting with Free Energy Mixers. Names are loaded on first use, so that importing is instant."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from femts.data.dataset import load_dataset
    from femts.experiments.audit import audit
    from femts.experiments.backtest import backtest, backtest_scores
    from femts.experiments.report import report
    from femts.forecaster import Forecaster
    from femts.mixers import FreeEnergyMixer, FreeEnergyMixerConfig
    from femts.training.fit import train

    load = Forecaster.load

__version__ = "0.1.0"
__all__ = [
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
    "Forecaster": "femts.forecaster",
    "FreeEnergyMixer": "femts.mixers",
    "FreeEnergyMixerConfig": "femts.mixers",
    "audit": "femts.experiments.audit",
    "backtest": "femts.experiments.backtest",
    "backtest_scores": "femts.experiments.backtest",
    "load_dataset": "femts.data.dataset",
    "report": "femts.experiments.report",
    "train": "femts.training.fit",
}


def __getattr__(name: str) -> Any:
    if name == "load":
        return import_module("femts.forecaster").Forecaster.load
    if name not in _HOME:
        raise AttributeError(f"module 'femts' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
