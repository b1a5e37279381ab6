"""`femts bench`: what layers, training and data cost on this machine, and what the mixer is for beside forecasting."""

from __future__ import annotations

from typing import Annotated

import typer

from femts.cli.bench_options import (
    AsJson,
    Heads,
    LayerOptions,
    MeasuringOptions,
    Precision,
    PredLen,
    StepOptions,
    TaskOptions,
    Width,
)
from femts.cli.bench_output import DATA, MIXER, STREAM, TRAIN, place_of, report
from femts.cli.command import command_group
from femts.cli.option_groups import grouped
from femts.cli.options import count, names, option
from femts.cli.output import say_line, say_notes, say_unfinished
from femts.environment import cpu_threads
from femts.errors import UsageError, suggest

FORMS = ("text", "md")
bench = command_group("bench", "Measure layers, training and data on this machine.", 150)


@bench.command()
@grouped
def mixer(
    layer: LayerOptions, measuring: MeasuringOptions, precision: Precision = "auto", as_json: AsJson = False
) -> None:
    """Forward pass and training step of one layer.

    Each prior with and without the components, by length: time, its spread, its ratio to the prior alone, and peak
    memory of a step; '-' where the naive form would not fit.
    """
    plan = layer.bench(measuring.turns)
    from femts.bench.mixer import bench_mixer

    place = place_of(measuring.device, precision)
    with cpu_threads(measuring.cpu_threads):
        report(plan, place, bench_mixer(plan, place), MIXER, as_json)


@bench.command()
@grouped
def stream(
    *,
    priors: Annotated[
        str, typer.Option(metavar="NAME[,NAME...]", help="Priors; softmax keeps every token and slows down.")
    ] = "linear,gla,rnn_softmax,rnn_decay,mamba",
    seen: Annotated[
        str, typer.Option(metavar="N[,N...]", help="Tokens before those that are timed.")
    ] = "10,1000,10000",
    d_model: Width = "64",
    n_heads: Heads = "8",
    measuring: MeasuringOptions,
    as_json: AsJson = False,
) -> None:
    """One more token of a stream, after few and after many.

    Time of a step of one layer with all components, its ratio to that after the first number of tokens, and the size
    of its state.
    """
    from femts.bench.stream import StreamBench, bench_stream

    plan = StreamBench(
        priors=names(priors),
        seen=tuple(count("--seen", part) for part in names(seen)),
        d_model=count("--d-model", d_model),
        n_heads=count("--n-heads", n_heads),
        repeats=measuring.turns,
    )
    place = place_of(measuring.device, "32")
    with cpu_threads(measuring.cpu_threads):
        report(plan, place, bench_stream(plan, place), STREAM, as_json)


@bench.command()
@grouped
def train(
    steps: StepOptions, measuring: MeasuringOptions, precision: Precision = "auto", as_json: AsJson = False
) -> None:
    """Training steps of whole models on random data.

    Step time, its ratio to the first model and to its matrix products alone (floor), windows a second in training and
    in scoring, peak memory of a step, and the part of a training that is spent outside the steps.
    """
    plan = steps.bench(measuring.turns)
    from femts.bench.train import bench_train

    place = place_of(measuring.device, precision, steps.compiled)
    with cpu_threads(measuring.cpu_threads):
        report(plan, place, bench_train(plan, place), TRAIN, as_json)


@bench.command()
@grouped
def data(
    *,
    datasets: Annotated[str | None, option("Shapes of these data sets.", "NAME[,NAME...]", default="all")] = None,
    pred_len: PredLen = "96",
    measuring: MeasuringOptions,
    as_json: AsJson = False,
) -> None:
    """Batches of windows from random data.

    One gather over the resident series, against a loop that stacks samples as a data loader does.
    """
    from femts.bench.data import DataBench, bench_data
    from femts.data.catalog import CATALOG

    plan = DataBench(
        datasets=tuple(CATALOG) if datasets is None else names(datasets),
        pred_len=count("--pred-len", pred_len),
        repeats=measuring.turns,
    )
    place = place_of(measuring.device, "32")
    with cpu_threads(measuring.cpu_threads):
        report(plan, place, bench_data(plan, place.device), DATA, as_json)


@bench.command()
@grouped
def tasks(
    asked: TaskOptions,
    show: Annotated[bool, typer.Option("--show", help="Only print what there is.")] = False,
    form: Annotated[str, typer.Option("--format", metavar="text|md", help="What to print.")] = "text",
) -> int:
    """Small tasks of selection, each mixer beside its prior alone.

    All mixers get the same samples, steps and width. Every finished training is a record in the
    folder; called again, or after an interruption, the command goes on with what is left. Exit
    status 1 when some crashed, or with --show when records cannot be used; without it such records
    are refused before anything is run.
    """
    if form not in FORMS:
        raise UsageError(f"Unknown format '{form}'{suggest(form, FORMS)}")
    cells, store, engine = asked.cells(), asked.store(), asked.engine()
    from femts.bench.tasks.table import as_text, make_entries, other_code
    from femts.experiments.runner import run_cells

    store.check_folder(to_show=show)
    if not show:
        run_cells(cells, store, engine, say_line)
    entries = make_entries(cells, store)
    print(as_text(entries, markdown=form == "md"))
    damaged = [sentence for cell in cells if (sentence := store.damage(cell))]
    say_notes(damaged)
    missing, changed = sum(not store.finished(cell) for cell in cells), other_code(entries)
    say_unfinished(missing, len(cells), show)
    if changed:
        say_notes([f"{changed} of {len(cells)} records were made by other sources than those of now (field 'code')"])
    if show:
        return 1 if damaged else 0
    return 0 if all(store.failure(cell) is None for cell in cells) else 1
