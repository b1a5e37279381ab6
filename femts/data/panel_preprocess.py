"""Preprocessing of a panel, each series by its own training rows, and the windows of all series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from femts.data.dataset import Dataset
from femts.data.effects import Array, Effects
from femts.data.frequency import phases
from femts.data.limits import Limits
from femts.data.panel import Panel
from femts.data.panel_effects import joined, own_effects, shared_effects
from femts.data.preprocess import Preprocess
from femts.data.raw import Raw, raw_rows
from femts.data.resident import ScaledSeries, SeriesFacts
from femts.data.scaler import usual_scale
from femts.data.spans import Span, span
from femts.data.splits import Split
from femts.data.static import StaticCodes
from femts.data.windows import PanelWindows, counted_of, location
from femts.errors import UsageError
from femts.text import shown


@dataclass(frozen=True, eq=False)
class PanelPreprocess:
    """Preprocessing of the series of a panel, each with a scale of its own.

    Attributes:
        columns: names of the C columns of each series.
        series: by name, each with the effects of what is known, its own or those that series share.
        effects: those that they share; None where nothing is known in advance.
        static: codes of the static columns; None where there are none.
    """

    columns: tuple[str, ...]
    series: Mapping[str, Preprocess]
    effects: Effects | None = None
    static: StaticCodes | None = None

    @classmethod
    def fit(cls, panel: Panel, units: PanelPreprocess | None = None) -> PanelPreprocess:
        """Fit to the training rows of each series; to further rows of one that does not vary in them.

        Args:
            panel: the series and their splits.
            units: whose transform and scale stay for the series that it has, and codes of static columns for all;
                None fits them.
        """
        known = {} if units is None else units.series
        series = {
            name: known[name].kept(panel.series[name].train_values)
            if name in known and known[name].scaler.own.all()
            else one
            for name, one in fit_scales(panel).items()
        }
        effects = shared_effects(panel, series)
        if effects is not None:
            alone = len(series) == 1
            series = {
                name: replace(one, effects=effects if alone else own_effects(panel.series[name], one, effects))
                for name, one in series.items()
            }
        static = None if units is None else units.static
        if static is None and panel.static is not None:
            static = StaticCodes.fit(panel.static)
        return cls(panel.columns, series, effects, static)

    def of(self, name: str, data: Dataset) -> Preprocess:
        """The preprocessing of the series `name`; one that is new is scaled by its own rows, those of `data`."""
        if name in self.series:
            return self.series[name]
        rows = len(data.values)
        whole = replace(data, split=Split((0, rows), (rows, rows), (rows, rows)))
        like = usual_scale(one.scaler for one in self.series.values())
        fitted = Preprocess.fit_scale(whole, whole.values, like)
        return replace(fitted, effects=self.effects, reads_raw=self.reads_raw)

    @property
    def reads_raw(self) -> bool:
        """True when made for a model that reads values before scaling."""
        return any(one.reads_raw for one in self.series.values())

    def reading(self, raw: bool) -> PanelPreprocess:
        """The same, for a model that reads values before scaling, or not."""
        return replace(self, series={name: one.reading(raw) for name, one in self.series.items()})

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        own = {
            name: replace(one, effects=None) if one.effects is self.effects else one
            for name, one in self.series.items()
        }
        effects = {} if self.effects is None else {"effects": self.effects.to_dict()}
        static = {} if self.static is None else {"static": self.static.to_dict()}
        return {
            "series": {name: {**one.to_dict(), "columns": []} for name, one in own.items()},
            "columns": list(self.columns),
            **effects,
            **static,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> PanelPreprocess:
        """The inverse of `to_dict`."""
        columns = tuple(record["columns"])
        effects = Effects.from_dict(record["effects"]) if "effects" in record else None
        static = StaticCodes.from_dict(record["static"]) if "static" in record else None
        read = {name: Preprocess.from_dict({**one, "columns": columns}) for name, one in record["series"].items()}
        series = {name: one if one.effects else replace(one, effects=effects) for name, one in read.items()}
        return cls(columns, series, effects, static)


def fit_scales(panel: Panel) -> dict[str, Preprocess]:
    """Scale of each series, without effects; a constant one is scaled by its level, as the others usually are."""
    series = {name: Preprocess.fit_scale(data, data.train_values) for name, data in panel.series.items()}
    like = usual_scale(one.scaler for one in series.values())
    return {
        name: one if one.scaler.own.all() else Preprocess.fit_scale(data, data.train_values, like)
        for (name, data), one in zip(panel.series.items(), series.values(), strict=True)
    }


def panel_windows(
    panel: Panel, preprocess: PanelPreprocess, part: str, seq_len: int, pred_len: int, like: PanelWindows | None = None
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
    spans = torch.tensor(panel_spans(panel, part, seq_len, pred_len))
    static = like.static if like is not None else static_inputs(preprocess, panel)
    return PanelWindows(resident, seq_len, pred_len, spans, tuple(panel.series), static)


def panel_spans(panel: Panel, part: str, seq_len: int, pred_len: int) -> list[Span]:
    """Rows and windows of `part` in each series, the rows of which are one below the other.

    Raises:
        UsageError: unknown part, or one in which no series has a window.
    """
    spans, row = list[Span](), 0
    for data in panel.series.values():
        first, stop, begin, windows = span(data.split, part, seq_len, pred_len)
        spans.append(Span(row + first, row + stop, row + begin, windows))
        row += len(data.values)
    if not any(each.windows for each in spans):
        longest = max(len(data.values) for data in panel.series.values())
        raise UsageError(
            f"No series of '{shown(panel.name)}' has a window of {pred_len} steps in its {part} part (the longest has "
            f"{longest} rows); take a shorter --pred-len, or bring more rows."
        )
    return spans


def static_inputs(preprocess: PanelPreprocess, panel: Panel) -> torch.Tensor | None:
    """Inputs (S, E) by which models know the series of `panel`; None where there are no static columns."""
    if preprocess.static is None or panel.static is None:
        return None
    return torch.from_numpy(preprocess.static.encode(panel.static, f"'{shown(panel.name)}'"))


def _resident(panel: Panel, preprocess: PanelPreprocess) -> ScaledSeries:
    """All rows of all series, scaled."""
    scaled, observed, raw, gaps = [], [], list[Raw](), False
    offsets = panel_offsets([(preprocess.series[name], data) for name, data in panel.series.items()])
    begin = 0
    for name, data in panel.series.items():
        where = f"Series '{shown(name)}' of '{shown(panel.name)}'"
        taken_off = None if offsets is None else offsets[begin : begin + len(data.values)]
        begin += len(data.values)
        scaled.append(preprocess.series[name].transform(data.values, taken_off, where).astype(np.float32))
        mask = data.observed
        gaps |= mask is not None
        raw += [raw_rows(preprocess.series[name], data.values, taken_off)] if preprocess.series[name].reads_raw else []
        observed.append(np.ones(data.values.shape, dtype=np.bool_) if mask is None else mask)
    values = torch.from_numpy(np.concatenate(scaled))
    resident = None if offsets is None else torch.from_numpy(offsets).float()
    seen = torch.from_numpy(np.concatenate(observed)) if gaps else None
    rows = Raw(*map(torch.cat, zip(*raw, strict=True))) if raw else None
    series = [preprocess.series[name] for name in panel.series]
    phase = [phases(data.dates, panel.freq, panel.season) for data in panel.series.values()]
    known = [each for each in phase if each is not None]  # of all series, or of none
    facts = SeriesFacts(
        tuple(panel.series),
        location(series, panel.targets),
        panel.season,
        torch.from_numpy(np.concatenate(known)).int() if known else None,
    )
    limits, counted = Limits.of(series, panel.targets), counted_of(series, panel.targets)
    return ScaledSeries(values, seen, resident, panel.targets, rows, limits, counted, facts)


def panel_offsets(rows: Sequence[tuple[Preprocess, Dataset]]) -> Array | None:
    """Offsets (rows, C) of all rows of several series, one after the other; None without effects.

    Series that share their effects are computed together.
    """
    if not rows or rows[0][0].effects is None:
        return None
    pieces = list[Array | None]([None] * len(rows))
    shared = dict[int, list[int]]()
    for number, (one, _) in enumerate(rows):
        shared.setdefault(id(one.effects), []).append(number)
    for numbers in shared.values():
        some = [rows[number][1] for number in numbers]
        covariates = [data.covariates for data in some if data.covariates is not None]
        dates = [data.dates for data in some if data.dates is not None]
        together = rows[numbers[0]][0].offsets(np.concatenate(covariates), joined(dates))
        assert together is not None
        ends = np.cumsum([len(data.values) for data in some])
        for number, piece in zip(numbers, np.split(together, ends[:-1]), strict=True):
            pieces[number] = piece
    return np.concatenate([piece for piece in pieces if piece is not None])


def panel_training_rows(panel: Panel, windows: PanelWindows, distance: int) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Training rows of all series (rows, C) and their observed mask, with `distance` rows that are
    missing between two series.

    For what is fitted in closed form: no window that forecasts a row reads one of another series, and a series that
    does not vary there shows nothing to fit, so it is left out (`Windows.counts`).
    """
    values, observed = windows.resident.values, windows.resident.observed
    counted = [True] * len(panel.series) if windows.counted is None else windows.counted.any(1).tolist()
    pieces, masks, begin = [], [], 0
    for data, counts in zip(panel.series.values(), counted, strict=True):
        rows = slice(begin + data.split.train[0], begin + data.split.train[1])
        begin += len(data.values)
        if rows.stop > rows.start and counts:
            pieces.append(values[rows])
            masks.append(torch.ones_like(values[rows], dtype=torch.bool) if observed is None else observed[rows])
    if len(pieces) == 1:
        return pieces[0], None if observed is None else masks[0]
    gap = torch.zeros(distance, values.shape[1], dtype=values.dtype)
    spaced = [each for piece in pieces for each in (piece, gap)][:-1]
    blank = gap.bool()
    return torch.cat(spaced), torch.cat([each for mask in masks for each in (mask, blank)][:-1])
