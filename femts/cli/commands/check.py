"""`femts check`: whether a run is still good on rows that came after its training."""

from __future__ import annotations

from typing import Annotated

import typer

from femts.cli.command import command
from femts.cli.options import DataRoot, count, option
from femts.cli.run_options import Device, Run, data_like, load_run
from femts.cli.streams import say
from femts.text import strict_json

ALARM = 3  # exit status


@command(72)
def check(
    run: Run,
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A table with the new rows at its end, and those before.")
    ],
    horizon: Annotated[
        str | None, option("Steps of a window, such as 24 for each night of hourly data.", "N", default="as trained")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    data_root: DataRoot = None,
    device: Device = "auto",
) -> int:
    """Check whether a run is still good on newer rows.

    Compares forecasts of rows that came after training with earlier ones: errors, bias, coverage, single readings, runs of
    equal values, and missing series. The exit status is 3 if something has changed.
    """
    steps = None if horizon is None else count("--horizon", horizon)
    from femts.analysis.check import check as check_run

    forecaster = load_run(run, device)
    loaded = data_like(forecaster, data, data_root)
    result = check_run(forecaster, loaded, horizon=steps)
    say(strict_json({"run": str(run), **result.to_dict()}) if as_json else str(result))
    return 0 if result.ok else ALARM
