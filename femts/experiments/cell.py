"""A cell of a table: one training run, decided by what it says and by nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from femts.config.model import AUTO, SHAPE
from femts.errors import UsageError
from femts.experiments.results import Job, Record
from femts.logging import quiet_training

if TYPE_CHECKING:
    from femts.data.dataset import Dataset

# Settings that change where and how fast a cell runs, or how long it may, but not what it is.
RESOURCES = ("device", "devices", "compile", "max_time", "eval_batch_size")
FROM_DATA = ("channels", "n_static", "n_known")
PLAIN = re.compile(r"[\w.+-]{0,19}\w", re.ASCII)  # a value that every system takes in a folder's name, at its end too
LONGEST = 80  # characters of settings in it; some systems allow 255 for a name


@dataclass(frozen=True)
class Cell(Job):
    """One run of the table, as it was asked for.

    Attributes:
        dataset: name of the catalogue, or of a file without its ending.
        model: registered name.
        pred_len: horizon in steps.
        seed: of weights, order and dropout.
        protocol: what fills in the look-back.
        seq_len: look-back in steps; None leaves it to the protocol.
        settings: `model.*` and `training.*` that differ from the model's own recipe.
        own: for a file, or a set of the catalogue that is read in one's own way, its `sha256` and the arguments of
            `load_dataset` that find it again, in plain types.
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
        """The recipe as part of a path: the protocol, and where something differs from it what does,
        as `paper-training.max_steps=3000`, or a hash of that where it is long or not plain."""
        changes = {key: str(value) for key, value in {"seq_len": self.seq_len, **self.settings}.items()}
        if self.seq_len is None:
            del changes["seq_len"]
        if not changes:
            return self.protocol
        words = ",".join(f"{key}={value}" for key, value in sorted(changes.items()))
        plain = len(words) <= LONGEST and all(map(PLAIN.fullmatch, changes.values()))
        return f"{self.protocol}-{words if plain else _hash(changes)}"

    @property
    def path(self) -> str:
        """Path of its record in a folder of results, without suffix. The name of data of one's own
        has a hash of what they hold and of how they are read, so changed data make new cells; where
        their file lies makes no difference."""
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
            if name == "own":  # where a file lies makes no difference
                value, other = (None if own is None else {**own, "source": None} for own in (value, other))
            if value != other:
                raise ValueError(f"cell.{name} is {value!r}, not {other!r} as its place among the results says")
        if self.model != AUTO:
            self._check_recipe(record["config"])

    def _check_recipe(self, config: Mapping[str, Any]) -> None:
        """ValueError where the cell would be made otherwise today: a default that it leaves alone has changed since."""
        from femts.models.registry import build_config
        from femts.training.resolve import resolve_training

        given, training = resolve_training(self.model, {}, self.settings)
        model = build_config(self.model, **{name: config["model"][name] for name in SHAPE}, settings=given)
        for part, today in (("model", asdict(model)), ("training", asdict(training))):
            for name, value in json.loads(json.dumps(today)).items():
                said = config[part].get(name, value)  # a setting younger than the record is as by default
                left = f"{part}.{name}" not in self.settings and name not in (*RESOURCES, *FROM_DATA, "seed")
                if left and value is not None and said != value:
                    raise ValueError(
                        f"config.{part}.{name} is {said!r}, not {value!r} as the model's recipe says today"
                    )

    def summary(self, record: Mapping[str, Any]) -> str:
        return f"test MSE {record['test']['mse']:.4f}"

    def load(self, data_root: str | Path | None = None) -> Dataset:
        """The data, split for the horizon.

        Raises:
            UsageError: it is not there, or a file of one's own has changed since the cell was made.
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
        return make_record(self, forecaster, data)


def with_newer_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The `config` of a record, with settings of its model and training that are younger at their defaults."""
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
