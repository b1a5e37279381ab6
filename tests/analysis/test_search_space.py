"""Parsing and bounds of search spaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from femts.analysis.search_space import combinations, contains, make_distribution, own_search
from femts.models.registry import build_config, model_names

distributions = pytest.importorskip("optuna", reason="tuning needs Optuna, of pip install '.[tune]'").distributions
Choices, Ints, Floats = (getattr(distributions, f"{kind}Distribution") for kind in ("Categorical", "Int", "Float"))
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "tune.md"


def test_search_values_are_parsed() -> None:
    for key, values, distribution in [
        ("seq_len", "168,336", Choices((168, 336))),
        ("seq_len", "24..96", Ints(24, 96)),
        ("model.d_model", "none,32", Choices((None, 32))),
        ("model.d_model", [32, "64", 32], Choices((32, 64))),
        ("model.n_layers", "1..30", Ints(1, 30, log=True)),
        ("model.rope", "false,true", Choices((False, True))),
        ("model.dropout", "0..0.3", Floats(0, 0.3)),
        ("training.lr", "1e-4..1e-2", Floats(1e-4, 1e-2, log=True)),
        ("training.lr", "0.1..0.5", Floats(0.1, 0.5)),
        ("training.schedule", "cosine, linear", Choices(("cosine", "linear"))),
    ]:
        made = make_distribution(key, values, "fem_sm")
        assert made == distribution and str(made) == str(distribution)  # also the types of the values


def test_combinations_of_choices() -> None:
    space = {"a": Choices((1, 2)), "b": Choices((None, "x"))}
    assert combinations(space) == [{"a": a, "b": b} for a in (1, 2) for b in (None, "x")]
    assert combinations({**space, "c": Floats(0, 1)}) is None
    assert contains({**space, "c": Floats(0, 1)}, {"a": 2, "b": None, "c": 1, "d": 7})
    assert not any(contains({"c": Ints(2, 3)}, {"c": value}) for value in (None, 1, 4))


def test_declared_settings_match_the_model_and_the_guide() -> None:
    for model in model_names():
        guide = GUIDE.read_text(encoding="utf-8")
        for key, values in own_search(model, trained=True).items():
            assert f"`{key}={values}`" in guide
            made: Any = make_distribution(key, values, model)
            part, _, name = key.partition(".")
            for value in (getattr(made, "choices", None) or (made.low, made.high)) if part == "model" else ():
                build_config(model, seq_len=96, pred_len=24, n_channels=7, settings={name: value})


def test_hybrid_searches_both_parts() -> None:
    assert {"model.ridge", "model.d_model"} <= set(own_search("fem_sm_ridge", trained=True))
    assert set(own_search("ridge", trained=False)) == {"model.ridge"}
