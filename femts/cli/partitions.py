"""Forecasts of one or several files, in this process or each as a task of a Ray cluster."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from femts.cli.output import say_notes
from femts.cli.run_options import gaps_noted, read_history
from femts.cli.wording import as_options
from femts.cluster import connected
from femts.data.describe import count
from femts.errors import FemtsError, RunFailure, UsageError
from femts.logging import PROGRESS
from femts.progress import progress_line
from femts.text import quote

if TYPE_CHECKING:
    import pandas as pd

    from femts.data.column_names import ColumnNames
    from femts.forecaster.forecaster import Forecaster

RETRIES = 3  # times that a task is run again because its process or node died


@dataclass(frozen=True)
class ForecastRequest:
    """What to forecast.

    Attributes:
        steps: horizon; None takes the one of the training.
        levels: levels of prediction intervals in percent, if any.
        quantiles: quantiles to add, if any.
        future: files of future covariates by scenario, whose name is empty if it is the only one.
        series: names of the series; None takes all.
        plot: format of the picture to draw, such as `png`; None draws none.
        outliers: treatment of values far outside the usual range; None is as in training.
        new: names of series without history, or the file with them and their static covariates.
    """

    steps: int | None
    levels: tuple[float, ...] | None
    quantiles: tuple[float, ...] | None
    future: Mapping[str, Path]
    series: tuple[str, ...] | None
    plot: str | None
    outliers: str | None = None
    new: tuple[str, ...] | Path | None = None


@dataclass(frozen=True, eq=False)
class Made:
    """Forecast of a file, with notes on its history and the picture, if one was asked for."""

    table: pd.DataFrame
    notes: tuple[str, ...]
    picture: bytes | None


def forecast_files(
    run: Path, forecaster: Forecaster, tables: Sequence[Path], asked: ForecastRequest, engine: str
) -> Generator[Made | FemtsError, None, None]:
    """Forecast each of `tables` with the `forecaster` in the folder `run`.

    Yields:
        In the order of `tables`, a forecast, or the error because of which there is none.

    Raises:
        UsageError: Ray is not installed, or its cluster cannot be used.
    """
    if engine == "local":
        for table in tables:
            try:
                yield _forecast(forecaster, table, asked)
            except FemtsError as error:
                yield error
        return
    asked = replace(asked, future={name: path.resolve() for name, path in asked.future.items()})
    with connected() as ray:
        task = ray.remote(num_cpus=1, max_retries=RETRIES)(_task)
        for waiting in [task.remote(run.resolve(), table.resolve(), asked) for table in tables]:
            try:
                yield ray.get(waiting)
            except ray.exceptions.RayError as error:
                yield _reason(error)


def _task(run: Path, table: Path, asked: ForecastRequest) -> Made:
    """The task of a worker, which has its own copy of the run."""
    from femts.forecaster.forecaster import load

    return _forecast(load(run), table, asked)


def _forecast(forecaster: Forecaster, table: Path, asked: ForecastRequest) -> Made:
    picture = None
    with gaps_noted() as notes:
        shown = 0 if asked.plot is None else 2 * max(forecaster.season, asked.steps or forecaster.config.pred_len)
        history = read_history(table, forecaster, shown, ends=asked.plot is None and asked.new is None)
        freq, form = forecaster.freq, forecaster.config.schema.form
        tables = {name: read_ahead(path, freq, form) for name, path in asked.future.items()}
        future = tables.get("") if len(tables) < 2 else tables
        new = read_ahead(asked.new, freq, form) if isinstance(asked.new, Path) else asked.new
        forecast = forecaster.predict(
            history, asked.steps, asked.levels, future, asked.quantiles, asked.series, asked.outliers, new
        )
    if asked.plot is not None:
        from femts.forecaster.picture import draw_forecast

        drawn = draw_forecast(forecaster, history, forecast, {"series": asked.series, "future": future})
        picture = drawn.to_bytes(asked.plot)
    return Made(forecast, tuple(notes), picture)


def read_ahead(table: Path, freq: str | None, form: ColumnNames) -> pd.DataFrame:
    """Read a whole file of future covariates or new series, because the steps may be anywhere in it; `freq` and `form` are
    those of the history."""
    from femts.data.read import read_headless, read_table

    return read_headless(table) if freq is None else read_table(table, form)


def _reason(error: Exception) -> FemtsError:
    """What a `RayError` means to the user."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, FemtsError):
        return cause
    if "No module named 'femts" in str(error):
        place = re.search(r"ip=([\w.:]+)", str(error))
        return UsageError(
            f"A node of the Ray cluster{f' ({place[1]})' if place else ''} cannot import this version of femts; install "
            "it there."
        )
    first = str(cause or error).strip().partition("\n")[0]
    return RunFailure(f"Ray could not run the task ({type(cause or error).__name__}: {quote(first)}); run it again.")


def join(
    paths: Sequence[Path], results: Iterable[Made | FemtsError], series: str
) -> tuple[pd.DataFrame | None, list[FemtsError]]:
    """Join the `results` of several files in one table, and print the notes on each and why some have no forecast.

    Args:
        paths: the files.
        results: their forecasts, or why there are none.
        series: name of the column with the names of the series.

    Returns:
        The table in the order of the files, None if no file has a forecast; and the errors of those that have none.

    Raises:
        UsageError: A series is in two files.
    """
    import pandas as pd

    parts, places, failed = list[pd.DataFrame](), dict[str, Path](), list[FemtsError]()
    with progress_line() as show:
        for number, (path, made) in enumerate(zip(paths, results, strict=True), 1):
            try:
                if isinstance(made, FemtsError):
                    raise made
                _check_form(made.table, series, parts, places)
            except FemtsError as error:
                failed.append(error)
                PROGRESS.info(f"{path}: failed: {as_options(error)}")
            else:
                say_notes(f"{path}: {note}" for note in made.notes)
                for name in made.table[series].unique():
                    if name in places:
                        raise UsageError(
                            f"Series '{quote(name)}' is in {places[name]} and in {path}; put its rows into one file."
                        )
                    places[name] = path
                parts.append(made.table)
            show(number / len(paths), f"{number} of {count(len(paths), 'file')}")
    return pd.concat(parts, ignore_index=True) if parts else None, failed


def _check_form(forecast: pd.DataFrame, series: str, parts: Sequence[pd.DataFrame], places: Mapping[str, Path]) -> None:
    """Raise UsageError if a forecast cannot follow the `parts` before it."""
    if series not in forecast.columns:
        raise UsageError(
            f"The history has no column '{quote(series)}', which tells the series of several files apart; give a long "
            "table."
        )
    stamps, usual = (_stamps(each, series) for each in (forecast, parts[0] if parts else forecast))
    if stamps != usual:
        first = next(iter(places.values()))
        raise UsageError(f"The history has its time stamps in {stamps}, but {first} in {usual}; write them alike.")


def _stamps(forecast: pd.DataFrame, series: str) -> str:
    """Description of the time stamps of a forecast, which follow the names of the series."""
    name = forecast.columns[list(forecast.columns).index(series) + 1]
    zone = getattr(forecast[name].dtype, "tz", None)
    return f"column '{quote(name)}' {'without a time zone' if zone is None else f'in the time zone {zone}'}"
