"""Settings younger than a record, at the defaults with which it was made."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from femts.config.training import TrainingConfig
from femts.models.registry import model_card


def with_newer_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """The `config` of a record, with what it does not know yet of its model and training at the defaults."""
    kinds = {"model": model_card(config["model"]["name"]).model_class.Config, "training": TrainingConfig}
    made = dict(config)
    for section, kind in kinds.items():
        own = {field.name: field.default for field in dataclasses.fields(kind)}
        defaults = {name: value for name, value in own.items() if value is not dataclasses.MISSING}
        made[section] = {**json.loads(json.dumps(defaults)), **config[section]}
    return made
