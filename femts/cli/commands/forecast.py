"""`femts evaluate`, `femts predict` and `femts calibrate`: what a trained run is for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from femts.cli.data_options import DataRoot
from femts.cli.output import details_table, mean_scores, say_notes, scores_table, write_data
from femts.cli.recipe import parse_horizons
from femts.cli.targets import check_targets
from femts.config.values import whole_number
from femts.errors import GapWarning, UsageError
from femts.files import locked
from femts.forecaster.run_folder import CONFIG, INTERVALS
from femts.forecaster.saved_run import write_intervals
from femts.text import printable, shown, strict_json

if TYPE_CHECKING:
    import pandas as pd

    from femts.forecaster.forecaster import Forecaster

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.", show_default=False)]
Moved = Annotated[
    str | None, typer.Option("--dataset", metavar="FILE", help="The run's data, where they have moved.", show_default=False)
]
Device = Annotated[str, typer.Option(metavar="auto|cpu|cuda|mps", help="Where to compute.")]


def evaluate(
    run: Run,
    split: Annotated[str, typer.Option(metavar="test|val", help="Part of the data.")] = "test",
    pred_len: Annotated[
        str | None,
        typer.Option(metavar="N[,N...]|all", help="Horizons; longer than trained: rolled out.", show_default="as trained"),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="channel|step", help="More scores, grouped; both: step,channel.", show_default=False)
    ] = None,
    level: Annotated[
        str | None, typer.Option(metavar="N[,N...]", help="More scores, and what intervals cover.", show_default=False)
    ] = None,
    dataset: Moved = None,
    data_root: DataRoot = None,
    device: Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print --by or --level as CSV.")] = False,
) -> None:
    """Score a run on its own data.

    Errors are over every window of the split, in scaled units; --by and --level print raw units, too.
    """
    horizons = None if pred_len is None else parse_horizons(pred_len)
    if as_csv and (as_json or (by is None and level is None)):
        raise UsageError("Option --csv prints what --by or --level ask for; add one of them, and leave --json out.")
    forecaster = load_run(run, device, dataset)
    horizons = horizons or (forecaster.config.pred_len,)
    if by is not None or level is not None:
        groups, levels = None if by is None else by.split(","), None if level is None else _levels(level)
        frames = {h: forecaster.scores(split, h, groups, levels, data_root=data_root) for h in horizons}
        head: dict[str, object] = {"run": str(run), "split": split}
        if levels is not None and forecaster.intervals is not None:
            head["crps_quantiles"] = forecaster.intervals.quantiles
            if not as_json:
                say_notes([f"crps is over the quantiles {', '.join(f'{q:g}' for q in forecaster.intervals.quantiles)}"])
        found = details_table(frames, head, "json" if as_json else "csv" if as_csv else "text")
        if as_csv:
            write_data(found + "\n")
        else:
            print(found)
        return
    scores = forecaster.evaluate_horizons(split, horizons, data_root=data_root)
    if as_json:
        record = {"run": str(run), "split": split, "pred_len": scores, "mean": mean_scores(scores)}
        print(strict_json(record))
    else:
        print(scores_table(scores))


def predict(
    run: Run,
    table: Annotated[Path, typer.Argument(metavar="INPUT.csv", help="The recent past, in raw units.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="OUT.csv", help="Where to write.", show_default="standard output")
    ] = None,
    horizon: Annotated[str | None, typer.Option(metavar="N", help="Steps to forecast.", show_default="as trained")] = None,
    level: Annotated[
        str | None, typer.Option(metavar="N[,N...]", help="Add intervals, percent, such as 80,95.", show_default=False)
    ] = None,
    future: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Columns known in advance, for the steps to come.", show_default=False),
    ] = None,
    quantiles: Annotated[
        str | None, typer.Option(metavar="X[,X...]", help="Add quantiles, such as 0.1,0.5,0.9.", show_default=False)
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw the forecast, too.", show_default=False)] = None,
) -> None:
    """Forecast what follows a table of history.

    Raw units in; raw units and future time stamps out, for any horizon.
    """
    check_targets({"--out": out, "--plot": plot}, {"the history": table, "the known columns": future}, run)
    steps = None if horizon is None else parse_steps(horizon)
    check_single(run)
    from femts.data.frames import write_table
    from femts.forecaster.forecaster import Forecaster

    forecaster = Forecaster.load(run)
    drawn = 0 if plot is None else 2 * (steps or forecaster.config.pred_len)
    history = read_history(table, forecaster, drawn)
    with gaps_as_notes():
        known = None if future is None else _read_ahead(future, forecaster)
        levels, wanted = None if level is None else _levels(level), None if quantiles is None else _quantiles(quantiles)
        forecast = forecaster.predict(history, steps, levels, known, wanted)
    if out is None:
        write_data(forecast.to_csv(index=False))
    else:
        write_table(forecast, out)
        columns = len(forecaster.targets)
        rows = len(forecast) // (columns if forecaster.config.form.series in forecast.columns else 1)
        print(f"{printable(out)}: {rows} steps of {columns} columns")
    if plot is not None:
        from femts.plotting import plot_forecast

        plot_forecast(to_draw(history, forecaster), to_draw(forecast, forecaster), plot)


def read_history(table: Path, forecaster: Forecaster, steps: int = 0) -> pd.DataFrame:
    """The end of a user's file, in the form that the run was trained on: a look-back, or `steps` where these are more."""
    from femts.data.recent import read_recent

    config = forecaster.config
    return read_recent(table, max(config.seq_len, steps), forecaster.freq, config.form)


