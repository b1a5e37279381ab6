"""Parameters without weight decay."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
from mixer_cases import make_layer

from femts.mixers import FreeEnergyMixer
from femts.mixers.weight_decay import undecayed
from femts.models.registry import build_config, build_model

OF_PRIOR = {
    "gla": {"prior.decay_bias"},
    "rnn_decay": {"prior.decay_bias"},
    "mamba": {"prior.A_log", "prior.skip", "prior.dt_proj.bias"},
}
CASES = [("softmax", "CLTG"), ("gla", ""), ("rnn_decay", "CLTG"), ("mamba", "CLTG")]


def save_and_load(layer: FreeEnergyMixer) -> FreeEnergyMixer:
    file = io.BytesIO()
    torch.save(layer, file)
    return torch.load(io.BytesIO(file.getvalue()), weights_only=False)


@pytest.mark.parametrize("prior,components", CASES, ids=str)
def test_undecayed_names_survive_copy_and_save(prior: str, components: str) -> None:
    want = OF_PRIOR.get(prior, set()) | ({"beta_raw"} if "L" in components else set())
    layer = make_layer(prior, components)
    for made in (layer, copy.deepcopy(layer), save_and_load(layer), layer.double()):
        assert undecayed(made) == want


def test_undecayed_names_in_the_host() -> None:
    host: Any = build_model(
        "fem_mamba", build_config("fem_mamba", seq_len=24, pred_len=8, n_channels=2, settings={"n_layers": 2})
    )
    names = {"beta_raw", *OF_PRIOR["mamba"]}
    assert undecayed(copy.deepcopy(host)) == {f"blocks.{i}.mixer.{name}" for i in range(2) for name in names}
    assert undecayed(host.blocks[0].mixer.in_proj) == set()
