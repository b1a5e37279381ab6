"""A forecaster written to its run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from femts.forecaster.parts import Network
from femts.forecaster.restore import weights_bytes
from femts.forecaster.run_folder import (
    INTERVALS,
    PREPROCESS,
    SCORED,
    SCORED_WEIGHTS,
    WEIGHTS,
    json_bytes,
    unfinish,
    write_run,
)


class Savable(Network, Protocol):
    """Attributes of a forecaster that are written."""

    metrics: Mapping[str, Any]
    validations: Sequence[Mapping[str, Any]]

    @property
    def scored(self) -> Savable | None: ...
    def preprocess_record(self) -> dict[str, Any]: ...


def write_forecaster(forecaster: Savable, folder: Path) -> None:
    """Write the run of `forecaster` over whatever `folder` holds, and within it that of the one that is scored.

    Raises:
        RunFailure: the disk refuses.
    """
    preprocess, scored = forecaster.preprocess_record(), forecaster.scored
    files = {WEIGHTS: weights_bytes(forecaster.model, preprocess), PREPROCESS: json_bytes(preprocess)}
    files |= {} if forecaster.intervals is None else {INTERVALS: forecaster.intervals.to_bytes()}
    if scored is not None:
        unfinish(folder)  # before its other half changes
        write_forecaster(scored, folder / SCORED)
        files[SCORED_WEIGHTS] = (folder / SCORED_WEIGHTS).read_bytes()
    config = replace(forecaster.config, final=scored is not None)
    write_run(folder, config, files, forecaster.validations, forecaster.metrics)
