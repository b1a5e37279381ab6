"""Missing values at the start of a look-back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from combinations import in_turn
from small_tables import small_table

import femts
from femts.data.loading import load_dataset
from femts.data.read import read_headless, write_table
from femts.data.recent import read_recent
from femts.data.schema import PLAIN
from femts.data.windows import part_windows
from femts.errors import GapWarning

L, P, N = 24, 12, 300
QUICK: dict[str, Any] = {"seq_len": L, "pred_len": P, "device": "cpu"}
SMALL = {"model.d_model": 8, "model.n_heads": 2, "model.n_layers": 1}
COLUMNS = ["load", "heat"]
pytestmark = pytest.mark.filterwarnings("ignore::femts.errors.AgeWarning", "ignore::femts.errors.GapWarning")


def sparse(every: int = 17) -> pd.DataFrame:
    """A column with a value every 17th step, so that most look-backs begin with a gap."""
    frame = small_table(N)
    frame["heat"] = (50 + np.random.default_rng(3).normal(size=N).cumsum()).round(3)
    return frame.assign(heat=frame["heat"].where(np.arange(N) % every == 5))


def long(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"})


def known(frame: pd.DataFrame, gaps: Any = False) -> pd.DataFrame:
    return frame.assign(open=np.where(gaps, np.nan, np.sin(np.arange(N) * 0.7).round(3)))


SHAPES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "wide": lambda frame: femts.load_dataset(frame),
    "no stamps": lambda frame: replace(femts.load_dataset(frame), stamps=None, freq=None, season=1),
    "renamed": lambda frame: femts.load_dataset(frame.rename(columns={"date": "when"}), columns={"time": "when"}),
    "long": lambda frame: femts.load_dataset(long(frame), panel=False),
    "panel": lambda frame: load_dataset(long(frame), panel=True),
    "sentinel": lambda frame: femts.load_dataset(frame.fillna({"heat": -9.0}), na=[-9]),
    "past": lambda frame: femts.load_dataset(frame, past_covariates=["heat"]),
    "known": lambda frame: femts.load_dataset(known(frame), future_covariates=["open"], calendar=True),
    "known, gaps": lambda frame: femts.load_dataset(known(frame, frame.index % 7 == 2), future_covariates=["open"]),
    "known, long": lambda frame: femts.load_dataset(long(known(frame)), future_covariates=["open"], panel=False),
    "zone": lambda frame: femts.load_dataset(
        frame.assign(date=frame["date"].dt.tz_localize("Europe/Berlin")), calendar=True
    ),
    "bounded": lambda frame: femts.load_dataset(frame, min=0),
    "log": lambda frame: femts.load_dataset(frame.assign(load=frame["load"] + 9), transform="log1p"),
    "static": lambda frame: load_dataset(long(frame).assign(kind="a"), static_covariates=["kind"], target="y"),
    "panel, known": lambda frame: load_dataset(
        long(frame).assign(open=np.tile(known(frame)["open"], 2)), future_covariates=["open"], calendar=True
    ),
}


def data_of(shape: str, every: int = 17) -> Any:
    return SHAPES[shape](sparse(every))


@in_turn(shape=tuple(SHAPES), every=(17, 30))
def test_predict_and_evaluate_fill_alike(shape: str, every: int) -> None:
    data = data_of(shape, every)
    model = {"past": "itransformer", "static": "fem_sm"}.get(shape, "ridge")
    made = femts.train(data, model, max_epochs=None if model == "ridge" else 1, **QUICK)
    checks = {check.name: check for check in femts.audit(made, data).checks}
    for name in ("future rows", "every window"):
        assert checks[name].passed, checks[name].says


@in_turn(shape=("wide", "long", "known", "known, long", "zone"), suffix=(".csv", ".parquet"))
def test_file_forecast_matches_dataset_windows(shape: str, suffix: str, tmp_path: Path) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    data = data_of(shape)
    made = femts.train(data, "ridge", **QUICK)
    windows = part_windows(data, made.preprocess, "test", L, P)
    last = torch.tensor([len(windows) - 1])
    with torch.no_grad():
        scaled = made.model(windows.batch(last))[0].double().numpy()
    offsets = windows.offsets(last)
    expected = made.preprocess.restore(scaled if offsets is None else scaled + offsets[0, L:].numpy())
    frame = data.frame()
    past, future = frame.head(N - P), frame.tail(P).drop(columns=COLUMNS) if "known" in shape else None
    assert np.isnan(past["heat"].iloc[-L]), "a gap at the start"
    past = long(past) if "long" in shape else past
    for table in (past, past.iloc[::-1], past.sample(frac=1, random_state=1)):
        path = write_table(table, tmp_path / f"mine{suffix}")
        pieces = [read_recent(path, L, made.config.schema, made.columns, "h", cells) for cells in (100, 2**20)]
        assert max(map(len, pieces)) <= (L + 1) * (3 if "long" in shape else 1)
        for history in (table, *pieces):
            forecast = made.predict(history, future=future)
            if "long" in shape:
                forecast = forecast.pivot(index="ds", columns="unique_id", values="y")
            np.testing.assert_allclose(forecast[COLUMNS].to_numpy(), expected, atol=1e-4)


@pytest.mark.parametrize("rows", [299, 280])
def test_forecast_and_explanation_equal_a_forward_filled_table(rows: int) -> None:
    frame = sparse()
    made = femts.train(frame, "fem_sm", settings=SMALL, max_epochs=1, **QUICK)
    filled, gaps = frame.ffill().head(rows), frame.head(rows)
    pd.testing.assert_frame_equal(made.predict(gaps), made.predict(filled), check_exact=True)
    pd.testing.assert_frame_equal(made.explain(gaps), made.explain(filled), check_exact=True)
    pd.testing.assert_frame_equal(made.predict(long(gaps))[["y"]], made.predict(long(filled))[["y"]])


@pytest.mark.parametrize("panel", [False, True])
def test_target_without_history_has_no_forecast(panel: bool) -> None:
    table, later = (long(sparse(30).head(rows)) for rows in (269, 270))  # row 245 is the first of 24, and before them
    data: Any = load_dataset(later, panel=True) if panel else femts.load_dataset(later, panel=False)
    made = femts.train(data, "ridge", **QUICK)
    assert made.predict(table)["y"].notna().all()
    with pytest.warns(GapWarning, match="'heat': no value in the last 24 steps, so no forecast"):
        forecast = made.predict(later).set_index("unique_id")["y"]
    assert forecast["heat"].isna().all() and forecast["load"].notna().all()


def test_ended_past_covariate_is_carried_forward() -> None:
    frame = sparse()
    made = femts.train(femts.load_dataset(frame, past_covariates=["heat"]), "itransformer", max_epochs=1, **QUICK)
    ended = frame.assign(heat=frame["heat"].where(frame.index < 250))
    filled = made.predict(ended.ffill())
    pd.testing.assert_frame_equal(made.predict(ended), filled, check_exact=True)
    assert not made.predict(ended.tail(L)).equals(filled)


def test_headerless_matrix_keeps_values_before_the_gap(tmp_path: Path) -> None:
    path, whole = tmp_path / "mine.csv", sparse()[COLUMNS].head(283)
    whole.to_csv(path, index=False, header=False)
    recent = read_recent(path, L, PLAIN, ("0", "1"), None, cells=20)
    assert recent.index.tolist() == [243, *range(259, 283)]
    assert read_headless(path).iloc[recent.index].equals(recent.set_axis(read_headless(path).columns, axis=1))


def test_warning_locates_leading_gaps() -> None:
    frame = sparse()
    made = femts.train(frame, "ridge", **QUICK)
    with pytest.warns(GapWarning, match=r"is read instead, or the training mean where there is none\."):
        made.predict(frame.tail(L))
    with pytest.warns(GapWarning, match=r"the last value before each is read instead\."):
        made.predict(frame)
