"""The files of a run folder and how they are written; see `femts.forecaster.saved_run` for reading.

Every file is written under a temporary name and then moved. `metrics.json`, which contains the hashes of all files that
a forecaster is loaded from and its own, is written last, and that of a scored model is hashed in turn. A process that is
killed at any moment therefore leaves a folder that is finished or resumable, and every changed bit is detected;
`checkpoints/last.ckpt` has a hash of its own. `metrics.csv` is informational. A finished run is never changed, only
replaced as a whole; see `femts.forecaster.replacing`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
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
from femts.text import argument, strict_json

if TYPE_CHECKING:
    from femts.data.known import Reads
    from femts.models.base import ForecastModel

FORMAT = 6  # increased if older versions of femts cannot read the folder; not the version of the package
CONFIG, WEIGHTS, PREPROCESS = "config.yaml", "model.safetensors", "preprocess.json"
METRICS, ROWS, CHECKPOINT = "metrics.json", "metrics.csv", "checkpoints/last.ckpt"
HASHED = (CONFIG, WEIGHTS, PREPROCESS)
SEAL = "sha256"  # key of the hash of `metrics.json` in itself
INTERVALS = "intervals.safetensors"  # optional; hashed if listed in `metrics.json`
SCORED = "scored"  # run folder of the scored model, within that of the refitted forecaster
EVENTS = "tensorboard"  # folder of the TensorBoard curves
CANDIDATES = "candidates"  # folder of the trials of `--model auto`, during the selection
REQUEST = f"{CANDIDATES}/request.json"  # request of such a selection, written before anything else
SCORED_METRICS = f"{SCORED}/{METRICS}"  # hashed in the metrics of the refitted run, so that both belong together
# Folders within that of a run; see `femts.forecaster.replacing`.
NEW, CALIBRATED, READY, DONE = ".new", ".calibrated", ".ready", ".done"
_OWN = (*HASHED, INTERVALS, METRICS, ROWS, CHECKPOINT)
RUN_FILES = (*_OWN, *(f"{SCORED}/{name}" for name in _OWN))


@dataclass(frozen=True)
class RunConfig:
    """Resolved configuration of a run, as stored in `config.yaml`.

    Attributes:
        dataset: name of the dataset.
        source: argument of `load_dataset`, None for a DataFrame.
        model: registered name.
        model_config: frozen configuration of the model.
        protocol: protocol that filled in what was not given.
        training: recipe, including the seed.
        schema: how the data are read.
        refit: whether the forecaster was refitted on all rows after scoring.
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
        """Look-back in steps."""
        return self.model_config.seq_len

    @property
    def pred_len(self) -> int:
        """Horizon in steps."""
        return self.model_config.pred_len

    @property
    def quantiles(self) -> tuple[float, ...]:
        """Quantiles that the model forecasts; empty for a model of the mean."""
        return self.training.learned_quantiles

    @property
    def reads_raw(self) -> bool:
        """Whether the model reads values before scaling."""
        return self._model_class.supports_of(self.model_config).raw

    def looks_within(self, season: int) -> bool:
        """Whether look-backs have to be within a single series of this season: not those of a model that is fitted to
        each of them, nor a single season of one without parameters, which learns from no windows."""
        supports = self._model_class.supports_of(self.model_config)
        return not (supports.raw or (supports.fixed and self.seq_len <= season))

    @property
    def reads(self) -> Reads:
        """How the model uses future covariates and calendar."""
        from femts.data.known import Reads  # numpy takes long to import

        supports, roles = self._model_class.supports_of(self.model_config), self.schema.roles
        dated = getattr(self.model_config, "n_known", 0) - len(roles.future) * supports.known
        return Reads.of(roles, supports, self.training.covariates, dated // 2)

    def known_steps(self, steps: int) -> int:
        """Number of steps whose future covariates a forecast of `steps` needs: models that read them forecast whole
        horizons and truncate."""
        return -(-steps // self.pred_len) * self.pred_len if self.reads.any else steps

    @property
    def fewest_rows(self) -> int:
        """Smallest number of rows that a history needs."""
        return self._model_class.fewest_rows(self.model_config)

    @property
    def _model_class(self) -> type[ForecastModel]:
        from femts.models.registry import model_card

        return model_card(self.model).model_class

    def to_dict(self) -> dict[str, Any]:
        """Plain types for YAML, in an order suited to readers."""
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
        """Inverse of `to_dict`; raise UsageError if a setting is unknown to this version of femts."""
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
    """Raise UsageError unless a new run can be written to `folder`: it does not exist, is empty, or holds a run that
    never started training."""
    names = _names(folder)
    if METRICS in names:
        fault = f"Folder {folder} already holds a finished run"
        text = f"{fault}; choose another folder, or replace it with {argument('overwrite=True')}."
        raise UsageError(text, argument="out", value=folder, remedy={"overwrite": True})
    begun = (CHECKPOINT, f"{SCORED}/{CHECKPOINT}", SCORED_METRICS, REQUEST)
    if any((folder / name).exists() for name in begun) or (CONFIG not in names and runs_within(folder)):
        text = f"Folder {folder} holds an unfinished run; continue it with {argument('resume=True')} or choose another folder."
        raise UsageError(text, argument="out", value=folder, remedy={"resume": True})
    if names - {CANDIDATES} and CONFIG not in names:
        text = f"Folder {folder} contains files that are not a run; choose a new or empty folder."
        raise UsageError(text, argument="out", value=folder)


def check_replaceable(folder: Path) -> None:
    """Raise UsageError unless `folder` may be replaced by a new run: it is empty or holds runs of femts, finished or
    not, of any version."""
    if _names(folder) and not any(_is_run(place) or runs_within(place) for place in (folder, folder / READY)):
        raise UsageError(
            f"Folder {folder} contains files that are not a run and are never overwritten; choose a new or empty "
            "folder."
        )


def _names(folder: Path) -> set[str]:
    """Names in `folder` that do not come from killed writes; with those of a complete run that is being moved there."""
    check_folder(folder)
    within = [path for path in (folder, folder / READY) if os.path.isdir(path)]
    every = {path.name for each in within for path in each.iterdir() if path.suffix != PART}
    return every - {NEW, READY, DONE, CALIBRATED}


def own_files(folder: Path) -> Iterator[Path]:
    """The files of the run in `folder`, with the one that identifies it last."""
    for name in RUN_FILES:
        if name != CONFIG and os.path.lexists(folder / name):
            yield folder / name
    for within in (folder, folder / SCORED):
        yield from sorted(within.glob(f"{EVENTS}/events.out.tfevents.*"))
    if os.path.lexists(folder / CONFIG):
        yield folder / CONFIG


def clear_runs(folder: Path) -> None:
    """Remove the run in `folder`, and runs of several horizons within it; other files stay.

    Raises:
        RunFailure: A file cannot be removed.
    """
    for run in runs_within(folder):
        clear_run(run)
        with suppress(OSError):  # keeps folders with other files in them
            run.rmdir()
    clear_run(folder)


def clear_run(folder: Path) -> None:
    """Remove the run in `folder`; other files stay. The files that identify it are removed last, so that a folder whose
    removal was killed can be cleared again.

    Raises:
        RunFailure: A file cannot be removed.
    """
    unfinish(folder)
    try:
        for path in own_files(folder):
            path.unlink(missing_ok=True)
        if (folder / CANDIDATES).is_dir():
            shutil.rmtree(folder / CANDIDATES)
    except OSError as error:
        raise RunFailure(f"Could not remove {error.filename}: {error.strerror}; choose another folder.") from error
    for within in (folder / SCORED, folder):
        for emptied in (within / EVENTS, (within / CHECKPOINT).parent):
            with suppress(OSError):  # there is none, or it has other files in it
                emptied.rmdir()
    with suppress(OSError):
        (folder / SCORED).rmdir()


def _is_run(folder: Path) -> bool:
    """Return whether `folder` holds files of a training: its configuration, or the request of a selection."""
    import yaml

    try:
        record = yaml.safe_load((folder / CONFIG).read_bytes())
    except (OSError, yaml.YAMLError, ValueError, RecursionError):
        record = None
    known = isinstance(record, dict) and {"format", "dataset", "model", "training"} <= record.keys()
    return known or (folder / REQUEST).is_file()


def runs_within(folder: Path) -> list[Path]:
    """Folders of the runs of a training over several horizons, named after these; empty if one never began."""
    within = sorted(folder.iterdir()) if os.path.isdir(folder) else []
    named = [path for path in within if path.name.isdecimal() and path.is_dir()]
    return [path for path in named if _is_run(path) or not any(path.iterdir())]


def has_begun(folder: Path) -> bool:
    """Return whether the training in `folder` recorded its configuration; a run killed earlier cannot be resumed."""
    return (folder / CONFIG).is_file() or (folder / REQUEST).is_file()


def validations_csv(validations: Sequence[Mapping[str, Any]]) -> bytes:
    """Contents of `metrics.csv`: one row for each validation."""
    text = io.StringIO()
    names = ["step", "train_loss", "val_mse", "val_mae", "lr", "seconds"]
    writer = csv.DictWriter(text, list(validations[0]) if validations else names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(validations)
    return text.getvalue().encode()


def config_yaml(config: RunConfig) -> bytes:
    """Contents of `config.yaml`."""
    import yaml

    return yaml.safe_dump(config.to_dict(), sort_keys=False).encode()


def begin_run(folder: Path, config: RunConfig, preprocess: Mapping[str, Any]) -> None:
    """Start a run folder: with only configuration and preprocessing, it is unfinished and resumable."""
    write_file(folder / CONFIG, config_yaml(config))
    write_file(folder / PREPROCESS, preprocess_bytes(preprocess))


def write_run(
    folder: Path,
    config: RunConfig,
    files: Mapping[str, bytes],
    validations: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, Any],
) -> None:
    """Write the folder that `read_run` reads, with `metrics.json` last; raise RunFailure if it cannot be written. With
    `config.refit`, the scored run within it has been written.

    `files` are the contents of `WEIGHTS`, `PREPROCESS` and, if the run has intervals, `INTERVALS`.
    """
    contents = {CONFIG: config_yaml(config), **files}
    unfinish(folder)  # until the last line
    for name, content in contents.items():
        write_file(folder / name, content)
    write_file(folder / ROWS, validations_csv(validations))
    if config.refit:
        contents[SCORED_METRICS] = (folder / SCORED_METRICS).read_bytes()
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    rows = [dict(row) for row in validations]
    write_file(folder / METRICS, sealed({"format": FORMAT, **metrics, "history": rows, "files": hashes}))


def unfinish(folder: Path) -> None:
    """Mark a run folder as unfinished before its files are replaced; raise RunFailure if it cannot be written."""
    try:
        (folder / METRICS).unlink(missing_ok=True)
    except OSError as error:
        raise RunFailure(f"Could not write {folder / METRICS}: {error.strerror}; choose another folder.") from error


def sealed(metrics: Mapping[str, Any]) -> bytes:
    """Contents of `metrics.json` with a hash of everything else in it."""
    content = {name: value for name, value in json.loads(strict_json(metrics)).items() if name != SEAL}
    return json_bytes({**content, SEAL: fingerprint(content)})


def json_bytes(value: Mapping[str, Any], indent: int | None = 2) -> bytes:
    """JSON in the format of run folders."""
    return (strict_json(value, indent=indent) + "\n").encode()


def preprocess_bytes(record: Mapping[str, Any]) -> bytes:
    """Contents of `preprocess.json`, without indentation, with which those of 100,000 series take ten seconds."""
    return json_bytes(record, indent=None)
