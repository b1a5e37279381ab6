"""Base of every model's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Self

from femts.config.bounds import check_bounds
from femts.errors import UsageError

DEFAULT_MODEL = "fem_sm_ridge"  # of the lowest errors measured
AUTO = "auto"  # in the place of a name: femts chooses among the models


@dataclass(frozen=True)
class ModelConfig:
    """Shape of the data that a model is made for; its settings are fields of the classes below this one.

    Attributes:
        seq_len: steps of look-back L.
        pred_len: steps of forecast P.
        n_channels: channels C.
        SEARCH: settings that `femts tune` searches unless told otherwise, as `a,b,c` or `low..high`; those of the
            classes above count, too.
    """

    SEARCH: ClassVar[Mapping[str, str]] = {}

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

    def has_seen(self, dataset: str) -> bool:
        """Whether the model comes with weights that were trained on a data set, so that its scores there say nothing
        about data that it has not seen.

        Args:
            dataset: name of the data set.

        Returns:
            False by default.
        """
        return False

    @classmethod
    def searched(cls) -> dict[str, str]:
        """`SEARCH` of this class and of those above it."""
        tables = [vars(each).get("SEARCH", {}) for each in reversed(cls.__mro__)]
        return {name: values for table in tables for name, values in table.items()}


def check_heads(d_model: int, n_heads: int) -> None:
    """UsageError where `n_heads` do not divide the width `d_model`."""
    if n_heads < 1 or d_model < 1 or d_model % n_heads:
        raise UsageError(f"Setting 'model.d_model' ({d_model}) takes a multiple of 'model.n_heads' ({n_heads}).")


SHAPE = tuple(field.name for field in fields(ModelConfig))  # they follow from the run, and nobody sets them
