"""`femts table`: run and print a grid of experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from femts.cli.command import command
from femts.cli.option_groups import grouped
from femts.cli.options import DataRoot, TrainingDevice
from femts.cli.output import say_notes, say_unfinished, say_warnings
from femts.cli.recipe import parse_horizons
from femts.cli.streams import say, write_data
from femts.cli.table_options import EngineOptions, GridOptions
from femts.data.describe import are, count
from femts.errors import UsageError, suggest
from femts.text import spreadsheet_safe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from femts.experiments.results import Job, Store
    from femts.experiments.runner import Engine

FORMATS = ("text", "md", "latex", "csv", "html")


@command(100)
@grouped
def table(
    grid: GridOptions,
    engine: EngineOptions,
    form: Annotated[str, typer.Option("--format", metavar="text|md|latex|csv|html", help="Output format.")] = "text",
    show: Annotated[bool, typer.Option("--show", help="Print the finished cells and train nothing.")] = False,
    data_root: DataRoot = None,
    device: TrainingDevice = "auto",
) -> int:
    """Train the missing cells of a results table, and print it.

    Every finished cell is a record in the results folder. Running the command again, also after an
    interruption, continues with the remaining cells and retries those that crashed. The exit status
    is 1 if cells crashed or, with --show, if records are unusable; without --show, unusable records
    are refused before anything is run.
    """
    if form not in FORMATS:
        raise UsageError(f"Unknown format '{form}'{suggest(form, FORMATS)}")
    pairs = grid.paired()
    if form == "html" and (pairs or grid.published):
        raise UsageError(
            f"Format 'html' does not support {'pairs' if pairs else 'published means'}; use text, md, latex or csv."
        )
    runner = engine.engine_on(device, data_root)
    from femts.experiments.results import Store

    if grid.tasks is not None:
        return _tasks(grid, Store(engine.results), runner, form, show)
    from femts.experiments.run import run_grid
    from femts.experiments.summary import SEEDS_ALONE, make_pairs, make_published, make_scores, make_table
    from femts.experiments.tables import to_csv, to_html, to_text, worse_than_naive

    store, roll_out = Store(engine.results), () if grid.roll_out is None else parse_horizons(grid.roll_out)
    cells = run_grid(grid.grid(), store, runner, roll_out, train=not show, published=grid.published)
    scores = make_scores(cells, store, roll_out)
    means = make_table(scores)
    say_warnings(worse_than_naive(means))
    frame = make_pairs(pairs, scores) if pairs else make_published(means) if grid.published else means
    if form == "html":
        write_data(to_html(means, cells, store))
    elif form == "csv":
        write_data(to_csv(frame))
    else:
        say(to_text(frame, form))
    if pairs:
        alone = (frame["why"] == SEEDS_ALONE).sum()
        if alone:
            say_notes(
                [
                    f"{alone} of {count(len(frame), 'difference')} {are(alone)} by {SEEDS_ALONE}, because records hold no errors by "
                    "window or series; delete old records to create them again with such errors"
                ]
            )
        say_notes(f"{cell.path} failed: {why}" for cell in cells if (why := store.failure(cell)))
    return _status(cells, store, show)


def _tasks(grid: GridOptions, store: Store, runner: Engine, form: str, show: bool) -> int:
    """Run the missing cells of a list of tasks, and print its scores."""
    if form == "html":
        raise UsageError("Format 'html' does not support tasks; use text, md, latex or csv.")
    from femts.experiments.leaderboard import leaderboard
    from femts.experiments.run import run_tasks
    from femts.experiments.tables import FORMS, leaderboard_tables

    cells = grid.task_cells(runner.data_root, show)
    scores = run_tasks(cells, store, runner, train=not show, published=grid.published)
    if form == "csv":
        write_data(str(scores.map(spreadsheet_safe).to_csv(index=False)))
    else:
        shown = leaderboard_tables(leaderboard(scores), scores)
        say("\n\n".join(FORMS[form](*each) for each in shown))
    say_notes(f"{cell.path} failed: {why}" for cell in cells if (why := store.failure(cell)))
    return _status(cells, store, show)


def _status(cells: Sequence[Job], store: Store, show: bool) -> int:
    """Print which records are unusable and how many are missing, and return the exit status."""
    damaged = [sentence for cell in cells if (sentence := store.damage(cell))]
    say_notes(damaged)
    say_unfinished(sum(not store.finished(cell) for cell in cells), len(cells), show)
    return int(bool(damaged) if show else any(map(store.failure, cells)))
