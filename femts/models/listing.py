"""The table of models."""

from __future__ import annotations

import pandas as pd

from femts.models.registry import build_config, build_model, check_trained, model_card, model_names

REFERENCE_SHAPE = {"seq_len": 1024, "pred_len": 96, "n_channels": 7}


def models(name: str | None = None) -> pd.DataFrame:
    """List the models, or the settings of one.

    Args:
        name: a model; None lists all of them.

    Returns:
        One row for each model: `name`, `weights` (for 7 channels, a look-back of 1024 and a horizon of 96) and `what`
        it is. With a name, one row for each `setting`, `model.*` and `training.*`, and its `default`.

    Raises:
        UsageError: The model is unknown, or it is a combination of others.
    """
    if name is None:
        cards = [model_card(each) for each in model_names()]
        return pd.DataFrame([(c.name, weights(c.name), c.summary) for c in cards], columns=["name", "weights", "what"])
    check_trained(name)
    card = model_card(name)
    rows = [(f"model.{key}", value) for key, value in card.default_settings().items()]
    rows += [(f"training.{key}", value) for key, value in card.model_class.training_defaults.items()]
    return pd.DataFrame(rows, columns=["setting", "default"], dtype=object)


def weights(name: str) -> int:
    """Number of weights of a model with the reference shape."""
    model = build_model(name, build_config(name, settings={}, **REFERENCE_SHAPE))
    return model.n_weights
