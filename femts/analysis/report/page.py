"""The page of a report: its sections, and the numbers that its script draws."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from femts.analysis.report.measure import Measured
from femts.analysis.report.scores import channel_table, interval_tables, mse_by_step, score_tables, step_table
from femts.analysis.report.shell import whole_page
from femts.analysis.report.tables import Markup, escape, folded, percent, scaled, steps_lasting
from femts.analysis.report.training import curves, data_facts, kept_validation, model_facts, record, validation_table
from femts.data.dataset import Dataset
from femts.forecaster.forecaster import Forecaster
from femts.models.fem_ridge import FemRidge

# A browser that reads this lets the page ask for nothing, wherever it lies.
_ALONE = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">"
)


# In a block, so that its names are its own; a browser's mistake is written where a test finds it.
_SCRIPT = """"use strict";
addEventListener("error", (event) => (document.documentElement.dataset.error = event.message));
{{
{}}}
"""


def as_html(forecaster: Forecaster, data: Dataset, measured: Measured, samples: Mapping[str, Any]) -> str:
    """The whole page; `samples` is what `sample_windows` gave."""
    config = forecaster.config
    by_step, learned = mse_by_step(forecaster, measured), curves(forecaster)
    sections = {
        "Forecasts": _browser(forecaster, samples),
        "Scores": score_tables(forecaster, measured),
        "By step": _chart("steps", "Mean squared error of each step of the forecast, scaled units")
        + step_table(forecaster, by_step),
        "By channel": channel_table(forecaster, measured),
        "Intervals": interval_tables(forecaster, measured),
        "What was read": _explanation(forecaster, samples),
        "Data": data_facts(forecaster, data),
        "Model and training": model_facts(forecaster) + _learning(forecaster, bool(learned)),
        "Record": record(forecaster),
    }
    links = "".join(f'<a href="#{_place(name)}">{name}</a>' for name in sections)
    body = "".join(
        f"<section id={place} aria-labelledby={place}-title><h2 id={place}-title>{name}</h2>{text}</section>"
        for place, (name, text) in zip(map(_place, sections), sections.items(), strict=True)
    )
    drawn = {
        "samples": samples,
        "columns": forecaster.targets[: samples["channels"]],
        "steps": by_step,
        "learning": learned,
        "kept": kept_validation(forecaster),
    }
    title, script = f"{config.model} on {data.name}", _SCRIPT.format(_file("chart.js") + _file("page.js"))
    return whole_page(
        f"{title}: femts report",
        _file("page.css"),
        f"<header><p class=kicker>femts report</p><h1>{escape(title)}</h1>{_lead(forecaster, data, measured)}"
        f'<nav aria-label="Sections">{links}</nav></header><main>{body}</main>'
        f"<script type=application/json id=numbers>{_json(drawn)}</script><script>{script}</script>",
        _ALONE,
    )


def _file(name: str) -> str:
    return files("femts.analysis.report").joinpath(name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    # No text in it can end the script that holds it.
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _place(name: str) -> str:
    return name.lower().replace(" ", "-")


def _lead(forecaster: Forecaster, data: Dataset, measured: Measured) -> str:
    config, row = forecaster.config, measured.model.overall.iloc[0]
    channels = f"{len(forecaster.targets)} channel{'s' if len(forecaster.targets) > 1 else ''}"
    tiles = {
        "Test MSE": (scaled(measured.test["mse"]), "scaled units"),
        "Test MAE": (scaled(measured.test["mae"]), "scaled units"),
        "Skill": (percent(row["skill"], "+"), "over the last season, repeated"),
    }
    if measured.levels:
        level = 95.0 if 95.0 in measured.levels else measured.levels[-1]
        tiles["Covered"] = (percent(row[f"coverage-{level:g}"]), f"by the {level:g} % intervals")
    shown = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(about)}</small></dd></div>"
        for name, (value, about) in tiles.items()
    )
    return (
        f"<p class=lead>Reads the last {escape(steps_lasting(forecaster.freq, config.seq_len))} of {channels} and forecasts "
        f"the next {escape(steps_lasting(forecaster.freq, config.pred_len))}. {_verdict(forecaster, measured)}</p>"
        f"<dl class=tiles>{shown}</dl>"
    )


def _verdict(forecaster: Forecaster, measured: Measured) -> str:
    """Compare the test error with that of the best yardstick."""
    own = float(measured.model.overall["mse"].iloc[0])
    found = {name: float(of.overall["mse"].iloc[0]) for name, of in measured.yardsticks.items()}
    name, best = min(found.items(), key=lambda pair: pair[1], default=("", math.nan))
    over = f"Over {measured.test['windows']} test windows its mean squared error in scaled units is"
    if not best > 0:
        return f"{over} {scaled(own)}."
    change = own / best - 1
    return f"{over} {abs(100 * change):.0f}\u00a0% {'below' if change < 0 else 'above'} that of {name}."


def _chart(name: str, about: str) -> Markup:
    """An empty chart for the script, and the line beneath it that says its values."""
    return Markup(
        f'<figure><ul class=legend id={name}-legend></ul><div class=chart id={name} tabindex=0 role=img aria-label="{about}" '
        f"aria-describedby={name}-values></div><figcaption class=values id={name}-values aria-live=polite></figcaption>"
        "</figure>"
    )


def _browser(forecaster: Forecaster, samples: Mapping[str, Any]) -> Markup:
    shown, names = len(samples["windows"]), forecaster.targets[: samples["channels"]]
    left_out = len(forecaster.targets) - len(names)
    more = f" and the first {len(names)} of {len(forecaster.targets)} channels" if left_out else ""
    some = f"{shown} test windows at even distances{more}" if shown > 1 else f"One test window{more}"
    options = "".join(f"<option value={i}>{escape(name)}</option>" for i, name in enumerate(names))
    return Markup(
        f"<p>{some}, in raw units, forecast as they are scored.</p>"
        "<noscript><p>The charts need JavaScript; most tables do not.</p></noscript>"
        f"<div class=controls><label>Channel <select id=channel>{options}</select></label>"
        "<div class=stepper><button type=button id=back>Previous</button>"
        f'<input type=range id=window min=1 max={shown} value=1 aria-label="Test window">'
        "<button type=button id=next>Next</button></div></div><p class=where><output id=where for=window></output></p>"
        f"{_chart('forecast', 'The past of a channel, what happened, the forecast and its intervals')}"
        f"{folded('Values of this window as a table', '<div id=table></div>')}"
    )


def _explanation(forecaster: Forecaster, samples: Mapping[str, Any]) -> Markup:
    if samples["why"] is not None:
        return Markup(f"<p>{escape(samples['why'])}</p>")
    mixed = isinstance(forecaster.model, FemRidge)
    half = " This is the mixer of the model, one half of its forecast; the ridge regression is the other." if mixed else ""
    return Markup(
        "<p>Which parts of its past each channel read for the forecast chosen above: the strip is the look-back, oldest "
        "segment at the left; its upper row the channel's own segments, its lower row those of all channels together. "
        "<span class=more>Orange</span> was read more than an even share, <span class=less>blue</span> less; the strongest "
        "colours stand for <span id=strongest></span> times and more, and for one part of as many and less.</p>"
        "<div id=read></div>"
        "<p class=note>Posterior weights of the Free Energy Mixer, a mean over its layers. Effective segments count how many "
        "were read alike; the hidden temperature \u03b2* is an inverse one: 0 reads the mean, more selects more sharply."
        f"{half}</p>"
    )


def _learning(forecaster: Forecaster, there: bool) -> str:
    if not there:
        return "<p class=note>There are no learning curves, as nothing was trained by steps.</p>"
    charts = _chart("training", "Training loss by validation") + _chart("validation", "Validation error by validation")
    kept = f"<p class=note>The weights kept are those of step {forecaster.metrics['kept_step']}.</p>"
    return f"<h3>Learning curves</h3><div class=pair>{charts}</div>{kept}{validation_table(forecaster)}"
