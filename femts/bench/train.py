"""Cost of training: a bare step of each model, its distance from the arithmetic alone, and what the trainer adds."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from femts.bench.measure import Measured, gemm_rate, peak_bytes, quartile_range, take_turns
from femts.bench.steps import BATCHES, BareSteps
from femts.config.training import TrainingConfig
from femts.data.catalog import card
from femts.data.protocols import default_look_back
from femts.errors import UsageError
from femts.evaluation.evaluator import evaluate
from femts.models.registry import build_config, build_model
from femts.training.device import Place

EPOCHS = 3  # of the trainer; each is as long as many of the steps that the other columns come from


@dataclass(frozen=True)
class TrainBench:
    """Settings of the benchmark: random data of the shape of `datasets`, look-backs of the `paper` protocol.

    Attributes:
        datasets: names of the catalogue; no file is read.
        models: registered names; the first is what the others are compared with.
        pred_len: steps of forecast P.
        batch_size: windows of a step.
        repeats: turns, at least 1.
        settings: fields of every model's configuration by name.
        compile: steps through `torch.compile`.
    """

    datasets: tuple[str, ...]
    models: tuple[str, ...]
    pred_len: int
    batch_size: int
    repeats: int
    settings: Mapping[str, Any]
    compile: bool = False


@dataclass(frozen=True)
class TrainRow:
    """One model on one data set.

    Attributes:
        dataset, channels, seq_len, pred_len, model: what was measured.
        step: gather, loss, gradients, clipping and AdamW of one batch.
        windows_per_s: batch size over the seconds of a step.
        flops: operations of the matrix products of loss and gradients.
        floor_seconds: what they would take at the rate of one large matrix product.
        scoring_windows_per_s: the evaluator's speed.
        peak_bytes: of a step, beyond weights, optimiser state and series.
        outside: part of a trainer's epoch that is spent outside the steps.
        outside_spread: interquartile range of that part over the turns.
    """

    dataset: str
    channels: int
    seq_len: int
    pred_len: int
    model: str
    step: Measured
    windows_per_s: float
    flops: int
    floor_seconds: float
    scoring_windows_per_s: float
    peak_bytes: int
    outside: float
    outside_spread: float


def bench_train(bench: TrainBench, place: Place) -> Iterator[TrainRow]:
    """The rows of `bench`, data set by data set.

    Raises:
        UsageError: an unknown data set or model, a model without weights, or settings that do not fit; nothing was
            measured then.
    """
    plans = {entry.name: _configs(bench, entry.name) for entry in map(card, bench.datasets)}
    return (row for name, configs in plans.items() for row in _bench_dataset(bench, place, name, configs))


def _configs(bench: TrainBench, dataset: str) -> dict[str, Any]:
    """Configuration of every model."""
    entry = card(dataset)
    start, stop = entry.split.train
    seq_len = default_look_back("paper", bench.pred_len, stop - start).steps
    configs = {}
    for name in bench.models:
        configs[name] = build_config(
            name, seq_len=seq_len, pred_len=bench.pred_len, n_channels=entry.channels, settings=bench.settings
        )
        if not any(True for _ in build_model(name, configs[name]).parameters()):
            raise UsageError(
                f"Model '{name}' has no weights, so there is no step to measure; leave it out of --models."
            )
    return configs


def _bench_dataset(bench: TrainBench, place: Place, dataset: str, configs: Mapping[str, Any]) -> Iterator[TrainRow]:
    training = TrainingConfig(batch_size=bench.batch_size, max_epochs=1, compile=bench.compile)
    steps = {name: BareSteps(name, config, training, place) for name, config in configs.items()}
    turns = take_turns({name: bare.step for name, bare in steps.items()}, bench.repeats, place.device)
    scores = {name: partial(evaluate, bare.model, bare.scored) for name, bare in steps.items()}
    scoring = take_turns(scores, bench.repeats, place.device)
    rate = gemm_rate(place.device, torch.bfloat16 if place.precision == "bf16" else torch.float32)
    for name, bare in steps.items():
        step = Measured.of(turns[name], turns[bench.models[0]])
        flops, peak = bare.flops(), peak_bytes(bare.step, place.device)
        shares = _outside(bare, min(bench.repeats, EPOCHS))
        yield TrainRow(
            dataset=dataset,
            channels=bare.windows.series.shape[1],
            seq_len=bare.windows.seq_len,
            pred_len=bench.pred_len,
            model=name,
            step=step,
            windows_per_s=bench.batch_size / step.seconds,
            flops=flops,
            floor_seconds=flops / rate,
            scoring_windows_per_s=len(bare.scored) / statistics.median(scoring[name]),
            peak_bytes=peak,
            outside=statistics.median(shares),
            outside_spread=quartile_range(shares),
        )


def _outside(bare: BareSteps, repeats: int) -> Sequence[float]:
    """Part of an epoch of the trainer outside the steps, in each turn; below 0 where noise hides it."""
    bare.through_trainer()  # imports and first use
    shares = []
    for _ in range(repeats):  # half of the bare steps before the trainer and half after it, against drift
        before = bare.run(BATCHES // 2)
        trainer = bare.through_trainer()
        shares.append(1 - (before + bare.run(BATCHES - BATCHES // 2)) / trainer)
    return shares
