"""`femts explain`: importance of inputs, or the past segments that a forecast is based on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import names, option
from femts.cli.output import final_note, say_notes
from femts.cli.run_options import (
    PlaceOptions,
    Run,
    Series,
    ToTable,
    check_series,
    gaps_as_notes,
    load_run,
    read_history,
)
from femts.cli.streams import say, write_data
from femts.cli.targets import check_targets, to_file
from femts.config.values import check_count
from femts.data.describe import count
from femts.data.write import check_format, write_table
from femts.errors import UsageError
from femts.text import printable

if TYPE_CHECKING:
    import pandas as pd

    from femts.forecaster.forecaster import Forecaster

Past = Annotated[
    Path | None,
    typer.Argument(
        metavar="[INPUT.csv]",
        help="Recent history, to show which of its segments the model attends to.",
        show_default=False,
    ),
]


@dataclass(frozen=True)
class ImportanceOptions:
    """Windows and columns for the importance of inputs."""

    windows: Annotated[str | None, option("Number of validation windows to use, without INPUT.csv.", "N")] = None
    columns: Annotated[
        str | None, option("Columns to permute, without INPUT.csv; by default the first 32.", "NAME[,NAME...]")
    ] = None


@command(50)
@grouped
def explain(
    run: Run,
    table: Past = None,
    *,
    out: ToTable = None,
    plot: Annotated[Path | None, option("Also plot it to this file.", "FILE.png")] = None,
    series: Series = None,
    member: Annotated[
        str | None,
        option("Ensemble member to explain; with INPUT.csv, by default the first that supports it.", "NAME"),
    ] = None,
    wanted: ImportanceOptions,
    place: PlaceOptions,
) -> None:
    """Show which inputs the forecasts depend on.

    Without INPUT.csv, for every model: permutation importance, the increase of the validation error when a column,
    a season of lags or a covariate is permuted across windows. With it, for models with a Free Energy Mixer over past
    segments: the posterior weight of each segment in each layer, and how concentrated it is; for fem_zero: the
    weights of the closed-form forecasts that it combines.
    """
    out = to_file(out)
    check_targets({"--out": out, "--plot": plot}, {"the history": table}, run)
    check_format(out)
    if table is None and series is not None:
        raise UsageError(
            "Option --series names series of INPUT.csv, but no INPUT.csv is given; remove the option, or add the table."
        )
    for name in ("windows", "columns"):
        if table is not None and getattr(wanted, name) is not None:
            raise UsageError(f"Option --{name} applies to input importance only; remove INPUT.csv to compute it.")
    windows = None if wanted.windows is None else check_count(wanted.windows, "--windows", 2)
    whole = load_run(run, place.device, place.dataset)
    if table is None:
        columns = None if wanted.columns is None else names(wanted.columns)
        _show_importance(whole, member, windows, columns, place, out, plot)
    else:
        _show_posterior(whole, table, member, series, out, plot)


def _show_importance(
    whole: Forecaster,
    member: str | None,
    windows: int | None,
    columns: tuple[str, ...] | None,
    place: PlaceOptions,
    out: Path | None,
    plot: Path | None,
) -> None:
    from femts.data.categories import origins
    from femts.forecaster.importance import importance_label, percent_label
    from femts.forecaster.members import explained_member

    if whole.scored is not None:
        say_notes([final_note(whole.metrics)])
    forecaster = whole if member is None else explained_member(whole, member)
    of = forecaster.scored or forecaster
    table = of.importance("val", windows, columns, dataset=of.training_data(place.data_root))
    further = len(origins(of.columns, of.config.schema.form)) - int((table["kind"] == "column").sum())
    if columns is None and further > 0:
        say_notes(
            [
                f"{count(further, 'more column')} {'was' if further == 1 else 'were'} not permuted; select columns with --columns"
            ]
        )
    many = table["windows"].iloc[0]
    say_notes(
        [f"relative increase of the squared error when one input is permuted across {count(many, 'validation window')}"]
    )
    if out is None:
        write_data(table.to_csv(index=False))
    else:
        write_table(table, out)
        first = table.loc[table["rise"].idxmax()]
        most = f"{importance_label(first['kind'], first['input'])} {percent_label(first['rise'])}"
        say(f"{printable(out)}: {count(len(table), 'input')}, most of all {printable(most)}")
    if plot is not None:
        from femts.forecaster.importance_picture import plot_importance  # matplotlib takes long to import

        plot_importance(table, plot)


def _show_posterior(
    whole: Forecaster, table: Path, member: str | None, series: str | None, out: Path | None, plot: Path | None
) -> None:
    from femts.forecaster.members import explained_member

    forecaster = explained_member(whole, member)
    if forecaster is not whole:
        listed = ", ".join(each.config.model for each in whole.members)
        say_notes([f"explaining '{forecaster.config.model}', one of the ensemble members: {listed}"])
    named = check_series(forecaster, series)
    panel = forecaster.config.schema.panel
    if panel and plot is not None and (named is None or len(named) > 1):
        raise UsageError("The plot shows one series of a panel; select it with --series.")
    history = read_history(table, forecaster)
    with gaps_as_notes():
        explanation = forecaster.explain(history, named)
    of_experts = "expert" in explanation.columns
    if plot is not None and of_experts:
        raise UsageError(f"The weights of '{forecaster.config.model}' are a table; remove --plot.")
    if out is None:
        write_data(explanation.to_csv(index=False))
    elif of_experts:
        write_table(explanation, out)
        means = explanation.groupby("expert")["weight"].mean().sort_values(ascending=False)
        first = ", ".join(f"{name} {100 * share:.0f} %" for name, share in means.head(3).items())
        say(f"{printable(out)}: {len(means)} closed-form forecasts, most of all {first}")
    else:
        write_table(explanation, out)
        layers = explanation["layer"].nunique()
        many = explanation["series"].nunique() if panel else len(forecaster.columns)
        tokens = len(explanation) // layers // many
        say(
            f"{printable(out)}: {count(tokens // 2, 'segment')} of {many} {'series' if panel else 'columns'} in {count(layers, 'layer')}"
        )
    if plot is not None:
        _draw_posterior(forecaster, history, explanation, plot)


def _draw_posterior(forecaster: Forecaster, history: pd.DataFrame, explanation: pd.DataFrame, plot: Path) -> None:
    from femts.explain.picture import plot_explanation
    from femts.forecaster.inputs import read_columns
    from femts.forecaster.picture import read_of_one

    if forecaster.config.schema.panel:
        plot_explanation(*read_of_one(forecaster, history, explanation), plot)
    else:
        past = read_columns(forecaster, history, "The history", forecaster.columns, forecaster.config.seq_len)
        plot_explanation(past, explanation, plot)
