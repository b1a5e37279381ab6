"""The table of models."""

from __future__ import annotations

import pandas as pd

from femts.models.registry import ModelCard, build_config, build_model, check_trained, model_card, model_names

REFERENCE_SHAPE = {"seq_len": 1024, "pred_len": 96, "n_channels": 7}
USES = (
    READY := "without training",
    TRAINED := "fitted to your table",
    CLASSICAL := "classical, fitted to each look-back",
    COMPARED := "for comparison: priors alone, and the mixer without one part",
)


def models(name: str | None = None) -> pd.DataFrame:
    """List the models, or the settings of one.

    Args:
        name: a model; None lists all of them.

    Returns:
        One row for each model: `name`, `weights` (for 7 channels, a look-back of 1024 and a horizon of 96), `what` it is,
        and its `use`, by which they are sorted: one of `USES`. With a name, one row for each `setting`, `model.*` and
        `training.*`, and its `default`.

    Raises:
        UsageError: The model is unknown, or it is a combination of others.
    """
    if name is None:
        cards = sorted(map(model_card, model_names()), key=lambda card: USES.index(_use(card)))
        rows = [(card.name, weights(card.name), card.summary, _use(card)) for card in cards]
        return pd.DataFrame(rows, columns=["name", "weights", "what", "use"])
    check_trained(name)
    card = model_card(name)
    settings = [(f"model.{key}", value) for key, value in card.default_settings().items()]
    settings += [(f"training.{key}", value) for key, value in card.model_class.training_defaults.items()]
    return pd.DataFrame(settings, columns=["setting", "default"], dtype=object)


def _use(card: ModelCard) -> str:
    kind = card.model_class
    if card.overrides.get("components", "CLTG") != "CLTG":
        return COMPARED
    if kind.needs is not None and kind.needs[0] == "statsforecast":
        return CLASSICAL
    return READY if kind.supports.untrained else TRAINED


def weights(name: str) -> int:
    """Number of weights of a model with the reference shape."""
    model = build_model(name, build_config(name, settings={}, **REFERENCE_SHAPE))
    return model.n_weights
