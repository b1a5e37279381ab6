"""Base class of model configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Self

from femts.config.bounds import check_bounds
from femts.errors import UsageError

DEFAULT_MODEL = "fem_sm_ridge"  # among the lowest errors measured
AUTO = "auto"  # instead of a name: select a model on the validation split


@dataclass(frozen=True)
class ModelConfig:
    """Shape of the data that a model is built for; its settings are fields of the subclasses.

    Attributes:
        seq_len: look-back L in steps.
        pred_len: horizon P in steps.
        n_channels: number C of channels.
        SEARCH: settings that `femts tune` searches by default, as `a,b,c` or `low..high`, in addition to those of the
            base classes.
    """

    SEARCH: ClassVar[Mapping[str, str]] = {}

    seq_len: int
    pred_len: int
    n_channels: int

    def __post_init__(self) -> None:
        """Check settings against their bounds and, in subclasses, against each other; raises UsageError."""
        check_bounds(self, "model")

    def for_data(self, season: int, rows: int) -> Self:
        """Fill in settings that are None from the data; by default there are none.

        Args:
            season: number of steps in a season.
            rows: number of training rows; for a panel, of the shortest series.

        Returns:
            A configuration without open settings.
        """
        return self

    def has_seen(self, dataset: str) -> bool:
        """Whether the model has pretrained weights that were trained on a dataset, so that its scores there say
        nothing about unseen data.

        Args:
            dataset: name of the dataset.

        Returns:
            False by default.
        """
        return False

    @classmethod
    def searched(cls) -> dict[str, str]:
        """`SEARCH` of this class and its base classes."""
        tables = [vars(each).get("SEARCH", {}) for each in reversed(cls.__mro__)]
        return {name: values for table in tables for name, values in table.items()}


def check_heads(d_model: int, n_heads: int) -> None:
    """Raise UsageError unless `n_heads` divides the width `d_model`."""
    if n_heads < 1 or d_model < 1 or d_model % n_heads:
        raise UsageError(f"Setting 'model.d_model' ({d_model}) takes a multiple of 'model.n_heads' ({n_heads}).")


SHAPE = tuple(field.name for field in fields(ModelConfig))  # determined by the run, not by settings
