"""Comparison with the seasonal naive forecast."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from every_window import every_window
from small_panels import panel_forecaster

from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.data.schema import Schema
from femts.data.splits import Split
from femts.data.windows import Windows, part_windows
from femts.evaluation.evaluator import evaluate, evaluate_horizons
from femts.evaluation.relative_to_naive import NaiveSums
from femts.evaluation.scores import DetailSums, scores_frame
from femts.forecaster.scoring import score_with_naive
from femts.models.dlinear import DLinear, DLinearConfig
from femts.models.naive import SeasonalNaive, SeasonalNaiveConfig

L, P, C, SEASON = 12, 7, 3, 5
COLUMNS = ("a", "b", "c")
RAW = np.random.default_rng(0).gamma(4.0, [1.0, 30.0, 0.2], (150, C))
NAIVE = SeasonalNaive(SeasonalNaiveConfig(L, P, C, SEASON))


def dataset(transform: str | None = None, gaps: bool = False, season: int = SEASON) -> Dataset:
    missing = gaps & (np.random.default_rng(1).random(RAW.shape) < 0.2)
    split, schema = Split.of((0, 60), (60, 72), (72, 150)), Schema.of(transform=transform)
    values = np.where(missing, np.nan, RAW)
    return Dataset.of_one("raw", values, None, COLUMNS, season=season, split=split, schema=schema)


def scored_windows(data: Dataset, steps: int = P) -> tuple[Windows, NaiveSums]:
    preprocess = Preprocess.fit(data)
    windows = part_windows(data, preprocess, "test", L, steps)
    return windows, NaiveSums(preprocess, data, L)


def model() -> DLinear:
    torch.manual_seed(0)
    return DLinear(DLinearConfig(L, P, C))


@pytest.mark.parametrize("gaps", [False, True])
def test_errors_equal_the_seasonal_naive_model(gaps: bool) -> None:
    windows, sums = scored_windows(dataset(gaps=gaps))
    own, naive = evaluate(model(), windows, 8, also=[sums]), evaluate(NAIVE, windows, 8)
    beside = sums.beside(own["mse"])
    assert (beside["season"], beside["mse"], beside["mae"]) == (SEASON, naive["mse"], naive["mae"])
    assert beside["skill"] == pytest.approx(1 - own["mse"] / naive["mse"])
    assert own == evaluate(model(), windows, 8), "what is summed beside changes no score"


@pytest.mark.parametrize(("transform", "gaps"), [(None, False), ("log1p", True)])
def test_skill_and_mase_match_detailed_scores(transform: str | None, gaps: bool) -> None:
    data = dataset(transform, gaps)
    windows, sums = scored_windows(data)
    details = DetailSums(P, C, Preprocess.fit(data), SEASON)
    own = evaluate(model(), windows, 8, also=[sums, details])
    row, beside = scores_frame(details, COLUMNS, data.train_values).iloc[0], sums.beside(own["mse"])
    assert beside["skill"] == pytest.approx(row["skill"], rel=1e-5)
    assert beside["mase"] == pytest.approx(row["mase"], rel=1e-5)
    each = scores_frame(details, COLUMNS, data.train_values, ("channel",))["mase"][:C]
    assert row["mase"] == pytest.approx(each.mean()), "a channel with gaps counts like another"


def test_each_horizon_has_its_own_naive_errors() -> None:
    made = {steps: scored_windows(dataset(), steps) for steps in (P, 3)}
    also = {steps: [sums] for steps, (_, sums) in made.items()}
    scores = evaluate_horizons(NAIVE, [windows for windows, _ in made.values()], also=also)
    assert all(sums.beside(scores[steps]["mse"])["skill"] == 0 for steps, (_, sums) in made.items())


def test_look_back_shorter_than_a_season_repeats_the_last_value() -> None:
    windows, sums = scored_windows(dataset(season=L + 1))
    evaluate(model(), windows, also=[sums])
    batch, y = every_window(windows)
    beside = sums.beside(1.0)
    assert beside["season"] == 1
    assert beside["mse"] == pytest.approx((batch.past[:, -1:] - y).square().mean().item(), rel=1e-5)


def test_division_by_zero_gives_none() -> None:
    beside = scored_windows(dataset())[1].beside(0.1)
    assert beside == {"season": SEASON, **dict.fromkeys(("mse", "mae", "skill", "mase"))}


def test_panel_is_compared_with_naive_per_series() -> None:
    ridge, naive = panel_forecaster("ridge"), panel_forecaster("seasonal_naive")
    beside, own = ridge.metrics["naive"], ridge.metrics["test"]
    assert beside["season"] == 7
    assert beside["mse"] == pytest.approx(naive.metrics["test"]["mse"], rel=1e-6)
    assert beside["mae"] == pytest.approx(naive.metrics["test"]["mae"], rel=1e-6)
    assert beside["skill"] == pytest.approx(1 - own["mse"] / beside["mse"])
    assert beside["mase"] == pytest.approx(ridge.scores()["mase"].item())
    assert naive.metrics["naive"]["skill"] == pytest.approx(0, abs=1e-6)
    scores, several = score_with_naive(ridge, "test", (7, 5))
    assert scores == {steps: ridge.evaluate(pred_len=steps) for steps in (7, 5)}
    assert several[7] == beside and several[5] != beside
