"""`femts evaluate` and `femts predict`: what a trained run is for."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from femts.cli.info_commands import DataRoot
from femts.cli.output import mean_scores, scores_table
from femts.cli.recipe import parse_horizons
from femts.errors import UsageError
from femts.runs import CONFIG

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.", show_default=False)]


def evaluate(
    run: Run,
    split: Annotated[str, typer.Option(metavar="test|val", help="Part of the data.")] = "test",
    pred_len: Annotated[
        str | None,
        typer.Option(metavar="N[,N...]|all", help="Horizons; longer than trained: rolled out.", show_default="as trained"),
    ] = None,
    data_root: DataRoot = None,
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda|mps", help="Where to compute.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Score a run on its own data.

    Errors are in scaled units and over every window of the split.
    """
    horizons = None if pred_len is None else parse_horizons(pred_len)
    from femts.forecaster import Forecaster
    from femts.settings import apply_settings
    from femts.training.config import TrainingConfig
    from femts.training.device import resolve_place

    check_single(run)
    place = resolve_place(apply_settings(TrainingConfig(), {"device": device}, where="training"))
    forecaster = Forecaster.load(run, place.device)
    horizons = horizons or (forecaster.config.pred_len,)
    scores = {horizon: forecaster.evaluate(split, horizon, data_root=data_root) for horizon in horizons}
    if as_json:
        record = {"run": str(run), "split": split, "pred_len": scores, "mean": mean_scores(scores)}
        print(json.dumps(record))
    else:
        print(scores_table(scores))


def predict(
    run: Run,
    table: Annotated[Path, typer.Argument(metavar="INPUT.csv", help="The recent past, in raw units.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="OUT.csv", help="Where to write.", show_default="standard output")
    ] = None,
    horizon: Annotated[str | None, typer.Option(metavar="N", help="Steps to forecast.", show_default="as trained")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw the forecast, too.", show_default=False)] = None,
) -> None:
    """Forecast what follows a table of history.

    Raw units in; raw units and future time stamps out, for any horizon.
    """
    for path in (out, plot):
        if path is not None and not path.parent.is_dir():
            raise UsageError(f"Folder {path.parent} does not exist; make it, or write {path.name} somewhere else.")
        if path is not None and path.is_dir():
            raise UsageError(f"{path} is a folder; name a file in it.")
    steps = None if horizon is None else _steps(horizon)
    check_single(run)
    if plot is not None:
        from femts.plotting import picture_format

        picture_format(plot)
    from femts.data.frames import check_frame, read_headless, read_table, write_csv
    from femts.forecaster import Forecaster

    forecaster = Forecaster.load(run)
    history = read_table(table) if forecaster.freq is not None else read_headless(table)
    if "unique_id" in history.columns:
        history = check_frame(history, where=f"File {table}")  # long form; the forecaster takes the wide one
    forecast = forecaster.predict(history, steps)
    if out is None:
        sys.stdout.write(forecast.to_csv(index=False))
    else:
        write_csv(forecast, out)
        print(f"{out}: {len(forecast)} steps of {len(forecaster.columns)} columns")
    if plot is not None:
        from femts.plotting import plot_forecast

        plot_forecast(history, forecast, plot)


def _steps(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"Horizon '{text}' is not a number of steps; write --horizon 96.")
    return int(text)


def check_single(run: Path) -> None:
    """UsageError for the folder of a `femts train` over several horizons, which holds one run each."""
    if not (run / CONFIG).exists():
        inside = sorted(path.parent for path in run.glob(f"*/{CONFIG}"))
        if inside:
            raise UsageError(f"Folder {run} holds {len(inside)} runs, one a horizon; name one, such as {inside[0]}.")
