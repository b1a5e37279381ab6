"""`femts table`: a grid of cells, run and shown."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import DataRoot, TrainingDevice
from femts.cli.output import say_line, say_notes, say_unfinished, say_warnings, write_data
from femts.cli.recipe import parse_horizons
from femts.cli.table_options import EngineOptions, GridOptions
from femts.errors import UsageError, suggest

if TYPE_CHECKING:
    from femts.experiments.pairs import Pair
    from femts.experiments.table import Entry

FORMATS = ("text", "md", "csv", "html")


@command(100)
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
    pairs = grid.paired()
    if form == "html" and (pairs or grid.published):
        raise UsageError(
            f"Format 'html' has no page of {'pairs' if pairs else 'published means'}; take text, md or csv."
        )
    chosen = engine.engine_on(device, data_root)
    from femts.experiments import standing_text, table_text
    from femts.experiments.engine import refuse_damaged, run_cells
    from femts.experiments.grid import make_grid
    from femts.experiments.pairs import check_windows, make_pairs
    from femts.experiments.roll_out import check_roll_out
    from femts.experiments.standing import check_published
    from femts.experiments.store import Store
    from femts.experiments.table import make_entries

    cells = make_grid(grid.grid(), data_root)
    roll_out = () if grid.roll_out is None else parse_horizons(grid.roll_out)
    if grid.published:
        check_published(cells, roll_out)
    check_roll_out(cells, roll_out, data_root)
    check_windows(pairs)
    store = Store(engine.results)
    store.check_folder(to_show=show)
    if not show:
        refuse_damaged(cells, store)
        run_cells(cells, store, chosen, say_line)
    damaged = [sentence for cell in cells if (sentence := store.damage(cell))]
    entries = make_entries(cells, store, roll_out)
    say_warnings(table_text.worse_than_naive(entries))
    if pairs:
        _print_pairs(make_pairs(pairs, cells, store, roll_out), form)
        say_notes(f"{cell.path} failed: {why}" for cell in cells if (why := store.failure(cell)))
    elif form == "html":
        from femts.experiments.table_page import as_html

        write_data(as_html(entries, cells, store))
    else:
        _print(entries, form, standing_text if grid.published else table_text)
    say_notes(damaged)
    missing = sum(not store.finished(cell) for cell in cells)
    say_unfinished(missing, len(cells), show)
    if show:
        return 1 if damaged else 0
    return 0 if all(store.failure(cell) is None for cell in cells) else 1


def _print(rows: Sequence[Entry] | Sequence[Pair], form: str, texts: ModuleType) -> None:
    """Print `rows` in the `form` asked for, as the module `texts` writes them."""
    if form == "csv":
        write_data(texts.as_csv(rows))
    else:
        print(texts.as_text(rows, markdown=form == "md"))


def _print_pairs(pairs: Sequence[Pair], form: str) -> None:
    from femts.experiments import pairs_text
    from femts.experiments.pairs import SEEDS_ALONE

    _print(pairs, form, pairs_text)
    alone = sum(pair.why == SEEDS_ALONE for pair in pairs)
    if alone:
        say_notes(
            [
                f"{alone} of {len(pairs)} differences are by {SEEDS_ALONE}, for records hold no errors by "
                "window or series; old ones that are removed are made again with them"
            ]
        )
