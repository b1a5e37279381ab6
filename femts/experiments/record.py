"""The record of a finished cell: everything that says where a number comes from and how to get it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from femts.data.dataset import Dataset
from femts.data.protocols import HORIZONS
from femts.environment import commit, place
from femts.evaluation.window_errors import WindowErrors
from femts.experiments.grid import Cell
from femts.experiments.record_rules import RECORD_FORMAT, cell_of
from femts.experiments.samples import sample_forecasts
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.scoring import score, score_beside, scored_part

MOST_VALIDATED = 2048  # windows, evenly spread, of a roll-out on the validation part; the test part is scored whole


def train_cell(cell: Cell, work: Path, device: str, data_root: str | None) -> dict[str, Any]:
    """Train `cell`, or go on with what its run folder `work` has reached, and make its record."""
    from femts.training.train import train

    data = cell.load(data_root).for_horizon(cell.pred_len)
    forecaster = train(
        data,
        cell.model,
        cell.pred_len,
        seq_len=cell.seq_len,
        protocol=cell.protocol,
        out=work,
        seed=cell.seed,
        device=device,
        resume=True,
        settings=cell.settings,
    )
    return make_record(cell, forecaster, data)


def make_record(cell: Cell, forecaster: Forecaster, data: Dataset) -> dict[str, Any]:
    """The record of `cell` from its trained forecaster and the data that it was trained on."""
    metrics, (rolled, window_errors) = forecaster.metrics, _rolled(forecaster, data)
    return {
        "format": RECORD_FORMAT,
        "cell": cell_of(cell),
        "test": metrics["test"],
        "val": metrics["val"],
        "naive": metrics["naive"],
        "rolled": rolled,
        "window_errors": window_errors,
        "series_errors": _errors_by_series(forecaster, data) if data.schema.panel else {},
        "kept_step": metrics["kept_step"],
        "steps": metrics["steps"],
        "stopped": metrics["stopped"],
        "seconds": metrics["seconds"],
        "config": forecaster.config.to_dict(),
        "data": dict(forecaster.data),
        "parameters": metrics["parameters"],
        "history": [dict(row) for row in forecaster.validations],
        "samples": sample_forecasts(forecaster, data),
        "kernels": metrics["kernels"],
        "place": place(metrics["device"], metrics["precision"]),
        "commit": commit(),
    }


def _rolled(forecaster: Forecaster, data: Dataset) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scores at longer horizons, and errors of the test part by window, thinned, both by horizon.

    The scores, `val` and `test` with the seasonal naive forecast beside the latter, are those of a
    model that is made to be rolled out, at the horizons of the published tables. Its own is among
    them where models of shorter ones may compete with it, validated on the same windows as they are.
    A panel has neither, and a model that scores some windows alone no errors.
    """
    if data.schema.panel or forecaster.model.most_windows is not None:
        return {}, {}
    own, look_back = forecaster.config.pred_len, forecaster.config.seq_len
    rivals = [p for p in HORIZONS if p > own or p == own > HORIZONS[0]] if forecaster.model.supports.recursive else []
    fitting = [p for p in rivals if all(data.split.windows(part, look_back, p)[0, 3] for part in ("val", "test"))]
    errors = {p: WindowErrors() for p in dict.fromkeys((own, *fitting))}
    test, naive = score_beside(forecaster, "test", tuple(errors), data, also=errors)
    val = score_beside(forecaster, "val", fitting, data, MOST_VALIDATED)[0] if fitting else {}
    rolled = {str(p): {"val": val[p], "test": test[p], "naive": naive[p]} for p in fitting}
    return rolled, {str(p): each.thinned() for p, each in errors.items()}


def _errors_by_series(forecaster: Forecaster, data: Dataset) -> dict[str, Any]:
    """Errors of the test part by series, thinned, by horizon; none of a model that scores some windows alone."""
    if forecaster.model.most_windows is not None:
        return {}
    of, windows, _ = scored_part(forecaster, "test", None, data)
    errors = WindowErrors()
    score(of, windows, [errors])
    return {str(windows.pred_len): errors.thinned(windows.series_of(windows.spread(None)).cpu())}
