"""`femts backtest`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import DataRoot, count, option
from femts.cli.run_options import KINDS, Device, Run, load_run, parse_levels, parse_quantiles
from femts.cli.streams import say
from femts.cli.targets import check_targets
from femts.data.describe import count as counted
from femts.data.write import check_format, write_table
from femts.errors import UsageError
from femts.text import printable, table


@dataclass(frozen=True)
class CutoffOptions:
    """Cutoffs of the forecasts, refitting, bounds, and grouping of the errors."""

    n_windows: Annotated[
        str | None,
        option("Number of forecasts; the last one ends with the data.", "N", default="5, or as many as the rows allow"),
    ] = None
    step_size: Annotated[str | None, option("Rows between consecutive cutoffs.", "N", default="the horizon")] = None
    horizon: Annotated[str | None, option("Forecast horizon in steps.", "N", default="as trained")] = None
    refit: Annotated[
        bool, typer.Option("--refit", help="Refit before each forecast on all rows before its cutoff.")
    ] = False
    level: Annotated[
        str | None, option("Add prediction intervals at these levels in percent, such as 80,95.", "N[,N...]")
    ] = None
    quantiles: Annotated[str | None, option("Add quantiles, such as 0.1,0.5,0.9.", "X[,X...]")] = None
    by: Annotated[str | None, option("Group the scores of a panel by series.", "series", default="cutoff")] = None


@command(70)
@grouped
def backtest(
    run: Run,
    data: Annotated[str, typer.Argument(metavar="DATA", help="A name from `femts datasets list`, or a table file.")],
    cutoffs: CutoffOptions,
    out: Annotated[
        Path | None,
        option(f"Output file for the forecasts: {KINDS}.", "OUT.csv", "--out", "-o"),
    ] = None,
    data_root: DataRoot = None,
    device: Device = "auto",
) -> None:
    """Forecast from past moments and compare with what followed.

    Each forecast is what `femts predict` would have returned for the rows before its cutoff. Prints
    errors in scaled and in raw units, by cutoff and overall, next to those of the seasonal naive
    forecast.
    """
    check_targets({"--out": out}, {"the data": Path(data)}, run)
    check_format(out)
    horizon = None if cutoffs.horizon is None else count("--horizon", cutoffs.horizon)
    n_windows = None if cutoffs.n_windows is None else count("--n-windows", cutoffs.n_windows)
    step_size = None if cutoffs.step_size is None else count("--step-size", cutoffs.step_size)
    level = None if cutoffs.level is None else parse_levels(cutoffs.level)
    quantiles = None if cutoffs.quantiles is None else parse_quantiles(cutoffs.quantiles)
    from femts.analysis.backtest import backtest as run_backtest
    from femts.analysis.rolling_scores import backtest_scores
    from femts.data.loading import is_path, load_dataset

    forecaster = load_run(run, device)
    panel = forecaster.config.schema.panel
    if cutoffs.by is not None and (cutoffs.by != "series" or not panel):
        raise UsageError(
            "Option --by of a backtest supports only 'series', and only for a panel; remove it, or use --by series."
        )
    loaded = data if panel or is_path(data) else load_dataset(data, data_root, schema=forecaster.config.schema)
    frame = run_backtest(
        forecaster,
        loaded,
        n_windows=n_windows,
        step_size=step_size,
        horizon=horizon,
        refit=cutoffs.refit,
        level=level,
        quantiles=quantiles,
    )
    if out is not None:
        write_table(frame, out)
    scores = backtest_scores(frame, forecaster, cutoffs.by)
    say(table(list(scores.columns), scores.itertuples(index=False)))
    if out is not None:
        many = f"{frame['series'].nunique()} series" if panel else counted(len(forecaster.targets), "column")
        say(
            f"{printable(out)}: {counted(len(frame), 'row')}, {counted(frame['window' if panel else 'cutoff'].nunique(), 'forecast')} of {many}"
        )
