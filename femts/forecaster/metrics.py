"""Scores and circumstances of a run, as stored in `metrics.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from femts.evaluation.overall import Scores


class Schedule(TypedDict):
    """Steps over which the learning rate was scheduled, and `epoch`, steps per epoch."""

    steps: int
    epoch: int


class Coverage(TypedDict):
    """Windows by which intervals were calibrated, those of them that do not overlap, `coverage` and mean `width` on the
    test split by level, and the targets without intervals, if any, as `missing`."""

    windows: int
    disjoint: int
    test: dict[str, dict[str, float | None]]
    missing: NotRequired[Sequence[str]]


class ScoredRows(TypedDict):
    """Rows on which the scored model of a refitted run was trained, validated and tested, its `folder`, and the number
    of `series` of a panel."""

    folder: str
    train: list[int]
    val: list[int]
    test: list[int]
    series: NotRequired[int]


class Refit(TypedDict):
    """Training on all `rows` after scoring."""

    rows: int
    steps: int
    stopped: str | None
    seconds: float


class RunMetrics(TypedDict, total=False):
    """Scores and circumstances of a run; a mean of forecasters that was not trained has `members` alone.

    Keys:
        dataset, model, pred_len, seq_len, protocol, seed, data_sha256: what was trained.
        device, devices, precision, versions: where it was trained.
        parameters: number of weights.
        kept_step, steps, stopped, schedule: step of the weights, number of steps, and why they ended.
        replayed: number of the steps that were replayed from a CUDA graph (`training.graph`).
        val, test: scores; in the scaled units of the run unless they say otherwise.
        intervals: coverage of the intervals.
        outgrown: targets or series left out of validation because they outgrew their training rows.
        thinned: number of windows by split, if time allowed to score only some of them.
        seconds: duration of the training.
        known: share of the variance of each target that known covariates explain.
        kernels: implementation of each operation.
        members: configuration and metrics of each member of a mean.
        auto: the candidates of `auto`, and its choice.
        scored, refit: of a run that was refitted on all rows.
    """

    dataset: str
    model: str
    pred_len: int
    seq_len: int
    protocol: str
    seed: int
    data_sha256: str
    device: str
    devices: int
    precision: str
    versions: Mapping[str, str]
    parameters: int
    kept_step: int | None
    steps: int
    stopped: str | None
    replayed: int
    schedule: Schedule
    val: Scores
    test: Scores
    intervals: Coverage
    outgrown: Sequence[str]
    thinned: Mapping[str, int]
    seconds: float
    known: Mapping[str, float]
    kernels: Mapping[str, str]
    members: Sequence[Mapping[str, Any]]
    auto: dict[str, Any]
    scored: ScoredRows
    refit: Refit
