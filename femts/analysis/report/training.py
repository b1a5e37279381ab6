"""The sections of a report on what was trained on what, and on how that went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from femts.analysis.report.tables import NONE, Markup, escape, facts, folded, lasting, percent, scaled, steps_lasting, table
from femts.config.model import SHAPE
from femts.data.dataset import Dataset
from femts.data.splits import PARTS
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.run_folder import RunConfig, config_yaml
from femts.models.registry import model_card
from femts.text import strict_json

MOST_NAMES = 12
STOPPED = {
    "early": "the validation error no longer fell",
    "max_steps": "its steps were done",
    "max_time": "its time was used",
    "interrupted": "it was interrupted",
}


def _shown(config: RunConfig) -> RunConfig:
    """The configuration of a page for others, which says nothing of the maker's folders."""
    return config if config.source is None else replace(config, source=Path(config.source).name)


def data_facts(forecaster: Forecaster, data: Dataset) -> Markup:
    """The data: what they are, and which rows are for what."""
    config, names = _shown(forecaster.config), forecaster.columns
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    every = None if data.dates is None else steps_lasting(data.freq, 1).removeprefix("1 step").strip(" ()") or data.freq
    zone = getattr(data.dates, "tz", None)
    missing = 0 if data.observed is None else int((~data.observed).sum())
    asked = config.schema.roles
    roles = {"Forecast of them": asked.target if asked.past else (), "Known in advance": asked.future}
    known = facts(
        [
            ("Name", data.name),
            ("Source", config.source or "a table in memory"),
            ("SHA-256", Markup(f"<code>{escape(data.sha256[:16])}</code>")),
            ("Rows", f"{len(data.values)}"),
            ("Channels", f"{len(names)}: {', '.join(names[:MOST_NAMES])}{more}"),
            *((label, ", ".join(named)) for label, named in roles.items() if named),
            ("Step", f"{every}{f', {zone}' if zone else ''}" if every else "rows without dates"),
            (
                "Missing values",
                f"{missing} of {data.values.size} ({percent(missing / data.values.size)})" if missing else "none",
            ),
            *(("Note", f"{note[0].upper()}{note[1:]}.") for note in data.notes),
        ]
    )
    rows = []
    for part in PARTS:
        start, stop = getattr(data.split, part)
        windows = data.split.windows(part, config.seq_len, config.pred_len)
        rows.append((part, _when(data, start), _when(data, stop - 1), stop - start, windows))
    kept = data.split.test[1]
    unused = f" The last {len(data.values) - kept} rows are in no part." if kept < len(data.values) else ""
    sizes = " ".join(f"{stop - start}fr" for start, stop in (getattr(data.split, part) for part in PARTS))
    strip = f'<div class=split style="grid-template-columns:{sizes}" aria-hidden=true>' + "".join(
        f"<span>{part}</span>" for part in PARTS
    )
    about = (
        "<p class=note>Look-backs of validation and test reach into the rows before. Scaling is fitted to the training rows."
        f"{unused}</p>"
    )
    split = table(("Part", "First row", "Last row", "Rows", "Windows"), rows, "Which rows are for what")
    return Markup(f"{known}{strip}</div>{split}{about}")


def _when(data: Dataset, row: int) -> str:
    if data.dates is None:
        return f"{row}"
    stamp = data.dates[row]
    return f"{stamp:%Y-%m-%d %H:%M}" if hasattr(stamp, "strftime") else f"{stamp}"


def model_facts(forecaster: Forecaster) -> Markup:
    """The model and its settings, how it was trained, where, and with what."""
    config, metrics = forecaster.config, forecaster.metrics
    settings = {key: value for key, value in config.to_dict()["model"].items() if key not in ("name", *SHAPE)}
    steps = metrics.get("steps")
    stopped = metrics.get("stopped")
    why = f"; ended as {STOPPED.get(stopped, stopped)}" if stopped else ""
    trained = f"{steps}, weights of step {metrics['kept_step']}{why}" if steps else f"none{why}"
    recipe = {key: value for key, value in asdict(config.training).items() if value is not None}
    return facts(
        [
            ("Model", f"{config.model}: {model_card(config.model).summary}"),
            ("Settings", _settings(settings)),
            ("Look-back", steps_lasting(forecaster.freq, config.seq_len)),
            ("Horizon", steps_lasting(forecaster.freq, config.pred_len)),
            ("Parameters", f"{metrics['parameters']:,}" if "parameters" in metrics else NONE),
            ("Protocol", config.protocol),
            ("Steps", trained),
            ("Recipe", folded("Settings of the training", _settings(recipe))),
            ("Wall time", lasting(metrics["seconds"]) if "seconds" in metrics else NONE),
            ("Device", _device(metrics)),
            ("Libraries", ", ".join(f"{name} {version}" for name, version in metrics.get("versions", {}).items()) or NONE),
            ("Kernels", ", ".join(f"{name}: {used}" for name, used in metrics.get("kernels", {}).items()) or NONE),
        ]
    )


def _settings(settings: Mapping[str, Any]) -> Markup:
    chips = (f"<code>{escape(key)}={escape(_plain(value))}</code>" for key, value in settings.items())
    return Markup(f"<span class=chips>{' '.join(chips) or NONE}</span>")


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _device(metrics: Mapping[str, Any]) -> str:
    if "device" not in metrics:
        return NONE
    several = f"{metrics['devices']} x " if metrics.get("devices", 1) > 1 else ""
    return f"{several}{metrics['device']}, precision {metrics['precision']}"


def curves(forecaster: Forecaster) -> dict[str, list[float | None]]:
    """Losses at each validation for the page's script; empty for a model without steps."""
    names = {"training loss": "train_loss", "validation MSE": "val_mse"}
    rows = forecaster.history
    shown = {name: [float(row[key]) for row in rows] for name, key in names.items()} if rows else {}
    return {name: [float(f"{v:.5g}") if np.isfinite(v) else None for v in values] for name, values in shown.items()}


def kept_validation(forecaster: Forecaster) -> int | None:
    """Place of the validation whose weights were kept; None where there is none."""
    steps = [int(row["step"]) for row in forecaster.history]
    kept = forecaster.metrics.get("kept_step")
    return steps.index(kept) if kept in steps else None


def validation_table(forecaster: Forecaster) -> Markup:
    """A row for each validation."""
    rows = []
    for row in forecaster.history:
        errors = (scaled(row[name]) for name in ("train_loss", "val_mse", "val_mae"))
        rows.append((int(row["step"]), *errors, f"{row['lr']:.3g}", f"{row['seconds']:.1f}"))
    header = ("Step", "Training loss", "Validation MSE", "Validation MAE", "Learning rate", "Seconds")
    return folded("Validations as a table", table(header, rows, "Validations, scaled units"))


def record(forecaster: Forecaster) -> Markup:
    """The run's own files."""
    files = {
        "config.yaml": config_yaml(_shown(forecaster.config)).decode(),
        "metrics.json": strict_json(dict(forecaster.metrics), indent=2),
    }
    return Markup("".join(folded(name, f"<pre tabindex=0>{escape(text)}</pre>") for name, text in files.items()))
