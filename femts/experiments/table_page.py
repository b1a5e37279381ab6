"""`femts table --format html`: the table and, for each cell, its curve and forecasts, on one page
that needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from femts.analysis.report.render import render
from femts.experiments.grid import Cell
from femts.experiments.store import Store
from femts.experiments.table import Entry
from femts.experiments.table_text import dataset_tables

SIZE = WIDE, HIGH = 520, 130
MARGIN = 8


def as_html(entries: Sequence[Entry], cells: Sequence[Cell], store: Store) -> str:
    """The whole page: the tables of `entries`, then every cell of `cells` that is finished or failed."""
    return render(
        "table.html",
        tables=dataset_tables(entries),
        cells=cells,
        records=[store.readable(cell) for cell in cells],
        troubles=[_trouble(cell, store) for cell in cells],
        left=sum(not store.finished(cell) and store.failure(cell) is None for cell in cells),
        polylines=polylines,
        size=SIZE,
    )


def _trouble(cell: Cell, store: Store) -> str | None:
    damage, failure = store.damage(cell), store.failure(cell)
    return damage or (None if failure is None else f"failed: {failure}")


def polylines(lines: Mapping[str, tuple[int, Sequence[float | None]]]) -> dict[str, str]:
    """Points of each line, which begins at its own first place and leads over gaps, in a picture of `SIZE`."""
    values = [value for _, series in lines.values() for value in series if value is not None]
    low, span = min(values), (max(values) - min(values)) or 1.0
    last = max(first + len(series) for first, series in lines.values()) - 1 or 1
    across, down = (WIDE - 2 * MARGIN) / last, (HIGH - 2 * MARGIN) / span
    return {
        kind: " ".join(
            f"{MARGIN + across * place:.1f},{HIGH - MARGIN - down * (value - low):.1f}"
            for place, value in enumerate(series, start=first)
            if value is not None
        )
        for kind, (first, series) in lines.items()
    }
