"""`femts models`: list and description of models."""

from __future__ import annotations

from typing import Annotated

import typer

from femts.cli.command import command
from femts.cli.streams import say
from femts.text import table


@command(120)
def models(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Model to describe, with all its settings.")
    ] = None,
) -> None:
    """List the models, or describe one.

    Parameter counts are for 7 channels, look-back 1024 and horizon 96.
    """
    from femts.models.listing import models as listed
    from femts.models.listing import weights
    from femts.models.registry import model_card

    listing = listed(name)
    if name is None:
        for use, some in listing.groupby("use", sort=False):
            say(f"{use}:")
            say(table(["name", "weights", "what"], some[["name", "weights", "what"]].astype(str).to_numpy().tolist()))
        return
    card = model_card(name)
    say(f"{card.name}: {card.summary}")
    say(f"weights: {weights(card.name)} (7 channels, look-back 1024, horizon 96)")
    for line in card.model_class.about():
        say(line)
    rows = [["''" if cell == "" else str(cell) for cell in row] for row in listing.itertuples(index=False)]
    if rows:
        say(table(list(listing.columns), rows))
