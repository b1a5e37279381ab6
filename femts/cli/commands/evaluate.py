"""`femts evaluate`: scores of a run on its own data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import option
from femts.cli.output import details_table, judgements, mean_scores, say_notes, say_warnings, scores_table
from femts.cli.recipe import parse_horizons
from femts.cli.run_options import PlaceOptions, Run, load_scored, parse_levels
from femts.cli.streams import say, write_data
from femts.data.describe import count
from femts.errors import UsageError
from femts.text import strict_json

if TYPE_CHECKING:
    import pandas as pd


MOST_NAMED = 5  # most groups named in a warning


@dataclass(frozen=True)
class ScoreOptions:
    """Split, horizons and detail of the scores."""

    part: Annotated[str, typer.Option(metavar="test|val", help="Data split to score.")] = "test"
    horizon: Annotated[
        str | None,
        option(
            "Horizons to score; those longer than the trained one are forecast recursively.",
            "N[,N...]|all",
            default="as trained",
        ),
    ] = None
    by: Annotated[str | None, option("Add scores by group; step,channel combines the two.", "channel|step|series")] = (
        None
    )
    level: Annotated[
        str | None, option("Add scores and the coverage of intervals at these levels, in percent.", "N[,N...]")
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

    Errors are means over all windows of the split, in scaled units; wape and bias are in raw units. --by and
    --level add raw units. For a run that was refit on all rows, the model before the refit is scored.
    """
    horizons = None if scored.horizon is None else parse_horizons(scored.horizon)
    detailed = scored.by is not None or scored.level is not None
    if as_csv and (as_json or not detailed):
        raise UsageError(
            "Option --csv requires --by or --level and excludes --json; add one of the former, and remove --json."
        )
    forecaster = load_scored(run, place.device, place.dataset)
    data = forecaster.training_data(place.data_root)
    say_notes(data.short_notes(forecaster.config.pred_len))
    horizons = horizons or (forecaster.config.pred_len,)
    head: dict[str, object] = {"run": str(run), "part": scored.part}
    if detailed:
        from femts.evaluation.coverage import interval_notes

        groups = None if scored.by is None else scored.by.split(",")
        levels = None if scored.level is None else parse_levels(scored.level)
        frames = {h: forecaster.scores(scored.part, h, groups, levels, data) for h in horizons}
        say_warnings(_misses(frames, levels or (), scored.part))
        if levels is not None and forecaster.intervals is not None:
            say_notes(interval_notes(forecaster.intervals, forecaster.targets))
            if scored.by != "series":
                head["crps_quantiles"] = forecaster.intervals.quantiles
            if not as_json and scored.by != "series":
                say_notes(
                    [
                        f"crps is averaged over the quantiles {', '.join(f'{q:g}' for q in forecaster.intervals.quantiles)}"
                    ]
                )
        details = details_table(
            frames, head, "json" if as_json else "csv" if as_csv else "text", len(forecaster.targets)
        )
        if as_csv:
            write_data(details + "\n")
        else:
            say(details)
        return
    from femts.forecaster.scoring import score_horizons

    scores = score_horizons(forecaster, scored.part, horizons, data)
    worse, others = judgements(scores)
    say_warnings(worse)
    if as_json:
        say(strict_json({**head, "pred_len": scores, "mean": mean_scores(scores)}))
        return
    say("\n".join([scores_table(scores), *others]))


def _over_windows(scores: pd.DataFrame, column: str) -> float:
    """Mean of a `column` of scores in which all windows have the same weight, whatever their group."""
    has = scores[scores[column].notna()]
    return float((has[column] * has["windows"]).sum() / has["windows"].sum()) if len(has) else float("nan")


def _misses(frames: Mapping[int, pd.DataFrame], levels: Sequence[float], part: str) -> Iterator[str]:
    """Warnings on groups that are worse than the seasonal naive forecast, and on levels that miss their coverage."""
    from femts.evaluation.constants import EVEN
    from femts.evaluation.coverage import coverage_notes
    from femts.evaluation.score_sums import GROUPS

    for horizon, frame in frames.items():
        where = f"{count(horizon, 'step')}: " if len(frames) > 1 else ""
        scaled = frame if "series" in frame else frame[frame["units"] == "scaled"]
        groups = [name for name in ("series", *GROUPS) if name in frame.columns]
        worse = scaled[scaled["skill"] < -EVEN]
        if len(worse):
            names = [" ".join(str(row[name]) for name in groups) for _, row in worse.head(MOST_NAMED).iterrows()]
            more = f" and {len(worse) - MOST_NAMED} more" if len(worse) > MOST_NAMED else ""
            at = f" at {len(worse)} of {len(scaled)}: {' '.join(groups)} {', '.join(names)}{more}" if groups else ""
            yield f"{where}worse than the seasonal naive forecast by its squared error{at}"
        covered = {f"{level:g}": _over_windows(scaled, f"coverage-{level:g}") for level in levels}
        yield from (where + note for note in coverage_notes(covered, part))
