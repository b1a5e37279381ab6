"""`femts forecast`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import DataRoot, Settings, names, option
from femts.cli.reading_options import ReadingOptions
from femts.cli.recipe import each_once, parse_assignment
from femts.cli.run_options import ToTable, gaps_as_notes, parse_levels, parse_quantiles
from femts.cli.streams import say, write_data
from femts.cli.targets import check_targets, to_file
from femts.data.describe import count
from femts.data.write import check_format, write_table
from femts.text import printable


@dataclass(frozen=True)
class ForecastOptions:
    """What to forecast, and by which model."""

    horizon: Annotated[
        str | None, option("Number of steps to forecast.", "N|auto", default="by the step of the data")
    ] = None
    level: Annotated[
        str, typer.Option(metavar="N[,N...]|none", help="Levels of the prediction intervals in percent.")
    ] = "80"
    quantiles: Annotated[str | None, option("Add quantiles, such as 0.1,0.5,0.9.", "X[,X...]")] = None
    future: Annotated[Path | None, option("Future covariates over the horizon.", "FILE")] = None
    series: Annotated[str | None, option("Series of a panel.", "NAME[,NAME...]", default="all")] = None
    model: Annotated[
        str, typer.Option(metavar="NAME", help="A model that needs no training, such as simple_ensemble.")
    ] = "fem_zero"
    assignments: Settings = None


@command(5)
@grouped
def forecast(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A name from `femts datasets list`, or a table file.")],
    asked: ForecastOptions,
    reading: ReadingOptions,
    *,
    out: ToTable = None,
    plot: Annotated[Path | None, option("Also plot the forecast to this file.", "FILE.png")] = None,
    data_root: DataRoot = None,
) -> None:
    """Forecast the steps after a table without training.

    The model was pretrained on other series and forecasts within seconds. A note compares the same
    forecast, made at earlier moments of the table, with the naive forecasts. To train a model on the
    table, see `femts train`.
    """
    out = to_file(out)
    check_targets({"--out": out, "--plot": plot}, {"the data": Path(data), "the future covariates": asked.future})
    check_format(out)
    level = None if asked.level.strip().lower() == "none" else parse_levels(asked.level)
    quantiles = None if asked.quantiles is None else parse_quantiles(asked.quantiles)
    series = None if asked.series is None else names(asked.series)
    settings = each_once(map(parse_assignment, asked.assignments or []), "--set")
    from femts.data.loading import load_dataset

    loaded = load_dataset(data, data_root, **reading.reading())
    from femts.cli.partitions import read_ahead
    from femts.training.zero_shot import untrained

    future = None if asked.future is None else read_ahead(asked.future, loaded.freq, loaded.schema.form)
    with untrained(loaded, asked.horizon, asked.model, settings, future) as forecaster, gaps_as_notes():
        made = forecaster.predict(loaded, level=level, future=future, quantiles=quantiles, series=series)
    if plot is not None:
        from femts.files import write_file
        from femts.forecaster.picture import draw_forecast
        from femts.plotting import picture_format

        drawn = draw_forecast(forecaster, loaded, made, {"series": series, "future": future})
        write_file(plot, drawn.to_bytes(picture_format(plot)))
    if out is None:
        write_data(made.to_csv(index=False))
        return
    write_table(made, out)
    say(f"{printable(out)}: {count(forecaster.config.pred_len, 'step')} of {printable(forecaster.subject)}")
