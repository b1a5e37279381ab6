"""The page of a report: the variables of its template, and the numbers that its script draws."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from femts.analysis.choice import ranked
from femts.analysis.report.measure import Measured, Scored
from femts.analysis.report.render import render
from femts.config.settings import SHAPE
from femts.data.dataset import Dataset
from femts.data.splits import PARTS
from femts.evaluation.coverage import coverage_notes
from femts.evaluation.criterion import CRITERIA
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.importance import KINDS, importance_label
from femts.forecaster.run_folder import RunConfig, config_yaml
from femts.models.fem_ridge import FemRidge
from femts.models.registry import model_card
from femts.text import strict_json

MOST_ROWS = 24  # rows of a table by step
REPORTED = (80.0, 95.0)  # percent; levels whose miscoverage is reported at the top, as by `femts train`
_CURVES = {"training loss": "train_loss", "validation MSE": "val_mse"}

Scores = dict[str, dict[str, Any]]  # a row of scores by units


SECTIONS = {
    name: name.lower().replace(" ", "-")
    for name in (
        "Forecast",
        "Models tried",
        "Scores",
        "By step",
        "By channel",
        "Intervals",
        "Test windows",
        "Which inputs matter",
        "What was read",
        "Data",
        "Model and training",
        "Record",
    )
}  # titles and names of their templates
SECTIONS_OF_SERIES = {
    "Forecast": "forecast",
    "Models tried": "models-tried",
    "Scores": "scores-of-series",
    "By step": "by-step",
    "By series": "by-series",
    "Intervals": "intervals-of-series",
    "Test windows": "test-windows",
    "Which inputs matter": "which-inputs-matter",
    "Data": "data-of-series",
    "Model and training": "model-and-training",
    "Record": "record",
}
MOST_SERIES = 24  # series listed at either end of a table


def as_html(
    forecaster: Forecaster,
    data: Dataset,
    measured: Measured,
    samples: Mapping[str, Any],
    importance: pd.DataFrame | None,
    ahead: Mapping[str, Any] | None,
    refitted: bool,
) -> str:
    """The whole page, from the results of `sample_windows`, `input_importance` and `forecast_ahead`; the latter is by a
    forecaster that may be `refitted` on all rows."""
    count, several = len(forecaster.targets), data.schema.panel
    scored = {forecaster.config.model: measured.model, **measured.baselines}
    contenders = {name: by_units(of.overall)[0] for name, of in scored.items()}
    own = contenders[forecaster.config.model]
    by_step = {name: of.by_step.query("units == 'scaled'")["mse"] for name, of in scored.items()}
    sections = dict(SECTIONS_OF_SERIES if several else SECTIONS)
    if "auto" not in forecaster.metrics:
        del sections["Models tried"]
    if importance is None:
        del sections["Which inputs matter"]
    return render(
        "report.html",
        **_of_run(forecaster, samples, ahead, by_step),
        contenders=contenders,
        sections=sections,
        refitted=refitted,
        of_what=f"each of {len(data)} series" if several else f"{count} channel{'s' * (count > 1)}",
        data=data,
        measured=measured,
        inputs=None if importance is None else _inputs(importance),
        criteria=CRITERIA,
        tried=ranked(forecaster.metrics["auto"]) if "auto" in forecaster.metrics else [],
        misses=misses(own, measured.levels),
        intervals=interval_rows(own, measured.levels),
        missing=0 if data.observed is None else int((~data.observed).sum()),
        parts=[_part(forecaster, data, name) for name in PARTS],
        zone=getattr(data.stamps, "tz", None),
        unused=int(data.lengths[0] - data.split.test[0, 1]),
        mixed=isinstance(forecaster.model, FemRidge),
        **(_of_series(data, measured) if several else _of_channels(forecaster, scored, measured)),
    )


def _of_channels(forecaster: Forecaster, scored: Mapping[str, Scored], measured: Measured) -> dict[str, Any]:
    return {"errors": _errors(scored), "channels": _channels(forecaster, measured)}


def _of_series(data: Dataset, measured: Measured) -> dict[str, Any]:
    ranked = measured.series if len(measured.series) <= 2 * MOST_SERIES else measured.series.dropna(subset="mase")
    series = ranked.to_dict("records")
    return {
        "errors": {},
        "series": series if len(series) <= 2 * MOST_SERIES else [*series[:MOST_SERIES], *series[-MOST_SERIES:]],
        "all_series": len(measured.series),
        "ratios": measured.ratios,
        "better": float((measured.series["skill"] > 0).mean()),
        "rows": {"all": len(data.values), "least": int(data.lengths.min()), "most": data.rows},
    }


def _of_run(
    forecaster: Forecaster,
    samples: Mapping[str, Any],
    ahead: Mapping[str, Any] | None,
    errors_by_step: Mapping[str, pd.Series],
) -> dict[str, Any]:
    """Variables of the page about the run: its settings, its training, and the numbers to draw.

    Args:
        forecaster: forecaster to report on.
        samples: forecasts of test windows for the page's script.
        ahead: forecast of the steps after the data; None if there is none.
        errors_by_step: mean squared errors in scaled units, by model and step.
    """
    config, metrics, steps = forecaster.config, forecaster.metrics, forecaster.config.pred_len
    if config.source is not None:  # pages are shared and must not reveal the author's folders
        config = replace(config, source=Path(config.source).name)
    members = forecaster.members
    by_step = {name: _rounded(errors) for name, errors in errors_by_step.items()}
    curves = {name: _rounded([row[key] for row in forecaster.validations]) for name, key in _CURVES.items()}
    validated, kept_step = [int(row["step"]) for row in forecaster.validations], metrics.get("kept_step")
    return {
        "forecaster": forecaster,
        "config": config,
        "metrics": metrics,
        "samples": samples,
        "ahead": ahead,
        "by_step": by_step,
        "some_steps": dict.fromkeys(np.linspace(1, steps, min(steps, MOST_ROWS)).round().astype(int).tolist()),
        "about": model_card(config.model).summary,
        "settings": _settings(config),
        "members": [(each.config.model, {"seq_len": each.config.seq_len} | _settings(each.config)) for each in members],
        "recipe": {} if members else {key: v for key, v in asdict(config.training).items() if v is not None},
        "files": {"config.yaml": config_yaml(config).decode(), "metrics.json": strict_json(dict(metrics), indent=2)},
        "drawn": {
            "samples": samples,
            "ahead": ahead,
            "columns": forecaster.targets[: samples["channels"]],
            "steps": by_step,
            "learning": curves if forecaster.validations else {},
            "kept": validated.index(kept_step) if kept_step in validated else None,
        },
    }


def _settings(config: RunConfig) -> dict[str, Any]:
    """Settings of the model by name; a mean has members instead."""
    model = config.to_dict()["model"]
    return {key: value for key, value in model.items() if key not in ("name", "members", *SHAPE)}


def _inputs(importance: pd.DataFrame) -> list[dict[str, Any]]:
    """One row per input; `part` is its increase relative to the largest one."""
    most = importance["rise"].max()
    return [
        {**row, "name": importance_label(row["kind"], row["input"]), "part": max(0.0, row["rise"]) / most}
        | {"about": KINDS[row["kind"]]}
        for row in importance.to_dict("records")
        if most > 0
    ]


def _rounded(values: Sequence[float] | pd.Series) -> list[float | None]:
    return [float(f"{float(value):.5g}") if math.isfinite(float(value)) else None for value in values]


def by_units(frame: pd.DataFrame) -> list[Scores]:
    """Rows of scores in order, each by units."""
    rows = [frame[frame["units"] == units].assign(units=units).to_dict("records") for units in frame["units"].unique()]
    return [{str(row["units"]): row for row in group} for group in zip(*rows, strict=True)]


def _errors(scored: Mapping[str, Scored]) -> dict[str, dict[str, float]]:
    """Mean absolute errors in raw units, by channel and then by model, since channels with different units have no
    mean."""
    raw = {name: of.by_channel.query("units == 'raw'").set_index("channel")["mae"] for name, of in scored.items()}
    first = next(iter(raw.values()))
    return {channel: {name: float(errors[channel]) for name, errors in raw.items()} for channel in first.index}


def misses(scores: Scores, levels: Sequence[float]) -> list[str]:
    """Sentences on miscoverage of the 80 and 95 % intervals."""
    shown = [level for level in REPORTED if level in levels]
    return coverage_notes({f"{level:g}": float(scores["scaled"][f"coverage-{level:g}"]) for level in shown})


def interval_rows(scores: Scores, levels: Sequence[float]) -> list[dict[str, Any]]:
    """One row per level: nominal and actual coverage, their difference in percentage points, and mean widths by
    units."""
    rows = []
    for level in levels:
        covered = float(scores["scaled"][f"coverage-{level:g}"])
        widths = {units: float(row[f"width-{level:g}"]) for units, row in scores.items()}
        rows.append(
            {"level": level, "name": f"{level:g} %", "covered": covered, "off": 100 * covered - level, "width": widths}
        )
    return rows


def _channels(forecaster: Forecaster, measured: Measured) -> list[dict[str, Any]]:
    """One row per channel; `part` is its error relative to the largest one."""
    rows = by_units(measured.model.by_channel)
    most = max((row["scaled"]["mse"] for row in rows if not math.isnan(row["scaled"]["mse"])), default=0)
    return [
        {
            "name": name,
            "part": row["scaled"]["mse"] / most if most > 0 else None,
            "intervals": interval_rows(row, measured.levels),
            **row,
        }
        for name, row in zip(forecaster.targets, rows, strict=True)
    ]


def _part(forecaster: Forecaster, data: Dataset, name: str) -> dict[str, Any]:
    """Rows and windows of a split, over all series; its first and last row for a single series."""
    ranges = data.split.part(name)
    lengths = forecaster.config.seq_len, forecaster.config.pred_len
    windows = data.split.windows(name, *lengths)[:, 3]
    start, stop = ranges[0].tolist()
    counts = {"rows": int((ranges[:, 1] - ranges[:, 0]).sum()), "windows": int(windows.sum())}
    ends = {"first": _when(data, start), "last": _when(data, stop - 1)} if len(data) == 1 else {}
    return {"name": name, **counts, **ends, "series": int((windows > 0).sum())}


def _when(data: Dataset, row: int) -> str:
    if data.stamps is None:
        return f"{row}"
    stamp = data.stamps[row]
    return f"{stamp:%Y-%m-%d %H:%M}" if hasattr(stamp, "strftime") else f"{stamp}"
