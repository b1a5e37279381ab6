"""`femts report`: one page on one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from femts.cli.command import command
from femts.cli.options import DataRoot
from femts.cli.run_options import Device, Moved, Run, load_run
from femts.cli.targets import check_targets


@command(90)
def report(
    run: Run,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="OUT.html", help="Where to write.", show_default="RUN/report.html")
    ] = None,
    dataset: Moved = None,
    data_root: DataRoot = None,
    device: Device = "auto",
) -> None:
    """Write one HTML page on a run: scores, errors, intervals, forecasts to browse, what was read, the training.

    It needs the run's data, and scores every test window. The page opens without a network.
    """
    check_targets({"--out": out}, run=run)
    from femts.analysis.report import report as report_run

    written = report_run(load_run(run, device, dataset), out or run / "report.html", data_root=data_root)
    print(f"{written}: {written.stat().st_size / 1e6:.2f} MB")
