"""`femts report`: HTML report on a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import option
from femts.cli.output import final_note, say_notes
from femts.cli.run_options import PlaceOptions, Run, load_run
from femts.cli.streams import say
from femts.cli.targets import check_targets


@command(90)
@grouped
def report(
    run: Run,
    *,
    out: Annotated[Path | None, option("Output file.", "OUT.html", "--out", "-o", default="RUN/report.html")] = None,
    future: Annotated[
        Path | None, option("Future values of the covariates after the data, unless its last rows have them.", "FILE")
    ] = None,
    place: PlaceOptions,
) -> None:
    """Write an HTML report on a run.

    It shows the forecast, scores, errors, intervals, test windows, inputs and training. Needs the run's
    data, and scores the test windows. The page works offline.
    """
    check_targets({"--out": out}, {} if future is None else {"the future covariates": future}, run)
    from femts.analysis.report import report as report_run
    from femts.cli.partitions import read_ahead

    forecaster = load_run(run, place.device, place.dataset)
    if forecaster.scored is not None:
        say_notes([final_note(forecaster.metrics)])
    known = None if future is None else read_ahead(future, forecaster.freq, forecaster.config.schema.form)
    written = report_run(forecaster, out or run / "report.html", data_root=place.data_root, future=known)
    say(f"{written}: {written.stat().st_size / 1e6:.2f} MB")
