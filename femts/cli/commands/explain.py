"""`femts explain`: which past segments each channel of a trained run chose, and how sharply."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from femts.cli.command import command
from femts.cli.options import option
from femts.cli.output import say_notes, write_data
from femts.cli.run_options import History, Run, Series, ToTable, check_series, check_single, gaps_as_notes, read_history
from femts.cli.targets import check_targets, to_file
from femts.errors import UsageError


@command(50)
def explain(
    run: Run,
    table: History,
    out: ToTable = None,
    plot: Annotated[Path | None, option("Draw it, too.", "FILE.png")] = None,
    series: Series = None,
    member: Annotated[
        str | None,
        option("Member of a mean to explain; the first that can be explained unless given.", "NAME"),
    ] = None,
) -> None:
    """Show which past segments each channel chose for its forecast.

    For models with a Free Energy Mixer: the posterior weight of each segment in each layer, and how
    sharply it was chosen.
    """
    out = to_file(out)
    check_targets({"--out": out, "--plot": plot}, {"the history": table}, run)
    check_single(run)
    from femts.data.read import write_table
    from femts.forecaster.forecaster import load
    from femts.forecaster.members import explained_member

    whole = load(run)
    forecaster = explained_member(whole, member)
    if forecaster is not whole:
        names = ", ".join(each.config.model for each in whole.members)
        say_notes([f"this is '{forecaster.config.model}', one of those whose mean the run is: {names}"])
    named = check_series(forecaster, series)
    panel = forecaster.config.schema.panel
    if panel and plot is not None and (named is None or len(named) > 1):
        raise UsageError("A picture of what was read shows one series of a panel; name it by --series.")
    history = read_history(table, forecaster)
    with gaps_as_notes():
        explanation = forecaster.explain(history, named)
    if out is None:
        write_data(explanation.to_csv(index=False))
    else:
        write_table(explanation, out)
        layers = explanation["layer"].nunique()
        many = explanation["series"].nunique() if panel else len(forecaster.columns)
        tokens = len(explanation) // layers // many
        print(f"{out}: {tokens // 2} segments of {many} {'series' if panel else 'columns'} in {layers} layers")
    if plot is not None:
        from femts.explain.picture import plot_explanation
        from femts.forecaster.picture import read_of_one, to_draw

        if panel:
            plot_explanation(*read_of_one(forecaster, history, explanation), plot)
        else:
            plot_explanation(to_draw(forecaster, history), explanation, plot)
