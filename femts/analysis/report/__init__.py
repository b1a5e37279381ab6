"""Report on a run: a self-contained HTML page on its training, scores and forecasts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from femts.analysis.report.ahead import forecast_ahead
from femts.analysis.report.measure import input_importance, measure
from femts.analysis.report.page import as_html
from femts.analysis.report.samples import sample_windows
from femts.config.arguments import check_path
from femts.errors import memory_checked
from femts.files import write_file
from femts.forecaster.forecaster import Forecaster, Source, load
from femts.forecaster.scoring import training_data

if TYPE_CHECKING:
    import pandas as pd

OWN = "report it on its own data"


@memory_checked()
def report(
    forecaster_or_run: Forecaster | str | Path,
    path: str | Path,
    dataset: Source | None = None,
    data_root: str | Path | None = None,
    future: pd.DataFrame | None = None,
) -> Path:
    """Write a self-contained HTML report on a trained forecaster: its forecast, its test scores and how it was trained.

    The page starts with the forecast, followed by the models that were tried (if femts chose one), scores compared with
    naive baselines, errors by step and channel, coverage of the intervals, forecasts of test windows to browse,
    permutation importance (except for models that are fitted to each look-back), what the model read (if it can be
    explained), the training and the record of the run. For a panel, the best and worst series by MASE replace the
    channels. The same run and data give an identical file. A model that is fitted to each look-back is scored on the
    windows that were scored in training; in the process that trained it, only the forecast itself needs new fits.

    Args:
        forecaster_or_run: a forecaster, or the folder of a finished run.
        path: file to write; it is written completely or not at all.
        dataset: the training data, or anything that `load_dataset` accepts; None loads them again by name or path.
        data_root: folder with the files of the catalogue.
        future: future covariates of the steps after the data, as in `Forecaster.predict`, for a model that was trained
            with some. By default, they are those of the rows after the last readings of the data; without them, the page
            has no forecast after the data.

    Returns:
        `path`.

    Raises:
        UsageError: There is no such run, its data, which are needed for scoring, are missing or have changed, or `future`
            does not cover the steps after them.
        RunFailure: The file cannot be written.
    """
    run = forecaster_or_run
    used = run if isinstance(run, Forecaster) else load(run)
    forecaster = used.scored or used
    target = check_path(path, "The page")
    data = training_data(forecaster, dataset, data_root, OWN)
    measured = measure(forecaster, data)
    ahead = forecast_ahead(used, data, list(measured.series["series"]), future)
    samples = sample_windows(forecaster, data, measured.series)
    importance = input_importance(forecaster, data)
    page = as_html(forecaster, data, measured, samples, importance, ahead, refitted=used is not forecaster)
    write_file(target, page.encode())
    return target
