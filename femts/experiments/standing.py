"""Our means beside the published ones: the lowest of all windows on each data set, and which of ours are below it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from femts.data.protocols import HORIZONS
from femts.errors import UsageError
from femts.experiments.grid import Cell
from femts.experiments.literature import ALL, DATASETS, PUBLICATIONS, Publication
from femts.experiments.scores import scores_some
from femts.experiments.table import Entry
from femts.text import shown

LEAST_DIGITS = 3


@dataclass(frozen=True)
class Standing:
    """A data set.

    Attributes:
        lowest: lowest published mean of all windows; None where there is none.
        leaders: publications that have it.
        below, level: means of ours that are lower than it or equal to it in its digits, the lowest first.
        elsewhere: publications, of other windows or of unknown ones, that are lower than `lowest` and than ours.
    """

    dataset: str
    lowest: float | None
    leaders: tuple[Publication, ...]
    below: tuple[Entry, ...]
    level: tuple[Entry, ...]
    elsewhere: tuple[Publication, ...]


def check_published(cells: Sequence[Cell], roll_out: Sequence[int] = ()) -> None:
    """UsageError where `cells`, with horizons `roll_out` beside their own, have no means to lay beside published ones.

    Those are of the catalogue's data as they are, over the horizons 96, 192, 336 and 720.
    """
    for cell in cells:
        if cell.own is not None or cell.dataset not in DATASETS:
            raise UsageError(
                f"Nothing that femts knows is published on '{shown(cell.dataset)}' as it is read here; "
                f"leave '--published' out, or take {', '.join(DATASETS)}."
            )
        if scores_some(cell.model):
            raise UsageError(
                f"Model '{cell.model}' scores some windows alone, and what is published is of all; leave it out."
            )
    asked = sorted({cell.pred_len for cell in cells} | set(roll_out))
    if tuple(asked) != HORIZONS:
        raise UsageError(
            f"Published means are over {', '.join(map(str, HORIZONS))} steps, not over {', '.join(map(str, asked))}; "
            "give '--pred-lens all', or '--pred-lens 96 --roll-out all'."
        )


def make_standings(entries: Sequence[Entry]) -> list[Standing]:
    """Make a `Standing` for each data set of `entries`, of which those of means count."""
    return [_standing(name, entries) for name in dict.fromkeys(entry.dataset for entry in entries)]


def at_digits_of(mse: float, published: float) -> float:
    """`mse` in as many digits as a `published` mean has, of three or more."""
    return round(mse, max(LEAST_DIGITS, len(str(published).partition(".")[2])))


def _standing(dataset: str, entries: Sequence[Entry]) -> Standing:
    ours = sorted((e.mse, e.model, e) for e in entries if e.dataset == dataset and not e.pred_len and e.mse is not None)
    rows = [row for row in PUBLICATIONS if dataset in row.means]
    lowest = min((row.means[dataset] for row in rows if row.scored == ALL), default=None)
    least = min([mean for mean in (lowest, *(mse for mse, _, _ in ours)) if mean is not None], default=0.0)
    return Standing(
        dataset,
        lowest,
        leaders=tuple(row for row in rows if row.scored == ALL and row.means[dataset] == lowest),
        below=tuple(e for mse, _, e in ours if lowest is not None and at_digits_of(mse, lowest) < lowest),
        level=tuple(e for mse, _, e in ours if lowest is not None and at_digits_of(mse, lowest) == lowest),
        elsewhere=tuple(row for row in rows if row.scored != ALL and row.means[dataset] < least),
    )
