"""`femts predict`: forecasts of the steps after a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import names, option
from femts.cli.output import say_notes, write_data
from femts.cli.run_options import (
    History,
    Run,
    Series,
    ToTable,
    check_series,
    check_single,
    gaps_as_notes,
    parse_levels,
    parse_quantiles,
    parse_steps,
    read_history,
)
from femts.cli.targets import check_targets, to_file
from femts.errors import UsageError
from femts.files import write_file
from femts.text import printable, quote

if TYPE_CHECKING:
    import pandas as pd

    from femts.forecaster.forecaster import Forecaster


@dataclass(frozen=True)
class ForecastOptions:
    """Horizon, intervals, quantiles and future covariates of a forecast."""

    horizon: Annotated[str | None, option("Forecast horizon in steps.", "N", default="as trained")] = None
    level: Annotated[
        str | None, option("Add prediction intervals at these levels in percent, such as 80,95.", "N[,N...]")
    ] = None
    future: Annotated[
        str | None,
        option(
            "Future values of the covariates over the horizon; each file is a scenario with its own forecast.",
            "FILE[,FILE...]",
        ),
    ] = None
    quantiles: Annotated[str | None, option("Add quantiles, such as 0.1,0.5,0.9.", "X[,X...]")] = None


@command(30)
@grouped
def predict(
    run: Run,
    table: History,
    *,
    out: ToTable = None,
    asked: ForecastOptions,
    plot: Annotated[Path | None, option("Also plot the forecast to this file.", "FILE.png")] = None,
    series: Series = None,
) -> None:
    """Forecast the steps that follow a table of recent history.

    Input and output are in raw units; the output has future time stamps. Any horizon is supported.
    """
    out = to_file(out)
    known = _named(asked.future)
    inputs = {"the history": table, **{f"the future covariates {name}".rstrip(): path for name, path in known.items()}}
    check_targets({"--out": out, "--plot": plot}, inputs, run)
    steps = None if asked.horizon is None else parse_steps(asked.horizon)
    check_single(run)
    from femts.data.read import write_table
    from femts.forecaster.forecaster import load

    forecaster = load(run)
    levels = None if asked.level is None else parse_levels(asked.level)
    quantiles = None if asked.quantiles is None else parse_quantiles(asked.quantiles)
    named = check_series(forecaster, series)
    with gaps_as_notes():
        drawn = 0 if plot is None else 2 * max(forecaster.season, steps or forecaster.config.pred_len)
        history = read_history(table, forecaster, drawn)
        tables = {name: _read_ahead(path, forecaster) for name, path in known.items()}
        future = tables.get("") if len(tables) < 2 else tables
        forecast = forecaster.predict(history, steps, levels, future, quantiles, named)
    if forecaster.intervals is not None and (levels or quantiles):
        from femts.evaluation.coverage import interval_notes

        say_notes(interval_notes(forecaster.intervals, forecaster.targets))
    if out is None:
        write_data(forecast.to_csv(index=False))
    else:
        write_table(forecast, out)
        series = forecaster.config.schema.form.series
        many = forecast[series].nunique() if series in forecast.columns else 1
        columns = len(forecaster.targets) if many == 1 else many
        each = f", each in {len(known)} scenarios" if len(known) > 1 else ""
        print(f"{printable(out)}: {len(forecast) // many // max(1, len(known))} steps of {columns} columns{each}")
    if plot is not None:
        from femts.forecaster.picture import draw_forecast
        from femts.plotting import picture_format

        picture = draw_forecast(forecaster, history, forecast, {"series": named, "future": future})
        write_file(plot, picture.to_bytes(picture_format(plot)))


def _named(given: str | None) -> dict[str, Path]:
    """Files of `--future` by scenario name, which is the file name without extension; empty for a single file.

    Raises:
        UsageError: Two files have the same name.
    """
    paths, named = [] if given is None else [Path(name) for name in names(given)], dict[str, Path]()
    for path in paths:
        name = path.stem.removesuffix(".csv") if len(paths) > 1 else ""
        if name in named:
            raise UsageError(
                f"Files {named[name]} and {path} of --future would both be the scenario '{quote(name)}'; rename one."
            )
        named[name] = path
    return named


def _read_ahead(table: Path, forecaster: Forecaster) -> pd.DataFrame:
    """Read a whole file of future covariates, because the steps may be anywhere in it."""
    from femts.data.read import read_headless, read_table

    return read_headless(table) if forecaster.freq is None else read_table(table, forecaster.config.schema.form)
