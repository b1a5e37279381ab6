"""Resolution of user settings."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from femts.config.training import TrainingConfig
from femts.data.loading import load_dataset
from femts.data.synthetic import synthetic_frame
from femts.errors import UsageError
from femts.models.dlinear import DLinear
from femts.models.patchtst import PatchTST
from femts.training.resolve import Lengths, length_notes, resolve_run, resolve_training


def run(model: str = "dlinear", **changes: Any) -> Any:
    data = load_dataset("synthetic")
    asked: dict[str, Any] = {"pred_len": 24, "seq_len": None, "protocol": "paper"}
    settings = changes.pop("model_settings", {})
    return resolve_run(data, model, Lengths(**{**asked, **changes}), settings, TrainingConfig())


def test_user_settings_override_model_defaults() -> None:
    recipe = resolve_training("patchtst", {}, {})[1]
    assert recipe.lr == PatchTST.training_defaults["lr"] != TrainingConfig().lr
    assert resolve_training("patchtst", {}, {"training.lr": "0.5"})[1].lr == 0.5


def test_max_epochs_replaces_max_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DLinear, "training_defaults", {"max_steps": 700})
    assert resolve_training("dlinear", {}, {})[1].max_steps == 700
    for given, settings in (({"max_epochs": 3}, {}), ({}, {"training.max_epochs": "3"})):
        recipe = resolve_training("dlinear", given, settings)[1]
        assert (recipe.max_steps, recipe.max_epochs) == (None, 3)
    with pytest.raises(UsageError, match="give only one"):
        resolve_training("dlinear", {"max_epochs": 3}, {"training.max_steps": "5"})


def test_wide_tables_subsample_channels() -> None:
    for channels, asked, drawn in [(16, None, None), (17, None, 8), (17, 3, 3), (17, 17, None), (5, 9, None)]:
        frame = pd.DataFrame(
            np.random.default_rng(0).normal(size=(400, channels)), columns=[f"c{i}" for i in range(channels)]
        )
        frame.insert(0, "date", pd.date_range("2024-01-01", periods=400, freq="h"))
        data, training = load_dataset(frame), TrainingConfig(channels=asked)
        assert resolve_run(data, "fem_sm", Lengths(2, 10, "paper"), {}, training).training.channels == drawn
        if asked is None:
            assert resolve_run(data, "dlinear", Lengths(2, 10, "paper"), {}, training).training.channels is None
        else:
            with pytest.raises(
                UsageError, match=r"'dlinear' does not support channel subsampling; remove training\.channels"
            ):
                resolve_run(data, "dlinear", Lengths(2, 10, "paper"), {}, training)


def test_conflicting_settings_are_refused() -> None:
    with pytest.raises(UsageError, match=r"'seed' is given twice, as 7 and as training\.seed=8"):
        resolve_training("dlinear", {"seed": 7}, {"training.seed": "8"})
    assert resolve_training("dlinear", {"seed": 7}, {"training.seed": "7"})[1].seed == 7
    assert resolve_training("dlinear", {"seed": 42}, {"training.seed": "8"})[1].seed == 8


def test_look_back_defaults_to_the_protocol() -> None:
    for given, steps in [(None, 1024), ("auto", 1024), (100, 100), ("100", 100)]:
        assert run(seq_len=given).seq_len == steps
        assert run(protocol="lookback96").seq_len == 96


def test_ridge_longest_map() -> None:
    for pred_len, longest in [(96, 768), (24, 720), (7, 721), (1000, 1000)]:
        assert run("ridge", pred_len=pred_len).model_config.longest == longest
        room = 24 * ((8760 * 7 // 10 - 5900) // 2 // 24)
        assert run("ridge", pred_len=24, seq_len=5900).model_config.longest == room < 720


def test_season_defaults_to_the_data() -> None:
    assert run("seasonal_naive").model_config.season == 24
    assert run("seasonal_naive", model_settings={"season": "12"}).model_config.season == 12
    with pytest.raises(UsageError, match="season of 24 steps does not fit into a look-back of 10"):
        run("seasonal_naive", seq_len=10)
    young = pd.DataFrame({"date": pd.date_range("2020-01-01", periods=23, freq="MS"), "x": np.arange(23.0) ** 2})
    short: Any = resolve_run(load_dataset(young), "seasonal_naive", Lengths(), {}, TrainingConfig()).model_config
    assert (short.pred_len, short.seq_len, short.season) == (7, 12, 12)
    assert run("ridge").model_config.season == 24
    assert run("ridge", seq_len=10).model_config.season == 1


def test_default_lengths_are_noted() -> None:
    own, known = load_dataset(synthetic_frame(2000)), load_dataset("synthetic")
    for data, lengths in ((own, (48, 648, "seasons")), (known, (96, 1024, "paper"))):
        for left_open in (None, "auto"):
            config = resolve_run(data, "dlinear", Lengths(left_open, left_open), {}, TrainingConfig())
            assert (config.pred_len, config.seq_len, config.protocol) == lengths
    ahead, back = length_notes(own, "ridge", Lengths(None, "auto"))
    assert ahead == "horizon 48, two days; change it with pred_len"
    assert back.startswith("look-back 648 for 48 ahead, 27 seasons of 24 steps, which leaves 705 of 1400 training rows")
    assert length_notes(own, "ridge", Lengths(24, 100)) == []


def test_protocol_look_backs() -> None:
    for source, protocol in product(("synthetic", synthetic_frame(8760)), ("paper", "lookback96")):
        data = load_dataset(source)
        for pred_len, steps in ((96, 1024), (336, 2048), (720, 2048)):
            config = resolve_run(data, "dlinear", Lengths(pred_len, None, protocol), {}, TrainingConfig())
            assert config.seq_len == (steps if protocol == "paper" else 96)
