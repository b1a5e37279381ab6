"""The record of a finished cell: everything that says where a number comes from and how to get it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from femts.data.dataset import Dataset
from femts.data.panel import Panel
from femts.data.protocols import HORIZONS
from femts.environment import commit, place
from femts.experiments.grid import Cell
from femts.experiments.record_rules import RECORD_FORMAT, cell_of
from femts.experiments.samples import sample_forecasts
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.scoring import score_beside
from femts.forecaster.trained import Trained

MOST_VALIDATED = 2048  # windows, evenly spread, of a roll-out on the validation part; the test part is scored whole


def train_cell(cell: Cell, work: Path, device: str, data_root: str | None) -> dict[str, Any]:
    """Train `cell`, or go on with what its run folder `work` has reached, and make its record."""
    from femts.data.source import split_for
    from femts.forecaster.load import load
    from femts.forecaster.run_folder import METRICS
    from femts.training.train import train

    data = split_for(cell.load(data_root), cell.pred_len)
    if (work / METRICS).is_file():  # it ended between its last line and its record
        forecaster = load(work)
    else:
        forecaster = train(
            data,
            cell.model,
            cell.pred_len,
            seq_len=cell.seq_len,
            protocol=cell.protocol,
            out=work,
            seed=cell.seed,
            device=device,
            resume=work.exists(),
            settings=cell.settings,
        )
    return make_record(cell, forecaster, data)


def make_record(cell: Cell, forecaster: Trained[Any, Any], data: Dataset | Panel) -> dict[str, Any]:
    """The record of `cell` from its trained forecaster and the data that it was trained on."""
    metrics = forecaster.metrics
    return {
        "format": RECORD_FORMAT,
        "cell": cell_of(cell),
        "test": metrics["test"],
        "val": metrics["val"],
        "naive": metrics["naive"],
        "rolled": _rolled(forecaster, data),
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


def _rolled(forecaster: Trained[Any, Any], data: Dataset | Panel) -> dict[str, Any]:
    """Scores at the longer horizons of the published tables, `val` and `test`, of a model that is
    made to be rolled out, and the seasonal naive forecast beside the latter."""
    if isinstance(data, Panel) or not isinstance(forecaster, Forecaster) or not forecaster.model.rolls_out:
        return {}
    own, look_back = forecaster.config.pred_len, forecaster.config.seq_len
    fitting = [
        p for p in HORIZONS if p > own and all(data.split.windows(part, look_back, p) for part in ("val", "test"))
    ]
    if not fitting:
        return {}
    most = {"val": MOST_VALIDATED, "test": None}
    scored = {part: score_beside(forecaster, part, fitting, data, most[part]) for part in most}
    _, naive = scored["test"]
    return {str(p): {**{part: scores[p] for part, (scores, _) in scored.items()}, "naive": naive[p]} for p in fitting}
