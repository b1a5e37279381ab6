"""A loss of some of the channels: together, those of all single ones are the loss of all."""

import pytest
import torch

from femts.models.registry import build_config, build_model, model_card, model_names

C = 4
DRAWING = [name for name in model_names() if model_card(name).model_class.draws_channels]


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("name", DRAWING)
def test_losses_of_single_channels_add_up_to_that_of_all(name: str, gaps: bool) -> None:
    torch.manual_seed(0)
    model = build_model(name, build_config(name, seq_len=40, pred_len=8, n_channels=C, settings={})).double().eval()
    x, y = torch.randn(3, 40, C).double(), torch.randn(3, 8, C).double()
    seen = None
    if gaps:  # the same ones in each channel, so that each weighs as much
        seen = (torch.rand(3, 48, 1) > 0.3).expand(-1, -1, C)
    whole = model.loss(x, y, seen)
    single = torch.stack([model.loss(x, y, seen, torch.tensor([c])) for c in range(C)])
    torch.testing.assert_close(single.mean(), whole, rtol=1e-12, atol=0)
    pair = model.loss(x, y, seen, torch.tensor([1, 3]))
    torch.testing.assert_close(pair, single[[1, 3]].mean(), rtol=1e-12, atol=0)
    parameters = [p for p in model.parameters() if p.requires_grad]
    grads = [torch.autograd.grad(loss, parameters, allow_unused=True) for loss in (whole, single.mean())]
    for one, other in zip(*grads, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(other, one, rtol=1e-9, atol=1e-12)


def test_the_mixers_and_patchtst_draw() -> None:
    assert {"fem_sm", "fem_gla_ridge", "lintrans", "patchtst"} <= set(DRAWING)
    assert not {"itransformer", "ridge", "naive"} & set(DRAWING)
