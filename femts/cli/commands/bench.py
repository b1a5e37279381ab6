"""`femts bench`: what layers, training and data cost on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from femts.cli.bench_output import (
    DATA_COLUMNS,
    MIXER_COLUMNS,
    STREAM_COLUMNS,
    TRAIN_COLUMNS,
    count,
    cpu_threads,
    data_cells,
    mixer_cells,
    names,
    place_of,
    report,
    stream_cells,
    train_cells,
)
from femts.cli.command import command_group
from femts.cli.recipe import parse_assignment
from femts.errors import UsageError

bench = command_group("bench", "Measure layers, training and data on this machine.", 150)

Repeats = Annotated[str, typer.Option(metavar="N", help="Turns; what is shown are their medians.")]
Threads = Annotated[str | None, typer.Option(metavar="N", help="CPU threads.", show_default="torch's")]
Device = Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where to compute.")]
Precision = Annotated[str, typer.Option(metavar="auto|32|bf16", help="What to compute in.")]
Datasets = Annotated[str, typer.Option(metavar="NAME[,NAME...]", help="Shapes of these data sets; no file is read.")]
PredLen = Annotated[str, typer.Option(metavar="N", help="Steps to forecast.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@bench.command()
def mixer(
    priors: Annotated[str | None, typer.Option(metavar="NAME[,NAME...]", help="Priors.", show_default="all")] = None,
    lengths: Annotated[str, typer.Option(metavar="T[,T...]", help="Tokens of a sequence.")] = "22,256,1024",
    tokens: Annotated[str, typer.Option(metavar="N", help="Tokens of a batch.")] = "4928",
    d_model: Annotated[str, typer.Option(metavar="N", help="Width of a token.")] = "64",
    n_heads: Annotated[str, typer.Option(metavar="N", help="Heads of the prior.")] = "8",
    components: Annotated[
        str, typer.Option(metavar="SET[,SET...]", help="Component sets; alone has none, naive has no fast read.")
    ] = "alone,L,LT,LTG,CLTG,naive",
    repeats: Repeats = "7",
    threads: Threads = None,
    device: Device = "auto",
    precision: Precision = "auto",
    as_json: AsJson = False,
) -> None:
    """Forward pass and training step of one layer.

    Each prior with and without the components, by length: time, its spread, its ratio to the prior alone, and peak
    memory of a step; '-' where the naive form would not fit.
    """
    from femts.bench.mixer import MixerBench, bench_mixer
    from femts.mixers.priors.registry import prior_names

    wanted = MixerBench(
        priors=prior_names() if priors is None else names(priors),
        lengths=tuple(count("--lengths", part) for part in names(lengths)),
        cases=names(components),
        tokens=count("--tokens", tokens),
        d_model=count("--d-model", d_model),
        n_heads=count("--n-heads", n_heads),
        repeats=count("--repeats", repeats),
    )
    place = place_of(device, precision)
    with cpu_threads(threads):
        report(wanted, place, bench_mixer(wanted, place), MIXER_COLUMNS, mixer_cells, as_json)


@bench.command()
def stream(
    priors: Annotated[
        str, typer.Option(metavar="NAME[,NAME...]", help="Priors; softmax keeps every token and slows down.")
    ] = "linear,gla,rnn_softmax,rnn_decay,mamba",
    seen: Annotated[str, typer.Option(metavar="N[,N...]", help="Tokens before those that are timed.")] = "10,1000,10000",
    d_model: Annotated[str, typer.Option(metavar="N", help="Width of a token.")] = "64",
    n_heads: Annotated[str, typer.Option(metavar="N", help="Heads of the prior.")] = "8",
    repeats: Repeats = "7",
    threads: Threads = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """One more token of a stream, after few and after many.

    Time of a step of one layer with all components, its ratio to that after the first number of tokens, and the size
    of its state.
    """
    from femts.bench.stream import StreamBench, bench_stream

    wanted = StreamBench(
        priors=names(priors),
        seen=tuple(count("--seen", part) for part in names(seen)),
        d_model=count("--d-model", d_model),
        n_heads=count("--n-heads", n_heads),
        repeats=count("--repeats", repeats),
    )
    place = place_of(device, "32")
    with cpu_threads(threads):
        report(wanted, place, bench_stream(wanted, place), STREAM_COLUMNS, stream_cells, as_json, together=True)


@bench.command()
def train(
    datasets: Datasets = "ETTh1",
    models: Annotated[
        str, typer.Option(metavar="NAME[,NAME...]", help="Names of `femts models`; ratios are to the first.")
    ] = "sm,fem_sm,fem_gla,fem_aft,fem_mamba",
    pred_len: PredLen = "96",
    batch_size: Annotated[str, typer.Option(metavar="N", help="Windows of a step.")] = "32",
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting of all models.", show_default=False),
    ] = None,
    compiled: Annotated[bool, typer.Option("--compile", help="Steps through torch.compile.")] = False,
    repeats: Repeats = "7",
    threads: Threads = None,
    device: Device = "auto",
    precision: Precision = "auto",
    as_json: AsJson = False,
) -> None:
    """Training steps of whole models on random data.

    Step time, its ratio to the first model and to its matrix products alone (floor), windows a second in training and
    in scoring, peak memory of a step, and the part of a training that is spent outside the steps.
    """
    settings = {}
    for key, value in map(parse_assignment, assignments or []):
        section, _, name = key.partition(".")
        if section != "model":
            raise UsageError(f"Setting '{key}' has no place in a measurement; --set takes model.NAME=VALUE here.")
        settings[name] = value
    from femts.bench.train import TrainBench, bench_train

    wanted = TrainBench(
        datasets=names(datasets),
        models=names(models),
        pred_len=count("--pred-len", pred_len),
        batch_size=count("--batch-size", batch_size),
        repeats=count("--repeats", repeats),
        settings=settings,
        compile=compiled,
    )
    place = place_of(device, precision, compiled)
    with cpu_threads(threads):
        report(wanted, place, bench_train(wanted, place), TRAIN_COLUMNS, train_cells, as_json)


@bench.command()
def data(
    datasets: Annotated[
        str | None, typer.Option(metavar="NAME[,NAME...]", help="Shapes of these data sets.", show_default="all")
    ] = None,
    pred_len: PredLen = "96",
    repeats: Repeats = "7",
    threads: Threads = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Batches of windows from random data.

    One gather over the resident series, against a loop that stacks samples as a data loader does.
    """
    from femts.bench.data import DataBench, bench_data
    from femts.data.catalog import CATALOG

    wanted = DataBench(
        datasets=tuple(CATALOG) if datasets is None else names(datasets),
        pred_len=count("--pred-len", pred_len),
        repeats=count("--repeats", repeats),
    )
    place = place_of(device, "32")
    with cpu_threads(threads):
        report(wanted, place, bench_data(wanted, place.device), DATA_COLUMNS, data_cells, as_json, together=True)
