"""Result of a study: the best recipe, as values, as YAML and beside all that was tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from femts.files import write_file
from femts.text import spreadsheet_safe

if TYPE_CHECKING:
    import pandas as pd

RECIPE, TRIALS, PICTURE = "recipe.yaml", "trials.csv", "trials.png"


@dataclass(frozen=True)
class Tuned:
    """Best recipe of a study, beside all that was tried.

    Attributes:
        model: registered name.
        pred_len: steps of a forecast.
        seq_len: look-back of the best trial.
        protocol: as in `train`.
        settings: of the best trial, those that were fixed among them, as `train` takes them.
        score: its validation error, in scaled units; with several origins their mean.
        default_score: that of the recipe as it is without tuning.
        trials: one row a trial: `trial`, `state`, `score`, the searched settings, `seconds`, `reason`.
        data: `dataset` and how it is read, as in a recipe.
        folder: that holds the study; None where nothing was kept.
    """

    model: str
    pred_len: int
    seq_len: int
    protocol: str
    settings: Mapping[str, Any]
    score: float
    default_score: float | None
    trials: pd.DataFrame = field(repr=False)
    data: Mapping[str, Any] = field(repr=False)
    folder: Path | None = None

    def recipe(self) -> dict[str, Any]:
        """The best recipe in plain types, as `femts train --config` takes it."""
        parts: dict[str, dict[str, Any]] = {"model": {"name": self.model}, "training": {}}
        for key, value in self.settings.items():
            part, _, name = key.partition(".")
            parts[part][name] = list(value) if isinstance(value, tuple) else value
        lengths = {"pred_len": self.pred_len, "seq_len": self.seq_len, "protocol": self.protocol}
        return {**self.data, "model": parts["model"], **lengths, "training": parts["training"]}

    def write(self, folder: Path) -> None:
        """Write recipe and trials; RunFailure when the disk refuses."""
        import yaml

        text = f"# Validation error {self.score!r}\n" + yaml.safe_dump(self.recipe(), sort_keys=False)
        write_file(folder / RECIPE, text.encode())
        write_file(folder / TRIALS, self.trials.map(spreadsheet_safe).to_csv(index=False).encode())
