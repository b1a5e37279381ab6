"""Explanations of the series of a panel, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from femts.data.frequency import last_dates
from femts.explain.posterior import explainable, explanation
from femts.forecaster.panel_forecasting import chosen_series, read_history, ready_series
from femts.forecaster.panel_inputs import steps_ahead
from femts.forecaster.trained import Many


def explain_panel(forecaster: Many, history: pd.DataFrame, series: Sequence[str] | None) -> pd.DataFrame:
    """Explain the forecast of each series; see `PanelForecaster.explain`."""
    model, steps = explainable(forecaster.model, forecaster.config.model), forecaster.config.seq_len
    panel = chosen_series(read_history(forecaster, history), series)
    here = steps_ahead(panel, 0)
    nothing = np.empty((len(here), 0, len(panel.schema.roles.future)))
    read = ready_series(forecaster, panel, nothing if panel.schema.roles.in_advance else None, here).read
    tables = []
    for number, (name, data) in enumerate(panel.series.items()):
        assert data.dates is not None, "a panel has stamps"
        when = last_dates(data.dates, panel.freq, steps)
        table = explanation(model, read[number : number + 1], forecaster.columns, when)
        table.insert(0, "series", name)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
