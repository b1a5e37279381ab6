"""A cell of a table: one training run, fully determined by its fields."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from femts.config.model import AUTO, SHAPE
from femts.errors import UsageError
from femts.experiments.results import Job, Record
from femts.logging import quiet_training

if TYPE_CHECKING:
    from femts.data.dataset import Dataset

# Settings that affect where, how fast or how long a cell may run, but not its result.
RESOURCES = ("device", "devices", "compile", "graph", "max_time", "eval_batch_size")
FROM_DATA = ("channels", "n_static", "n_known")
PLAIN = re.compile(r"[\w.+-]{0,19}\w", re.ASCII)  # values allowed in folder names on every system, also at the end
LONGEST = 80  # characters of settings in a folder name, which some systems limit to 255


@dataclass(frozen=True)
class Cell(Job):
    """One run of the table, as requested.

    Attributes:
        dataset: catalogue name, or file name without suffix.
        model: registered name.
        pred_len: horizon in steps.
        seed: seed of weights, order and dropout.
        protocol: protocol that fills in the look-back.
        seq_len: look-back in steps; None leaves it to the protocol.
        settings: `model.*` and `training.*` settings that differ from the model's own recipe.
        own: for files, or catalogue data read with other keywords, their `sha256` and the arguments of `load_dataset`,
            in plain types.
    """

    record_format: ClassVar = 1
    record_model: ClassVar = Record
    command: ClassVar = "femts table"

    dataset: str
    model: str
    pred_len: int
    seed: int = 42
    protocol: str = "paper"
    seq_len: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    own: Mapping[str, Any] | None = None

    @property
    def variant(self) -> str:
        """The recipe as part of a path: the protocol and any differing settings, as in `paper-training.max_steps=3000`,
        or a hash of these if they are long or not plain."""
        changes = {key: str(value) for key, value in {"seq_len": self.seq_len, **self.settings}.items()}
        if self.seq_len is None:
            del changes["seq_len"]
        if not changes:
            return self.protocol
        return f"{self.protocol}-{name_of_settings(changes)}"

    @property
    def path(self) -> str:
        """Path of its record in a results folder, without suffix. For the user's own data, the name includes a hash of
        their contents and schema, so changed data give new cells; the location of the file does not matter."""
        data = self.dataset
        if self.own is not None:
            data += f"-{_hash({key: value for key, value in self.own.items() if key != 'source'})}"
        return f"{self.variant}/{data}/{self.model}-{self.pred_len}-seed{self.seed}"

    @property
    def source(self) -> str:
        return self.dataset

    def notes(self, data_root: Path | None) -> Sequence[str]:
        return self.load(data_root).notes

    def to_dict(self) -> dict[str, Any]:
        """The `cell` of a record."""
        fields = {**asdict(self), "settings": {key: str(value) for key, value in self.settings.items()}}
        return {name: value for name, value in fields.items() if name != "own" or value is not None}

    def check_is_of(self, record: Mapping[str, Any]) -> None:
        stored, expected = record["cell"], self.to_dict()
        for name in expected.keys() | stored.keys():
            value, other = stored.get(name), expected.get(name)
            if name == "own":  # the location of a file does not matter
                value, other = (None if own is None else {**own, "source": None} for own in (value, other))
            if value != other:
                raise ValueError(f"cell.{name} is {value!r}, not {other!r} as its path in the results folder implies")
        if self.model != AUTO:
            self._check_recipe(record["config"])

    def _check_recipe(self, config: Mapping[str, Any]) -> None:
        """Raise ValueError if the cell would have another configuration today, because a default that it does not set
        has changed."""
        from femts.models.registry import build_config
        from femts.training.resolve import resolve_training

        given, training = resolve_training(self.model, {}, self.settings)
        model = build_config(self.model, **{name: config["model"][name] for name in SHAPE}, settings=given)
        for part, today in (("model", asdict(model)), ("training", asdict(training))):
            for name, value in json.loads(json.dumps(today)).items():
                said = config[part].get(name, value)  # settings that are newer than the record have their defaults
                left = f"{part}.{name}" not in self.settings and name not in (*RESOURCES, *FROM_DATA, "seed")
                if left and value is not None and said != value:
                    raise ValueError(
                        f"config.{part}.{name} is {said!r}, not {value!r} as in the model's current recipe"
                    )

    @classmethod
    def of(cls, record: Mapping[str, Any], data_root: str | None) -> Self:
        return cls(**record["cell"])

    def with_newer_fields(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**record, "config": with_newer_settings(record["config"])}

    def check_data(self, record: Mapping[str, Any], data_root: str | None) -> None:
        if self.load(data_root).sha256 != record["data"]["sha256"]:
            raise UsageError(
                f"The data of {self.dataset} do not match the record (sha256 {record['data']['sha256'][:12]}...)."
            )

    def main_score(self, record: Mapping[str, Any]) -> tuple[str, float]:
        return "test MSE", record["test"]["mse"]

    def summary(self, record: Mapping[str, Any]) -> str:
        return f"test MSE {record['test']['mse']:.4f}"

    def load(self, data_root: str | Path | None = None) -> Dataset:
        """Load the data, split for the horizon.

        Raises:
            UsageError: The data do not exist, or a file has changed since the cell was created.
        """
        from femts.data.loading import load_dataset

        own = self.own or {"source": self.dataset}
        reading = {key: value for key, value in own.items() if key not in ("source", "sha256")}
        data = load_dataset(own["source"], data_root, **reading)
        if self.own is not None and data.sha256 != self.own["sha256"]:
            raise UsageError(f"File {data.source} has changed since the table was started; run 'femts table' again.")
        return data.for_horizon(self.pred_len)

    def run(self, work: Path | None, device: str, data_root: str | None) -> dict[str, Any]:
        from femts.experiments.record import make_record
        from femts.training.train import train

        data = self.load(data_root)
        with quiet_training():
            forecaster = train(
                data,
                self.model,
                self.pred_len,
                seq_len=self.seq_len,
                protocol=self.protocol,
                out=work,
                seed=self.seed,
                device=device,
                resume=work is not None,
                refit=False,
                settings=self.settings,
            )
        return {"format": self.record_format, "cell": self.to_dict(), **make_record(forecaster, data)}


def name_of_settings(changes: Mapping[str, str]) -> str:
    """Settings as a part of a path, such as `training.max_steps=3000`; a hash if they are long or not plain."""
    words = ",".join(f"{key}={value}" for key, value in sorted(changes.items()))
    plain = len(words) <= LONGEST and all(map(PLAIN.fullmatch, changes.values()))
    return words if plain else _hash(changes)


def check_settings(settings: Iterable[str]) -> None:
    """Raise UsageError for a setting that only affects where or how long a cell runs, or that is part of the cell."""
    for key in settings:
        if key.removeprefix("training.") in (*RESOURCES, "seed"):
            raise UsageError(
                f"Setting '{key}' cannot be set for a cell; use the option of 'femts table' if there is one."
            )


def with_newer_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The `config` of a record, with settings of its model and training that are newer than it at their defaults."""
    from dataclasses import MISSING, fields

    from femts.config.training import TrainingConfig
    from femts.models.registry import model_card

    kinds = {"model": model_card(config["model"]["name"]).model_class.Config, "training": TrainingConfig}
    defaults = {
        part: {each.name: each.default for each in fields(kind) if each.default is not MISSING}
        for part, kind in kinds.items()
    }
    return {**config, **{part: {**json.loads(json.dumps(defaults[part])), **config[part]} for part in kinds}}


def _hash(what: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:8]
