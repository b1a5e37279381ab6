"""From what a user asks for to a study: data, search space and first trial resolved, mistakes named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from femts.analysis.tune.space import FIXED, SEQ_LEN, Dimension, Space, make_dimension, own_search
from femts.config.arguments import check_kind
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.data.protocols import look_back_choices
from femts.data.windows import check_windows
from femts.errors import UsageError, suggest
from femts.forecaster.run_folder import RunConfig
from femts.models.registry import build_model
from femts.text import shown
from femts.training.accelerator import find_accelerator
from femts.training.data_module import split_for
from femts.training.fit import is_trained
from femts.training.resolve import Lengths, horizon, resolve_run, resolve_training

_PARTS = ("model", "training")
_PLACE = ("training.device", "training.devices", "training.eval_batch_size")  # a study may go on elsewhere


@dataclass(frozen=True)
class Question:
    """All that decides the trials of a study.

    Attributes:
        model, pred_len, protocol: as in `train`.
        settings: fixed ones by dotted name.
        space: what is searched.
        recipe: `seq_len` and all settings of the first trial by dotted name.
        rows: the data, cut off at each origin.
        data: `dataset` and how it is read, for a recipe.
        fingerprint: hash and split of the data.
        notes: what a user should hear of them.
    """

    model: str
    pred_len: int
    protocol: str
    settings: Mapping[str, Any]
    space: Space
    recipe: Mapping[str, Any]
    rows: Sequence[Dataset]
    data: Mapping[str, Any]
    fingerprint: Mapping[str, Any]
    notes: tuple[str, ...]

    @property
    def seed(self) -> int:
        """Seed of the trials."""
        return int(self.settings["training.seed"])

    def record(self) -> dict[str, Any]:
        """Plain types that two calls must share to go on with one study."""
        reading = {key: value for key, value in self.data.items() if key != "dataset"}
        return {
            "model": self.model,
            "pred_len": self.pred_len,
            "protocol": self.protocol,
            "origins": len(self.rows),
            "data": {**self.fingerprint, **reading},
            "search": {key: dimension.plain() for key, dimension in self.space.items()},
            **{key: value for key, value in self.recipe.items() if key not in _PLACE},
        }


def make_question(
    dataset: Any,
    asked: tuple[str, Any, Any, Any],
    search: Mapping[str, Any],
    settings: Mapping[str, Any],
    origins: int,
    data_root: str | Path | None,
) -> Question:
    """The question of a study.

    Args:
        dataset: as in `train`.
        asked: model, horizon, look-back and protocol, as in `train`.
        search: values by setting.
        settings: fixed ones.
        origins: rolling origins to score by.
        data_root: as in `train`.

    Raises:
        UsageError: something does not exist or does not fit.
    """
    model, pred_len, seq_len, protocol = asked
    model_settings, training = resolve_training(model, {}, settings)
    _check_settings(search, settings, seq_len)
    find_accelerator(training)
    dimensions = {key: make_dimension(key, values, model) for key, values in search.items()}
    data = dataset if isinstance(dataset, Dataset) else load_dataset(dataset, data_root)
    steps = horizon(data, pred_len).steps
    data = split_for(data, steps)
    config = resolve_run(data, model, Lengths(steps, seq_len, protocol), model_settings, training)
    for part in ("train", "val"):
        check_windows(data, part, config.seq_len, steps, config.reads_raw)
    trained = is_trained(build_model(model, config.model_config, config.quantiles))
    space = _space(model, trained, dimensions, settings)
    if SEQ_LEN not in space and seq_len in (None, "auto") and space:
        choices = look_back_choices(config.protocol, steps, data.typical_rows, data.season)
        space = {SEQ_LEN: Dimension(SEQ_LEN, choices), **space} if len(choices) > 1 else space
    if not space:
        raise UsageError(f"Model '{model}' has nothing left to search; name a setting by --search, or another model.")
    return Question(
        model=model,
        pred_len=steps,
        protocol=config.protocol,
        settings=dict(settings),
        space=space,
        recipe=_recipe(config),
        rows=data.before_test(steps, origins),
        data={**({} if data.source is None else {"dataset": data.source}), **data.schema.reading()},
        fingerprint=data.record,
        notes=data.notes,
    )


def _check_settings(search: object, settings: Mapping[str, Any], seq_len: object) -> None:
    """UsageError for what cannot be searched, and for what is fixed and searched at once."""
    check_kind(search, Mapping, "The search", "give a mapping such as {'training.lr': '1e-4..1e-2'}")
    assert isinstance(search, Mapping)
    for key in search:
        part, dot, name = str(key).partition(".")
        if key != SEQ_LEN and (part not in _PARTS or not dot or not name):
            raise UsageError(
                f"Unknown setting '{shown(key)}'{suggest(str(key), [SEQ_LEN, 'model.NAME', 'training.NAME'])}"
            )
        if name in FIXED:
            raise UsageError(f"Setting '{key}' cannot be searched, for scores would not compare; give it one value.")
        if key in settings or (key == SEQ_LEN and seq_len not in (None, "auto")):
            raise UsageError(f"Setting '{key}' is given a value and searched; leave one of them out.")
    if settings.get("training.max_time") is not None:
        raise UsageError(
            "Setting 'training.max_time' would make scores a matter of the machine; leave it out, and bound the "
            "study by --max-time."
        )


def _space(
    model: str, trained: bool, dimensions: Mapping[str, Dimension], settings: Mapping[str, Any]
) -> dict[str, Dimension]:
    """Dimensions that the model declares, less the fixed ones, and those that the user names, in their place."""
    own = {key: values for key, values in own_search(model, trained).items() if key not in settings}
    space = {key: make_dimension(key, values, model) for key, values in own.items()} | dict(dimensions)
    return {key: space[key] for key in sorted(space, key=lambda key: key != SEQ_LEN)}


def _recipe(config: RunConfig) -> dict[str, Any]:
    parts = {"model": asdict(config.model_config), "training": asdict(config.training)}
    return {SEQ_LEN: config.seq_len} | {f"{part}.{key}": parts[part][key] for part in _PARTS for key in parts[part]}
