"""Categorical covariates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.schema import Schema
from femts.errors import GapWarning, UsageError

ROWS, P = 200, 7
RNG = np.random.default_rng(0)
PROMO = RNG.choice(["none", "none", "tv", "radio"], ROWS + P)
EFFECT = 10.0 * (PROMO == "tv") + 5.0 * (PROMO == "radio")
TABLE = pd.DataFrame(
    {"date": pd.date_range("2023-01-01", periods=ROWS + P), "sales": 50 + EFFECT + RNG.normal(size=ROWS + P)}
).assign(promo=PROMO)
HISTORY, FUTURE = TABLE.head(ROWS), TABLE.tail(P)[["date", "promo"]]


def long(table: pd.DataFrame) -> pd.DataFrame:
    """The table as two equal series."""
    renamed = table.rename(columns={"date": "ds", "sales": "y"})
    return pd.concat([renamed.assign(unique_id=name) for name in "ab"])


def test_categories_are_one_hot_encoded() -> None:
    data = femts.load_dataset(HISTORY, future_covariates="promo")
    assert data.columns == ("sales",) and data.schema.roles.future == ("promo = radio", "promo = tv")
    np.testing.assert_array_equal(data.covariates[:, 1], PROMO[:ROWS] == "tv")
    assert "column 'promo' is categorical; its 3 categories are encoded as 2 indicator columns" in data.notes
    assert Schema.from_dict(data.schema.to_dict()) == data.schema


@pytest.mark.parametrize("panel", [False, True])
def test_saved_run_uses_category_effects(panel: bool, tmp_path: Path) -> None:
    history, future = (long(each) if panel else each for each in (HISTORY, FUTURE))
    for file, table in (("history.csv", history), ("future.csv", future)):
        table.to_csv(tmp_path / file, index=False)
    data = femts.load_dataset(tmp_path / "history.csv", future_covariates="promo")
    femts.train(data, "ridge", P, out=tmp_path / "run")
    loaded = femts.load(tmp_path / "run")
    made = loaded.predict(history, future=future)
    expected = np.tile(50 + EFFECT[ROWS:], 1 + panel)
    assert np.abs(made[loaded.targets[0]] - expected).max() < 2
    from_file = femts.load(tmp_path / "run").predict(
        pd.read_csv(tmp_path / "history.csv"), future=pd.read_csv(tmp_path / "future.csv")
    )
    np.testing.assert_array_equal(from_file[loaded.targets[0]], made[loaded.targets[0]])


def test_categorical_past_covariates_are_not_targets() -> None:
    made = femts.train(femts.load_dataset(HISTORY, past_covariates="promo"), "fem_sm", P, max_steps=3)
    assert made.targets == ("sales",) and made.columns == ("sales", "promo = radio", "promo = tv")
    other = made.predict(HISTORY.assign(promo=HISTORY["promo"].to_numpy()[::-1]))
    assert not np.array_equal(other["sales"], made.predict(HISTORY)["sales"])


def test_unknown_category_warns() -> None:
    made = femts.train(femts.load_dataset(HISTORY, future_covariates="promo"), "ridge", P)
    with pytest.warns(
        GapWarning, match="has the category 'web', which is not in the training data; it is treated as 'none'"
    ):
        unknown = made.predict(HISTORY, future=FUTURE.assign(promo="web"))
    pd.testing.assert_frame_equal(unknown, made.predict(HISTORY, future=FUTURE.assign(promo="none")))


def test_errors_name_the_original_column() -> None:
    made = femts.train(femts.load_dataset(HISTORY, future_covariates="promo"), "ridge", P)
    with pytest.raises(UsageError, match="provide promo for the 7 steps"):
        made.predict(HISTORY)
    with pytest.raises(UsageError, match="has no 'promo' at 2023-07-20"):
        made.predict(HISTORY, future=FUTURE.assign(promo=[None, *PROMO[-P + 1 :]]))
    many = HISTORY.assign(promo=[f"word{n}" for n in range(ROWS)])
    with pytest.raises(UsageError, match="has 200 categories in column 'promo', but at most 24 are supported"):
        femts.load_dataset(many, future_covariates="promo")
    with pytest.raises(UsageError, match="has the same text 'tv' in every row of 'promo'; remove the column"):
        femts.load_dataset(HISTORY.assign(promo="tv"), future_covariates="promo")
    with pytest.raises(UsageError, match="two columns named 'promo'"):
        femts.load_dataset(pd.concat([HISTORY, HISTORY[["promo"]]], axis=1), future_covariates="promo")
    with pytest.raises(UsageError, match="Argument 'columns' takes column names"):
        femts.load_dataset(HISTORY, columns={"categories": "promo"})
    assert "left out: 'promo' (contains categories); to use them, name them as target or covariates" in (
        femts.load_dataset(HISTORY).notes
    )
