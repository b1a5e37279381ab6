"""Costs of a layer: which cases there are, what they compute, and what is left out."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from femts.bench import mixer
from femts.bench.mixer import MixerBench, MixerRow, bench_mixer, layer_config
from femts.errors import UsageError
from femts.mixers.priors.registry import prior_names
from femts.models.fem import SegmentConfig
from femts.models.registry import build_config
from femts.training.device import Place

CASES = ("alone", "L", "LT", "LTG", "CLTG", "naive")
CPU = Place("cpu", "32", 1)
SMALL: dict[str, Any] = {
    "priors": ("gla",), "lengths": (4,), "cases": CASES, "tokens": 8, "d_model": 16, "n_heads": 2, "repeats": 2,
}  # fmt: skip


def rows_of(place: Place = CPU, **changes: Any) -> list[MixerRow]:
    return list(bench_mixer(MixerBench(**{**SMALL, **changes}), place))


def test_every_prior_length_and_case_has_a_row_with_positive_numbers() -> None:
    rows = rows_of(priors=prior_names(), lengths=(3, 6), repeats=1)
    assert [(r.prior, r.length, r.case) for r in rows] == [
        (p, t, c) for p in prior_names() for t in (3, 6) for c in CASES
    ]
    for row in rows:
        assert row.batch == 8 // row.length
        assert (
            row.forward is not None
            and row.step is not None
            and row.peak_bytes is not None
            and row.peak_ratio is not None
        )
        assert min(row.forward.seconds, row.step.seconds, row.forward.ratio, row.step.ratio, row.peak_ratio) > 0
        assert row.peak_bytes > 4 * 8  # a few numbers at least
        if row.case == "alone":
            assert (row.forward.ratio, row.step.ratio, row.peak_ratio) == (1.0, 1.0, 1.0)


def test_the_prior_alone_is_there_to_compare_with() -> None:
    assert [row.case for row in rows_of(cases=("CL",))] == ["alone", "CL"]


def test_a_batch_has_a_sequence_at_least() -> None:
    assert {row.batch for row in rows_of(lengths=(9,), cases=("alone",))} == {1}


def test_layers_are_those_of_the_forecasting_host() -> None:
    for prior, name in {
        "softmax": "sm",
        "gla": "gla",
        "rnn_softmax": "aft",
        "mamba": "mamba",
        "linear": "linear",
    }.items():
        for case, model in {"alone": name, "CLTG": f"fem_{name}", "naive": f"fem_{name}"}.items():
            host = build_config(model, seq_len=1024, pred_len=96, n_channels=7, settings={})
            assert isinstance(host, SegmentConfig)
            assert layer_config(prior, case, 64, 8) == host.mixer_config()


def test_only_the_naive_case_takes_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(layer: Any, x: torch.Tensor) -> torch.Tensor:
        seen.append((layer.training, torch.is_grad_enabled(), layer.conditioner is not None))
        return x * layer.in_proj.weight.sum() * sum(p.sum() for p in layer.parameters())

    monkeypatch.setattr(mixer, "plain_forward", watched)
    rows_of(repeats=3)
    # Forward: warm-up and three turns without gradients; step: the same with them, and once for its memory.
    assert seen == [(False, False, True)] * 4 + [(True, True, True)] * 5


def test_a_naive_form_that_would_not_fit_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    width = 8  # E of a layer of 16 with all components: 4 * 16**2 weights in 4 maps of 16 E and 2 of q and k
    monkeypatch.setattr(mixer, "LARGEST_NAIVE", 4 * 2 * 4**2 * width)
    fits, too_long = (rows_of(priors=("softmax",), lengths=(t,), tokens=2 * t, repeats=1)[-1] for t in (4, 5))
    assert fits.step is not None
    assert too_long == MixerRow("softmax", 5, 2, "naive")
    *fast, naive = rows_of(priors=("mamba",), lengths=(4,), tokens=4, repeats=1)  # it keeps 8 states for each of them
    assert naive.step is None
    assert all(row.step is not None for row in fast)


def test_bfloat16_is_computed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = set()
    linear = torch.nn.functional.linear

    def watched(x: torch.Tensor, *args: Any) -> torch.Tensor:
        y = linear(x, *args)
        kinds.add(y.dtype)
        return y

    monkeypatch.setattr(torch.nn.functional, "linear", watched)
    rows = rows_of(Place("cpu", "bf16", 1), repeats=1)
    assert kinds == {torch.bfloat16}
    assert all(row.step is not None for row in rows)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"priors": ("gal",)}, "Unknown prior 'gal'; did you mean 'gla'"),
        ({"cases": ("nave",)}, "Unknown component set 'nave'; did you mean 'naive'"),
        ({"cases": ("",)}, "Unknown component set ''; choose from alone"),
        ({"cases": ("CT",)}, "'CT' has T without L"),
        ({"d_model": 15}, r"'model\.d_model' \(15\) takes a multiple of 'model\.n_heads' \(2\)"),
    ],
)
def test_mistakes_are_named_before_anything_is_measured(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        MixerBench(**{**SMALL, **changes})
