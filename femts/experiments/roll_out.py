"""Refusal of horizons to which the models of a table cannot be rolled out side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from femts.data.protocols import HORIZONS
from femts.errors import UsageError
from femts.experiments.grid import Cell


def check_roll_out(cells: Sequence[Cell], roll_out: Sequence[int], data_root: str | Path | None = None) -> None:
    """Check that records of `cells` can have scores at `roll_out` that may stand in one row.

    Raises:
        UsageError: a horizon at which no record is scored, models that are validated on other windows there, or a
            data set whose parts depend on the horizon.
    """
    if not roll_out:
        return
    own = sorted({cell.pred_len for cell in cells})
    idle = [p for p in roll_out if p not in own and (p not in HORIZONS or p < own[0])]
    if idle:
        raise UsageError(
            f"No model of {_listed(own)} steps is rolled out to {_listed(idle)}; "
            f"give '--roll-out' horizons of {_listed(HORIZONS)} above {own[0]}."
        )
    first = HORIZONS[0]
    if first in roll_out and first in own and own[0] < first:
        raise UsageError(
            f"Models of {own[0]} and of {first} steps are validated on other windows at {first} steps, "
            f"so validation cannot choose between them; leave {first} out of '--roll-out', or {own[0]} out of "
            "'--pred-lens'."
        )
    for cell in {cell.dataset: cell for cell in cells}.values():
        if cell.own is not None and len(own) > 1:
            _check_parts(cell, own, data_root)


def _check_parts(cell: Cell, own: Sequence[int], data_root: str | Path | None) -> None:
    data = cell.load(data_root)
    if data.schema.panel:  # its models are not rolled out
        return
    if any(data.for_horizon(steps).split != data.for_horizon(own[0]).split for steps in own):
        raise UsageError(
            f"The parts of {cell.dataset} depend on the horizon, for it is short, so models of {_listed(own)} steps do "
            "not forecast the same rows; give the parts by '--split' or '--val-rows' and '--test-rows', or leave "
            "'--roll-out' out."
        )


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
