"""`femts update`: a run trained again on a table that has grown."""

from __future__ import annotations

from typing import Annotated

import typer

from femts.cli.command import command
from femts.cli.commands.check import NOTHING_NEW
from femts.cli.options import DataRoot
from femts.cli.run_options import Device, Run, data_like, load_run
from femts.cli.streams import say
from femts.cli.wording import as_options
from femts.errors import NoNewRows
from femts.forecaster.replacing import replacing
from femts.forecaster.saved_run import read_metrics
from femts.text import printable


@command(45)
def update(
    run: Run,
    data: Annotated[str, typer.Argument(metavar="DATA", help="The table of the run with further rows.")],
    if_better: Annotated[
        bool, typer.Option("--if-better", help="Keep the run as it is unless the new rows lower its error.")
    ] = False,
    data_root: DataRoot = None,
    device: Device = "auto",
) -> int:
    """Train a run again on a table that has grown.

    Model and settings stay as they are; intervals are calibrated on the new rows as well. The old run
    is replaced once the new one is complete. Also shows whether the new rows lower the error. The exit
    status is 4 if no row is newer than the training; the run is then unchanged.
    """
    from femts.analysis.update import update as update_run

    read_metrics(run)  # a folder that is not a run is not locked, which would create it
    forecaster = load_run(run, device)
    loaded = data_like(forecaster, data, data_root)
    try:
        made = update_run(forecaster, loaded)
    except NoNewRows as error:
        say(as_options(error))
        say(f"run: {printable(run)} is unchanged")
        return NOTHING_NEW
    kept = if_better and not made.better
    if not kept:
        with replacing(run) as new:
            made.forecaster.write(new)
    say(str(made))
    say(f"run: {printable(run)}{' is unchanged' if kept else ''}")
    return 0
