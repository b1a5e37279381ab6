"""The mean of models."""

from __future__ import annotations

import pytest
import torch

from femts.cli import main
from femts.data.batch import Batch
from femts.errors import UsageError
from femts.models.listing import models
from femts.models.mean import MeanConfig, MeanModel, Member
from femts.models.registry import build_config, model_card, model_names
from femts.training.train import train

L, P, C = 24, 4, 3


def make_member(name: str, seq_len: int, **settings: object) -> Member:
    shape = {"seq_len": seq_len, "pred_len": P, "n_channels": C}
    return Member(name, build_config(name, **shape, settings=settings))


def make_mean(*members: Member) -> MeanModel:
    torch.manual_seed(0)
    return MeanModel(MeanConfig(L, P, C, members)).eval()


RIDGE, LINEAR = make_member("ridge", 12, season=6, longest=8), make_member("dlinear", L)
TINY = {"d_model": 16, "n_layers": 1, "n_heads": 2}


def look_backs() -> Batch:
    return Batch(torch.randn(5, L, C, generator=torch.Generator().manual_seed(1)))


def average(model: MeanModel, x: Batch, steps: int) -> torch.Tensor:
    made = [each.forecast(x.recent(each.config.seq_len, 0), steps) for each in model.models]
    return torch.stack(made).double().mean(0)


@pytest.mark.parametrize("steps", [1, P, 3 * P + 1])
def test_members_use_their_own_look_back(steps: int) -> None:
    model, x = make_mean(RIDGE, LINEAR, make_member("naive", 2)), look_backs()
    for linear in (model.models[0],):
        linear.prepare(torch.randn(80, C, generator=torch.Generator().manual_seed(2)))
    with torch.no_grad():
        expected = average(model, x, steps)
        torch.testing.assert_close(model.forecasts(x, steps).points.double(), expected)
        torch.testing.assert_close(model.forecast(x, steps).double(), expected)
        torch.testing.assert_close(model(x).double(), average(model, x, P))
        changed = Batch(x.past.clone())
        changed.past[:, :-12] += 1  # rows that only the longest look-back has
        moved = model.forecast(changed, steps) - model.forecast(x, steps)
        own = model.models[1].forecast(changed, steps) - model.models[1].forecast(x, steps)
        torch.testing.assert_close(moved, own / 3)
    assert model.forecasts(x, steps).quantiles is None and model.levels == ()
    assert model.quantiles == ()


def test_capabilities_follow_the_members() -> None:
    plain, mixed = make_mean(RIDGE, LINEAR), make_mean(RIDGE, make_member("fem_sm", 12, **TINY))
    assert plain.supports.channels == 1 and mixed.supports.channels is None
    assert plain.most_windows is None and not plain.supports.raw
    assert MeanModel.fewest_rows(plain.config) == L and MeanModel.fewest_rows(mixed.config) == 12
    assert not MeanModel.supports_of(plain.config).raw


def test_mean_cannot_be_trained(capsys: pytest.CaptureFixture[str]) -> None:
    assert "mean" not in model_names() and "mean" not in models()["name"].tolist()
    assert model_card("mean").model_class is MeanModel
    for make in (
        lambda: train("synthetic", "mean"),
        lambda: models("mean"),
        lambda: build_config("mean", seq_len=L, pred_len=P, n_channels=C, settings={}),
    ):
        with pytest.raises(
            UsageError, match=r"'mean' is an ensemble of trained models, built by femts\.mean_of or model='auto'"
        ):
            make()
    for words in ("train --dataset synthetic --model mean", "tune --dataset synthetic --model mean", "models mean"):
        assert main(words.split()) == 2
        assert "'mean' is an ensemble of trained models" in capsys.readouterr().err


@pytest.mark.parametrize("shape", [{"seq_len": L + 1}, {"pred_len": P + 1}, {"n_channels": C + 1}])
def test_mismatched_members_are_refused(shape: dict[str, int]) -> None:
    full = {"seq_len": L, "pred_len": P, "n_channels": C} | shape
    other = Member("dlinear", build_config("dlinear", **full, settings={}))
    with pytest.raises(UsageError, match=r"Member 'dlinear' forecasts .* combine models of the same shape"):
        MeanConfig(L, P, C, (RIDGE, other))
    with pytest.raises(UsageError, match="A mean cannot be a member of another mean"):
        MeanConfig(L, P, C, (RIDGE, Member("mean", MeanConfig(L, P, C, (RIDGE, LINEAR)))))
