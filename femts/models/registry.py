"""Models by name: a decorator registers them, `build_model` makes them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from femts.config.arguments import check_text
from femts.config.model import AUTO, SHAPE, ModelConfig
from femts.config.settings import make_config
from femts.errors import UsageError
from femts.models.base import ForecastModel
from femts.plugins import Registry, import_all


@dataclass(frozen=True)
class ModelCard:
    """One entry of the registry.

    Attributes:
        name: what the user types.
        summary: one line on what it is.
        model_class: the module.
        overrides: fields of its configuration that this name fixes as defaults.
    """

    name: str
    summary: str
    model_class: type[ForecastModel]
    overrides: Mapping[str, Any]

    def default_settings(self) -> dict[str, Any]:
        """Settable fields (all but the shape of the data) with their defaults under this name."""
        defaults = {f.name: f.default for f in fields(self.model_class.Config) if f.name not in SHAPE}
        return {**defaults, **self.overrides}


MODELS: Registry[ModelCard] = Registry("model", load=lambda: import_all("femts.models"))
_Model = TypeVar("_Model", bound=type[ForecastModel])


def register(name: str, summary: str, **overrides: Any) -> Callable[[_Model], _Model]:
    """Class decorator: make a `ForecastModel` available by a name; one class may have several.

    Args:
        name: for users to type.
        summary: one line on what it is.
        overrides: fields of its configuration that this name fixes as defaults.

    Returns:
        The decorator.

    Raises:
        ValueError: a name that is taken.
    """

    def add(model_class: _Model) -> _Model:
        MODELS.add(name, ModelCard(name, summary, model_class, overrides), model_class.__module__)
        return model_class

    return add


def model_names() -> list[str]:
    """All registered names of models that can be trained, sorted."""
    return [name for name in MODELS.names() if not MODELS[name].model_class.combines]


def model_card(name: str) -> ModelCard:
    """The entry called `name`; UsageError with the nearest right name when there is none."""
    if check_text(name, "model") == AUTO:
        raise UsageError(f"Model '{AUTO}' chooses among the models when it is trained; name one of them here.")
    return MODELS[name]


def build_config(
    name: str, *, seq_len: int, pred_len: int, n_channels: int, settings: Mapping[str, Any]
) -> ModelConfig:
    """The frozen configuration of model `name` with `settings` (key -> value or text) applied;
    UsageError if one is wrong."""
    card = model_card(name)
    given = {"seq_len": seq_len, "pred_len": pred_len, "n_channels": n_channels, **card.overrides}
    return make_config(card.model_class.Config, given, settings, where="model")


def read_config(name: str, record: Mapping[str, Any]) -> ModelConfig:
    """The configuration of model `name` from its `record`, all fields in plain types.

    Raises:
        UsageError: no such model, or a setting that is unknown or wrong.
        KeyError: the record lacks a part of the shape.
    """
    kind, settings = model_card(name).model_class.Config, dict(record)
    return make_config(kind, {key: settings.pop(key) for key in SHAPE}, settings, where="model")


def has_seen(record: Mapping[str, Any], dataset: str) -> bool:
    """Whether the model of a `config.yaml`, its `model` given as `record`, was trained on `dataset` before its "
    "training;
    see `ModelConfig.has_seen`."""
    settings = dict(record)
    name = settings.pop("name")
    kind = model_card(name).model_class.Config
    return kind.has_seen is not ModelConfig.has_seen and read_config(name, settings).has_seen(dataset)


def build_model(name: str, config: ModelConfig, quantiles: Sequence[float] = ()) -> ForecastModel:
    """The model called `name` with the configuration that `build_config` made, for `quantiles`
    where it is to learn some.

    Raises:
        UsageError: quantiles for a model that cannot learn them.
    """
    model_class = model_card(name).model_class
    if not quantiles:
        return model_class(config)
    check_learns_quantiles(name)
    return model_class(config, quantiles)


def check_trained(name: str) -> None:
    """UsageError for a model that is made of others, and not trained itself."""
    if model_card(name).model_class.combines:
        raise UsageError(
            f"Model '{name}' is an ensemble of trained models, built by femts.mean_of or --model auto, and cannot be "
            "trained itself; use one that `femts models` lists."
        )


def check_library(name: str) -> None:
    """UsageError for a model whose library is not installed."""
    needs = model_card(name).model_class.needs
    if needs is not None and importlib.util.find_spec(needs[0]) is None:
        raise UsageError(
            f"Model '{name}' needs {needs[0]}, which is not installed; run pip install 'femts[{needs[1]}]'."
        )


def check_learns_quantiles(name: str) -> None:
    """UsageError for a model that cannot be trained by the pinball loss."""
    if not model_card(name).model_class.supports.quantiles:
        raise UsageError(
            f"Model '{name}' does not support training.loss=pinball; remove it, since intervals do not need it, or "
            "use a model such as fem_sm or dlinear."
        )
