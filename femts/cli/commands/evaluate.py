"""`femts evaluate`: a run scored on its own data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.output import details_table, mean_scores, say_notes, scores_table, write_data
from femts.cli.recipe import parse_horizons
from femts.cli.run_options import PlaceOptions, Run, load_scored, parse_levels
from femts.errors import UsageError
from femts.text import strict_json

if TYPE_CHECKING:
    import pandas as pd

    from femts.evaluation.intervals import Intervals


@dataclass(frozen=True)
class ScoreOptions:
    """Scores that are asked for: of which part, at which horizons, in which detail."""

    part: Annotated[str, typer.Option(metavar="test|val", help="Part of the data.")] = "test"
    pred_len: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N...]|all", help="Horizons; longer than trained: rolled out.", show_default="as trained"
        ),
    ] = None
    by: Annotated[
        str | None,
        typer.Option(
            metavar="channel|step|series", help="More scores, grouped; also step,channel.", show_default=False
        ),
    ] = None
    level: Annotated[
        str | None, typer.Option(metavar="N[,N...]", help="More scores, and what intervals cover.", show_default=False)
    ] = None


@command(20)
@grouped
def evaluate(
    run: Run,
    scored: ScoreOptions,
    place: PlaceOptions,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print --by or --level as CSV.")] = False,
) -> None:
    """Score a run on its own data.

    Errors are over every window of the part, in scaled units; --by and --level print raw units,
    too. Of a run of `train --final` the model is scored that did not learn from all rows.
    """
    horizons = None if scored.pred_len is None else parse_horizons(scored.pred_len)
    detailed = scored.by is not None or scored.level is not None
    if as_csv and (as_json or not detailed):
        raise UsageError("Option --csv prints what --by or --level ask for; add one of them, and leave --json out.")
    forecaster = load_scored(run, place.device, place.dataset)
    data = forecaster.training_data(place.data_root)
    horizons = horizons or (forecaster.config.pred_len,)
    head: dict[str, object] = {"run": str(run), "part": scored.part}
    if detailed:
        groups = None if scored.by is None else scored.by.split(",")
        levels = None if scored.level is None else parse_levels(scored.level)
        frames = {h: forecaster.scores(scored.part, h, groups, levels, data) for h in horizons}
        if levels is not None and forecaster.intervals is not None:
            if scored.by != "series":
                head["crps_quantiles"] = forecaster.intervals.quantiles
            if not as_json and scored.by != "series":
                say_notes([f"crps is over the quantiles {', '.join(f'{q:g}' for q in forecaster.intervals.quantiles)}"])
            _say_covered(frames, levels, forecaster.intervals, scored.part)
        details = details_table(frames, head, "json" if as_json else "csv" if as_csv else "text")
        if as_csv:
            write_data(details + "\n")
        else:
            print(details)
        return
    if forecaster.config.schema.panel:  # windows of several horizons do not begin at the same rows
        scores = {h: forecaster.evaluate(scored.part, h, data) for h in horizons}
    else:
        from femts.forecaster.scoring import score_horizons

        scores = score_horizons(forecaster, scored.part, horizons, data)
    print(strict_json({**head, "pred_len": scores, "mean": mean_scores(scores)}) if as_json else scores_table(scores))


def _say_covered(frames: Mapping[int, pd.DataFrame], levels: Sequence[float], intervals: Intervals, part: str) -> None:
    """Notes on intervals that come from too few windows, and on levels that miss what they promise."""
    from femts.evaluation.coverage import coverage_notes, few_notes

    say_notes(few_notes(intervals.windows, intervals.disjoint))
    for horizon, frame in frames.items():
        scaled = frame if "series" in frame else frame[frame["units"] == "scaled"]
        covered = {f"{level:g}": float(scaled[f"coverage-{level:g}"].mean()) for level in levels}
        where = f"{horizon} steps: " if len(frames) > 1 else ""
        say_notes(where + note for note in coverage_notes(covered, part))
