"""Reads and verifies a finished run; every defect is reported in one sentence."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from femts.config.records import RecordError, fingerprint, parse_json
from femts.errors import UsageError
from femts.files import write_file
from femts.forecaster.replacing import link, read_whole
from femts.forecaster.run_folder import (
    CONFIG,
    FORMAT,
    HASHED,
    INTERVALS,
    METRICS,
    PREPROCESS,
    SCORED,
    SCORED_METRICS,
    SEAL,
    WEIGHTS,
    RunConfig,
    own_files,
    sealed,
)


@dataclass(frozen=True)
class SavedRun:
    """A finished run as read from its folder: verified, but not restored yet."""

    config: RunConfig
    weights: bytes
    preprocess: Mapping[str, Any]
    metrics: Mapping[str, Any]
    validations: Sequence[Mapping[str, Any]]
    intervals: bytes | None = None
    scored: SavedRun | None = None


def read_run(folder: str | Path) -> SavedRun:
    """Read and verify a finished run, and the scored run within it; raise UsageError with the reason if it is not valid.

    Each file is read once, so that what is used is what was verified, and all of it is from one run even if another
    process replaces the run meanwhile.
    """
    return read_whole(Path(folder), _read_run)


def _read_run(folder: Path, metrics: dict[str, Any] | None = None) -> SavedRun:
    metrics = _metrics_of(_metrics_file(folder), folder) if metrics is None else metrics
    files = metrics["files"]
    unknown = next((name for name in files if name not in (*HASHED, INTERVALS, SCORED_METRICS)), None)
    if unknown is not None:
        raise changed(folder, f"{METRICS} lists {unknown}")
    config = _config_of(_verified(folder, CONFIG, files), folder)
    weights, preprocess = (_verified(folder, name, files) for name in (WEIGHTS, PREPROCESS))
    intervals = _verified(folder, INTERVALS, files) if INTERVALS in files else None
    scored = None
    if config.refit:
        of_scored = _metrics_of(_verified(folder, SCORED_METRICS, files), folder / SCORED)
        scored = _read_run(folder / SCORED, of_scored)
    said = {name: value for name, value in metrics.items() if name not in ("format", "files", "history", SEAL)}
    return SavedRun(config, weights, _preprocess_of(preprocess, folder), said, metrics["history"], intervals, scored)


def _content(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except OSError as error:
        raise UsageError(f"Run {folder} has no {name}; copy the whole folder or train again.") from error


def _verified(folder: Path, name: str, hashes: Mapping[str, str]) -> bytes:
    """Contents of the file `name`; raise UsageError if it is missing or does not match its hash."""
    content = _content(folder, name)
    if hashlib.sha256(content).hexdigest() != hashes.get(name):
        raise changed(folder, f"{name} does not match")
    return content


def changed(folder: Path, what: object) -> UsageError:
    """Error for a run that was changed after saving, as described by `what`."""
    return UsageError(f"Run {folder} was changed after it was saved: {what}; train again.")


def _check_run(folder: Path) -> None:
    """Raise UsageError if `folder` does not exist or is not a run."""
    if not os.path.isdir(folder):  # returns False for invalid folder names, for which Path would raise
        raise UsageError(f"Run folder {folder} does not exist; give the folder that a training wrote.")
    if not (folder / CONFIG).is_file():
        raise UsageError(
            f"Folder {folder} is not a femts run: it has no {CONFIG}; give the folder that a training wrote."
        )


def read_config(folder: Path) -> RunConfig:
    """Read `config.yaml` of a finished or unfinished run; raise UsageError if the folder does not exist, is not a run,
    or has another format."""

    def read(place: Path) -> RunConfig:
        _check_run(place)
        return _config_of(_content(place, CONFIG), folder)

    return read_whole(folder, read)


def _config_of(content: bytes, folder: Path) -> RunConfig:
    import yaml

    try:
        record = yaml.safe_load(content)
        run_format = record["format"]
        if run_format == FORMAT:
            return RunConfig.from_dict(record)
    except UsageError as error:
        raise UsageError(
            f"Run {folder} cannot be used, because its {CONFIG} does not match this version of femts: {error.marked}"
        ) from error
    except (
        yaml.YAMLError,
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        RecursionError,
    ) as error:
        raise changed(folder, f"{CONFIG} cannot be read") from error
    raise UsageError(f"Run {folder} has format {run_format} but this femts reads format {FORMAT}; train again.")


def read_preprocess(folder: Path) -> dict[str, Any]:
    """Read `preprocess.json` of a finished or unfinished run; raise UsageError if it cannot be read."""
    return read_whole(folder, lambda place: _preprocess_of(_content(place, PREPROCESS), folder))


def _preprocess_of(content: bytes, folder: Path) -> dict[str, Any]:
    try:
        record: dict[str, Any] = parse_json(content)
        return record
    except RecordError as error:
        raise UsageError(f"Run {folder} has no readable {PREPROCESS}; train again.") from error


def read_metrics(folder: Path) -> dict[str, Any]:
    """Read `metrics.json` of a finished run; raise UsageError if the folder does not exist, is not a run, is unfinished
    or has another format."""
    return read_whole(folder, lambda place: _metrics_of(_metrics_file(place), folder))


def _metrics_file(folder: Path) -> bytes:
    _check_run(folder)
    try:
        return (folder / METRICS).read_bytes()
    except FileNotFoundError as error:
        raise UsageError(
            f"Run {folder} is unfinished: it has no {METRICS}; finish it with `femts train ... --resume`."
        ) from error
    except OSError as error:
        raise changed(folder, f"{METRICS} cannot be read") from error


def _metrics_of(content: bytes, folder: Path) -> dict[str, Any]:
    try:
        metrics: dict[str, Any] = parse_json(content)
        run_format = metrics["format"]
    except (RecordError, LookupError, TypeError) as error:
        raise changed(folder, f"{METRICS} cannot be read") from error
    if run_format != FORMAT:
        raise UsageError(
            f"Run {folder} has format {run_format} but this femts reads format {FORMAT}; "
            f"use femts {_version_of(metrics)} or train again."
        )
    of_all = {name: value for name, value in metrics.items() if name != SEAL}
    if metrics.get(SEAL) != fingerprint(of_all):
        raise changed(folder, f"{METRICS} does not match its own hash")
    for said in (metrics, *(member["metrics"] for member in metrics.get("members", ()))):
        for part in said.keys() & {"val", "test"}:  # JSON has no NaN, the error of a split without values
            scores = said[part].items()
            said[part] = {k: math.nan if value is None and k != "verdict" else value for k, value in scores}
    return metrics


def _version_of(metrics: Mapping[str, Any]) -> str:
    versions = metrics.get("versions")
    return str(versions.get("femts", "of that format")) if isinstance(versions, Mapping) else "of that format"


def write_recalibrated(folder: Path, new: Path, intervals: bytes, scored: bytes | None) -> None:
    """Write the run in `folder` to the folder `new` with other intervals; its other files are not copied but linked.

    Args:
        folder: folder of a finished run.
        new: new folder, as given by `femts.forecaster.replacing.replacing`.
        intervals: contents of the new `intervals.safetensors`.
        scored: the same for the scored run within it; None keeps what it has.

    Raises:
        UsageError: The run is not valid.
        RunFailure: A file cannot be written.
    """
    for path in own_files(folder):
        link(path, new / path.relative_to(folder))
    hashes = dict[str, str]()
    if scored is not None:
        hashes[SCORED_METRICS] = _switch(folder / SCORED, new / SCORED, scored, {})
    _switch(folder, new, intervals, hashes)


def _switch(folder: Path, new: Path, intervals: bytes, others: Mapping[str, str]) -> str:
    """Write intervals and `metrics.json` with their hash, and `others` by name, to `new`; return the hash of the
    latter."""
    metrics = read_metrics(folder)
    hashes = {**metrics["files"], INTERVALS: hashlib.sha256(intervals).hexdigest(), **others}
    content = sealed({**metrics, "files": hashes})
    write_file(new / INTERVALS, intervals)
    write_file(new / METRICS, content)
    return hashlib.sha256(content).hexdigest()
