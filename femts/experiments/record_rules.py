"""Rules that a record has to keep before anything is made of it: its fields, their bounds, and that
they say the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from femts.config.model import AUTO, SHAPE
from femts.config.rules import (
    HEXADECIMAL,
    Misfit,
    Rule,
    anything,
    both,
    digest,
    entries,
    fields,
    flag,
    maybe,
    number,
    one_of,
    several,
    text,
    whole,
)
from femts.evaluation.window_errors import MOST
from femts.experiments.grid import PLACE, Cell
from femts.experiments.job import RecordForm
from femts.forecaster.run_rules import NAIVE, ROW, SPAN, STEPS

RECORD_FORMAT = 1
MOST_STEPS, MOST_THREADS = 10**6, 2**12
NO_RECIPE = (*PLACE, "seed", "channels", "n_static")  # the last two follow from the data


def _horizon(value: Any, name: str) -> None:
    if not (
        isinstance(value, str) and value.isascii() and value.isdecimal() and 1 <= len(value) <= 6 and int(value) > 0
    ):
        raise Misfit(name, value, "a horizon")


def _setting(value: Any, name: str) -> None:
    part, _, rest = value.partition(".") if isinstance(value, str) else ("", "", "")
    if part not in ("model", "training") or not rest or rest in (*PLACE, "seed"):
        raise Misfit(name, value, "model.NAME or training.NAME, a part of a cell")


def _commit(value: Any, name: str) -> None:
    if not isinstance(value, str) or len(value.removesuffix("+")) != 40 or set(value.removesuffix("+")) - HEXADECIMAL:
        raise Misfit(name, value, "a commit")


LOSS = number(0)
SCORES = fields({"mse": LOSS, "mae": LOSS, "windows": whole(1)}, {"pinball": LOSS})
SERIES = several(maybe(number()), 0, MOST_STEPS)
MADE_BY = {  # of every kind of record
    "kernels": entries(text),
    "place": fields(
        {
            "device": one_of("cpu", "cuda", "mps"),
            "name": text,
            "threads": whole(1, MOST_THREADS),
            "precision": text,
            "system": text,
            "python": text,
            "libraries": both(entries(text), fields({"femts": text, "torch": text, "numpy": text}, closed=False)),
        }
    ),
    "commit": maybe(_commit),
}
ERRORS = entries(several(maybe(LOSS), 1, MOST), _horizon)  # of windows or series
RECORD: Rule = fields(
    {
        "format": one_of(RECORD_FORMAT),
        "cell": fields(
            {
                "dataset": text,
                "model": text,
                "pred_len": STEPS,
                "seed": whole(),
                "protocol": text,
                "seq_len": maybe(STEPS),
                "settings": entries(text, _setting),
            },
            {
                "own": fields(
                    {"source": text, "sha256": digest},
                    {
                        "na": several(number()),
                        "columns": entries(text),
                        "target": several(text),
                        "past": several(text),
                        "future": several(text),
                        "static": several(text),
                        "calendar": flag,
                        "split": several(number(0, 1), 3, 3),
                        "val_rows": whole(1),
                        "test_rows": whole(1),
                        "test_from": text,
                        "min": number(),
                        "max": number(),
                        "transform": text,
                        "season": several(whole(1), 1),
                        "freq": text,
                        "panel": flag,
                    },
                )
            },
        ),
        "test": SCORES,
        "val": SCORES,
        "rolled": entries(fields({"val": SCORES, "test": SCORES}, {"naive": NAIVE}), _horizon),
        "kept_step": maybe(whole()),
        "steps": whole(),
        "stopped": maybe(text),
        "seconds": number(0),
        "config": fields(
            {
                "format": whole(),
                "dataset": fields(
                    {
                        "name": text,
                        "source": maybe(text),
                        "na": several(number()),
                        "columns": entries(text),
                        "roles": entries(anything),
                    },
                    {
                        "split": entries(anything),
                        "domain": entries(anything),
                        "season": several(whole(1), 1),
                        "freq": text,
                        "panel": flag,
                    },
                ),
                "model": fields({"name": text, "seq_len": STEPS, "pred_len": STEPS, "n_channels": STEPS}, closed=False),
                "pred_len": STEPS,
                "seq_len": STEPS,
                "protocol": text,
                "training": fields({"seed": whole(), "device": text}, closed=False),
            }
        ),
        "data": fields({"sha256": digest, "split": fields({"train": SPAN, "val": SPAN, "test": SPAN})}),
        "parameters": whole(),
        "history": several(ROW),
        "samples": several(
            fields(
                {
                    "row": whole(),
                    "channel": text,
                    "past": SERIES,
                    "truth": SERIES,
                    "forecast": several(number(), 1, MOST_STEPS),
                },
                {"series": text},
            ),
            1,
        ),
        **MADE_BY,
    },
    {"naive": NAIVE, "window_errors": ERRORS, "series_errors": ERRORS},
)


def check_record(record: Any) -> None:
    """A Misfit that names the first field of `record` that cannot be."""
    RECORD(record, "")
    cell, config = record["cell"], record["config"]
    model, training, place = config["model"], config["training"], record["place"]
    said = {  # each in two places, of which some readers take one and some the other
        "config.dataset.name": (config["dataset"]["name"], cell["dataset"]),
        "config.model.name": (model["name"], model["name"] if cell["model"] == AUTO else cell["model"]),
        "config.pred_len": (config["pred_len"], cell["pred_len"]),
        "config.model.pred_len": (model["pred_len"], cell["pred_len"]),
        "config.seq_len": (config["seq_len"], cell["seq_len"] or model["seq_len"]),
        "config.model.seq_len": (model["seq_len"], config["seq_len"]),
        "config.protocol": (config["protocol"], cell["protocol"]),
        "config.training.seed": (training["seed"], cell["seed"]),
        "config.training.device": (training["device"].replace("auto", place["device"]), place["device"]),
        "data.sha256": (record["data"]["sha256"], cell.get("own", record["data"])["sha256"]),
    }
    for name, (value, elsewhere) in said.items():
        if value != elsewhere:
            raise Misfit(name, value, f"{elsewhere!r} as elsewhere in it")
    for key in cell["settings"]:
        part, _, name = key.partition(".")
        if name not in config[part]:
            raise Misfit(f"cell.settings.{key}", cell["settings"][key], "a setting that config has")


FORM = RecordForm(RECORD_FORMAT, check_record, "femts table")


def check_is_of(record: Mapping[str, Any], cell: Cell) -> None:
    """A Misfit when `record` is that of another cell than `cell`."""
    stored, expected = record["cell"], cell_of(cell)
    for name in expected.keys() | stored.keys():
        value, other = stored.get(name), expected.get(name)
        if name == "own":  # where a file lies makes no difference
            value, other = (None if own is None else {**own, "source": None} for own in (value, other))
        if value != other:
            raise Misfit(f"cell.{name}", value, f"{other!r} as its place among the results says")
    if cell.model != AUTO:
        _check_recipe(record["config"], cell)


def _check_recipe(config: Mapping[str, Any], cell: Cell) -> None:
    """A Misfit where `cell` would be made otherwise today: a default that it leaves alone has changed since."""
    from femts.models.registry import build_config
    from femts.training.resolve import resolve_training

    given, training = resolve_training(cell.model, {}, cell.settings)
    model = build_config(cell.model, **{name: config["model"][name] for name in SHAPE}, settings=given)
    for part, today in (("model", asdict(model)), ("training", asdict(training))):
        for name, value in json.loads(json.dumps(today)).items():
            said = config[part].get(name, value)  # a setting younger than the record is as by default
            left = f"{part}.{name}" not in cell.settings and name not in NO_RECIPE
            if left and value is not None and said != value:
                raise Misfit(f"config.{part}.{name}", said, f"{value!r} as the model's recipe says today")


def cell_of(cell: Cell) -> dict[str, Any]:
    """The `cell` of a record."""
    return {
        **{name: getattr(cell, name) for name in ("dataset", "model", "pred_len", "seed", "protocol", "seq_len")},
        "settings": {key: str(value) for key, value in cell.settings.items()},
        **({} if cell.own is None else {"own": dict(cell.own)}),
    }
