"""Conversion of text settings to typed fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pytest

from femts.cli.recipe import parse_assignment
from femts.config.model import ModelConfig
from femts.config.settings import apply_settings
from femts.errors import UsageError, suggest
from femts.models.base import ForecastModel
from femts.models.registry import MODELS, register
from femts.training.resolve import resolve_training


@dataclass(frozen=True)
class Recipe:
    rate: float = 0.1
    layers: int = 3
    width: int | None = None
    shared: bool = True
    kind: Literal["a", "b"] = "a"
    betas: tuple[float, float] = (0.9, 0.95)
    name: str = ""

    def __post_init__(self) -> None:
        if self.layers < 0:
            raise ValueError("layers must not be negative")


def test_values_are_converted_to_the_field_type() -> None:
    for key, given, value in [
        ("rate", "6e-4", 6e-4),
        ("rate", 1, 1.0),
        ("layers", "4", 4),
        ("layers", 4.0, 4),
        ("width", "none", None),
        ("width", "32", 32),
        ("shared", "false", False),
        ("shared", True, True),
        ("kind", "b", "b"),
        ("betas", "0.5,0.6", (0.5, 0.6)),
        ("betas", [0.5, 0.6], (0.5, 0.6)),
        ("name", "", ""),
    ]:
        read = getattr(apply_settings(Recipe(), {key: given}, "x"), key)
        assert read == value and type(read) is type(value)


def test_invalid_values_are_refused() -> None:
    for key, given, sentence in [
        ("layrs", "4", "Unknown setting 'x.layrs'; did you mean 'x.layers'?"),
        ("layers", "four", "Setting 'x.layers' takes a whole number, not 'four'."),
        ("layers", 2.5, "Setting 'x.layers' takes a whole number, not '2.5'."),
        ("layers", True, "Setting 'x.layers' takes a whole number, not 'True'."),
        ("layers", None, "Setting 'x.layers' takes a whole number, not 'None'."),
        ("rate", "fast", "Setting 'x.rate' takes a number, not 'fast'."),
        ("rate", "nan", "Setting 'x.rate' takes a number, not 'nan'."),
        ("shared", "maybe", "Setting 'x.shared' takes true or false, not 'maybe'."),
        ("kind", "c", "Setting 'x.kind' cannot be 'c'; choose from a, b."),
        ("betas", "0.5", "Setting 'x.betas' takes 2 values, not '0.5'; write them as a,b."),
        ("layers", "-1", "Setting x.layers=-1 cannot be used: layers must not be negative."),
    ]:
        with pytest.raises(UsageError) as caught:
            apply_settings(Recipe(), {key: given}, "x")
        assert str(caught.value).startswith(sentence.rstrip(".?"))


def test_setting_of_training_is_suggested_for_one_of_the_model() -> None:
    with pytest.raises(UsageError, match=r"Unknown setting 'model\.lr'; did you mean 'training\.lr'"):
        apply_settings(Recipe(), {"lr": "1e-3"}, "model")


def test_suggest_lists_all_choices() -> None:
    assert suggest("zzz", ["one", "two"]) == "; choose from one, two."


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("width", "model.width"),
        ("widht", "model.width"),
        ("lr", "training.lr"),
        ("trainig.lr", "training.lr"),
    ],
)
def test_a_setting_is_found_by_its_name_alone(key: str, meant: str) -> None:
    @dataclass(frozen=True)
    class Config(ModelConfig):
        width: int = 2

    class Wide(ForecastModel):
        pass

    Wide.Config = Config
    register("wide", "A model with a width.")(Wide)
    try:
        with pytest.raises(UsageError, match=f"Unknown setting '{key}'; did you mean '{meant}'"):
            resolve_training("wide", {}, {key: 3})
        with pytest.raises(UsageError, match=f"Unknown setting '{key}'; did you mean '{meant}'"):
            parse_assignment(f"{key}=3")
    finally:
        del MODELS["wide"]
