"""`femts table`: a grid of cells, run and shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from femts.cli.option_groups import grouped
from femts.cli.options import DataRoot, TrainingDevice, count
from femts.cli.output import say_notes, write_data
from femts.cli.recipe import parse_horizons
from femts.cli.table_options import EngineOptions, GridOptions
from femts.errors import UsageError, suggest
from femts.experiments.table_text import as_csv, as_text
from femts.text import printable

if TYPE_CHECKING:
    from femts.experiments.grid import Cell
    from femts.experiments.store import Store

FORMATS = ("text", "md", "csv", "html")


@grouped
def table(
    grid: GridOptions,
    engine: EngineOptions,
    form: Annotated[str, typer.Option("--format", metavar="text|md|csv|html", help="What to print.")] = "text",
    show: Annotated[bool, typer.Option("--show", help="Only print what there is.")] = False,
    data_root: DataRoot = None,
    device: TrainingDevice = "auto",
) -> int:
    """Train what is missing of a table, and print it.

    Every finished cell is a record in the folder of results. Called again, or after an
    interruption, the command goes on with what is left; cells that crashed are tried again. Exit
    status 1 when some crashed, or with --show when records cannot be used; without it such records
    are refused before anything is run.
    """
    if form not in FORMATS:
        raise UsageError(f"Unknown format '{form}'{suggest(form, FORMATS)}")
    engine.check()
    from femts.experiments.grid import make_grid
    from femts.experiments.store import Store
    from femts.experiments.table import make_entries

    cells = make_grid(grid.grid(), data_root)
    store = Store(engine.results)
    damaged = [sentence for cell in cells if (sentence := store.damage(cell))]
    if damaged and not show:  # to run these cells again would put new numbers in the place of what may be mended
        raise UsageError(damaged[0])
    if not show:
        _run(engine, cells, store, data_root, device)
    entries = make_entries(cells, store, () if grid.roll_out is None else parse_horizons(grid.roll_out))
    if form == "html":
        from femts.experiments.table_page import as_html

        write_data(as_html(entries, cells, store))
    elif form == "csv":
        write_data(as_csv(entries))
    else:
        print(as_text(entries, markdown=form == "md"))
    say_notes(damaged)
    missing = sum(not store.finished(cell) for cell in cells)
    if missing:
        print(f"note: {missing} of {len(cells)} cells are not finished; the same command goes on with them", file=sys.stderr)
    if show:
        return 1 if damaged else 0
    return 0 if all(store.failure(cell) is None for cell in cells) else 1


def _run(options: EngineOptions, cells: Sequence[Cell], store: Store, data_root: Path | None, device: str) -> None:
    """Run what is not finished of `cells`, and say on stderr how each ends."""
    import time

    from femts.config.training import TrainingConfig, parse_span
    from femts.experiments.local import Resources, run_local
    from femts.experiments.ray_engine import run_ray
    from femts.training.device import resolve_place

    started = time.monotonic()
    deadline = None if options.max_time is None else started + parse_span(options.max_time)
    place = resolve_place(TrainingConfig(device=device)).device  # type: ignore[arg-type]
    cores = os.cpu_count() or 1
    jobs = (4 if place == "cuda" else cores) if options.jobs is None else count("--jobs", options.jobs)
    resources = Resources(jobs, max(1, cores // jobs), place, None if data_root is None else str(data_root.resolve()))
    left = [cell for cell in cells if not store.finished(cell)]
    for cell in {cell.dataset: cell for cell in left}.values():  # fetched once, and refused before anything runs
        say_notes(f"{cell.dataset}: {note}" for note in cell.load(data_root).notes)
    run = {"local": run_local, "ray": run_ray}[options.engine]
    run(left, store, resources, deadline, lambda line: print(printable(line), file=sys.stderr, flush=True))
