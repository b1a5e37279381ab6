"""The run folder: the only place that knows its files, how they are written and how their faults read.

Every file is written beside its final place and moved there, and `metrics.json`, which holds the hashes of the files a
forecaster is loaded from, comes last. So a folder killed at any moment is finished, resumable or as it was before.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from femts.data.form import USUAL, Form
from femts.data.roles import NO_ROLES, Roles
from femts.errors import RunFailure, UsageError
from femts.text import strict_json
from femts.values import read_yaml

FORMAT = 1  # raised when an older femts could not read the folder; not the version of the package
CONFIG, WEIGHTS, PREPROCESS = "config.yaml", "model.safetensors", "preprocess.json"
METRICS, HISTORY, CHECKPOINT = "metrics.json", "metrics.csv", "checkpoints/last.ckpt"
HASHED = (CONFIG, WEIGHTS, PREPROCESS)
INTERVALS = "intervals.safetensors"  # hashed, too, where `metrics.json` lists it; a run may be without


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run, resolved; `config.yaml` as an object.

    Attributes:
        dataset: name of the data set.
        source: what `load_dataset` was given, None when it was a DataFrame.
        model: registered name.
        model_config: the model's frozen configuration.
        protocol: named protocol that chose what was not given.
        training: fields of TrainingConfig by name, the seed among them.
        na: numbers that stand for a missing value in the data.
        form: what the columns of the data are called.
        roles: what they are for.
    """

    dataset: str
    source: str | None
    model: str
    model_config: Any
    protocol: str
    training: Mapping[str, Any]
    na: tuple[float, ...] = ()
    form: Form = USUAL
    roles: Roles = NO_ROLES

    @property
    def seq_len(self) -> int:
        """Steps of look-back."""
        return int(self.model_config.seq_len)

    @property
    def pred_len(self) -> int:
        """Steps of one forecast."""
        return int(self.model_config.pred_len)

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Quantiles that come out of the model; none where a mean does."""
        return tuple(self.training["quantiles"]) if self.training["loss"] == "pinball" else ()

    def to_dict(self) -> dict[str, Any]:
        """Plain types for YAML, in the order in which a person reads them."""
        return {
            "format": FORMAT,
            "dataset": {"name": self.dataset, "source": self.source, "na": list(self.na)}
            | {"columns": self.form.named(), "roles": self.roles.to_dict()},
            "model": {"name": self.model, **_plain(asdict(self.model_config))},
            "pred_len": self.pred_len,
            "seq_len": self.seq_len,
            "protocol": self.protocol,
            "training": _plain(dict(self.training)),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> RunConfig:
        """The inverse of `to_dict`; UsageError when a setting is unknown to this femts."""
        from femts.models.registry import model_card
        from femts.settings import apply_settings

        settings = dict(record["model"])
        name = settings.pop("name")
        card = model_card(name)
        shape = {f.name: settings.pop(f.name) for f in fields(card.model_class.Config)[:3]}
        config = apply_settings(card.model_class.Config(**shape), settings, where="model")
        data = record["dataset"]
        return cls(
            data["name"],
            data["source"],
            name,
            config,
            record["protocol"],
            record["training"],
            tuple(data["na"]),
            Form(**data["columns"]),
            Roles.of(data["roles"]),
        )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def atomic_write(path: Path, content: bytes) -> None:
    """Write `content` to `path` whole or not at all; RunFailure naming `path` when the system refuses."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(part, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RunFailure(f"Could not write {path}: {reason}; make room there or choose another folder.") from error


