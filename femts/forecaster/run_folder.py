"""The run folder: its files and how they are written; `femts.forecaster.saved_run` reads them.

Every file is written beside its final place and moved there, and `metrics.json`, which holds the
hashes of the files a forecaster is loaded from and of itself, comes last. So a folder killed at any
moment is finished, resumable or as it was before, and a changed bit is found: in
`checkpoints/last.ckpt` by a hash of its own. `metrics.csv` is for people alone.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from femts.config.model import ModelConfig
from femts.config.records import fingerprint
from femts.config.training import TrainingConfig
from femts.data.schema import PLAIN, Schema
from femts.errors import RunFailure, UsageError
from femts.files import PART, check_folder, write_file
from femts.text import strict_json

if TYPE_CHECKING:
    from femts.data.known import Reads
    from femts.models.base import ForecastModel

FORMAT = 5  # raised when an older femts could not read the folder; not the version of the package
CONFIG, WEIGHTS, PREPROCESS = "config.yaml", "model.safetensors", "preprocess.json"
METRICS, ROWS, CHECKPOINT = "metrics.json", "metrics.csv", "checkpoints/last.ckpt"
HASHED = (CONFIG, WEIGHTS, PREPROCESS)
SEAL = "sha256"  # of `metrics.json`, in itself
INTERVALS = "intervals.safetensors"  # hashed, too, where `metrics.json` lists it; a run may be without
INTERVALS_NAME = re.compile(r"intervals(-[0-9a-f]{12})?\.safetensors")  # with a part of their hash, when made anew
SCORED = "scored"  # folder of the run that is scored, in that of a forecaster that learned from all rows
EVENTS = "tensorboard"  # folder of the curves of a training, for TensorBoard
CANDIDATES = "candidates"  # folder of the trainings among which `--model auto` chooses, while it does
REQUEST = f"{CANDIDATES}/request.json"  # what such a choice follows from, written before anything else
SCORED_WEIGHTS = f"{SCORED}/{WEIGHTS}"  # hashed by the latter
_OWN = (*HASHED, INTERVALS, METRICS, ROWS, CHECKPOINT)
RUN_FILES = (*_OWN, *(f"{SCORED}/{name}" for name in _OWN))


@dataclass(frozen=True)
class RunConfig:
    """Everything that decides a run, resolved; `config.yaml` as an object.

    Attributes:
        dataset: name of the data set.
        source: what `load_dataset` was given, None when it was a DataFrame.
        model: registered name.
        model_config: the model's frozen configuration.
        protocol: named protocol that chose what was not given.
        training: the recipe, its seed among them.
        schema: how the data are read.
        refit: whether the forecaster learned from all rows, after one that was scored.
    """

    dataset: str
    source: str | None
    model: str
    model_config: ModelConfig
    protocol: str
    training: TrainingConfig
    schema: Schema = PLAIN
    refit: bool = False

    @property
    def seq_len(self) -> int:
        """Steps of look-back."""
        return self.model_config.seq_len

    @property
    def pred_len(self) -> int:
        """Steps of one forecast."""
        return self.model_config.pred_len

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Quantiles that come out of the model; none where a mean does."""
        return self.training.learned_quantiles

    @property
    def reads_raw(self) -> bool:
        """True where the model reads values before scaling."""
        return self._model_class.supports_of(self.model_config).raw

    @property
    def reads(self) -> Reads:
        """How what is known in advance reaches the model."""
        from femts.data.known import Reads  # numpy takes long to import

        supports = self._model_class.supports_of(self.model_config)
        return Reads.of(self.schema.roles, supports.known, supports.calendar, self.training.covariates)

    def known_steps(self, steps: int) -> int:
        """Steps whose known columns a forecast of `steps` is made from: where the model reads some, the forecast is the
        beginning of one of whole horizons."""
        return -(-steps // self.pred_len) * self.pred_len if self.reads.any else steps

    @property
    def fewest_rows(self) -> int:
        """Rows that a history needs at least."""
        return self._model_class.fewest_rows(self.model_config)

    @property
    def _model_class(self) -> type[ForecastModel]:
        from femts.models.registry import model_card

        return model_card(self.model).model_class

    def to_dict(self) -> dict[str, Any]:
        """Plain types for YAML, in the order in which a person reads them."""
        return {
            "format": FORMAT,
            "dataset": {"name": self.dataset, "source": self.source, **self.schema.to_dict()},
            "model": {"name": self.model, **_plain(asdict(self.model_config))},
            "pred_len": self.pred_len,
            "seq_len": self.seq_len,
            "protocol": self.protocol,
            "training": _plain(asdict(self.training)),
            **({"refit": True} if self.refit else {}),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> RunConfig:
        """The inverse of `to_dict`; UsageError when a setting is unknown to this femts."""
        from femts.config.settings import apply_settings
        from femts.models.registry import read_config

        settings = dict(record["model"])
        name = settings.pop("name")
        data = record["dataset"]
        return cls(
            data["name"],
            data["source"],
            name,
            read_config(name, settings),
            record["protocol"],
            apply_settings(TrainingConfig(), record["training"], where="training"),
            Schema.from_dict(data),
            bool(record.get("refit")),
        )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def check_new_folder(folder: Path) -> None:
    """UsageError unless a new run can be written to `folder`: it is missing, empty, or a run that
    never got anywhere."""
    check_folder(folder)
    names = {path.name for path in folder.iterdir() if path.suffix != PART} if os.path.isdir(folder) else set()
    if METRICS in names:
        raise UsageError(
            f"Folder {folder} already holds a finished run; choose another folder, or replace it with --overwrite "
            "(overwrite=True)."
        )
    begun = (CHECKPOINT, f"{SCORED}/{CHECKPOINT}", f"{SCORED}/{METRICS}", REQUEST)
    if any((folder / name).exists() for name in begun):
        raise UsageError(
            f"Folder {folder} holds an unfinished run; continue it with --resume or choose another folder."
        )
    if names - {CANDIDATES} and CONFIG not in names:
        raise UsageError(f"Folder {folder} contains files that are not a run; choose a new or empty folder.")


def check_replaceable(folder: Path) -> None:
    """UsageError unless a new run can take the place of what is in `folder`: nothing, or runs of femts, finished or "
    "not,
    of whatever version."""
    check_folder(folder)
    names = {path.name for path in folder.iterdir() if path.suffix != PART} if os.path.isdir(folder) else set()
    if names and not (_is_run(folder) or _runs_within(folder)):
        raise UsageError(
            f"Folder {folder} contains files that are not a run and are never overwritten; choose a new or empty "
            "folder."
        )


def clear_run(folder: Path) -> None:
    """Remove the run in `folder`, and those of several horizons within it; files that no training wrote stay.

    What says that it is a run goes last, so that a folder killed in between can be cleared again.

    Raises:
        RunFailure: the disk refuses.
    """
    unfinish(folder)
    try:
        for run in _runs_within(folder):
            _remove_run(run)
            with suppress(OSError):  # where something else is in it
                run.rmdir()
        _remove_run(folder)
    except OSError as error:
        raise RunFailure(f"Could not remove {error.filename}: {error.strerror}; choose another folder.") from error


def _remove_run(folder: Path) -> None:
    own = [folder / name for name in RUN_FILES if name != CONFIG]
    for within in (folder, folder / SCORED):
        own += [path for path in within.glob("intervals*") if INTERVALS_NAME.fullmatch(path.name)]
        own += within.glob(f"{EVENTS}/events.out.tfevents.*")
    for path in (*own, folder / CONFIG):
        path.unlink(missing_ok=True)
    if (folder / CANDIDATES).is_dir():
        shutil.rmtree(folder / CANDIDATES)
    for within in (folder / SCORED, folder):
        for emptied in (within / EVENTS, (within / CHECKPOINT).parent):
            with suppress(OSError):  # where there is none, or something else is in it
                emptied.rmdir()
    with suppress(OSError):
        (folder / SCORED).rmdir()


def _is_run(folder: Path) -> bool:
    """Tell if the files in `folder` are of a training: its configuration, or the request of a choice."""
    import yaml

    try:
        record = yaml.safe_load((folder / CONFIG).read_bytes())
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        record = None
    known = isinstance(record, dict) and {"format", "dataset", "model", "training"} <= record.keys()
    return known or (folder / REQUEST).is_file()


def _runs_within(folder: Path) -> list[Path]:
    """Folders of the runs of a training over several horizons, which are named by these."""
    within = sorted(folder.iterdir()) if os.path.isdir(folder) else []
    return [path for path in within if path.name.isdecimal() and path.is_dir() and _is_run(path)]


def has_begun(folder: Path) -> bool:
    """Tell if a training left in `folder` what it is of; one that was killed before has nothing to go on with."""
    return (folder / CONFIG).is_file() or (folder / REQUEST).is_file()


def validations_csv(validations: Sequence[Mapping[str, Any]]) -> bytes:
    """`metrics.csv`: one row for each validation."""
    text = io.StringIO()
    names = ["step", "train_loss", "val_mse", "val_mae", "lr", "seconds"]
    writer = csv.DictWriter(text, list(validations[0]) if validations else names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(validations)
    return text.getvalue().encode()


def config_yaml(config: RunConfig) -> bytes:
    """`config.yaml` of `config`."""
    import yaml

    return yaml.safe_dump(config.to_dict(), sort_keys=False).encode()


def begin_run(folder: Path, config: RunConfig, preprocess: Mapping[str, Any]) -> None:
    """Begin a run folder: with configuration and preprocessing alone it is unfinished and resumable."""
    write_file(folder / CONFIG, config_yaml(config))
    write_file(folder / PREPROCESS, json_bytes(preprocess))


def write_run(
    folder: Path,
    config: RunConfig,
    files: Mapping[str, bytes],
    validations: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, Any],
) -> None:
    """Write the folder that `read_run` reads, `metrics.json` last; RunFailure when the disk refuses.

    `files` are the contents of `WEIGHTS`, `PREPROCESS` and, where a run has some, `INTERVALS`.
    """
    contents = {CONFIG: config_yaml(config), **files}
    unfinish(folder)  # from here to the last line
    for name, content in contents.items():
        write_file(folder / name, content)
    write_file(folder / ROWS, validations_csv(validations))
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    rows = [dict(row) for row in validations]
    write_file(folder / METRICS, sealed({"format": FORMAT, **metrics, "history": rows, "files": hashes}))


def unfinish(folder: Path) -> None:
    """Make a run folder count as unfinished, before its files are written over; RunFailure when the disk refuses."""
    try:
        (folder / METRICS).unlink(missing_ok=True)
    except OSError as error:
        raise RunFailure(f"Could not write {folder / METRICS}: {error.strerror}; choose another folder.") from error


def sealed(metrics: Mapping[str, Any]) -> bytes:
    """`metrics.json`, with a hash of all else that it says."""
    content = {name: value for name, value in json.loads(strict_json(metrics)).items() if name != SEAL}
    return json_bytes({**content, SEAL: fingerprint(content)})


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """JSON as it is written to a run folder."""
    return (strict_json(value, indent=2) + "\n").encode()
