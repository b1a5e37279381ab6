"""`femts table`: a grid of cells, run and shown."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from femts.cli.bench_output import count, names
from femts.cli.command import command
from femts.cli.options import Calendar, Columns, DataRoot, Future, Na, Past, Target
from femts.cli.output import say_notes, write_data
from femts.cli.recipe import parse_assignment, parse_horizons, parse_reading
from femts.config.values import whole_number
from femts.errors import UsageError, suggest
from femts.experiments.table_text import as_csv, as_text
from femts.text import printable, shown

FORMATS = ("text", "md", "csv", "html")
ENGINES = ("local", "ray")
LOOK_BACKS = (512, 1024, 2048, 4096)
MODELS = "fem_sm,fem_gla,fem_mamba,fem_aft,sm,gla,aft,lintrans,itransformer,patchtst,dlinear,naive,seasonal_naive"

Device = Annotated[str, typer.Option(metavar="auto|cpu|cuda|mps", help="Where to train.")]


@command(100)
def table(
    datasets: Annotated[
        str, typer.Option(metavar="NAME|FILE[,...]", help="Names of `femts datasets list`, and files of your own.")
    ] = "ETTh1",
    models: Annotated[str, typer.Option(metavar="NAME[,NAME...]", help="Names of `femts models`.")] = MODELS,
    pred_lens: Annotated[str, typer.Option(metavar="N[,N...]|all", help="Horizons.")] = "all",
    roll_out: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N...]|all",
            help="Horizons at which models of shorter ones, rolled out, count too (marked r); validation chooses.",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[str, typer.Option(metavar="N[,N...]", help="Seeds, a run each.")] = "42",
    seq_len: Annotated[
        str, typer.Option(metavar="N[,N...]|auto|protocol", help="Look-back; of several, auto's four too, validation chooses.")
    ] = "protocol",
    na: Na = None,
    columns: Columns = None,
    target: Target = None,
    past: Past = None,
    future: Future = None,
    calendar: Calendar = False,
    protocol: Annotated[str, typer.Option(metavar="paper|lookback96", help="Where look-backs come from.")] = "paper",
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting of all models.", show_default=False)
    ] = None,
    choices: Annotated[
        list[str] | None,
        typer.Option("--choose", metavar="KEY=VALUE,...", help="Values of a setting; validation chooses.", show_default=False),
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="local|ray", help="What runs the cells: this machine, or a Ray cluster.")
    ] = "local",
    jobs: Annotated[
        str | None, typer.Option(metavar="N", help="Cells at a time.", show_default="one a core, 4 on a GPU")
    ] = None,
    max_time: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Stop after it; what is left is for the next time.", show_default=False)
    ] = None,
    results: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the records.")] = Path("results"),
    form: Annotated[str, typer.Option("--format", metavar="text|md|csv|html", help="What to print.")] = "text",
    show: Annotated[bool, typer.Option("--show", help="Only print what there is.")] = False,
    data_root: DataRoot = None,
    device: Device = "auto",
) -> int:
    """Train what is missing of a table, and print it.

    Every finished cell is a record in the folder of results. Called again, or after an interruption, the command goes on
    with what is left; cells that crashed are tried again. Exit status 1 when some crashed, or with --show when records cannot
    be used; without it such records are refused before anything is run.
    """
    if form not in FORMATS:
        raise UsageError(f"Unknown format '{form}'{suggest(form, FORMATS)}")
    if engine not in ENGINES:
        raise UsageError(f"Unknown engine '{engine}'{suggest(engine, ENGINES)}")
    from femts.experiments.grid import make_grid
    from femts.experiments.store import Store
    from femts.experiments.table import make_entries

    numbers = tuple(_seed(part) for part in names(seeds))
    presets: dict[str, tuple[int | None, ...]] = {"auto": LOOK_BACKS, "protocol": (None,)}
    seq_lens = presets.get(seq_len.lower()) or tuple(count("--seq-len", part) for part in names(seq_len))
    settings = dict(parse_assignment(text) for text in assignments or [])
    given = {"na": na, "columns": columns, "target": target, "past": past, "future": future, "calendar": calendar}
    grid = names(datasets), names(models), parse_horizons(pred_lens), numbers, protocol, seq_lens, settings
    several = {key: names(value) for key, value in (parse_assignment(text, "--choose") for text in choices or [])}
    cells = make_grid(*grid, parse_reading(given), data_root, several)
    store = Store(results)
    damaged = [sentence for cell in cells if (sentence := store.damage(cell))]
    if damaged and not show:  # to run these cells again would put new numbers in the place of what may be mended
        raise UsageError(damaged[0])
    if not show:
        _run(engine, cells, store, jobs, max_time, data_root, device)
    entries = make_entries(cells, store, () if roll_out is None else parse_horizons(roll_out))
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


def _seed(text: str) -> int:
    number = whole_number(text, "Option '--seeds'")
    if number is None or number < 0:
        raise UsageError(f"Option '--seeds' takes whole numbers of at least 0, not '{shown(text)}'.")
    return number


def _run(engine, cells, store, jobs, max_time, data_root, device) -> None:  # type: ignore[no-untyped-def]
    import time

    from femts.config.training import TrainingConfig, parse_span
    from femts.experiments.local import Resources, run_local
    from femts.experiments.ray_engine import run_ray
    from femts.training.device import resolve_place

    started = time.monotonic()
    deadline = None if max_time is None else started + parse_span(max_time)
    found = resolve_place(TrainingConfig(device=device)).device  # type: ignore[arg-type]
    cores = os.cpu_count() or 1
    many = (4 if found == "cuda" else cores) if jobs is None else count("--jobs", jobs)
    resources = Resources(many, max(1, cores // many), found, None if data_root is None else str(data_root.resolve()))
    left = [cell for cell in cells if not store.finished(cell)]
    for cell in {cell.dataset: cell for cell in left}.values():  # fetched once, and refused before anything runs
        say_notes(f"{cell.dataset}: {note}" for note in cell.load(data_root).notes)
    run = {"local": run_local, "ray": run_ray}[engine]
    run(left, store, resources, deadline, lambda line: print(printable(line), file=sys.stderr, flush=True))
