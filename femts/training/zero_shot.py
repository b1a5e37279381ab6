"""A forecast without training, from a table to a table."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from femts.data.column_names import check_bound_names
from femts.data.dataset import Dataset
from femts.data.schema import Reading
from femts.errors import AccuracyWarning, ScaleWarning, UsageError, memory_checked, renamed, warn
from femts.evaluation.intervals import Intervals
from femts.forecaster.forecaster import Forecaster, Source
from femts.forecaster.inputs import Future, check_expected
from femts.forecaster.metrics import RunMetrics
from femts.forecaster.scoring import score_overall
from femts.models.registry import model_card
from femts.text import marked
from femts.training.data_module import DataModule, as_dataset, split_for
from femts.training.evaluate import outgrown, scale_notes
from femts.training.refit import held_out_intervals
from femts.training.request import FitRequest
from femts.training.resolve import Lengths, bound_notes, horizon_notes, known_notes, resolve_run
from femts.training.run import first_forecaster, training_on

if TYPE_CHECKING:
    import pandas as pd

ZERO_SHOT = "fem_zero"
MANY_ROWS = 1000  # of all series, from which on training is suggested

logger = logging.getLogger(__name__)


@memory_checked()
@renamed({"pred_len": "horizon", "dataset": "data"})
def forecast(
    data: Source,
    horizon: int | str | None = None,
    *,
    level: Sequence[float] | None = (80,),
    quantiles: Sequence[float] | None = None,
    future: Future | None = None,
    series: Sequence[str] | None = None,
    model: str = ZERO_SHOT,
    settings: Mapping[str, Any] | None = None,
    data_root: str | Path | None = None,
    **reading: Unpack[Reading],
) -> pd.DataFrame:
    """Forecast the steps after a table without training, with a model that was pretrained on other series.

    The same forecast is first made at earlier moments of the table and compared with what followed; a note in the log
    says how it compares with the naive forecasts.

    Args:
        data: catalogue name, file, frame or `Dataset`.
        horizon: number of steps; None or `auto` takes as many as the table has future covariates, or a usual number for
            the step between rows, as in `femts.train`.
        level, quantiles, future, series: as in `Forecaster.predict`.
        model: `fem_zero`, or another model that needs no training, such as `simple_ensemble`, `seasonal_naive` or `auto_ets`.
        settings: `model.*` settings by name.
        data_root: folder with the files of the catalogue.
        reading: keywords of `load_dataset`, such as `target` or `future_covariates`.

    Returns:
        The forecast, as of `Forecaster.predict`.

    Raises:
        UsageError: An argument is unknown or does not fit the data, or the model needs training.
    """
    dataset = as_dataset(data, data_root, reading, forecast)
    with untrained(dataset, horizon, model, settings, future) as made:
        return made.predict(dataset, level=level, future=future, quantiles=quantiles, series=series)


@contextmanager
def untrained(
    data: Dataset,
    horizon: int | str | None = None,
    model: str = ZERO_SHOT,
    settings: Mapping[str, Any] | None = None,
    future: Future | None = None,
) -> Iterator[Forecaster]:
    """A forecaster of a model that needs no training, whose scores on the last rows of `data` are noted at the end, so that
    mistakes in what is asked of it are found first; arguments as in `forecast`.

    It is that of a training that is refitted on all rows, without the scores that no forecast needs, since they would take
    most of the time: those on the validation windows, whose errors determine the intervals of models without their own.

    Raises:
        UsageError: As in `forecast`.
    """
    if not model_card(model).model_class.supports.untrained:
        text = f"Model '{model}' needs training; use femts train, or a model such as {ZERO_SHOT} here."
        raise UsageError(text, argument="model", value=model, remedy={"model": ZERO_SHOT})
    check_expected(future, data.schema.roles.future)
    request = FitRequest.of(model, {}, {} if settings is None else settings, time.monotonic())
    form, split = data.schema.form, split_for(data, horizon)
    check_bound_names(data.columns[: data.n_targets], (form.time, form.series))
    config = resolve_run(split, model, Lengths(horizon), request.settings, request.training)
    module = DataModule.of(split, config)
    whole = DataModule.of(split.all_rows(), replace(config, refit=True), ("train",), module.preprocess)
    with training_on(request.accelerator):
        scored = first_forecaster(config, module).to(request.accelerator.device)
        made = first_forecaster(replace(config, refit=True), whole).to(request.accelerator.device)
        levels, size = made.model.levels, (made.config.pred_len, len(made.targets))
        intervals = Intervals.uncorrected(levels, *size) if levels else held_out_intervals(scored)
    for note in (
        *data.notes,
        *horizon_notes(data, horizon),
        *known_notes(data, config, made.preprocess),
        *bound_notes(made.preprocess),
    ):
        logger.info(note)
    yield replace(made, intervals=intervals, scored=scored)
    _note_scores(scored, module, whole.data.record["split"]["train"][1])


def _note_scores(forecaster: Forecaster, module: DataModule, rows: int) -> None:
    """Note how `forecaster` compares with the naive forecasts on the test rows of `module`, which has so many `rows`."""
    windows = {part: module.windows[part].to(forecaster.device) for part in ("val", "test")}
    test, model = score_overall(forecaster, windows["test"], module.data), forecaster.config.model
    metrics = RunMetrics(test=test, outgrown=outgrown(forecaster, windows["val"]))
    for note in scale_notes(replace(forecaster, metrics=metrics)):
        warn(f"{marked(note)}.", ScaleWarning)
    if test["worse"]:
        warn(f"On the last rows, '{model}' is {test['verdict']}; train a model on the table.", AccuracyWarning)
    elif test["verdict"]:
        more = f"; with {rows} rows, a model trained on them may be better still" * (rows >= MANY_ROWS)
        logger.info(f"on the last rows, '{model}' is {test['verdict']}{more}")
