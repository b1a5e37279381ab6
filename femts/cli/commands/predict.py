"""`femts predict`: forecasts of the steps after a table."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import EngineName, names, option
from femts.cli.output import say_notes
from femts.cli.partitions import ForecastRequest, forecast_files, join
from femts.cli.run_options import (
    Histories,
    New,
    Outliers,
    Run,
    Series,
    ToTable,
    check_series,
    check_single,
    names_or_file,
    parse_levels,
    parse_quantiles,
    parse_steps,
)
from femts.cli.streams import say, write_data
from femts.cli.targets import check_targets, to_file
from femts.cluster import check_engine
from femts.data.describe import count
from femts.data.schema import check_outliers
from femts.data.unpack import STDIN
from femts.data.write import check_format, write_table
from femts.errors import FemtsError, UsageError
from femts.files import write_file
from femts.text import printable, quote

if TYPE_CHECKING:
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
    outliers: Outliers = None
    new: New = None


@command(30)
@grouped
def predict(
    run: Run,
    tables: Histories,
    *,
    out: ToTable = None,
    asked: ForecastOptions,
    plot: Annotated[Path | None, option("Also plot the forecast to this file.", "FILE.png")] = None,
    series: Series = None,
    engine: EngineName = "local",
) -> int:
    """Forecast the steps that follow a table of recent history.

    Input and output are in raw units; the output has future time stamps. Any horizon is supported.

    A panel may be split into several files with whole series each. They are forecast one at a time, or
    with --engine ray in parallel, and written to one table. Files that cannot be forecast are reported
    and left out; femts then exits with 2 for bad input, and with 1 for any other failure.
    """
    out = to_file(out)
    known = _named(asked.future)
    futures = {f"the future covariates {name}".rstrip(): path for name, path in known.items()}
    for table in tables:
        check_targets({"--out": out, "--plot": plot}, {"the history": table, **futures}, run)
    check_format(out)
    if check_engine(engine) == "ray" and STDIN in (*tables, *known.values()):
        raise UsageError("Engine 'ray' cannot read standard input; give the path of a file.")
    steps = None if asked.horizon is None else parse_steps(asked.horizon)
    check_single(run)
    from femts.forecaster.forecaster import load

    picture_kind = None
    if plot is not None:
        from femts.plotting import picture_format

        picture_kind = picture_format(plot)
    forecaster = load(run)
    levels = None if asked.level is None else parse_levels(asked.level)
    quantiles = None if asked.quantiles is None else parse_quantiles(asked.quantiles)
    named = check_series(forecaster, series)
    if len(tables) > 1:
        _check_several(len(tables), forecaster, {"--series": series, "--plot": plot, "--new": asked.new})
    outliers, new = check_outliers(asked.outliers), None if asked.new is None else names_or_file(asked.new)
    request = ForecastRequest(steps, levels, quantiles, known, named, picture_kind, outliers, new)
    with closing(forecast_files(run, forecaster, tables, request, engine)) as results:
        if len(tables) == 1:
            made = next(results)
            if isinstance(made, FemtsError):
                raise made
            say_notes(made.notes)
            forecast, picture, status = made.table, made.picture, 0
        else:
            joined, failed = join(tables, results, forecaster.config.schema.form.series)
            status = max((2 if isinstance(error, UsageError) else 1 for error in failed), default=0)
            if joined is None:
                return status
            forecast, picture = joined, None
    if forecaster.intervals is not None and (levels or quantiles):
        from femts.evaluation.coverage import interval_notes

        say_notes(interval_notes(forecaster.intervals, forecaster.targets))
    if out is None:
        write_data(forecast.to_csv(index=False))
    else:
        write_table(forecast, out)
        by = forecaster.config.schema.form.series
        what = (
            f"{forecast[by].nunique()} series" if by in forecast.columns else count(len(forecaster.targets), "column")
        )
        each = f", each in {len(known)} scenarios" if len(known) > 1 else ""
        length = count(steps or forecaster.config.pred_len, "step")
        say(f"{printable(out)}: {length} of {what}{each}")
    if plot is not None and picture is not None:
        write_file(plot, picture)
    return status


def _check_several(files: int, forecaster: Forecaster, single: Mapping[str, object]) -> None:
    """Raise UsageError if several files do not suit the run, or one of the options that are for a `single` file."""
    if not forecaster.config.schema.panel:
        raise UsageError(
            f"This run was trained on a single table, so it forecasts one file at a time; name one instead of {files}."
        )
    given = next((option for option, value in single.items() if value is not None), None)
    if given is not None:
        raise UsageError(f"Option {given} applies to a single file; name one instead of {files}, or remove {given}.")


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
