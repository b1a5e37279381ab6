#!/usr/bin/env python
"""Train, score, forecast, plot and backtest models on short real series.

Writes results/short/ and the tables of docs/measured/short-series.md.

python scripts/short_series.py --models fem_sm_ridge,seasonal_naive     # half a minute per series and model
python scripts/short_series.py --models ridge --series nile,co2         # repeat these; keep other rows
python scripts/short_series.py --page                                   # update the page only

The series come with statsmodels and matplotlib, and from ETT and Weather if FEMTS_DATA has them.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, also where another one is installed

import femts  # noqa: E402
from femts.config.model import AUTO  # noqa: E402

RESULTS, PAGE = ROOT / "results" / "short", ROOT / "docs" / "measured" / "short-series.md"
NAIVE = "seasonal_naive"
PANELS = "panels.csv"  # written by scripts/short_panels.py
MOST_WINDOWS = 5  # windows of a backtest, all within the test split


@dataclass(frozen=True)
class Series:
    """A short real series.

    Attributes:
        name: name of its file and row.
        make: function that returns the table, with time stamps in the first column and values in the second.
        words: quantity and frequency.
        written: arguments of `to_csv`, to cover common formats.
    """

    name: str
    make: Callable[[], pd.DataFrame]
    words: str
    written: tuple[tuple[str, str], ...] = ()


def _statsmodels(name: str) -> pd.DataFrame:
    import statsmodels.datasets as shipped

    data = getattr(shipped, name).load_pandas().data
    assert isinstance(data, pd.DataFrame)
    return data


def _yearly(name: str) -> pd.DataFrame:
    data = _statsmodels(name)
    return data.astype({data.columns[0]: int})


def _births() -> pd.DataFrame:
    data = _statsmodels("fertility").set_index("Country Name").loc["Sweden", "1960":"2011"]
    return pd.DataFrame({"year": data.index, "births": data.to_numpy(dtype=float)})


def _sea(yearly: bool) -> pd.DataFrame:
    data = _statsmodels("elnino").set_index("YEAR")
    if yearly:
        return pd.DataFrame({"year": data.index.astype(int), "sea": data.mean(axis=1).to_numpy()})
    months = pd.period_range(f"{data.index[0]:.0f}-01", periods=data.size, freq="M")
    return pd.DataFrame({"month": months, "sea": data.to_numpy().ravel()}).tail(480)


def _quarters(name: str, column: str) -> pd.DataFrame:
    data = _statsmodels(name)
    if "quarter" not in data:
        return data[[column]].rename_axis("period").reset_index()
    stamps = data["year"].astype(int).astype(str) + " Q" + data["quarter"].astype(int).astype(str)
    return pd.DataFrame({"quarter": stamps, column: data[column]})


def _carbon(monthly: bool) -> pd.DataFrame:
    data = _statsmodels("co2")["co2"]
    if monthly:
        return data.resample("MS").mean().interpolate().tail(400).rename_axis("month").reset_index()
    data = data.head(500)  # with its gaps
    weeks = data.index.isocalendar()
    return pd.DataFrame({"week": weeks.year.astype(str) + "-W" + weeks.week.map("{:02d}".format), "co2": data.values})


def _plants() -> pd.DataFrame:
    import statsmodels.datasets as shipped

    return pd.read_csv(Path(shipped.__file__).parent / "elec_equip" / "elec_equip.csv")


def _stocks(column: str) -> pd.DataFrame:
    from matplotlib.cbook import get_sample_data

    data = pd.read_csv(get_sample_data("Stocks.csv"), comment="#", parse_dates=["Date"])[["Date", column]].dropna()
    return data[data["Date"].dt.day == 1].drop_duplicates("Date")


def _google(column: str) -> pd.DataFrame:
    from matplotlib.cbook import get_sample_data

    data = pd.DataFrame(get_sample_data("goog.npz")["price_data"])[["date", column]]
    return data.tail(500)  # days without trading are gaps


def _measured(file: str, column: str, step: str, rows: int) -> pd.DataFrame | None:
    path = Path(os.environ.get("FEMTS_DATA", "")) / f"{file}.csv"
    if not path.is_file():
        return None
    data = pd.read_csv(path, parse_dates=["date"], encoding="latin-1").set_index("date")[column]
    data = (data.iloc[1:] if file == "weather" else data).resample(step).mean().iloc[:-1]
    return data.tail(rows).reset_index()


def _macro(column: str, words: str) -> Series:
    return Series(column, partial(_quarters, "macrodata", column), f"USA, {words}, quarterly")


GERMAN = (("sep", ";"), ("decimal", ","))
SERIES: tuple[Series, ...] = (
    Series("sunspots", partial(_yearly, "sunspots"), "sunspots, yearly"),
    Series("nile", partial(_yearly, "nile"), "flow of the Nile, yearly"),
    Series("births", _births, "fertility rate of Sweden, yearly"),
    Series("sea_years", partial(_sea, True), "sea surface temperature, yearly"),
    _macro("realgdp", "real GDP"),
    _macro("realinv", "real investment"),
    _macro("realgovt", "real government spending"),
    _macro("m1", "money supply"),
    _macro("tbilrate", "interest rate"),
    _macro("unemp", "unemployment"),
    _macro("infl", "inflation"),
    Series("denmark", partial(_quarters, "danish_data", "lrm"), "Denmark, money supply, quarterly"),
    Series("germany", partial(_quarters, "interest_inflation", "Dp"), "Germany, inflation, quarterly", GERMAN),
    Series("sea", partial(_sea, False), "sea surface temperature, monthly", GERMAN),
    Series("co2", partial(_carbon, True), "CO2 at Mauna Loa, monthly"),
    Series("plants", _plants, "electrical equipment, monthly"),
    Series("apple", partial(_stocks, "AAPL"), "Apple share price, monthly"),
    Series("ibm", partial(_stocks, "IBM"), "IBM share price, monthly"),
    Series("oil_months", partial(_measured, "ETTh1", "OT", "MS", 24), "ETTh1, oil temperature, monthly"),
    Series("co2_weeks", partial(_carbon, False), "CO2 with gaps, weekly"),
    Series("oil_weeks", partial(_measured, "ETTh1", "OT", "W", 200), "ETTh1, oil temperature, weekly"),
    Series("load_weeks", partial(_measured, "ETTh2", "HUFL", "W", 200), "ETTh2, load, weekly"),
    Series("google", partial(_google, "close"), "Google share price, business days"),
    Series("google_traded", partial(_google, "volume"), "Google trading volume, business days"),
    Series("oil_days", partial(_measured, "ETTh1", "OT", "D", 500), "ETTh1, oil temperature, daily"),
    Series("load_days", partial(_measured, "ETTh2", "HUFL", "D", 365), "ETTh2, load, daily", GERMAN),
    Series("air_days", partial(_measured, "weather", "T (degC)", "D", 366), "Weather, temperature, daily"),
    Series("rain_days", partial(_measured, "weather", "rain (mm)", "D", 366), "Weather, rain, daily"),
    Series("pressure_days", partial(_measured, "weather", "p (mbar)", "D", 366), "Weather, pressure, daily"),
    Series("load_hours", partial(_measured, "ETTh1", "HUFL", "h", 480), "ETTh1, load, hourly"),
)


def run(series: Series, model: str, folder: Path) -> dict[str, Any] | None:
    """Train, save, load, predict, plot, score and backtest `model` on `series`; None if its file is missing."""
    table = series.make()
    if table is None:
        return None
    file, out = folder / f"{series.name}.csv", folder / f"{series.name}-{model}"
    table.to_csv(file, index=False, **dict(series.written))  # type: ignore[arg-type]
    femts.train(file, model, out=out, refit=False)
    fc = femts.load(out)
    data = femts.load_dataset(file)
    forecast = fc.predict(data, level=[80, 95])
    assert len(forecast) == fc.config.pred_len and forecast.notna().all(axis=None)
    fc.plot(data, level=[80, 95]).savefig(folder / f"{series.name}-{model}.png")
    scores = fc.scores(level=[80, 95]).iloc[-1]
    first, last = fc.data["split"]["test"]
    windows = max(1, min(MOST_WINDOWS, (last - first) // fc.config.pred_len))
    past = femts.backtest(fc, file, n_windows=windows)
    errors = femts.backtest_scores(past, fc).set_index(["cutoff", "model"])["mae_raw"]
    scale = scores["mae"] / scores["mase"]
    return {
        "series": series.name,
        "step": data.freq,
        "rows": data.rows,
        "model": model,
        "pred_len": fc.config.pred_len,
        "seq_len": fc.config.seq_len,
        "windows": int(scores["windows"]),
        "mase": scores["mase"],
        "coverage_80": scores["coverage-80"],
        "coverage_95": scores["coverage-95"],
        "backtest_windows": windows,
        "backtest_mase": errors["all", "forecast"] / scale,
        "backtest_naive_mase": errors["all", NAIVE] / scale,
    }


def add(row: dict[str, Any]) -> None:
    """Write `row` to the file of its model, replacing the row of the same series."""
    path = RESULTS / f"{row['model']}.csv"
    rows = {} if not path.is_file() else {each["series"]: each for each in pd.read_csv(path).to_dict("records")}
    rows[row["series"]] = row
    order = [each.name for each in SERIES]
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(sorted(rows.values(), key=lambda each: order.index(each["series"])))
    table.to_csv(path, index=False, float_format="%.4f")


def rewritten(page: str) -> str:
    """`page` with its two tables updated from the rows in results/short."""
    files = [path for path in sorted(RESULTS.glob("*.csv")) if path.name != PANELS]
    rows = pd.concat([pd.read_csv(path) for path in files], ignore_index=True)
    for name, table in {"series": _by_series(rows), "models": _by_model(rows)}.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, _, rest = page.partition(start)
        page = f"{before}{start}\n{table}\n{end}{rest.partition(end)[2]}"
    return page


def _by_series(rows: pd.DataFrame) -> str:
    """Markdown table with a row per series: the default model compared with the naive one."""
    naive = rows[rows["model"] == NAIVE].set_index("series")["mase"]
    chosen = rows[rows["model"] == AUTO].set_index("series")
    lines = [
        "| series | step | rows | P | L | windows | MASE | naive | 80% | 95% | backtest | naive |",
        "|---" * 12 + "|",
    ]
    for series in SERIES:
        if series.name not in chosen.index:
            continue
        row = chosen.loc[series.name]
        counts = [f"{row[name]}" for name in ("step", "rows", "pred_len", "seq_len", "windows")]
        errors = [f"{value:.2f}" for value in (row["mase"], naive.get(series.name, float("nan")))]
        covered = [f"{100 * row[name]:.0f}" for name in ("coverage_80", "coverage_95")]
        past = [f"{row[name]:.2f}" for name in ("backtest_mase", "backtest_naive_mase")]
        lines.append(f"| {' | '.join([series.words, *counts, *errors, *covered, *past])} |")
    return "\n".join(lines) + "\n"


def _by_model(rows: pd.DataFrame) -> str:
    """Markdown table with a row per model that has forecast all series: errors of the same backtest forecasts."""
    errors = rows.pivot(index="series", columns="model", values="backtest_mase").dropna(axis=1)
    naive = rows[rows["model"] == NAIVE].set_index("series")["backtest_mase"]
    beside, ranks = errors.div(naive, axis=0), errors.rank(axis=1).mean().sort_values()
    covered = rows.groupby("model")[["coverage_80", "coverage_95"]].mean() * 100
    lines = [
        "| model | mean rank | mean MASE | median MASE | worst ratio | better than naive | 80% | 95% |",
        "|---" * 8 + "|",
    ]
    for model, rank in ranks.items():
        of = errors[model]
        figures = [f"{value:.2f}" for value in (rank, of.mean(), of.median(), beside[model].max())]
        within = [f"{covered.loc[model, name]:.1f}" for name in ("coverage_80", "coverage_95")]
        lines.append(f"| {' | '.join([f'`{model}`', *figures, str(int((beside[model] < 1).sum())), *within])} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=f"{AUTO},{NAIVE}", help="comma-separated names")
    parser.add_argument("--series", default="", help="comma-separated names; default: all")
    parser.add_argument("--page", action="store_true", help="only update the page")
    given = parser.parse_args()
    names = [name for name in given.series.split(",") if name] or [series.name for series in SERIES]
    chosen = [] if given.page else [series for series in SERIES if series.name in names]
    logging.basicConfig(level=logging.INFO, format="  %(message)s")
    warnings.simplefilter("error", RuntimeWarning)  # must not occur on such data
    with tempfile.TemporaryDirectory() as folder:
        for series in chosen:
            for model in given.models.split(","):
                print(f"{series.name}, {model}", file=sys.stderr)
                row = run(series, model, Path(folder))
                if row is None:
                    print("  FEMTS_DATA does not have its file", file=sys.stderr)
                    continue
                add(row)
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
