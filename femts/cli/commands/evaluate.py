"""`femts evaluate`: a run scored on its own data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from femts.cli.command import command
from femts.cli.options import DataRoot
from femts.cli.output import details_table, mean_scores, say_notes, scores_table, write_data
from femts.cli.recipe import parse_horizons
from femts.cli.run_options import (
    Device,
    Moved,
    Run,
    load_run,
    parse_levels,
)
from femts.errors import UsageError
from femts.text import strict_json

if TYPE_CHECKING:
    pass


@command(20)
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
    data = forecaster.training_data(data_root)
    horizons = horizons or (forecaster.config.pred_len,)
    if by is not None or level is not None:
        groups, levels = None if by is None else by.split(","), None if level is None else parse_levels(level)
        frames = {h: forecaster.scores(split, h, groups, levels, data) for h in horizons}
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
    from femts.forecaster.scoring import score_horizons

    scores = score_horizons(forecaster, split, horizons, data)
    if as_json:
        record = {"run": str(run), "split": split, "pred_len": scores, "mean": mean_scores(scores)}
        print(strict_json(record))
    else:
        print(scores_table(scores))
