"""`femts models`: the models that there are."""

from __future__ import annotations

from typing import Annotated

import typer

from femts.cli.command import command
from femts.text import table

REFERENCE_SHAPE = {"seq_len": 1024, "pred_len": 96, "n_channels": 7}


@command(120)
def models(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="One model, with all its settings.")] = None,
) -> None:
    """List the models, or all about one.

    Weights are counted for 7 channels, look-back 1024 and horizon 96.
    """
    from femts.models.registry import model_card, model_names

    if name is None:
        cards = [model_card(each) for each in model_names()]
        print(table(("name", "weights", "what"), [(c.name, _weights(c.name), c.summary) for c in cards]))
        return
    card = model_card(name)
    print(f"{card.name}: {card.summary}")
    print(f"weights: {_weights(card.name)} (7 channels, look-back 1024, horizon 96)")
    rows = [(f"model.{key}", "''" if value == "" else str(value)) for key, value in card.default_settings().items()]
    rows += [(f"training.{key}", str(value)) for key, value in card.model_class.training_defaults.items()]
    if rows:
        print(table(("setting", "default"), rows))


def _weights(name: str) -> int:
    from femts.models.registry import build_config, build_model

    model = build_model(name, build_config(name, settings={}, **REFERENCE_SHAPE))
    return sum(p.numel() for p in model.parameters())
