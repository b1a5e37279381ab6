"""Overall scores, compared with the naive forecasts of the same windows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from every_window import every_window
from small_panels import panel_forecaster

from femts.config.model import ModelConfig
from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.data.schema import Schema
from femts.data.splits import Split
from femts.data.windows import Windows, part_windows
from femts.evaluation.evaluator import evaluate, evaluate_horizons
from femts.evaluation.metrics.relative import MASE, Skill
from femts.evaluation.overall import OverallScores, compared_with_naive
from femts.evaluation.scale import SeasonalScale
from femts.evaluation.score_sums import ScoreSums
from femts.evaluation.values import Viewer
from femts.forecaster.scoring import score_horizons
from femts.models.dlinear import DLinear, DLinearConfig
from femts.models.naive import Naive, SeasonalNaive, SeasonalNaiveConfig, naive_forecasts

L, P, C, SEASON = 12, 7, 3, 5
COLUMNS = ("a", "b", "c")
RAW = np.random.default_rng(0).gamma(4.0, [1.0, 30.0, 0.2], (150, C))
NAIVE = SeasonalNaive(SeasonalNaiveConfig(L, P, C, SEASON))


def dataset(transform: str | None = None, gaps: bool = False, season: int = SEASON) -> Dataset:
    missing = gaps & (np.random.default_rng(1).random(RAW.shape) < 0.2)
    split, schema = Split.of((0, 60), (60, 72), (72, 150)), Schema.of(transform=transform)
    values = np.where(missing, np.nan, RAW)
    return Dataset.of_one("raw", values, None, COLUMNS, season=season, split=split, schema=schema)


def scored_windows(data: Dataset, steps: int = P) -> tuple[Windows, OverallScores]:
    preprocess = Preprocess.fit(data)
    windows = part_windows(data, preprocess, "test", L, steps)
    return windows, OverallScores(preprocess, data, L)


def model() -> DLinear:
    torch.manual_seed(0)
    return DLinear(DLinearConfig(L, P, C))


@pytest.mark.parametrize("gaps", [False, True])
def test_errors_equal_those_of_the_naive_models(gaps: bool) -> None:
    windows, overall = scored_windows(dataset(gaps=gaps))
    own = evaluate(model(), windows, 8, also=overall.collectors)
    scores = overall.scores(own)
    for name, naive in {"seasonal_naive": NAIVE, "naive": Naive(ModelConfig(L, P, C))}.items():
        expected = evaluate(naive, windows, 8)
        assert scores["baselines"][name] == {measure: expected[measure] for measure in ("mse", "mae")}
    assert scores["season"] == SEASON
    assert scores["skill"] == pytest.approx(1 - own["mse"] / scores["baselines"]["seasonal_naive"]["mse"])
    assert own == evaluate(model(), windows, 8), "what is summed beside changes no score"


def test_naive_forecasts() -> None:
    past = torch.tensor([[2.0, 4.0, 3.0, 8.0]])[..., None]
    made = {name: each[0, :, 0].tolist() for name, each in naive_forecasts(past, 3, 2).items()}
    assert made == {"seasonal_naive": [3, 8, 3], "naive": [8, 8, 8], "drift": [10, 12, 14], "mean": [4.25] * 3}
    assert list(naive_forecasts(past, 3, 5)) == list(naive_forecasts(past, 3)) == ["naive", "drift", "mean"]
    assert naive_forecasts(past[:, -1:], 2)["drift"].tolist() == [[[8.0], [8.0]]], "a line through one value is level"


@pytest.mark.parametrize(("transform", "gaps"), [(None, False), ("log1p", True)])
def test_skill_and_mase_match_detailed_scores(transform: str | None, gaps: bool) -> None:
    data = dataset(transform, gaps)
    windows, overall = scored_windows(data)
    viewer = Viewer(Preprocess.fit(data), SEASON, SeasonalScale.of(data))
    details = ScoreSums([MASE(), Skill()], viewer, "step")
    scores = overall.scores(evaluate(model(), windows, 8, also=[*overall.collectors, details]))
    row = details.frame(COLUMNS).iloc[0]
    assert scores["skill"] == pytest.approx(row["skill"], rel=1e-5)
    assert scores["mase"] == pytest.approx(row["mase"], rel=1e-5)
    each = details.frame(COLUMNS, ("channel",))["mase"][:C]
    assert row["mase"] == pytest.approx(each.mean()), "a channel with gaps counts like another"


def test_each_horizon_has_its_own_naive_errors() -> None:
    made = {steps: scored_windows(dataset(), steps) for steps in (P, 3)}
    also = {steps: overall.collectors for steps, (_, overall) in made.items()}
    scores = evaluate_horizons(NAIVE, [windows for windows, _ in made.values()], also=also)
    assert all(overall.scores(scores[steps])["skill"] == 0 for steps, (_, overall) in made.items())


def test_look_back_shorter_than_a_season_has_no_seasonal_naive_forecast() -> None:
    windows, overall = scored_windows(dataset(season=L + 1))
    scores = overall.scores(evaluate(model(), windows, also=overall.collectors))
    batch, y = every_window(windows)
    assert scores["season"] == 1 and list(scores["baselines"]) == ["naive", "drift", "mean"]
    record = compared_with_naive(scores)
    assert record["mse"] == pytest.approx((batch.past[:, -1:] - y).square().mean().item(), rel=1e-5)


def test_undefined_scores_are_none_in_records() -> None:
    scores = scored_windows(dataset())[1].scores({"mse": 0.1, "mae": 0.1, "windows": 0})
    assert compared_with_naive(scores) == {"season": SEASON, **dict.fromkeys(("mse", "mae", "skill", "mase"))}
    assert scores["verdict"] is None


def test_panel_is_compared_with_naive_per_series() -> None:
    ridge, naive = panel_forecaster("ridge"), panel_forecaster("seasonal_naive")
    own, expected = ridge.metrics["test"], naive.metrics["test"]
    beside = own["baselines"]["seasonal_naive"]
    assert own["season"] == 7
    assert beside == pytest.approx({"mse": expected["mse"], "mae": expected["mae"]}, rel=1e-6)
    assert own["skill"] == pytest.approx(1 - own["mse"] / beside["mse"])
    assert own["mase"] == pytest.approx(ridge.scores()["mase"].item())
    assert expected["skill"] == pytest.approx(0, abs=1e-6)
    scores = score_horizons(ridge, "test", (7, 5))
    assert scores == {steps: ridge.evaluate(pred_len=steps) for steps in (7, 5)}
    assert scores[7] == own and scores[5]["baselines"] != own["baselines"]
