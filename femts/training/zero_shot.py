"""A forecast without training, from a table to a table."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from femts.data.dataset import Dataset
from femts.data.schema import Reading
from femts.errors import AccuracyWarning, UsageError, memory_checked, renamed, warn
from femts.forecaster.forecaster import Forecaster, Source
from femts.forecaster.inputs import Future
from femts.logging import quiet_training
from femts.models.registry import model_card
from femts.training.data_module import as_dataset
from femts.training.resolve import bound_notes, horizon_notes, known_notes
from femts.training.train import train

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
    made = zero_shot(dataset, horizon, model, settings)
    return made.predict(dataset, level=level, future=future, quantiles=quantiles, series=series)


def zero_shot(
    data: Dataset, horizon: int | str | None = None, model: str = ZERO_SHOT, settings: Mapping[str, Any] | None = None
) -> Forecaster:
    """A forecaster of a model that needs no training, scored on the last rows of `data`; arguments as in `forecast`.

    Raises:
        UsageError: As in `forecast`.
    """
    if not model_card(model).model_class.supports.untrained:
        text = f"Model '{model}' needs training; use femts train, or a model such as {ZERO_SHOT} here."
        raise UsageError(text, argument="model", value=model, remedy={"model": ZERO_SHOT})
    with quiet_training():
        made = train(data, model, horizon, refit=True, settings=settings)
    of_run = *known_notes(data, made.config, made.preprocess), *bound_notes(made.preprocess)
    notes = *data.notes, *horizon_notes(data, horizon), *of_run
    scores = made.metrics["test"]
    for note in notes:
        logger.info(note)
    if scores["worse"]:
        warn(f"On the last rows, '{model}' is {scores['verdict']}; try femts.train.", AccuracyWarning)
    elif scores["verdict"]:
        rows = made.metrics["refit"]["rows"]
        more = f"; with {rows} rows, a model trained on them may be better still" * (rows >= MANY_ROWS)
        logger.info(f"on the last rows, '{model}' is {scores['verdict']}{more}")
    return made
