"""Preprocessing of a panel, each series by its own training rows, and the windows of all series."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from femts.data.dataset import Dataset
from femts.data.panel import Panel
from femts.data.preprocess import Preprocess
from femts.data.raw import Raw, raw_rows
from femts.data.scaler import Scaler
from femts.data.splits import PARTS
from femts.data.windows import PanelWindows, ScaledSeries, Windows, span
from femts.errors import UsageError
from femts.text import shown


@dataclass(frozen=True, eq=False)
class PanelPreprocess:
    """Preprocessing of the series of a panel, each with a scale of its own.

    Attributes:
        columns: names of the C columns of each series.
        series: by name.
    """

    columns: tuple[str, ...]
    series: Mapping[str, Preprocess]

    @classmethod
    def fit(cls, panel: Panel) -> PanelPreprocess:
        """Fit to the training rows of each series; to all rows of one that has no value in them."""
        return cls(panel.columns, {name: fit_series(data) for name, data in panel.series.items()})

    def reading(self, raw: bool) -> PanelPreprocess:
        """The same, for a model that reads values before scaling, or not."""
        return replace(self, series={name: replace(one, reads_raw=raw) for name, one in self.series.items()})

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        return {
            "series": {name: {**one.to_dict(), "columns": []} for name, one in self.series.items()},
            "columns": list(self.columns),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> PanelPreprocess:
        """The inverse of `to_dict`."""
        columns = tuple(record["columns"])
        series = {name: Preprocess.from_dict({**one, "columns": columns}) for name, one in record["series"].items()}
        return cls(columns, series)


def fit_series(data: Dataset) -> Preprocess:
    """Preprocessing of one series, which may have no training row with a value, or no value at all."""
    train = slice(*data.split.train)
    seen = data.values[train]
    rows = train if len(seen) and not np.isnan(seen).all(0).any() else slice(0, len(data.values))
    values = data.values[rows]
    if np.isnan(values).all(0).any():
        return Preprocess(
            data.columns,
            Scaler(np.zeros(len(data.columns)), np.ones(len(data.columns))),
            None,
            None,
            data.schema.domain,
        )
    return Preprocess.fit_rows(data, values, rows)


def panel_windows(
    panel: Panel, preprocess: PanelPreprocess, part: str, seq_len: int, pred_len: int, like: Windows | None = None
) -> PanelWindows:
    """Windows of one part of every series that has some; a look-back may begin before its series, where it is missing.

    Args:
        panel: the series and their splits.
        preprocess: fitted on their training rows.
        part: which rows are forecast.
        seq_len: look-back, steps.
        pred_len: forecast, steps.
        like: windows of another part or length, whose values are shared.

    Raises:
        UsageError: unknown part, or one in which no series has a window.
    """
    resident = _resident(panel, preprocess) if like is None else like.resident
    spans, begin = np.empty((len(panel.series), 4), dtype=np.int64), 0
    for number, data in enumerate(panel.series.values()):
        place = span(data.split, part, seq_len, pred_len) if part in PARTS else (0, 0, 0, 0)
        spans[number] = np.array(place) + np.array([begin, begin, begin, 0])
        begin += len(data.values)
    if not spans[:, 3].any():
        longest = max(len(data.values) for data in panel.series.values())
        raise UsageError(
            f"No series of '{shown(panel.name)}' has a window of {pred_len} steps in its {part} part (the longest has "
            f"{longest} rows); take a shorter --pred-len, or bring more rows."
        )
    return PanelWindows(resident, seq_len, pred_len, torch.from_numpy(spans), tuple(panel.series))


def _resident(panel: Panel, preprocess: PanelPreprocess) -> ScaledSeries:
    """All rows of all series, scaled."""
    scaled, observed, raw, gaps = [], [], [], False
    for name, data in panel.series.items():
        where = f"Series '{shown(name)}' of '{shown(panel.name)}'"
        scaled.append(preprocess.series[name].transform(data.values, None, where).astype(np.float32))
        mask = data.observed
        gaps |= mask is not None
        raw += [raw_rows(preprocess.series[name], data.values)] if preprocess.series[name].reads_raw else []
        observed.append(np.ones(data.values.shape, dtype=np.bool_) if mask is None else mask)
    values = torch.from_numpy(np.concatenate(scaled))
    rows = Raw(*map(torch.cat, zip(*raw, strict=True))) if raw else None
    return ScaledSeries(values, torch.from_numpy(np.concatenate(observed)) if gaps else None, None, panel.targets, rows)


def panel_training_rows(panel: Panel, windows: PanelWindows, distance: int) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Training rows of all series (rows, C) and their observed mask, with `distance` rows that are
    missing between two series.

    For what is fitted in closed form: no window that forecasts a row reads one of another series.
    """
    values, observed = windows.resident.values, windows.resident.observed
    pieces, masks, begin = [], [], 0
    for data in panel.series.values():
        rows = slice(begin + data.split.train[0], begin + data.split.train[1])
        begin += len(data.values)
        if rows.stop > rows.start:
            pieces.append(values[rows])
            masks.append(torch.ones_like(values[rows], dtype=torch.bool) if observed is None else observed[rows])
    if len(pieces) == 1:
        return pieces[0], None if observed is None else masks[0]
    gap = torch.zeros(distance, values.shape[1], dtype=values.dtype)
    spaced = [each for piece in pieces for each in (piece, gap)][:-1]
    blank = gap.bool()
    return torch.cat(spaced), torch.cat([each for mask in masks for each in (mask, blank)][:-1])
