"""Rules that the files of a run folder have to keep before anything is made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from femts.config.rules import (
    Misfit,
    Rule,
    anything,
    digest,
    entries,
    fields,
    flag,
    maybe,
    number,
    one_of,
    real,
    several,
    text,
    whole,
)
from femts.data.domain import TRANSFORMS

STEPS = whole(1, 10**6)
SPAN = several(whole(), 2, 2)
NUMBERS, SCALES, NAMES = several(number()), several(number(5e-324)), several(text)
# None without values.
SCORES = fields({"mse": maybe(number()), "mae": maybe(number()), "windows": whole(1)}, closed=False)
ROW = fields(
    {
        "step": whole(1),
        "train_loss": number(),
        "val_mse": number(0),
        "val_mae": number(0),
        "lr": number(0),
        "seconds": number(0),
    },
    {"val_pinball": number(0)},
)
SPLIT = fields(
    {}, {"split": several(number(0, 1), 3, 3), "val_rows": whole(1), "test_rows": whole(1), "test_from": text}
)
DOMAIN = fields({}, {"min": number(), "max": number(), "transform": one_of(*TRANSFORMS)})
_SHAPE = dict.fromkeys(("seq_len", "pred_len", "n_channels"), STEPS)
_MEMBER = fields({"model": text, "config": fields(_SHAPE, closed=False)})
_TRAINING = fields(
    {
        "seed": whole(),
        "batch_size": whole(1),
        "eval_batch_size": whole(1),
        "loss": one_of("mse", "mae", "pinball"),
        "quantiles": several(number(0, 1)),
    },
    closed=False,
)
_CONFIG = fields(
    {
        "format": whole(),
        "dataset": fields(
            {
                "name": text,
                "source": maybe(text),
                "na": several(real),
                "columns": fields({}, {"time": text, "series": text, "value": text}),
                "roles": fields({}, {**dict.fromkeys(("target", "past", "future", "static"), NAMES), "calendar": flag}),
            },
            {"split": SPLIT, "domain": DOMAIN, "season": several(whole(1), 1), "freq": text, "panel": flag},
        ),
        "model": fields({"name": text, **_SHAPE}, {"members": several(_MEMBER, 1)}, closed=False),
        "pred_len": STEPS,
        "seq_len": STEPS,
        "protocol": text,
        "training": _TRAINING,
    },
    {"final": one_of(True)},
)
_EFFECTS = fields(
    {
        "knots": several(NUMBERS),
        "calendar": flag,
        "weight": several(NUMBERS),
        "scale": SCALES,
        **dict.fromkeys(("mean", "offset", "explained"), NUMBERS),
    },
    {"zone": text},
)
_DATA = fields({}, {"sha256": text, "split": fields({"train": SPAN, "val": SPAN, "test": SPAN})})
_POWER = {"power": fields({"shift": number(0, 1), "powers": several(number(-2, 2))}), "domain": DOMAIN}
_SCALER = fields({"mean": NUMBERS, "scale": SCALES}, {"own": several(flag), "effects": _EFFECTS})
PREPROCESS = fields(
    {"scaler": _SCALER, "columns": several(text, 1), "freq": maybe(text), "data": _DATA}, {**_POWER, "until": text}
)
_SERIES = fields({"scaler": _SCALER, "columns": several(text)}, _POWER)
_STATIC = fields({}, {"words": several(text, 1), "mean": number(), "scale": number(5e-324)})
PANEL_PREPROCESS = fields(
    {"series": entries(_SERIES), "columns": several(text, 1), "freq": text, "data": _DATA},
    {"effects": _EFFECTS, "static": entries(_STATIC), "until": text, "series_until": entries(text)},
)
# What training says of itself; a forecaster that was put together by hand says none of it.
_TRAINED = {
    **dict.fromkeys(("dataset", "model", "protocol", "device", "precision"), text),
    **dict.fromkeys(("pred_len", "seq_len"), STEPS),
    **dict.fromkeys(("seed", "steps", "parameters"), whole()),
    "kept_step": maybe(whole()),
    "stopped": maybe(text),
    "val": SCORES,
    "test": SCORES,
    "seconds": number(0),
    "versions": entries(text),
}
_ALL_ROWS = {
    "scored": fields({"folder": text, "train": SPAN, "val": SPAN, "test": SPAN}, {"series": whole(1)}),
    "final": fields({"rows": whole(1), "steps": whole(), "stopped": maybe(text), "seconds": number(0)}),
}
NAIVE = fields(
    {
        "season": whole(1),
        "mse": maybe(number(0)),
        "mae": maybe(number(0)),
        "mase": maybe(number(0)),
        "skill": maybe(number()),
    }
)
_TRIED = fields({"model": text, "seconds": number(0)}, {"error": number(0), "reason": text})
_AUTO = {"rule": text, "taken": several(text, 1), "error": number(0), "origins": whole(1), "windows": whole(1)}
# What a member's own run was; data and shape are those of its mean.
_MEMBER_RUN = fields(
    {"model": fields({"name": text}, closed=False), "protocol": text, "training": _TRAINING}, closed=False
)
_MAYBE = {
    "auto": fields({**_AUTO, "tried": several(_TRIED, 1)}, {"order": entries(anything)}),
    "naive": NAIVE,
    "outgrown": several(text, 1),
    "dominant": fields({"name": text, "error": number(0, 1), "values": number(0, 1)}),
    "devices": whole(1),
    "kernels": entries(text),
    "known": entries(number()),
    "data_sha256": text,
    "schedule": fields(dict.fromkeys(("steps", "epoch"), whole(1))),
    "thinned": entries(whole(1)),
    "members": several(fields({"config": _MEMBER_RUN, "metrics": entries(anything)}), 1),
}
_BARE = {"format": whole(), "files": entries(digest), "history": several(ROW), "sha256": digest}


def check_config(record: Any) -> None:
    """A Misfit that names the first field of `config.yaml` that cannot be."""
    _CONFIG(record, "")
    model = record["model"]
    for name in ("pred_len", "seq_len"):
        if model[name] != record[name]:
            raise Misfit(f"model.{name}", model[name], f"{record[name]} as its {name}")
    for place, member in enumerate(model.get("members", ())):
        for name, most in ((name, model[name]) for name in _SHAPE):
            value = member["config"][name]
            if value > most or (value < most and name != "seq_len"):
                raise Misfit(f"model.members[{place}].config.{name}", value, f"{most} as in the mean")


def check_metrics(metrics: Mapping[str, Any]) -> None:
    """A Misfit that names the first field of `metrics.json` that cannot be."""
    _said(metrics, "", _BARE)
    for place, member in enumerate(metrics.get("members", ())):
        _said(member["metrics"], f"members[{place}].metrics")


def _said(metrics: Mapping[str, Any], name: str, needed: Mapping[str, Rule] | None = None) -> None:
    trained = _TRAINED if metrics.keys() & _TRAINED.keys() else {}
    trained = {**trained, **_ALL_ROWS} if metrics.keys() & _ALL_ROWS.keys() else trained
    fields({**(needed or {}), **trained}, _MAYBE, closed=False)(metrics, name)
