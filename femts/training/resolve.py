"""From what the user typed to a resolved run: defaults filled in, mistakes named, nothing written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from femts.config.settings import apply_settings
from femts.config.training import TrainingConfig
from femts.config.values import whole_number
from femts.data.dataset import Dataset
from femts.data.panel import Panel
from femts.data.protocols import default_seq_len
from femts.errors import UsageError, suggest
from femts.forecaster.run_folder import RunConfig
from femts.models.registry import build_config, check_learns_quantiles, model_card
from femts.text import shown

_BUDGETS = ("max_steps", "max_epochs")
_MANY, _DRAWN = 16, 8  # channels, from which on a part of them is drawn for a step, and how many are

_DEFAULTS = {f.name: f.default for f in fields(TrainingConfig)}


def resolve_training(
    model: str, given: Mapping[str, Any], settings: Mapping[str, Any]
) -> tuple[dict[str, Any], TrainingConfig]:
    """Split `settings` into the model's and the training's, and lay them over the recipe of `model`.

    Args:
        model: registered name; its class may change the recipe.
        given: training fields that have an argument of their own; None was not given.
        settings: dotted names, `model.*` and `training.*`.

    Returns:
        Settings of the model by name, and the training recipe.

    Raises:
        UsageError: unknown model, prefix or name, a wrong value, one thing given twice with two values, or a loss that the
            model cannot be trained by.
    """
    recipe = model_card(model).model_class.training_defaults
    parts: dict[str, dict[str, Any]] = {"model": {}, "training": {}}
    for key, value in settings.items():
        prefix, dot, name = key.partition(".")
        if not dot or prefix not in parts:
            raise UsageError(f"Unknown setting '{shown(key)}'{_suggest_setting(key, model)}")
        parts[prefix][name] = value
    training = {**recipe, **parts["training"]}
    for name, value in given.items():
        if value is None or value == _DEFAULTS[name]:
            continue
        if name in parts["training"] and shown(value) != shown(training[name]):
            raise UsageError(
                f"'{name}' is given twice, as {shown(value)} and as training.{name}={shown(training[name])}; give one."
            )
        training[name] = value
    asked = {name for name in _BUDGETS if name in parts["training"] or given.get(name) is not None}
    if len(asked) == 1:  # said in one way, it takes the place of the recipe's other one
        training = {name: value for name, value in training.items() if name not in _BUDGETS or name in asked}
    resolved = apply_settings(TrainingConfig(), training, where="training")
    if resolved.learned_quantiles:
        check_learns_quantiles(model)
    return parts["model"], resolved


def _suggest_setting(key: str, model: str) -> str:
    choices = [f"training.{field}" for field in _DEFAULTS] + [
        f"model.{field}" for field in model_card(model).default_settings()
    ]
    same = [choice for choice in choices if choice.partition(".")[2] == key]  # only the prefix is missing
    return suggest(same[0], same) if same else suggest(key, choices)


def resolve_run(
    data: Dataset | Panel,
    model: str,
    pred_len: int,
    seq_len: int | str | None,
    protocol: str,
    model_settings: Mapping[str, Any],
    training: TrainingConfig,
) -> RunConfig:
    """Everything that decides the run, with look-back and season filled in; UsageError when something does not fit.

    Args:
        data: the loaded data.
        model, pred_len, seq_len, protocol: as in `train`.
        model_settings, training: as `resolve_training` returns them.
    """
    steps = whole_number(pred_len, "Horizon")
    if steps is None or steps < 1:
        raise UsageError(f"A forecast of {shown(pred_len)} steps is none; give --pred-len 1 or more.")
    pred_len = steps
    preset = default_seq_len(protocol, pred_len, data.train_rows)
    check_past(model, data.schema.roles.past)
    config = build_config(
        model,
        seq_len=_steps(seq_len, preset),
        pred_len=pred_len,
        n_channels=len(data.columns),
        settings=model_settings,
    )
    config = config.for_data(data.season, data.common_rows)
    training = replace(training, channels=_drawn(model, training.channels, len(data.columns)))
    return RunConfig(data.name, data.source, model, config, protocol, training, data.schema)


def _drawn(model: str, asked: int | None, channels: int) -> int | None:
    """Channels to draw for each step; None for all of them."""
    if asked is not None and not model_card(model).model_class.draws_channels:
        raise UsageError(f"Model '{model}' learns from all channels at every step; leave training.channels out.")
    if asked is None:
        asked = _DRAWN if channels > _MANY and model_card(model).model_class.draws_channels else None
    return None if asked is None or asked >= channels else asked


def check_past(model: str, past: Sequence[str]) -> None:
    """UsageError where columns `past` are to be read by a model that reads none but the one it forecasts."""
    if past and model_card(model).model_class.channel_independent:
        raise UsageError(
            f"Model '{model}' forecasts each column from itself alone, so --past {','.join(past)} would change nothing; take "
            "one that reads all columns, such as fem_sm, or leave it out."
        )


def _steps(seq_len: int | str | None, preset: int) -> int:
    if seq_len is None or seq_len == "auto":
        return preset
    steps = whole_number(seq_len, "Look-back")
    if steps is None:
        raise UsageError(f"Look-back '{shown(seq_len)}' is no number of steps; give a whole number or auto.")
    if steps < 1:
        raise UsageError(f"A look-back of {steps} steps is none; give --seq-len 1 or more.")
    return steps