def check_new_folder(folder: Path) -> None:
    """UsageError unless a new run can be written to `folder`: it is missing, empty, or a run that never got anywhere."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"The output {folder} is a file; name a folder.")
    names = {path.name for path in folder.iterdir() if path.suffix != ".part"} if folder.is_dir() else set()
    if METRICS in names:
        raise UsageError(f"Folder {folder} already holds a finished run; choose another folder or remove it.")
    if (folder / CHECKPOINT).is_file():
        raise UsageError(f"Folder {folder} holds an unfinished run; continue it with --resume or choose another folder.")
    if names and CONFIG not in names:
        raise UsageError(f"Folder {folder} holds files that are no run; choose a new or empty folder.")


def history_csv(history: Sequence[Mapping[str, Any]]) -> bytes:
    """`metrics.csv`: one row for each validation."""
    text = io.StringIO()
    names = ["step", "train_loss", "val_mse", "val_mae", "lr", "seconds"]
    if history and "val_pinball" in history[0]:
        names.insert(4, "val_pinball")
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    return text.getvalue().encode()


def config_yaml(config: RunConfig) -> bytes:
    """`config.yaml` of `config`."""
    import yaml

    return yaml.safe_dump(config.to_dict(), sort_keys=False).encode()


def begin_run(folder: Path, config: RunConfig, preprocess: Mapping[str, Any]) -> None:
    """Begin a run folder: with configuration and preprocessing alone it is unfinished and resumable."""
    atomic_write(folder / CONFIG, config_yaml(config))
    atomic_write(folder / PREPROCESS, _json(preprocess))


def remove_parts(folder: Path) -> None:
    """Remove what writes that were killed left beside their final place."""
    for part in [*folder.glob(".*.part"), *(folder / CHECKPOINT).parent.glob(".*.part")]:
        part.unlink(missing_ok=True)


def write_run(
    folder: Path,
    config: RunConfig,
    weights: bytes,
    preprocess: Mapping[str, Any],
    history: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, Any],
    intervals: bytes | None = None,
) -> None:
    """Write the folder that `read_run` reads, `metrics.json` last; RunFailure when the disk refuses."""
    contents = {CONFIG: config_yaml(config), WEIGHTS: weights, PREPROCESS: _json(preprocess)}
    contents |= {} if intervals is None else {INTERVALS: intervals}
    try:
        (folder / METRICS).unlink(missing_ok=True)  # from here to the last line the folder counts as unfinished
    except OSError as error:
        raise RunFailure(f"Could not write {folder / METRICS}: {error.strerror}; choose another folder.") from error
    for name, content in contents.items():
        atomic_write(folder / name, content)
    atomic_write(folder / HISTORY, history_csv(history))
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    atomic_write(folder / METRICS, _json({"format": FORMAT, **metrics, "files": hashes}))


def write_intervals(folder: Path, intervals: bytes) -> None:
    """Give a finished run these intervals for those it has; RunFailure when the disk refuses.

    Killed at any moment it leaves a run that can be loaded, at worst without intervals: `metrics.json` forgets the old file
    before that is replaced, and lists the new one after.
    """
    metrics = read_metrics(folder)
    files = {name: value for name, value in metrics["files"].items() if name != INTERVALS}
    atomic_write(folder / METRICS, _json({**metrics, "files": files}))
    atomic_write(folder / INTERVALS, intervals)
    files[INTERVALS] = hashlib.sha256(intervals).hexdigest()
    atomic_write(folder / METRICS, _json({**metrics, "files": files}))


def _json(value: Mapping[str, Any]) -> bytes:
    return (strict_json(value, indent=2) + "\n").encode()


@dataclass(frozen=True)
class SavedRun:
    """A finished run as read from its folder: verified, nothing built yet."""

    config: RunConfig
    weights: bytes
    preprocess: Mapping[str, Any]
    metrics: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]
    intervals: bytes | None = None


def read_run(folder: str | Path) -> SavedRun:
    """Read and verify a finished run; UsageError in one sentence for each way in which it cannot be one."""
    folder = Path(folder)
    metrics = read_metrics(folder)
    files = metrics.get("files", {})
    calibrated = INTERVALS in files
    for name in (*HASHED, INTERVALS) if calibrated else HASHED:
        path = folder / name
        if not path.is_file():
            raise UsageError(f"Run {folder} lacks {name}; copy the whole folder or train again.")
        if hashlib.sha256(path.read_bytes()).hexdigest() != files.get(name):
            raise UsageError(f"Run {folder} was changed after it was saved: {name} does not match; train again.")
    history = folder / HISTORY
    rows = list(csv.DictReader(io.StringIO(history.read_text()))) if history.is_file() else []
    kept = [{k: int(v) if k == "step" else float(v) for k, v in row.items()} for row in rows]
    intervals = (folder / INTERVALS).read_bytes() if calibrated else None
    return SavedRun(read_config(folder), (folder / WEIGHTS).read_bytes(), read_preprocess(folder), metrics, kept, intervals)


def read_config(folder: Path) -> RunConfig:
    """`config.yaml` of a run, finished or not; UsageError when the folder is missing, no run, or of another format."""
    if not folder.is_dir():
        raise UsageError(f"There is no run folder {folder}; give the --out of a `femts train`.")
    if not (folder / CONFIG).is_file():
        raise UsageError(f"Folder {folder} is not a femts run: it has no {CONFIG}; give the --out of a `femts train`.")
    try:
        record = read_yaml(folder / CONFIG, "Configuration")
        found = record["format"]
        if found == FORMAT:
            return RunConfig.from_dict(record)
    except UsageError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"Run {folder} was changed after it was saved: {CONFIG} cannot be read; train again.") from error
    raise UsageError(f"Run {folder} has format {found} but this femts reads format {FORMAT}; train again.")


def read_preprocess(folder: Path) -> dict[str, Any]:
    """`preprocess.json` of a run, finished or not; UsageError when it cannot be read."""
    try:
        record = json.loads((folder / PREPROCESS).read_bytes())
        if isinstance(record, dict) and {"scaler", "columns", "freq", "data"} <= record.keys():
            return record
    except (OSError, ValueError) as error:
        raise UsageError(f"Run {folder} lacks a readable {PREPROCESS}; train again.") from error
    raise UsageError(f"Run {folder} was changed after it was saved: {PREPROCESS} lacks entries; train again.")


def read_metrics(folder: Path) -> dict[str, Any]:
    """`metrics.json` of a finished run; UsageError when the folder is missing, no run, unfinished or of another format."""
    if not folder.is_dir():
        raise UsageError(f"There is no run folder {folder}; give the --out of a `femts train`.")
    if not (folder / CONFIG).is_file():
        raise UsageError(f"Folder {folder} is not a femts run: it has no {CONFIG}; give the --out of a `femts train`.")
    if not (folder / METRICS).is_file():
        raise UsageError(f"Run {folder} is unfinished: it has no {METRICS}; finish it with `femts train ... --resume`.")
    try:
        metrics = json.loads((folder / METRICS).read_bytes())
        found = metrics["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"Run {folder} was changed after it was saved: {METRICS} cannot be read; train again.") from error
    if found != FORMAT:
        raise UsageError(
            f"Run {folder} has format {found} but this femts reads format {FORMAT}; "
            f"use femts {metrics.get('versions', {}).get('femts', 'of that format')} or train again."
        )
    return metrics
