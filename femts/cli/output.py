"""Output of commands: plain tables for people, whose columns scripts can split at blanks."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from femts.cli.streams import say
from femts.cli.wording import as_options
from femts.data.describe import are, count
from femts.logging import PROGRESS
from femts.text import Message, printable, spreadsheet_safe, strict_json, table

if TYPE_CHECKING:
    import pandas as pd

RELATIVE = ("wape", "bias")  # scores in raw units


def scores_table(scores: Mapping[int, Mapping[str, Any]]) -> str:
    """Table with one line per horizon and, if there are several, their mean, from scores by horizon (`Scores`)."""
    from femts.evaluation.metric import own_names
    from femts.evaluation.overall import compared_with_naive

    every: list[tuple[object, Mapping[str, Any]]] = list(scores.items())
    own = [name for name in own_names() if any(name in one for one in scores.values())]
    if len(scores) > 1:
        every.append(("mean", mean_scores(scores)))
    header = ["pred_len", "mse", "mae", "windows", "naive_mse", "naive_mae", "skill", "mase", *RELATIVE, *own]
    rows = []
    for horizon, one in every:
        naive = compared_with_naive(one)
        compared = [naive["mse"], naive["mae"], naive["skill"], naive["mase"]]
        rows.append(
            [
                horizon,
                one["mse"],
                one["mae"],
                one.get("windows"),
                *compared,
                *(one.get(name) for name in (*RELATIVE, *own)),
            ]
        )
    return table(header, rows)


def mean_scores(scores: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """Means of the scores over the horizons, with equal weights, and the skill from these means; NaN if one is not a
    number."""
    from femts.evaluation.metric import own_names
    from femts.evaluation.overall import compared_with_naive

    def mean(values: Iterable[float | None]) -> float:
        numbers = [math.nan if value is None else value for value in values]  # a record has null for NaN
        return sum(numbers) / len(numbers)

    every = list(scores.values())
    names = [name for name in every[0]["baselines"] if all(name in one["baselines"] for one in every)]
    own = [name for name in own_names() if any(name in one for one in every)]
    averaged = ("mse", "mae", *RELATIVE, "mase", *own)
    made: dict[str, Any] = {name: mean(one.get(name) for one in every) for name in averaged}
    made["season"] = every[0]["season"]
    made["baselines"] = {
        name: {measure: mean(one["baselines"][name][measure] for one in every) for measure in ("mse", "mae")}
        for name in names
    }
    naive = compared_with_naive({**made, "skill": math.nan})["mse"]
    return {**made, "skill": 1 - made["mse"] / naive if naive else math.nan}


def choice_table(choice: Mapping[str, Any], where: str = "") -> str:
    """Candidates of `--model auto` with their validation errors, those selected, and the rule."""
    from femts.analysis.choice import ranked
    from femts.evaluation.criterion import CRITERIA

    rows: list[list[object]] = [
        [each.name, each.error, each.of_naive, None if each.seconds is None else f"{each.seconds:.1f}", each.selected]
        for each in ranked(choice)
    ]
    origins = f"{count(choice['windows'], 'window')} after {count(choice['origins'], 'origin')}, before the test split"
    text = table(["model", "error", "of_naive", "seconds", ""], rows)
    return f"{where}{text}\nerror: {CRITERIA[choice['metric']]}, of {origins}\nselected: {choice['rule']}"


def details_table(frames: Mapping[int, pd.DataFrame], head: Mapping[str, Any], kind: str, channels: int = 1) -> str:
    """Detailed scores (`Forecaster.scores`) by horizon, as `text`, `csv`, or `json` with `head` and null for NaN.

    The text omits raw errors averaged over several `channels`, whose units may differ.
    """
    import pandas as pd

    whole = pd.concat([frame.assign(pred_len=horizon) for horizon, frame in frames.items()], ignore_index=True)
    whole.insert(0, "pred_len", whole.pop("pred_len"))
    if kind == "csv":
        return str(whole.map(spreadsheet_safe).to_csv(index=False)).rstrip("\n")
    if kind == "json":
        plain = whole.astype(object)
        return strict_json({**head, "scores": plain.where(plain.notna(), None).to_dict("records")})
    return table(list(whole.columns), list((_of_one_unit(whole) if channels > 1 else whole).itertuples(index=False)))


def _of_one_unit(scores: pd.DataFrame) -> pd.DataFrame:
    """`scores` without raw errors averaged over channels, whose units may differ."""
    from femts.evaluation.metric import METRICS
    from femts.evaluation.score_sums import GROUPS

    if "channel" in scores.columns:
        return scores
    unitless = [name for name in METRICS.names() if METRICS[name].unitless]
    scores, first = scores.astype(object), (*GROUPS, "series", "pred_len", "units", "windows", *unitless, "coverage-")
    scores.loc[scores["units"] == "raw", [name for name in scores.columns if not name.startswith(first)]] = None
    return scores.where(scores.notna(), None)


def say_notes(notes: Iterable[str]) -> None:
    """Print notes on stderr, so that stdout remains parseable."""
    for note in notes:
        say(f"note: {printable(as_options(note))}", error=True)


def say_unfinished(missing: int, cells: int, shown_only: bool) -> None:
    """Print how many of `cells` have no record, if any, and how to produce them."""
    if not missing:
        return
    then = "run without --show to train them" if shown_only else "run the same command again to continue"
    say_notes([f"{missing} of {count(cells, 'cell')} {are(missing)} unfinished; {then}"])


class StderrHandler(logging.Handler):
    """Print log messages of femts on stderr: progress lines unchanged, and other messages as notes, each once."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.noted = set[str]()

    def emit(self, record: logging.LogRecord) -> None:
        line = as_options(record.msg) if isinstance(record.msg, Message) else record.getMessage()
        if record.name == PROGRESS.name:
            say(printable(line), error=True)
        elif line not in self.noted:
            self.noted.add(line)
            say_notes([line])


