"""A loss of some of the channels: together, those of all single ones are the loss of all."""

from __future__ import annotations

import pytest
from model_cases import check_single_channels

from femts.models.registry import model_card, model_names

DRAWING = [name for name in model_names() if model_card(name).model_class.draws_channels]


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("name", DRAWING)
def test_losses_of_single_channels_add_up_to_that_of_all(name: str, gaps: bool) -> None:
    check_single_channels(name, gaps)


def test_the_mixers_and_patchtst_draw() -> None:
    assert {"fem_sm", "fem_gla_ridge", "lintrans", "patchtst"} <= set(DRAWING)
    assert not {"itransformer", "ridge", "naive"} & set(DRAWING)
