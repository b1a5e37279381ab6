"""One run on one page: a self-contained HTML file on what was trained, what it scores and what it forecasts."""

from __future__ import annotations

from pathlib import Path

from femts.analysis.report.ahead import forecast_ahead
from femts.analysis.report.measure import input_importance, measure
from femts.analysis.report.page import as_html
from femts.analysis.report.samples import sample_windows
from femts.config.arguments import check_path
from femts.errors import memory_checked
from femts.files import write_file
from femts.forecaster.forecaster import Forecaster, Source, load
from femts.forecaster.scoring import training_data

OWN = "report it on its own data"


@memory_checked()
def report(
    forecaster_or_run: Forecaster | str | Path,
    path: str | Path,
    dataset: Source | None = None,
    data_root: str | Path | None = None,
) -> Path:
    """Forecast what follows the data of a trained forecaster, score it on its test part and write one HTML page on it,
    which needs no network and no other file.

    The page has the forecast first, then the models that were tried, where femts chose one, the scores beside naive
    ones, errors by step and channel, what the intervals cover, forecasts of test windows to browse, which inputs matter
    (but for a model that is fitted to each look-back), what the model read (where it can be explained), the training and
    the record of the run. That of a long table has its best and worst series by MASE in place of channels. The same run
    and data give the same bytes. A model that is fitted to each look-back is scored on the windows that its training
    scored; right after its training, in the same process, it is fitted for the forecast alone.

    Args:
        forecaster_or_run: a forecaster, or the folder of a finished run.
        path: the page's file; written whole or not at all.
        dataset: the data of the training, or anything `load_dataset` takes; None loads it again by its name or path.
        data_root: where a data set of the catalogue is looked for.

    Returns:
        `path`.

    Raises:
        UsageError: there is no such run, or its data are not there or have changed, without which
            nothing can be scored.
        RunFailure: the disk refuses.
    """
    run = forecaster_or_run
    used = run if isinstance(run, Forecaster) else load(run)
    forecaster = used.scored or used
    target = check_path(path, "The page")
    data = training_data(forecaster, dataset, data_root, OWN)
    measured = measure(forecaster, data)
    ahead = forecast_ahead(used, data, list(measured.series["series"]))
    samples = sample_windows(forecaster, data, measured.series)
    importance = input_importance(forecaster, data)
    page = as_html(forecaster, data, measured, samples, importance, ahead, refitted=used is not forecaster)
    write_file(target, page.encode())
    return target
