"""Rules that records have to keep."""

from __future__ import annotations

from femts.config.rules import fields, maybe, number, several, whole

STEPS = whole(1, 10**6)
SPAN = several(whole(), 2, 2)
ROW = fields(
    {
        "step": whole(1),
        "train_loss": number(),
        "val_mse": number(0),
        "val_mae": number(0),
        "lr": number(0),
        "seconds": number(0),
    },
    {"val_pinball": number(0)},
)
NAIVE = fields(
    {
        "season": whole(1),
        "mse": maybe(number(0)),
        "mae": maybe(number(0)),
        "mase": maybe(number(0)),
        "skill": maybe(number()),
    }
)
