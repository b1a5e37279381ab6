"""`femts totals`: forecasts of sums over periods and groups of series."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import count, names, option
from femts.cli.partitions import read_ahead
from femts.cli.run_options import (
    New,
    Outliers,
    Run,
    Series,
    ToTable,
    check_series,
    check_single,
    gaps_as_notes,
    names_or_file,
    parse_levels,
    parse_steps,
    read_history,
)
from femts.cli.streams import say, write_data
from femts.cli.targets import check_targets, to_file
from femts.data.describe import count as counted
from femts.data.schema import check_outliers
from femts.data.write import check_format, write_table
from femts.text import printable


@dataclass(frozen=True)
class TotalOptions:
    """Periods and groups of the totals, and what is computed."""

    over: Annotated[
        str, typer.Option(metavar="total|year|quarter|month|week|day|step", help="Periods; total is all steps.")
    ] = "total"
    by: Annotated[
        str | None,
        option(
            "Add up the series with equal values in these columns, or all of them.",
            "all|NAME[,NAME...]",
            default="none",
        ),
    ] = None
    how: Annotated[str, typer.Option(metavar="sum|mean|max|min", help="What to compute over the steps.")] = "sum"
    level: Annotated[str, typer.Option(metavar="N[,N...]", help="Levels of the intervals in percent.")] = "80"
    samples: Annotated[str, typer.Option(metavar="N", help="Number of sample paths.")] = "500"


@dataclass(frozen=True)
class AheadOptions:
    """What is forecast."""

    horizon: Annotated[str | None, option("Forecast horizon in steps.", "N", default="as trained")] = None
    future: Annotated[Path | None, option("Future values of the covariates over the horizon.", "FILE")] = None
    outliers: Outliers = None
    new: New = None


@command(32)
@grouped
def totals(
    run: Run,
    table: Annotated[Path, typer.Argument(metavar="INPUT.csv", help="Recent history, in raw units.")],
    *,
    of: TotalOptions,
    asked: AheadOptions,
    out: ToTable = None,
    series: Series = None,
) -> int:
    """Forecast totals over steps and series, with intervals.

    Totals are sums, means or extremes over weeks, months or all steps, and over groups of series. The
    interval of a sum is not the sum of the intervals, so totals are computed on sample paths, which keep
    the dependence between the errors of steps and series.
    """
    out = to_file(out)
    check_targets({"--out": out}, {"the history": table, "the future covariates": asked.future}, run)
    check_format(out)
    steps = None if asked.horizon is None else parse_steps(asked.horizon)
    levels, samples = parse_levels(of.level), count("--samples", of.samples)
    by = None if of.by is None else names(of.by)
    check_single(run)
    from femts.forecaster.forecaster import load

    forecaster = load(run)
    named = check_series(forecaster, series)
    with gaps_as_notes():
        freq, form = forecaster.freq, forecaster.config.schema.form
        future = None if asked.future is None else read_ahead(asked.future, freq, form)
        new = None if asked.new is None else names_or_file(asked.new)
        made = forecaster.totals(
            read_history(table, forecaster),
            over=of.over,  # type: ignore[arg-type]  # checked there
            by=by,
            how=of.how,  # type: ignore[arg-type]
            level=levels,
            horizon=steps,
            future=future,
            series=named,
            outliers=check_outliers(asked.outliers),
            new=read_ahead(new, freq, form) if isinstance(new, Path) else new,
            n=samples,
        )
    if out is None:
        write_data(made.to_csv(index=False))
    else:
        write_table(made, out)
        say(f"{printable(out)}: {counted(len(made), 'row')}")
    return 0
