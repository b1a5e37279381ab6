"""`femts check`: whether a run is still good on rows that came after its training."""

from __future__ import annotations

from typing import Annotated

import typer

from femts.cli.command import command
from femts.cli.options import DataRoot, count, option
from femts.cli.run_options import Device, Run, data_like, load_run
from femts.cli.streams import say
from femts.cli.wording import as_options
from femts.errors import NoNewRows
from femts.text import strict_json

ALARM, NOTHING_NEW = 3, 4  # exit statuses


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
    equal values, and missing series. The exit status is 3 if something has changed, and 4 if no row is newer than the
    training.
    """
    steps = None if horizon is None else count("--horizon", horizon)
    from femts.analysis.check import check as check_run

    forecaster = load_run(run, device)
    loaded = data_like(forecaster, data, data_root)
    try:
        result = check_run(forecaster, loaded, horizon=steps)
    except NoNewRows as error:
        text = as_options(error)
        say(
            strict_json({"run": str(run), "ok": None, "new_rows": 0, "text": text}) if as_json else f"unchecked: {text}"
        )
        return NOTHING_NEW
    say(strict_json({"run": str(run), **result.to_dict()}) if as_json else str(result))
    return 0 if result.ok else ALARM
