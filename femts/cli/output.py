"""Output of commands: plain tables that people read and scripts split at blanks."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from femts.errors import UsageError
from femts.text import printable, shown, spreadsheet_safe, strict_json, table

if TYPE_CHECKING:
    import pandas as pd


def scores_table(scores: Mapping[int, Mapping[str, Any]]) -> str:
    """One line a horizon (`mse`, `mae`, `windows`) and, for several, their mean."""
    rows: list[list[object]] = [[p, s["mse"], s["mae"], s["windows"]] for p, s in scores.items()]
    if len(scores) > 1:
        average = mean_scores(scores)
        rows.append(["mean", average["mse"], average["mae"], "-"])
    return table(("pred_len", "mse", "mae", "windows"), rows)


def mean_scores(scores: Mapping[int, Mapping[str, Any]]) -> dict[str, float]:
    """Means of the horizons' `mse` and `mae`, each horizon counting once."""
    nan = float("nan")  # a record has null where a score is no number
    return {
        name: sum(nan if s[name] is None else s[name] for s in scores.values()) / len(scores) for name in ("mse", "mae")
    }


def details_table(frames: Mapping[int, pd.DataFrame], head: Mapping[str, Any], kind: str) -> str:
    """Scores in detail (`Forecaster.scores`) by horizon, as `text`, as `csv`, or as `json` with
    `head` and null for NaN."""
    import pandas as pd

    whole = pd.concat([frame.assign(pred_len=horizon) for horizon, frame in frames.items()], ignore_index=True)
    whole.insert(0, "pred_len", whole.pop("pred_len"))
    if kind == "csv":
        return str(whole.map(spreadsheet_safe).to_csv(index=False)).rstrip("\n")
    if kind == "json":
        plain = whole.astype(object)
        return strict_json({**head, "scores": plain.where(plain.notna(), None).to_dict("records")})
    return table(list(whole.columns), list(whole.itertuples(index=False)))


def say_notes(notes: Iterable[str]) -> None:
    """Print what a user should hear once, on stderr, so that stdout stays parseable."""
    for note in notes:
        print(f"note: {printable(note)}", file=sys.stderr)


def final_note(metrics: Mapping[str, Any]) -> str:
    """A note on a run that learned from all rows: which rows scores are of, and which model."""
    rows, of = metrics["final"]["rows"], metrics["scored"]
    (first, stop), learned = of["test"], of["train"][1]
    return (
        f"the forecaster learned from all {rows} rows; scores, on rows {first + 1} to {stop}, are of the one in "
        f"{of['folder']}/, which learned from the first {learned}"
    )


def say_intervals(calibrated: Mapping[str, Any], where: str = "") -> None:
    """Print what the intervals of a run cover of the test part, by its `metrics.json`, and notes on what is wrong."""
    from femts.evaluation.coverage import coverage_line, coverage_notes, few_notes

    covered = {level: row["coverage"] for level, row in calibrated["test"].items() if row["coverage"] is not None}
    print(where + coverage_line(covered))
    few = few_notes(calibrated["windows"], calibrated.get("disjoint", calibrated["windows"]))
    say_notes(where + note for note in (*few, *coverage_notes(covered)))


def write_data(text: str) -> None:
    """Write a table for machines to standard output, as it is.

    Raises:
        UsageError: the encoding of standard output lacks a character, which nobody may replace in data.
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError as error:
        raise UsageError(
            f"Standard output is {encoding}, which has no '{shown(text[error.start])}'; name a file by -o, or set "
            "PYTHONIOENCODING=utf-8."
        ) from error
    sys.stdout.write(text)
