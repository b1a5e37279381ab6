"""Registry of models by name."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from femts.config.arguments import check_text
from femts.config.model import AUTO, SHAPE, ModelConfig
from femts.config.settings import make_config
from femts.errors import UsageError, reads
from femts.models.base import ForecastModel
from femts.plugins import Registry, import_all
from femts.text import arguments


@dataclass(frozen=True)
class ModelCard:
    """One entry of the registry.

    Attributes:
        name: name that users type.
        summary: description in one line.
        model_class: class of the model.
        overrides: defaults of configuration fields under this name.
    """

    name: str
    summary: str
    model_class: type[ForecastModel]
    overrides: Mapping[str, Any]

    def default_settings(self) -> dict[str, Any]:
        """Settings (all fields but the shape of the data) with their defaults under this name."""
        defaults = {f.name: f.default for f in fields(self.model_class.Config) if f.name not in SHAPE}
        return {**defaults, **self.overrides}


MODELS: Registry[ModelCard] = Registry("model", load=lambda: import_all("femts.models"))
_Model = TypeVar("_Model", bound=type[ForecastModel])


def register(name: str, summary: str, **overrides: Any) -> Callable[[_Model], _Model]:
    """Class decorator that registers a `ForecastModel` under a name; one class may have several.

    Args:
        name: name that users type.
        summary: description in one line.
        overrides: defaults of configuration fields under this name.

    Returns:
        The decorator.

    Raises:
        ValueError: The name is taken.
    """

    def add(model_class: _Model) -> _Model:
        MODELS.add(name, ModelCard(name, summary, model_class, overrides), model_class.__module__)
        return model_class

    return add


def model_names() -> list[str]:
    """Sorted names of all registered models that can be trained."""
    return [name for name in MODELS.names() if not MODELS[name].model_class.combines]


@reads("model")
def model_card(name: str) -> ModelCard:
    """The entry of `name`; raise UsageError with the nearest known name if there is none."""
    if check_text(name, "model") == AUTO:
        raise UsageError(f"Model '{AUTO}' selects a model during training; name a single model here.")
    return MODELS[name]


def build_config(
    name: str, *, seq_len: int, pred_len: int, n_channels: int, settings: Mapping[str, Any]
) -> ModelConfig:
    """Frozen configuration of model `name` with the given `settings`, as values or text; raise UsageError if one is
    invalid."""
    card = model_card(name)
    given = {"seq_len": seq_len, "pred_len": pred_len, "n_channels": n_channels, **card.overrides}
    return make_config(card.model_class.Config, given, settings, where="model")


def read_config(name: str, record: Mapping[str, Any]) -> ModelConfig:
    """Configuration of model `name` from its `record` with all fields in plain types.

    Raises:
        UsageError: The model or a setting is unknown, or a value is invalid.
        KeyError: The record lacks a field of the shape.
    """
    kind, settings = model_card(name).model_class.Config, dict(record)
    return make_config(kind, {key: settings.pop(key) for key in SHAPE}, settings, where="model")


def has_seen(record: Mapping[str, Any], dataset: str) -> bool:
    """Return whether the model of a `config.yaml`, given as its `record`, was pretrained on `dataset`; see
    `ModelConfig.has_seen`."""
    settings = dict(record)
    name = settings.pop("name")
    kind = model_card(name).model_class.Config
    return kind.has_seen is not ModelConfig.has_seen and read_config(name, settings).has_seen(dataset)


def build_model(name: str, config: ModelConfig, quantiles: Sequence[float] = ()) -> ForecastModel:
    """Build the model `name` with a configuration by `build_config`, for `quantiles` if it is to be trained on some.

    Raises:
        UsageError: The model cannot be trained on quantiles.
    """
    model_class = model_card(name).model_class
    if not quantiles:
        return model_class(config)
    check_learns_quantiles(name)
    return model_class(config, quantiles)


@reads("model")
def check_trained(name: str) -> None:
    """Raise UsageError if the model is a combination of others, which cannot be trained itself."""
    if model_card(name).model_class.combines:
        raise UsageError(
            f"Model '{name}' is an ensemble of trained models, built by femts.mean_of or {arguments({'model': AUTO})}, and "
            "cannot be trained itself; use one that `femts models` lists."
        )


@reads("model")
def check_library(name: str) -> None:
    """Raise UsageError if the library of a model is not installed."""
    needs = model_card(name).model_class.needs
    if needs is not None and importlib.util.find_spec(needs[0]) is None:
        raise UsageError(
            f"Model '{name}' needs {needs[0]}, which is not installed; run pip install 'femts[{needs[1]}]'."
        )


def check_learns_quantiles(name: str) -> None:
    """Raise UsageError if a model cannot be trained by the pinball loss."""
    if not model_card(name).model_class.supports.quantiles:
        fault = f"Model '{name}' does not support training.loss=pinball"
        text = f"{fault}; remove it, since intervals do not need it, or use a model such as fem_sm or dlinear."
        raise UsageError(text, argument="training.loss", value="pinball")
