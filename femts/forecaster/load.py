"""A forecaster from its run folder, whatever it was trained on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from femts.config.arguments import check_path
from femts.errors import memory_checked
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.panel_forecaster import PanelForecaster
from femts.forecaster.saved_run import read_config

if TYPE_CHECKING:
    import torch


@memory_checked()
def load(folder: str | Path, device: str | torch.device = "cpu") -> Forecaster:
    """The forecaster in a run folder, verified by its hashes and read without pickle.

    Args:
        folder: written by `femts train`, by `train` with `out`, or by `save`.
        device: where its weights go.

    Returns:
        A forecaster, ready to predict; of a panel a `PanelForecaster`.

    Raises:
        UsageError: no run, an unfinished or a changed one, or one of a later femts.
    """
    place = check_path(folder, "The run folder")
    if read_config(place).schema.panel:
        return cast(Forecaster, PanelForecaster.load(place, device))
    return Forecaster.load(place, device)
