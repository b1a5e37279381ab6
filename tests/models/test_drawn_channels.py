"""Channel subsampling."""

from __future__ import annotations

import pytest
import torch
from model_cases import check_single_channels, of_each_class

from femts.data.batch import Batch
from femts.models.registry import build_config, build_model, model_card, model_names

DRAWING = [name for name in model_names() if model_card(name).model_class.supports.subsampling]


@pytest.mark.parametrize("name", of_each_class(DRAWING))
def test_single_channel_losses_average_to_the_whole(name: str) -> None:
    check_single_channels(name, gaps=False)
    check_single_channels(name, gaps=True)


@pytest.mark.parametrize("name", ["fem_sm", "fem_gla_ridge"])
def test_chunked_channels_are_equal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = build_model(name, build_config(name, seq_len=24, pred_len=6, n_channels=5, settings={"d_model": 16})).eval()
    x = Batch(torch.randn(3, 24, 5))
    at_once = model.forecast(x, 12)
    monkeypatch.setattr("femts.models.fem.AT_ONCE", 2)
    torch.testing.assert_close(model.forecast(x, 12), at_once)
