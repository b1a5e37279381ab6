"""Numbers that stand for a missing value, in whatever precision a table holds them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.catalog import CATALOG, DatasetCard, register_dataset

ROWS, SENTINEL = 200, -999.9


def table(dtype: str = "float64") -> pd.DataFrame:
    """Two daily waves, and ten cells without a value in the first, three of them among the last."""
    day = np.arange(ROWS)
    values = pd.DataFrame({"a": 20 + np.sin(day / 7 * 2 * np.pi), "b": 5 + np.cos(day)})
    values.loc[[*range(20, 90, 10), *range(ROWS - 3, ROWS)], "a"] = SENTINEL
    frame = values.astype({"a": dtype})
    frame.insert(0, "date", pd.date_range("2024-01-01", periods=ROWS))
    return frame


def long(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[["date", "a"]].rename(columns={"date": "ds", "a": "y"}).assign(unique_id="u")


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float32", "float16"])
def test_a_sentinel_is_seen_in_the_precision_of_its_column(dtype: str) -> None:
    frame = table(dtype)
    assert np.isnan(femts.load_dataset(frame, na=[SENTINEL]).values[:, 0]).sum() == 10
    assert np.isnan(femts.load_dataset(long(frame), na=[SENTINEL]).values).sum() == 10
    for panel in (
        femts.load_dataset(long(frame), na=[SENTINEL], panel=True),
        femts.load_dataset(frame, na=[SENTINEL], panel=True, panel=True),
    ):
        assert sum(np.isnan(data.values).sum() for data in panel.series.values()) == 10


def test_a_column_of_a_catalogue_card_too() -> None:
    card = DatasetCard(
        name="Single", rows=ROWS, channels=2, freq="D", season=7, description="x", make=lambda: table("float32")
    )
    try:
        register_dataset(card)
        assert np.isnan(femts.load_dataset("Single", na=[SENTINEL]).values).sum() == 10
    finally:
        CATALOG.pop("Single", None)


def test_other_numbers_stay_though_single_precision_calls_them_alike() -> None:
    frame = table().assign(b=1e8)
    assert not np.isnan(femts.load_dataset(frame, na=[99_999_999]).values).any()


def test_a_forecast_from_single_precision_is_that_of_the_file_of_the_training(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "table.csv", index=False)
    forecaster = femts.train(femts.load_dataset(tmp_path / "table.csv", na=[SENTINEL]), "ridge", 7, seq_len=14)
    first = forecaster.predict(table())
    again = forecaster.predict(table("float32"))
    np.testing.assert_allclose(first[["a", "b"]], again[["a", "b"]], rtol=1e-4)
