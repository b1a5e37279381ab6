"""`femts calibrate`: intervals of a run for other horizons and levels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import option
from femts.cli.output import say_notes
from femts.cli.run_options import PlaceOptions, Run, check_single, data_like, load_run, parse_levels, parse_steps
from femts.cli.streams import say
from femts.data.describe import count
from femts.forecaster.replacing import replacing
from femts.forecaster.run_folder import CALIBRATED, INTERVALS
from femts.forecaster.saved_run import read_metrics, write_recalibrated
from femts.text import printable

if TYPE_CHECKING:
    from femts.forecaster.forecaster import Source


@command(40)
@grouped
def calibrate(
    run: Run,
    later: Annotated[
        str | None,
        typer.Argument(metavar="[DATA]", help="A table with rows after those of training, to calibrate on them."),
    ] = None,
    *,
    horizon: Annotated[
        str | None,
        option("Longest horizon to calibrate intervals for; at least that of the run.", "N", default="as before"),
    ] = None,
    level: Annotated[
        str | None, option("Further levels in percent, up to 99.9, in addition to the existing ones.", "N[,N...]")
    ] = None,
    place: PlaceOptions,
) -> None:
    """Recalibrate the intervals of a run.

    Training calibrates them for the model's own horizon; this command does so for other horizons and
    levels. It needs the run's data: the validation split and, for a run that was refit on all rows, the
    test split. With DATA, its rows after those of training are used instead; nothing is trained again.
    """
    steps = None if horizon is None else parse_steps(horizon)
    levels = () if level is None else parse_levels(level)
    check_single(run)
    read_metrics(run)  # a folder that is not a run is not locked, which would create it
    with replacing(run, CALIBRATED) as new:
        forecaster = load_run(run, place.device, place.dataset)
        if later is None:
            data: Source = (forecaster.scored or forecaster).training_data(place.data_root)
        else:
            data = data_like(forecaster, later, place.data_root)
        calibrated = forecaster.calibrate(steps, levels, data)
        made, scored = calibrated.intervals, calibrated.scored
        assert made is not None
        of_scored = None if scored is None or scored.intervals is None else scored.intervals.to_bytes()
        write_recalibrated(run, new, made.to_bytes(), of_scored)
    from femts.evaluation.coverage import interval_notes

    highest = f"levels up to {made.levels[-1]:g}" if made.levels else "no level"
    say(f"{printable(run / INTERVALS)}: {highest} for {count(made.steps, 'step')}, from {made.source}")
    say_notes(interval_notes(made, forecaster.targets))
