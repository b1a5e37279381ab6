"""`femts bench`: what layers, training and data cost on this machine."""

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
    Width,
)
from femts.cli.bench_output import DATA, MIXER, STREAM, TRAIN, cpu_threads, place_of, report
from femts.cli.command import command_group
from femts.cli.option_groups import grouped
from femts.cli.options import count, names

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
    with cpu_threads(measuring.threads):
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
    with cpu_threads(measuring.threads):
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
    with cpu_threads(measuring.threads):
        report(plan, place, bench_train(plan, place), TRAIN, as_json)


@bench.command()
@grouped
def data(
    *,
    datasets: Annotated[
        str | None, typer.Option(metavar="NAME[,NAME...]", help="Shapes of these data sets.", show_default="all")
    ] = None,
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
    with cpu_threads(measuring.threads):
        report(plan, place, bench_data(plan, place.device), DATA, as_json)
