#!/usr/bin/env python
"""Train and score models on panels of short real series.

Writes results/short/panels.csv and the tables of panels in docs/measured/short-series.md.

python scripts/short_panels.py --models ridge,fem_sm                    # a minute per panel and model
python scripts/short_panels.py --models fem_sm --panels days --set model.dropout=0.2
python scripts/short_panels.py --page                                   # update the page only
python scripts/short_panels.py --write panels                           # write the panels as long tables

The fertility rates of 192 countries come with statsmodels. The other panels are cut from ETT and
Weather (FEMTS_DATA) at random with a fixed seed: the dates into spans that do not overlap, then each
column of a span to its last rows. No test row of one series lies in the training rows of another.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, also where another one is installed

import femts  # noqa: E402

ROWS, PAGE = ROOT / "results" / "short" / "panels.csv", ROOT / "docs" / "measured" / "short-series.md"
COUNT = 120  # series in each panel sampled from ETT and Weather
DRY = ("rain (mm)", "raining (s)")  # constant over most spans
NAIVE = "seasonal_naive"
MODELS = ("auto", NAIVE, "auto_theta", "mstl", "auto_ets", "ridge", "fem_sm", "fem_sm_ridge")
KEYS = ["panel", "series", "model", "settings"]


@dataclass(frozen=True)
class Panel:
    """Panel of short series.

    Attributes:
        name: in the rows of the results.
        words: title on the page.
        pred_len: horizon in steps; the last horizon is the test split, the one before it the validation split.
        step: averaging period for ETT and Weather; empty for the fertility rates.
        rows: least and largest length of a series.
    """

    name: str
    words: str
    pred_len: int
    step: str = ""
    rows: tuple[int, int] = (52, 52)


PANELS = (
    Panel("years", "fertility rates by country, yearly", 6),
    Panel("two_hours", "ETT and Weather, two-hourly", 12, "2h", (60, 200)),
    Panel("days", "ETT and Weather, daily", 14, "D", (60, 180)),
    Panel("hours", "ETT and Weather, hourly", 24, "h", (150, 700)),
)


def table(panel: Panel) -> pd.DataFrame:
    """The long table of `panel`: `unique_id`, `ds`, `y`."""
    if not panel.step:
        return _births()
    rng = np.random.default_rng(0)
    spans = [
        (f"{file} {column} {number}", span[column])
        for file in ("ETTh1", "ETTh2", "weather")
        for number, span in enumerate(_spans(_measured(file, panel.step), panel.rows[1]))
        for column in span
        if column not in DRY
    ]
    pieces = []
    for place in sorted(rng.permutation(len(spans))[:COUNT]):
        name, values = spans[place]
        last = values.tail(int(rng.integers(panel.rows[0], panel.rows[1] + 1))).dropna()
        pieces.append(pd.DataFrame({"unique_id": name, "ds": last.index, "y": last.to_numpy()}))
    return pd.concat(pieces, ignore_index=True)


def _spans(frame: pd.DataFrame, most: int) -> list[pd.DataFrame]:
    """Split `frame` into spans of about `most` rows, at least three of them."""
    edges = np.linspace(0, len(frame), max(3, len(frame) // most) + 1).astype(int)
    return [frame.iloc[first:last] for first, last in pairwise(edges)]


def _births() -> pd.DataFrame:
    import statsmodels.datasets as shipped

    data = shipped.fertility.load_pandas().data.set_index("Country Name").loc[:, "1960":"2011"]
    data = data.apply(pd.to_numeric, errors="coerce").dropna()
    long = data.rename_axis("unique_id").reset_index().melt("unique_id", var_name="ds", value_name="y")
    return long.assign(ds=pd.to_datetime(long["ds"]))


def _measured(file: str, step: str) -> pd.DataFrame:
    path = Path(os.environ.get("FEMTS_DATA", "")) / f"{file}.csv"
    data = pd.read_csv(path, parse_dates=["date"], encoding="latin-1", na_values=[-9999]).set_index("date")
    data.columns = [str(column).encode("ascii", "ignore").decode() for column in data]
    return data.resample(step).mean().iloc[1:-1]


def run(panel: Panel, model: str, settings: dict[str, str], most: int | None = None) -> dict[str, Any]:
    """Train `model` on `panel` without its last two horizons and score it on them, as one row.

    Args:
        model: registered name.
        settings: values by name; `seq_len` is the look-back.
        most: number of series to draw at random; None for all.
    """
    began, steps = time.monotonic(), panel.pred_len
    long = table(panel)
    names = np.random.default_rng(1).permutation(long["unique_id"].unique())[:most]
    data = femts.load_dataset(long[long["unique_id"].isin(names)], val_rows=steps, test_rows=steps)
    given = {name: value for name, value in settings.items() if name != "seq_len"}
    fc = femts.train(data, model, steps, seq_len=settings.get("seq_len"), settings=given, refit=False)
    scores = {part: fc.scores(part, by="series")["mase"] for part in ("val", "test")}
    return {
        "panel": panel.name,
        "model": model,
        "settings": " ".join(f"{name}={value}" for name, value in settings.items()),
        "series": len(data.series),
        "windows": int(np.maximum(0, data.train_lengths - steps).sum()),
        "pred_len": steps,
        "seq_len": fc.config.seq_len,
        **{f"{part}_mean": each.mean() for part, each in scores.items()},
        **{f"{part}_median": each.median() for part, each in scores.items()},
        "seconds": round(time.monotonic() - began),
    }


def add(row: dict[str, Any], path: Path = ROWS) -> None:
    """Write `row`, replacing the row of the same panel, model and settings."""
    old = pd.read_csv(path, keep_default_na=False) if path.is_file() else pd.DataFrame(columns=list(row))
    rows = {tuple(each[key] for key in KEYS): each for each in [*old.to_dict("records"), row]}
    order = {panel.name: number for number, panel in enumerate(PANELS)}
    chosen = sorted(
        rows.values(), key=lambda each: (order[each["panel"]], -int(each["series"]), each["model"], each["settings"])
    )
    pd.DataFrame(chosen).to_csv(path, index=False, float_format="%.4f")


def rewritten(page: str) -> str:
    """`page` with its two tables of panels updated from results/short/panels.csv."""
    rows = pd.read_csv(ROWS, keep_default_na=False)
    rows = rows[rows["settings"] == ""]
    for name, made in {"panels": _by_panel(rows), "panel models": _by_model(rows)}.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = page.partition(start)
        page = f"{before}{start}\n{made}\n{end}{rest.partition(end)[2]}"
    return page


def _by_panel(rows: pd.DataFrame) -> str:
    """Markdown table with a row per panel and number of series: mean MASE of each model."""
    models = [model for model in MODELS if model in set(rows["model"])]
    lines = [
        f"| panel | series | windows | P | L | {' | '.join(f'`{model}`' for model in models)} |",
        "|---" * (5 + len(models)) + "|",
    ]
    for panel in PANELS:
        of_panel = rows[rows["panel"] == panel.name]
        for series, some in sorted(of_panel.groupby("series"), reverse=True):
            learned = some[some["model"] == "fem_sm"].iloc[0]
            errors = some.set_index("model")["test_mean"].round(3).reindex(models)
            cells = [
                "" if np.isnan(error) else f"**{error:.3f}**" if error == errors.min() else f"{error:.3f}"
                for error in errors
            ]
            lengths = [str(learned[name]) for name in ("windows", "pred_len", "seq_len")]
            lines.append(f"| {' | '.join([panel.words, str(series), *lengths, *cells])} |")
    return "\n".join(lines) + "\n"


def _by_model(rows: pd.DataFrame) -> str:
    """Markdown table with a row per model, over the whole panels."""
    whole = rows[rows["series"] == rows.groupby("panel")["series"].transform("max")]
    naive = whole[whole["model"] == NAIVE].set_index("panel")["test_mean"]
    lines = ["| model | relative error | " + " | ".join(f"`{panel.name}`" for panel in PANELS) + " | seconds |"]
    lines.append("|---" * (3 + len(PANELS)) + "|")
    for model in MODELS:
        some = whole[whole["model"] == model].set_index("panel")
        if len(some) < len(PANELS):
            continue
        share = float(np.exp(np.log(some["test_mean"] / naive).mean()))
        medians = [f"{some.loc[panel.name, 'test_median']:.3f}" for panel in PANELS]
        lines.append(f"| {' | '.join([f'`{model}`', f'{share:.3f}', *medians, str(some['seconds'].sum())])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS), help="comma-separated names")
    parser.add_argument("--panels", default=",".join(panel.name for panel in PANELS), help="comma-separated names")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting, or seq_len")
    parser.add_argument("--series", type=int, help="number of series to draw at random; default: all")
    parser.add_argument("--rows", type=Path, default=ROWS, help="CSV file of the results")
    parser.add_argument("--page", action="store_true", help="only update the page")
    parser.add_argument("--write", type=Path, metavar="DIR", help="only write the panels as CSV files to DIR")
    given = parser.parse_args()
    panels = [panel for panel in PANELS if panel.name in given.panels.split(",") and not given.page]
    if given.write is not None:
        given.write.mkdir(parents=True, exist_ok=True)
        for panel in panels:
            table(panel).to_csv(given.write / f"{panel.name}.csv", index=False)
        return
    settings = dict(each.split("=", 1) for each in given.set)
    for panel in panels:
        for model in given.models.split(","):
            row = run(panel, model, settings, given.series)
            print(" ".join(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row.values()))
            add(row, given.rows)
    if given.rows == ROWS:
        PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
