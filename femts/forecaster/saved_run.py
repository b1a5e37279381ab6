"""Reads and verifies a finished run; every defect is reported in one sentence."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from femts.config.records import RecordError, fingerprint, read_json
from femts.errors import UsageError
from femts.files import write_file
from femts.forecaster.run_folder import (
    CONFIG,
    FORMAT,
    HASHED,
    INTERVALS_NAME,
    METRICS,
    PREPROCESS,
    SCORED_WEIGHTS,
    SEAL,
    WEIGHTS,
    RunConfig,
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


def read_run(folder: str | Path) -> SavedRun:
    """Read and verify a finished run; raise UsageError with the reason if it is not valid."""
    folder = Path(folder)
    metrics, intervals = _metrics_and_intervals(folder)
    files = metrics["files"]
    for name in HASHED:
        _verified(folder, name, files)
    config = read_config(folder)
    if config.refit:
        _verified(folder, SCORED_WEIGHTS, files)
    validations = metrics["history"]
    said = {name: value for name, value in metrics.items() if name not in ("format", "files", "history", SEAL)}
    return SavedRun(config, (folder / WEIGHTS).read_bytes(), read_preprocess(folder), said, validations, intervals)


def _metrics_and_intervals(folder: Path) -> tuple[dict[str, Any], bytes | None]:
    """`metrics.json` and the intervals named in it, which may be replaced while reading."""
    metrics = read_metrics(folder)
    while True:
        name = intervals_of(metrics["files"])
        try:
            return metrics, None if name is None else _verified(folder, name, metrics["files"])
        except UsageError:
            before, metrics = metrics, read_metrics(folder)
            if metrics["files"] == before["files"]:
                raise


def intervals_of(files: Mapping[str, str]) -> str | None:
    """Name of the intervals file among `files`; None if there is none."""
    return next((name for name in files if INTERVALS_NAME.fullmatch(name)), None)


def _verified(folder: Path, name: str, hashes: Mapping[str, str]) -> bytes:
    """Contents of the file `name`; raise UsageError if it is missing or does not match its hash."""
    try:
        content = (folder / name).read_bytes()
    except OSError as error:
        raise UsageError(f"Run {folder} has no {name}; copy the whole folder or train again.") from error
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
    import yaml

    _check_run(folder)
    try:
        record = yaml.safe_load((folder / CONFIG).read_bytes())
        run_format = record["format"]
        if run_format == FORMAT:
            return RunConfig.from_dict(record)
    except UsageError as error:
        raise UsageError(
            f"Run {folder} cannot be used, because its {CONFIG} does not match this version of femts: {error}"
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
    try:
        record: dict[str, Any] = read_json(folder / PREPROCESS)
        return record
    except (OSError, RecordError) as error:
        raise UsageError(f"Run {folder} has no readable {PREPROCESS}; train again.") from error


def read_metrics(folder: Path) -> dict[str, Any]:
    """Read `metrics.json` of a finished run; raise UsageError if the folder does not exist, is not a run, is unfinished
    or has another format."""
    _check_run(folder)
    if not (folder / METRICS).is_file():
        raise UsageError(f"Run {folder} is unfinished: it has no {METRICS}; finish it with `femts train ... --resume`.")
    try:
        metrics: dict[str, Any] = read_json(folder / METRICS)
        run_format = metrics["format"]
    except (OSError, RecordError, LookupError, TypeError) as error:
        raise changed(folder, f"{METRICS} cannot be read") from error
    if run_format != FORMAT:
        raise UsageError(
            f"Run {folder} has format {run_format} but this femts reads format {FORMAT}; "
            f"use femts {_version_of(metrics)} or train again."
        )
    content = {name: value for name, value in metrics.items() if name != SEAL}
    if metrics.get(SEAL) != fingerprint(content):
        raise changed(folder, f"{METRICS} does not match its own hash")
    for said in (metrics, *(member["metrics"] for member in metrics.get("members", ()))):
        for part in said.keys() & {"val", "test"}:  # JSON has no NaN, the error of a split without values
            said[part] = {name: math.nan if value is None else value for name, value in said[part].items()}
    return metrics


def _version_of(metrics: Mapping[str, Any]) -> str:
    versions = metrics.get("versions")
    return str(versions.get("femts", "of that format")) if isinstance(versions, Mapping) else "of that format"


def write_intervals(folder: Path, intervals: bytes) -> Path:
    """Replace the intervals of a finished run and return their file; raise RunFailure if it cannot be written.

    They are written to a new file, and `metrics.json` switches to it atomically, so that the run has either the old or
    the new intervals at any moment.
    """
    metrics, digest = read_metrics(folder), hashlib.sha256(intervals).hexdigest()
    name = f"intervals-{digest[:12]}.safetensors"
    write_file(folder / name, intervals)
    files = {name: value for name, value in metrics["files"].items() if not INTERVALS_NAME.fullmatch(name)}
    write_file(folder / METRICS, sealed({**metrics, "files": {**files, name: digest}}))
    for path in folder.iterdir():
        if INTERVALS_NAME.fullmatch(path.name) and path.name != name:
            path.unlink(missing_ok=True)
    return folder / name
