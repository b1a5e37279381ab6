"""`femts compare`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import DataRoot, Settings, TrainingDevice, count, names, option
from femts.cli.output import say_notes
from femts.cli.reading_options import ReadingOptions
from femts.cli.recipe import each_once, parse_assignment
from femts.cli.run_options import KINDS
from femts.cli.streams import say
from femts.cli.targets import check_targets
from femts.config.values import check_count
from femts.data.describe import are
from femts.data.describe import count as counted
from femts.data.write import check_format, write_table
from femts.text import printable, table

METRICS = "mase|rmsse|wape|sql|wql"


@dataclass(frozen=True)
class ComparisonOptions:
    """Models, and windows of the forecasts."""

    models: Annotated[str, typer.Option(metavar="NAME[,NAME...]", help="Names of `femts models`, or auto.")] = (
        "ridge,dlinear,boost"
    )
    horizon: Annotated[str | None, option("Forecast horizon in steps.", "N|auto", default="by the frequency")] = None
    n_windows: Annotated[
        str,
        typer.Option(
            "--n-windows", "--windows", metavar="N", help="Number of windows; the last one ends with the data."
        ),
    ] = "10"
    step_size: Annotated[str | None, option("Rows between windows.", "N", default="the horizon")] = None
    refit: Annotated[bool, typer.Option("--refit", help="Retrain before each window, not only before the first.")] = (
        False
    )
    metric: Annotated[str, typer.Option(metavar=METRICS, help="Score by which models are ordered.")] = "mase"
    seq_len: Annotated[
        str | None, option("Look-back of all models in steps.", "N|auto", default="that of each model")
    ] = None
    seed: Annotated[str, typer.Option(metavar="N", help="Random seed.")] = "42"
    assignments: Settings = None
    time_limit: Annotated[str | None, option("Time limit for the first training of each model.", "SPAN")] = None


@command(75)
@grouped
def compare(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A name from `femts datasets list`, or a table file.")],
    wanted: ComparisonOptions,
    reading: ReadingOptions,
    *,
    out: Annotated[Path | None, option(f"Output file for the forecasts: {KINDS}.", "OUT.csv", "--out", "-o")] = None,
    plot: Annotated[Path | None, option("Also plot the comparison to this file.", "FILE.png")] = None,
    data_root: DataRoot = None,
    device: TrainingDevice = "auto",
) -> None:
    """Compare models with naive forecasts at past cutoffs.

    Each model is trained on the rows before the first window, and forecasts all windows. Prints the
    scores of each model, the best first, with the 95 % interval of the difference to the best. To
    compare models over many datasets, seeds and horizons, see `femts table`.
    """
    check_targets({"--out": out, "--plot": plot}, {"the data": Path(data)})
    check_format(out)
    settings = each_once(map(parse_assignment, wanted.assignments or []), "--set")
    step_size = None if wanted.step_size is None else count("--step-size", wanted.step_size)
    windows, seed = count("--n-windows", wanted.n_windows), check_count(wanted.seed, "--seed", 0)
    from femts.data.loading import load_dataset

    loaded = load_dataset(data, data_root, **reading.reading())
    from femts.analysis.compare import compare as run_comparison  # imports torch, which a refused table does not need

    made = run_comparison(
        loaded,
        names(wanted.models),
        wanted.horizon,
        n_windows=windows,
        step_size=step_size,
        refit=wanted.refit,
        metric=wanted.metric,
        seq_len=wanted.seq_len,
        seed=seed,
        settings=settings,
        time_limit=wanted.time_limit,
        device=device,
    )
    if out is not None:
        write_table(made.forecasts, out)
    if plot is not None:
        from femts.files import write_file
        from femts.plotting import picture_format

        write_file(plot, made.plot().to_bytes(picture_format(plot)))
    say(table(list(made.table), made.table.astype(object).where(made.table.notna(), None).itertuples(index=False)))
    lacking = made.table["low"].isna().all() and len(made.table) > 1
    say_notes([f"{counted(windows, 'window')} {are(windows)} too few for intervals of the differences"] * bool(lacking))
    for path in (out, plot):
        if path is not None:
            say(printable(path))
