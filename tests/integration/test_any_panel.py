"""Odd panels, drawn: an answer or a sentence, never a traceback, never a changed frame."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from drawn import DRAWN, attempt, copied, mostly, same
from hypothesis import given
from hypothesis import strategies as st
from odd_panels import ODD_ROLES, USUAL_ROLES, panels

import femts
from femts.data.loading import load_dataset

SMALL = {"model.d_model": 16, "model.n_heads": 2, "model.n_layers": 1}
MODELS = st.sampled_from(["naive", "ridge", "dlinear", "fem_sm", "fem_sm"])


def _settings(model: str) -> dict[str, Any]:
    return SMALL if model == "fem_sm" else {}


@DRAWN
@given(
    frame=panels(),
    later=mostly(None, panels()),
    future=mostly(None, panels()),
    roles=mostly(USUAL_ROLES, ODD_ROLES),
    model=MODELS,
)
def test_a_panel_answers_or_says_why(frame: Any, later: Any, future: Any, roles: dict[str, Any], model: str) -> None:
    history = frame if later is None else later
    ahead = frame if future is None else future
    given = [(each, copied(each)) for each in (frame, history, ahead)]
    panel = attempt(lambda: load_dataset(frame, **roles, panel=True))
    made = None
    if panel is not None:
        made = attempt(
            lambda: femts.train(panel, model, 3, seq_len=8, max_steps=2, device="cpu", settings=_settings(model))
        )
    if made is not None:
        known = {"future": ahead} if made.config.schema.roles.future else {}
        forecast = attempt(lambda: made.predict(history, level=None, **known))
        if forecast is not None:
            assert len(forecast) % 3 == 0
            assert not np.isinf(forecast.select_dtypes("number").to_numpy(dtype=float)).any()
        attempt(made.scores)
        with tempfile.TemporaryDirectory() as folder:
            made.save(Path(folder) / "run")
            again = attempt(lambda: femts.load(Path(folder) / "run").predict(history, **known))
            assert (forecast is None) == (again is None)
            if forecast is not None:
                pd.testing.assert_frame_equal(again, forecast)
    for each, before in given:
        assert same(each, before)


@DRAWN
@given(frame=panels(odd=False), roles=mostly(st.just({"target": ["y"]}), USUAL_ROLES), drop=st.integers(0, 9))
def test_series_read_at_once_are_those_read_one_by_one(frame: pd.DataFrame, roles: dict[str, Any], drop: int) -> None:
    frame = frame.drop(index=frame.index[5 :: drop + 3]) if drop else frame
    together = attempt(lambda: load_dataset(frame, **roles, panel=True))
    if together is None:
        return
    for name in together.series:
        data = together[name]
        alone = frame[frame["unique_id"] == name]
        wide = alone[["ds", *data.columns, *data.schema.roles.future]].rename(columns={"ds": "date"})
        expected = attempt(partial(femts.data.check.check_frame, wide, freq=together.freq))
        if expected is None:  # its stamps alone may leave open which number is the day
            continue
        assert pd.Index(expected["date"]).equals(data.stamps)
        np.testing.assert_array_equal(expected[list(data.columns)], data.values)
        np.testing.assert_array_equal(expected[list(data.schema.roles.future)], data.covariates)
