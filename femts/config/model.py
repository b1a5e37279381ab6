"""Base of every model's configuration."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from femts.config.bounds import check_bounds

DEFAULT_MODEL = "fem_sm_ridge"  # of the lowest errors measured


@dataclass(frozen=True)
class ModelConfig:
    """Shape of the data that a model is made for; its settings are fields of the classes below this one.

    Attributes:
        seq_len: steps of look-back L.
        pred_len: steps of forecast P.
        n_channels: channels C.
    """

    seq_len: int
    pred_len: int
    n_channels: int

    def __post_init__(self) -> None:
        """Hold settings to their bounds, and in classes below to each other; UsageError for some that do not fit."""
        check_bounds(self, "model")

    def for_data(self, season: int, rows: int) -> Self:
        """The same with what was left open, None, filled in from the data: by default there is nothing.

        Args:
            season: steps of their natural season.
            rows: how many the model is trained on; of a panel those of the shortest series.

        Returns:
            A configuration without anything left open.
        """
        return self


SHAPE = tuple(field.name for field in fields(ModelConfig))  # they follow from the run, and nobody sets them
