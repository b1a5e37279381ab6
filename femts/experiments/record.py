"""The record of a finished cell: everything that says where a number comes from and how to get it again."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from femts.data.dataset import Dataset
from femts.experiments.grid import Cell
from femts.experiments.published import ALL
from femts.experiments.record_rules import RECORD_FORMAT, cell_of
from femts.experiments.samples import sample_forecasts
from femts.forecaster import Forecaster

LIBRARIES = ("femts", "torch", "pytorch-lightning", "numpy", "pandas", "scikit-learn", "triton", "fla-core", "mamba-ssm")

MOST_VALIDATED = 2048  # windows, evenly spread, of a roll-out on the validation part; the test part is scored whole


def make_record(cell: Cell, forecaster: Forecaster, data: Dataset) -> dict[str, Any]:
    """The record of `cell` from its trained forecaster and the data that it was trained on."""
    metrics = forecaster.metrics
    return {
        "format": RECORD_FORMAT,
        "cell": cell_of(cell),
        "test": metrics["test"],
        "val": metrics["val"],
        "rolled": _rolled(forecaster, data),
        "kept_step": metrics["kept_step"],
        "steps": metrics["steps"],
        "stopped": metrics["stopped"],
        "seconds": metrics["seconds"],
        "config": forecaster.config.to_dict(),
        "data": dict(forecaster.data),
        "parameters": metrics["parameters"],
        "history": [dict(row) for row in forecaster.history],
        "samples": sample_forecasts(forecaster, data),
        "kernels": metrics["kernels"],
        "place": place(metrics["device"], metrics["precision"]),
        "commit": commit(),
    }


def _rolled(forecaster: Forecaster, data: Dataset) -> dict[str, Any]:
    """Scores at the longer horizons of the published tables, `val` and `test`, of a model that is made to be rolled out."""
    if not forecaster.model.rolls_out:
        return {}
    own, look_back = forecaster.config.pred_len, forecaster.config.seq_len
    fitting = [p for p in ALL if p > own and all(data.split.windows(part, look_back, p) for part in ("val", "test"))]
    if not fitting:
        return {}
    most = {"val": MOST_VALIDATED, "test": None}
    scores = {part: forecaster.evaluate_horizons(part, fitting, data, most=most[part]) for part in most}
    return {str(p): {part: of_part[p] for part, of_part in scores.items()} for p in fitting}


def place(device: str, precision: str) -> dict[str, Any]:
    """Hardware and libraries, which decide the last bits of a number."""
    from femts.bench.measure import machine

    return {
        **{name: value for name, value in machine(device).items() if name in ("device", "name", "threads")},
        "precision": precision,
        "system": platform.platform(),
        "python": platform.python_version(),
        "libraries": {name: found for name in LIBRARIES if (found := _version(name))},
    }


def _version(name: str) -> str | None:
    if name == "torch":
        return torch.__version__
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """The commit of the checkout that femts runs from, with `+` where files have changed since; None outside a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "setup.cfg").is_file():  # an installed femts may lie in some other project's checkout
        return None
    try:
        head, changes = (
            subprocess.run(
                ["git", *args], cwd=root, capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}
            )
            for args in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return head.stdout.strip() + ("+" if changes.stdout.strip() else "")
