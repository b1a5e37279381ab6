"""Scores of a forecaster after its training, and the circumstances that are kept beside them."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

import torch

from femts._version import __version__
from femts.data.dataset import Dataset
from femts.data.describe import names
from femts.data.windows import FAR, Windows
from femts.evaluation.conformal import calibrate
from femts.evaluation.coverage import Bounds, CoverageSums
from femts.evaluation.evaluator import evaluate
from femts.evaluation.quantiles import PinballSums
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.scoring import naive_sums
from femts.text import shown
from femts.training.device import Place

REPORTED_LEVELS = (80.0, 95.0)  # percent; their coverage of the test part is in `metrics.json`


def take_scores(forecaster: Forecaster, windows: Mapping[str, Windows], data: Dataset, device: str) -> dict[str, Any]:
    """Calibrate the intervals of `forecaster` on the validation windows, and score it once on the test windows.

    Returns:
        `val`, `test`, `naive` (`NaiveSums.beside`) and what the `intervals` cover, as in `metrics.json`; where there
        are any, what is `outgrown`, names of targets or series that a choice by validation errors leaves out
        (`Windows.within_scale`), and what is `dominant` (`NaiveSums.dominant`).
    """
    model, batch_size = forecaster.model, forecaster.config.training.eval_batch_size
    model.to(device)
    past, future = windows["val"].to(device), windows["test"].to(device)
    pinball = [PinballSums(model.quantiles, past.rows.device)] if model.quantiles else []
    intervals, val = calibrate(model, past.within_scale(), batch_size=batch_size, also=pinball)
    val |= {"pinball": pinball[0].mean} if pinball else {}
    covered = CoverageSums(Bounds(intervals, future, model.quantiles, model.most_windows))
    naive = naive_sums(forecaster, future, data)
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
    odd = {"outgrown": _outgrown(forecaster, past), "dominant": naive.dominant()}
    scores = {"val": val, "test": test, "naive": naive.beside(test["mse"]), "intervals": within}
    return scores | {name: said for name, said in odd.items() if said}


def _outgrown(forecaster: Forecaster, windows: Windows) -> list[str]:
    """Names of the targets or series that `windows` count, and windows for a choice do not."""
    chosen = windows.within_scale().counted
    if chosen is None or chosen is windows.counted:
        return []
    gone = ~chosen if windows.counted is None else windows.counted & ~chosen
    if len(windows.names) > 1:
        return [name for name, left_out in zip(windows.names, gone.any(1).tolist(), strict=True) if left_out]
    return [name for name, left_out in zip(forecaster.targets, gone[0].tolist(), strict=True) if left_out]


def scale_notes(forecaster: Forecaster) -> list[str]:
    """Sentences on targets, or series of a panel, whose training rows do not tell the scale of their errors."""
    of, notes = forecaster.scored or forecaster, list[str]()
    varies = of.preprocess.scaler.own[:, : len(of.targets)]
    several = len(of.series) > 1
    own = dict(zip(of.series, varies.all(1).tolist(), strict=True))
    own = own if several else dict(zip(of.targets, varies[0].tolist(), strict=True))
    what = "series" if several else "columns"
    flat = tuple(name for name, varies in own.items() if not varies)
    if flat:
        left_out = " and left out of mean errors" if len(flat) < len(own) else ""
        notes.append(
            f"{len(flat)} of {len(own)} {what} hardly vary in the training rows, so they are scaled by later rows or "
            f"by their level{left_out}: {names(flat)}"
        )
    outgrown = tuple(of.metrics.get("outgrown", ()))
    if outgrown:
        notes.append(
            f"{len(outgrown)} of {len(own)} {what} lie more than {FAR:g} deviations from their training rows in most "
            f"validation rows, so they do not count where validation errors choose: {names(outgrown)}"
        )
    dominant = of.metrics.get("dominant")
    if dominant:
        error, values = (f"{100 * dominant[key]:.3g} %" for key in ("error", "values"))
        notes.append(
            f"'{shown(dominant['name'])}' holds {values} of the values and {error} of the squared test error, so the "
            f"mean says little about the other {what}"
        )
    return notes


def circumstances(forecaster: Forecaster, place: Place) -> dict[str, Any]:
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
