"""`femts calibrate`: a run's intervals for other horizons and levels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from femts.cli.command import command
from femts.cli.options import DataRoot
from femts.cli.run_options import (
    Device,
    Moved,
    Run,
    load_run,
    parse_levels,
    parse_steps,
)
from femts.files import locked
from femts.forecaster.run_folder import INTERVALS
from femts.forecaster.saved_run import write_intervals

if TYPE_CHECKING:
    pass


@command(40)
def calibrate(
    run: Run,
    pred_len: Annotated[
        str | None, typer.Option(metavar="N", help="Longest horizon to have intervals for.", show_default="as before")
    ] = None,
    level: Annotated[
        str | None, typer.Option(metavar="N[,N...]", help="Levels besides 50,80,90,95,99.", show_default=False)
    ] = None,
    dataset: Moved = None,
    data_root: DataRoot = None,
    device: Device = "auto",
) -> None:
    """Calibrate the intervals of a run anew, for other horizons or levels.

    Training has done it for the model's own horizon. It takes the run's data: their validation part.
    """
    steps = None if pred_len is None else parse_steps(pred_len, "--pred-len")
    forecaster = load_run(run, device, dataset)
    made = forecaster.calibrate(steps, () if level is None else parse_levels(level), forecaster.training_data(data_root))
    with locked(run):
        write_intervals(run, made.to_bytes())
    levels = ", ".join(f"{known:g}" for known in made.levels)
    print(f"{run / INTERVALS}: levels {levels} for {made.steps} steps, from {made.windows} windows")
