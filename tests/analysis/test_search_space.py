"""Values that a study draws from: read from text, held to their bounds, and said in the guide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from femts.analysis.tune.space import Dimension, combinations, make_dimension, own_search
from femts.models.registry import build_config, model_names

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("key", "values", "dimension"),
    [
        ("seq_len", "168,336", Dimension("seq_len", (168, 336))),
        ("seq_len", "24..96", Dimension("seq_len", low=24, high=96)),
        ("model.d_model", "none,32", Dimension("model.d_model", (None, 32))),
        ("model.d_model", [32, "64", 32], Dimension("model.d_model", (32, 64))),
        ("model.n_layers", "1..3", Dimension("model.n_layers", low=1, high=3)),
        ("model.rope", "false,true", Dimension("model.rope", (False, True))),
        ("training.lr", "1e-4..1e-2", Dimension("training.lr", low=1e-4, high=1e-2)),
        ("training.schedule", "cosine, linear", Dimension("training.schedule", ("cosine", "linear"))),
    ],
)
def test_text_and_lists_become_typed_values(key: str, values: Any, dimension: Dimension) -> None:
    made = make_dimension(key, values, "fem_sm")
    assert made == dimension
    assert [type(each) for each in made.choices] == [type(each) for each in dimension.choices]
    assert (type(made.low), type(made.high)) == (type(dimension.low), type(dimension.high))


def test_a_range_is_drawn_by_its_logarithm_where_it_is_wide() -> None:
    assert Dimension("a", low=1e-3, high=1e-2).log and not Dimension("a", low=0.1, high=0.5).log
    assert not Dimension("a", low=0.0, high=1.0).log


def test_choices_have_combinations_and_a_range_has_none() -> None:
    space = {"a": Dimension("a", (1, 2)), "b": Dimension("b", (None, "x"))}
    assert combinations(space) == [{"a": a, "b": b} for a in (1, 2) for b in (None, "x")]
    assert combinations({**space, "c": Dimension("c", low=0, high=1)}) is None


@pytest.mark.parametrize("model", model_names())
def test_what_a_model_declares_is_what_it_takes_and_what_the_guide_says(model: str) -> None:
    guide = (ROOT / "docs" / "how-to" / "tune.md").read_text(encoding="utf-8")
    for key, values in own_search(model, trained=True).items():
        assert f"`{key}={values}`" in guide
        made = make_dimension(key, values, model)
        for value in made.choices or (made.low, made.high):
            if key.startswith("model."):
                name = key.partition(".")[2]
                build_config(model, seq_len=96, pred_len=24, n_channels=7, settings={name: value})


def test_a_mixer_with_a_partner_searches_both() -> None:
    assert {"model.ridge", "model.d_model"} <= set(own_search("fem_sm_ridge", trained=True))
    assert set(own_search("ridge", trained=False)) == {"model.ridge"}
