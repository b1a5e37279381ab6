"""The seasonal naive forecast beside a model: against that model's own scores and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from femts.data.power import PowerTransform
from femts.data.preprocess import Preprocess
from femts.data.resident import ScaledSeries
from femts.data.scaler import Scaler
from femts.data.windows import Windows
from femts.evaluation.beside import NaiveSums
from femts.evaluation.evaluator import evaluate, evaluate_horizons
from femts.evaluation.scores import DetailSums, scores_frame
from femts.models.dlinear import DLinear, DLinearConfig
from femts.models.naive import SeasonalNaive, SeasonalNaiveConfig

L, P, C, SEASON, TRAIN = 12, 7, 3, 5, 60
COLUMNS = ("a", "b", "c")
RAW = np.random.default_rng(0).gamma(4.0, [1.0, 30.0, 0.2], (150, C))


def preprocess(power: bool) -> Preprocess:
    if not power:
        return Preprocess(COLUMNS, Scaler.fit(RAW[:TRAIN]))
    log = PowerTransform.fit("log1p", RAW[:TRAIN], COLUMNS, "The data")
    assert log is not None
    return Preprocess(COLUMNS, Scaler.fit(log.apply(RAW[:TRAIN])), None, log)


def windows(of: Preprocess, steps: int = P, gaps: bool = False) -> Windows:
    values = torch.from_numpy(of.transform(RAW)).float()
    observed = torch.rand(values.shape, generator=torch.Generator().manual_seed(1)) > 0.2 if gaps else None
    return Windows(ScaledSeries(values, observed), L, steps, TRAIN, 150)


def model() -> DLinear:
    torch.manual_seed(0)
    return DLinear(DLinearConfig(L, P, C))


@pytest.mark.parametrize("gaps", [False, True])
def test_the_errors_are_those_of_the_model_of_that_name(gaps: bool) -> None:
    plain = preprocess(False)
    sums = NaiveSums(plain, RAW[:TRAIN], SEASON, L)
    own = evaluate(model(), windows(plain, gaps=gaps), 8, also=[sums])
    naive = evaluate(SeasonalNaive(SeasonalNaiveConfig(L, P, C, SEASON)), windows(plain, gaps=gaps), 8)
    beside = sums.beside(own["mse"])
    assert (beside["season"], beside["mse"], beside["mae"]) == (SEASON, naive["mse"], naive["mae"])
    assert beside["skill"] == pytest.approx(1 - own["mse"] / naive["mse"])
    assert own == evaluate(model(), windows(plain, gaps=gaps), 8), "what is summed beside changes no score"


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("power", [False, True])
def test_skill_and_mase_are_those_of_the_scores_in_detail(power: bool, gaps: bool) -> None:
    of = preprocess(power)
    sums, details = NaiveSums(of, RAW[:TRAIN], SEASON, L), DetailSums(P, C, of, SEASON)
    own = evaluate(model(), windows(of, gaps=gaps), 8, also=[sums, details])
    row, beside = scores_frame(details, COLUMNS, RAW[:TRAIN]).iloc[0], sums.beside(own["mse"])
    assert beside["skill"] == pytest.approx(row["skill"], rel=1e-5)
    assert beside["mase"] == pytest.approx(row["mase"], rel=1e-5)
    each = scores_frame(details, COLUMNS, RAW[:TRAIN], ("channel",))["mase"][:C]
    assert row["mase"] == pytest.approx(each.mean()), "a channel with gaps counts like another"


def test_several_horizons_have_their_own() -> None:
    of, naive = preprocess(False), SeasonalNaive(SeasonalNaiveConfig(L, P, C, SEASON))
    sums = {steps: NaiveSums(of, RAW[:TRAIN], SEASON, L) for steps in (P, 3)}
    scores = evaluate_horizons(
        naive, [windows(of, steps) for steps in sums], also={steps: [one] for steps, one in sums.items()}
    )
    for steps, one in sums.items():
        assert one.beside(scores[steps]["mse"])["skill"] == 0


def test_a_look_back_shorter_than_a_season_repeats_its_last_value() -> None:
    of = preprocess(False)
    sums = NaiveSums(of, RAW[:TRAIN], L + 1, L)
    evaluate(model(), windows(of), also=[sums])
    x, y = windows(of).gather(torch.arange(len(windows(of))))
    beside = sums.beside(1.0)
    assert beside["season"] == 1
    assert beside["mse"] == pytest.approx((x[:, -1:] - y).square().mean().item(), rel=1e-5)


def test_what_is_divided_by_nothing_is_none() -> None:
    assert NaiveSums(preprocess(False), RAW[:TRAIN], SEASON, L).beside(0.1) == {
        "season": SEASON, **dict.fromkeys(("mse", "mae", "skill", "mase"))
    }  # fmt: skip