def final_note(metrics: Mapping[str, Any]) -> str:
    """Note on a refit run: which rows and which model the scores are from."""
    rows, of = metrics["refit"]["rows"], metrics["scored"]
    (first, stop), learned = of["test"], of["train"][1]
    if "series" in of:  # test rows are at the end of each series
        return (
            f"the model was refit on all {rows} rows of {of['series']} series; scores, on {stop - first} rows at "
            f"their ends, are from the model in {of['folder']}/, trained on {learned} rows"
        )
    return (
        f"the model was refit on all {rows} rows; scores, on rows {first + 1} to {stop}, are from the model in "
        f"{of['folder']}/, trained on the first {learned}"
    )


def say_warnings(warnings: Iterable[str]) -> None:
    """Print warnings on stderr, in red if it is a terminal with colours and NO_COLOR is not set."""
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True, soft_wrap=True, emoji=False, highlight=False)
    for warning in warnings:
        console.print(Text(f"warning: {printable(warning)}", style="red"))


def say_intervals(calibrated: Mapping[str, Any], where: str = "") -> None:
    """Print the test coverage of a run's intervals from its `metrics.json`, and a note if they are an estimate."""
    from femts.evaluation.coverage import coverage_line, few_notes, missing_notes

    say(where + coverage_line(_covered(calibrated)))
    few = few_notes(calibrated["windows"], calibrated.get("disjoint", calibrated["windows"]))
    say_notes(where + note for note in (*few, *missing_notes(calibrated.get("missing", ()))))


def _covered(calibrated: Mapping[str, Any]) -> dict[str, float]:
    return {level: row["coverage"] for level, row in calibrated["test"].items() if row["coverage"] is not None}


def judgements(scores: Mapping[int, Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Comparisons with naive forecasts by horizon: those of models that are worse, and the others."""
    worse, others = list[str](), list[str]()
    for horizon, one in scores.items():
        if one["verdict"] is not None:
            where = f"{count(horizon, 'step')}: " if len(scores) > 1 else ""
            (worse if one["worse"] else others).append(where + one["verdict"])
    return worse, others