def _read_ahead(table: Path, forecaster: Forecaster) -> pd.DataFrame:
    """The whole of a file with the steps to come, as they may be anywhere in it."""
    from femts.data.reading import read_headless, read_table

    return read_headless(table) if forecaster.freq is None else read_table(table, forecaster.config.form)


@contextmanager
def gaps_as_notes() -> Iterator[None]:
    """What is missing in a history becomes a note on stderr."""
    with warnings.catch_warnings(record=True) as gaps:
        warnings.simplefilter("always", GapWarning)
        yield
    say_notes([str(gap.message).removesuffix(".") for gap in gaps])


def to_draw(frame: pd.DataFrame, forecaster: Forecaster) -> pd.DataFrame:
    """A history or a forecast in wide form, its stamps in `date`."""
    from femts.data.frames import check_frame

    form = forecaster.config.form
    if form.series in frame.columns:
        values = frame[[form.series, form.time or "ds", form.value]]  # bounds, if there are any, stay out
        return check_frame(values, None, forecaster.freq, na=forecaster.config.na, form=form)
    return frame.rename(columns={form.time_of(frame): "date"})


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
    made = forecaster.calibrate(steps, () if level is None else _levels(level), data_root=data_root)
    with locked(run):
        write_intervals(run, made.to_bytes())
    levels = ", ".join(f"{known:g}" for known in made.levels)
    print(f"{run / INTERVALS}: levels {levels} for {made.steps} steps, from {made.windows} windows")


def load_run(run: Path, device: str, dataset: str | None = None) -> Forecaster:
    """The forecaster of a run of one horizon on `device`; `dataset` says where its data are now."""
    from femts.config.settings import apply_settings
    from femts.config.training import TrainingConfig
    from femts.forecaster.forecaster import Forecaster
    from femts.training.device import resolve_place

    check_single(run)
    place = resolve_place(apply_settings(TrainingConfig(), {"device": device}, where="training"))
    forecaster = Forecaster.load(run, place.device)
    if dataset is not None:
        forecaster.config = replace(forecaster.config, source=dataset)
    return forecaster


def _levels(text: str) -> tuple[float, ...]:
    """`80,95` as numbers."""
    from femts.evaluation.intervals import check_levels

    return _numbers(text, check_levels, f"Level '{shown(text)}' is not a number; write --level 80 or 80,95, in percent.")


def _quantiles(text: str) -> tuple[float, ...]:
    """`0.1,0.9` as numbers."""
    from femts.evaluation.quantiles import check_quantiles

    return _numbers(text, check_quantiles, f"Quantile '{shown(text)}' is not a number; write --quantiles 0.1 or 0.1,0.9.")


def _numbers(text: str, check: Callable[[list[float]], tuple[float, ...]], otherwise: str) -> tuple[float, ...]:
    """Numbers with commas between them, checked; UsageError that says `otherwise` where they are none."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(otherwise) from error
    return check(numbers)


def parse_steps(text: str, option: str = "--horizon") -> int:
    """A horizon as a number; UsageError when it is none."""
    steps = whole_number(text, f"Horizon {option}")
    if steps is None or steps < 1:
        raise UsageError(f"Horizon '{shown(text)}' is not a number of steps; write {option} 96.")
    return steps


def check_single(run: Path) -> None:
    """UsageError for the folder of a `femts train` over several horizons, which holds one run each."""
    if not (run / CONFIG).exists():
        inside = sorted(path.parent for path in run.glob(f"*/{CONFIG}"))
        if inside:
            raise UsageError(f"Folder {run} holds {len(inside)} runs, one a horizon; name one, such as {inside[0]}.")
