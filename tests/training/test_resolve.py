"""What the user typed becomes a resolved run."""

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


def test_the_models_own_recipe_gives_way_to_the_users() -> None:
    recipe = resolve_training("patchtst", {}, {})[1]
    assert recipe.lr == PatchTST.training_defaults["lr"] != TrainingConfig().lr
    assert resolve_training("patchtst", {}, {"training.lr": "0.5"})[1].lr == 0.5


def test_a_budget_in_epochs_takes_the_place_of_one_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DLinear, "training_defaults", {"max_steps": 700})
    assert resolve_training("dlinear", {}, {})[1].max_steps == 700
    for given, settings in (({"max_epochs": 3}, {}), ({}, {"training.max_epochs": "3"})):
        recipe = resolve_training("dlinear", given, settings)[1]
        assert (recipe.max_steps, recipe.max_epochs) == (None, 3)
    with pytest.raises(UsageError, match="give only one"):
        resolve_training("dlinear", {"max_epochs": 3}, {"training.max_steps": "5"})


@pytest.mark.parametrize(
    ("channels", "asked", "drawn"), [(16, None, None), (17, None, 8), (17, 3, 3), (17, 17, None), (5, 9, None)]
)
def test_wide_tables_are_learned_some_channels_at_a_time(channels: int, asked: int | None, drawn: int | None) -> None:
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trainng.lr": "1"}, "'trainng.lr'; did you mean 'training.lr'"),
        ({"lr": "1"}, "'lr'; did you mean"),
        ({"training.learning_rate": "1"}, "'training.learning_rate'"),
        ({"model.kernel": "3"}, "'model.kernel'; did you mean 'kernel_size'"),
        ({"training.lr": "fast"}, "'training.lr' takes a number, not 'fast'"),
        ({"training.max_epochs": "2.5"}, "'training.max_epochs' takes a whole number"),
        ({"training.device": "tpu"}, "'training.device' cannot be 'tpu'"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_wrong_settings_are_named(settings: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        model, _ = resolve_training("dlinear", {}, settings)
        run(model_settings=model)


def test_one_thing_given_twice_must_agree() -> None:
    with pytest.raises(UsageError, match=r"'seed' is given twice, as 7 and as training\.seed=8"):
        resolve_training("dlinear", {"seed": 7}, {"training.seed": "8"})
    assert resolve_training("dlinear", {"seed": 7}, {"training.seed": "7"})[1].seed == 7
    assert resolve_training("dlinear", {"seed": 42}, {"training.seed": "8"})[1].seed == 8


@pytest.mark.parametrize(("given", "steps"), [(None, 1024), ("auto", 1024), (100, 100), ("100", 100)])
def test_look_back_is_given_or_the_protocols(given: object, steps: int) -> None:
    assert run(seq_len=given).seq_len == steps
    assert run(protocol="lookback96").seq_len == 96


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seq_len": "long"}, "'long'"),
        ({"seq_len": 0}, "look-back of 0"),
        ({"pred_len": 0}, "Horizon '0' is not a number of steps"),
        ({"protocol": "papr"}, "did you mean 'paper'"),
        ({"model": "dlinaer"}, "did you mean 'dlinear'"),
    ],
)
def test_lengths_protocols_and_models_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(**changes)


@pytest.mark.parametrize(("pred_len", "longest"), [(96, 768), (24, 720), (7, 721), (1000, 1000)])
def test_ridge_maps_at_most_720_steps_or_half_of_the_rows(pred_len: int, longest: int) -> None:
    assert run("ridge", pred_len=pred_len).model_config.longest == longest
    room = 24 * ((8760 * 7 // 10 - 5900) // 2 // 24)
    assert run("ridge", pred_len=24, seq_len=5900).model_config.longest == room < 720


def test_the_season_is_the_datas_unless_set() -> None:
    assert run("seasonal_naive").model_config.season == 24
    assert run("seasonal_naive", model_settings={"season": "12"}).model_config.season == 12
    with pytest.raises(UsageError, match="season of 24 steps does not fit into a look-back of 10"):
        run("seasonal_naive", seq_len=10)
    young = pd.DataFrame({"date": pd.date_range("2020-01-01", periods=23, freq="MS"), "x": np.arange(23.0) ** 2})
    short: Any = resolve_run(load_dataset(young), "seasonal_naive", Lengths(), {}, TrainingConfig()).model_config
    assert (short.pred_len, short.seq_len, short.season) == (7, 8, 1)
    assert run("ridge").model_config.season == 24
    assert run("ridge", seq_len=10).model_config.season == 1


def test_lengths_left_open_follow_from_the_data_and_are_noted() -> None:
    own, known = load_dataset(synthetic_frame(2000)), load_dataset("synthetic")
    for data, lengths in ((own, (48, 648, "seasons")), (known, (96, 1024, "paper"))):
        for left_open in (None, "auto"):
            config = resolve_run(data, "dlinear", Lengths(left_open, left_open), {}, TrainingConfig())
            assert (config.pred_len, config.seq_len, config.protocol) == lengths
    ahead, back = length_notes(own, "ridge", Lengths(None, "auto"))
    assert ahead == "horizon 48, two days; change it with --horizon"
    assert back.startswith("look-back 648 for 48 ahead, 27 seasons of 24 steps, which leaves 705 of 1400 training rows")
    assert length_notes(own, "ridge", Lengths(24, 100)) == []


def test_catalogue_and_protocols_have_their_look_backs() -> None:
    for source, protocol in product(("synthetic", synthetic_frame(8760)), ("paper", "lookback96")):
        data = load_dataset(source)
        for pred_len, steps in ((96, 1024), (336, 2048), (720, 2048)):
            config = resolve_run(data, "dlinear", Lengths(pred_len, None, protocol), {}, TrainingConfig())
            assert config.seq_len == (steps if protocol == "paper" else 96)
