"""Scores of a forecaster after its training, and the circumstances that are kept beside them."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

import torch

from femts._version import __version__
from femts.data.dataset import Dataset
from femts.data.panel import Panel
from femts.data.windows import PanelWindows, Windows
from femts.evaluation.beside import NaiveErrors
from femts.evaluation.conformal import calibrate
from femts.evaluation.coverage import Bounds, CoverageSums
from femts.evaluation.evaluator import evaluate
from femts.evaluation.quantiles import PinballSums
from femts.forecaster import panel_scoring, scoring
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.panel_forecaster import PanelForecaster
from femts.training.device import Place

REPORTED_LEVELS = (80.0, 95.0)  # percent; their coverage of the test part is in `metrics.json`


def take_scores(
    forecaster: Forecaster | PanelForecaster, windows: Mapping[str, Windows], data: Dataset | Panel, device: str
) -> dict[str, Any]:
    """Calibrate the intervals of `forecaster` on the validation windows, and score it once on the test windows.

    Returns:
        `val`, `test`, `naive` (`NaiveErrors.beside`) and what the `intervals` cover, as in `metrics.json`.
    """
    model, batch_size = forecaster.model, forecaster.config.training.eval_batch_size
    model.to(device)
    past, future = windows["val"].to(device), windows["test"].to(device)
    pinball = [PinballSums(model.quantiles, past.series.device)] if model.quantiles else []
    intervals, val = calibrate(model, past, batch_size=batch_size, also=pinball)
    val |= {"pinball": pinball[0].mean} if pinball else {}
    covered = CoverageSums(Bounds(intervals, future, model.quantiles, model.most_windows))
    naive = _naive_sums(forecaster, future, data)
    test = evaluate(model, future, batch_size, also=[covered, naive])
    model.eval()
    forecaster.intervals = intervals
    within = {
        "windows": intervals.windows,
        "disjoint": intervals.disjoint,
        "test": covered.overall(REPORTED_LEVELS),
    }
    missing = intervals.without(forecaster.targets)
    within |= {"missing": missing} if missing else {}
    return {"val": val, "test": test, "naive": naive.beside(test["mse"]), "intervals": within}


def circumstances(forecaster: Forecaster | PanelForecaster, place: Place) -> dict[str, Any]:
    """Circumstances of a training, as in `metrics.json`: data, model, lengths, seed, device and versions."""
    config = forecaster.config
    return {
        "dataset": config.dataset,
        "model": config.model,
        "pred_len": config.pred_len,
        "seq_len": config.seq_len,
        "protocol": config.protocol,
        "seed": config.training.seed,
        "device": place.device,
        "devices": place.devices,
        "precision": place.precision,
        "parameters": sum(p.numel() for p in forecaster.model.parameters()),
        "versions": {"femts": __version__, "torch": torch.__version__, "python": platform.python_version()},
        "data_sha256": forecaster.data["sha256"],
    }


def _naive_sums(forecaster: Forecaster | PanelForecaster, windows: Windows, data: Dataset | Panel) -> NaiveErrors:
    if isinstance(forecaster, Forecaster):
        assert isinstance(data, Dataset)
        return scoring.naive_sums(forecaster, data)
    assert isinstance(data, Panel) and isinstance(windows, PanelWindows)
    return panel_scoring.naive_sums(forecaster, windows, data)
