"""Explanations of the series of a panel, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from femts.data.grid import last_dates
from femts.explain.posterior import explainable, explanation
from femts.forecaster.panel_forecasting import chosen_series, last_rows, read_history, scaled_recent
from femts.forecaster.trained import Many


def explain_panel(forecaster: Many, history: pd.DataFrame, series: Sequence[str] | None) -> pd.DataFrame:
    """Explain the forecast of each series; see `PanelForecaster.explain`."""
    model, steps = explainable(forecaster.model, forecaster.config.model), forecaster.config.seq_len
    panel = chosen_series(read_history(forecaster, history), series)
    recent = np.stack([last_rows(data.values, steps) for data in panel.series.values()])
    read, _ = scaled_recent(forecaster, panel, recent)
    tables = []
    for number, (name, data) in enumerate(panel.series.items()):
        assert data.dates is not None, "a panel has stamps"
        when = last_dates(data.dates, panel.freq, steps)
        table = explanation(model, read[number : number + 1], forecaster.columns, when)
        table.insert(0, "series", name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
