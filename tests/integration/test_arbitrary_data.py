"""Frames, wide or of many series, files, settings and orders of calls, drawn: an answer or a sentence, never a traceback,
never a changed input.

A dozen draws of each kind in the suite; FEMTS_CASES=100 draws as many, anew each time, which takes a minute or two.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import sys
import tempfile
import warnings
import zipfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from checked import checked
from drawn import DRAWN, attempt, copied, mostly, same
from hypothesis import given
from hypothesis import strategies as st
from odd_frames import good_frames, odd_frames
from odd_panels import ODD_ROLES, USUAL_ROLES, panels
from odd_words import FLAGS, KEYS, ORDERS, SPOILS
from pictures import plot_forecast

import femts
from femts.cli import main

SMALL = {"model.d_model": 16, "model.n_heads": 2, "model.n_layers": 1}
MODELS = st.sampled_from(["naive", "ridge", "dlinear", "seasonal_naive"])
ODD: st.SearchStrategy[Any] = st.sampled_from(
    [0, -1, 10**20, "x", "", None, 2.5, True, float("nan"), [1], {}, b"1", np.int64(3), np.float64(4)]
)
STEPS = st.one_of(st.integers(1, 8), ODD)
VALUES = st.sampled_from([1, 1e-3, "pinball", (0.5, 0.9), "0.1,0.5,0.9", 1e400, [[[1]]], pd.DataFrame(), 10**9])
SETTINGS = st.dictionaries(st.sampled_from(KEYS.split()), st.one_of(ODD, VALUES), max_size=2)
NO_FRAMES = st.sampled_from([None, 3, "x", [], {}, pd.Series([1.0]), np.zeros((3, 2)), pd.DataFrame(), b"x"])
COLUMNS = st.one_of(
    st.lists(st.sampled_from(["a", "b", "é", "date", "", "nope"]), max_size=2), st.sampled_from(["a", None, 3])
)
ROLES = st.fixed_dictionaries(
    {},
    optional={
        "target": COLUMNS,
        "past_covariates": COLUMNS,
        "future_covariates": COLUMNS,
        "calendar": st.booleans(),
        "na": st.one_of(ODD, st.sampled_from([(-9999,), [0, 1]])),
        "freq": st.one_of(ODD, st.sampled_from(["D", "7min", "MS", "30h"])),
        "aggregate": st.one_of(ODD, st.sampled_from(["sum", "median", "last"])),
        "columns": st.one_of(
            st.sampled_from([None, {"time": "ds"}, {"when": "x"}, {"time": 3}, ["a"], {"value": "a"}])
        ),
    },
)


STEP_OPTIONS = st.fixed_dictionaries(
    {"freq": st.sampled_from(["D", "2D", "7h", "W", "MS", "ME", "QS", "YS", "B"])},
    optional={"aggregate": st.sampled_from(["sum", "mean", "max"])},
)
LEVELS = st.sampled_from([None, [80], [80, 95], [0], [101], "80", [float("nan")], [None], 80, []])


@DRAWN
@given(
    frame=mostly(good_frames(), st.one_of(odd_frames(), odd_frames(), odd_frames(), NO_FRAMES)),
    model=MODELS,
    pred_len=mostly(3, STEPS),
    seq_len=mostly(24, STEPS),
    given=mostly({}, SETTINGS),
    roles=mostly({}, ROLES),
)
def test_any_training_succeeds_or_is_refused(
    frame: Any, model: str, pred_len: Any, seq_len: Any, given: dict[str, Any], roles: dict[str, Any]
) -> None:
    before = copied(frame)
    data = attempt(lambda: femts.load_dataset(frame, **roles)) if roles else frame
    if roles and data is None:
        return
    few = {"training.max_steps": 2, **given} if model == "dlinear" else given
    made = attempt(lambda: femts.train(data, model, pred_len, seq_len=seq_len, settings=few, device="cpu"))
    assert same(frame, before)
    if made is not None:
        assert np.isfinite(made.metrics["test"]["mse"])


@DRAWN
@given(
    frame=good_frames(),
    history=mostly(None, st.one_of(good_frames(), odd_frames(), odd_frames(), NO_FRAMES)),
    model=MODELS,
    horizon=mostly(None, STEPS),
    level=mostly([80], LEVELS),
    quantiles=mostly(None, LEVELS),
    future=mostly(None, st.one_of(odd_frames(), NO_FRAMES)),
    order=st.permutations(["predict", "evaluate", "scores", "calibrate", "save", "plot", "coverage", "explain"]),
    part=mostly("test", st.sampled_from(["val", "train", "tset", None, 3])),
    by=mostly("channel", st.sampled_from([None, "step", ["step", "channel"], "chanel", 3, [None]])),
)
def test_any_forecaster_call_succeeds_or_is_refused(
    frame: pd.DataFrame,
    history: Any,
    model: str,
    horizon: Any,
    level: Any,
    quantiles: Any,
    future: Any,
    order: list[str],
    part: Any,
    by: Any,
) -> None:
    made = attempt(lambda: femts.train(frame, model, 3, seq_len=24, max_steps=2, device="cpu"))
    if made is None:
        return
    read = frame if history is None else history
    kept = [(each, copied(each)) for each in (frame, read, future)]
    forecast = None
    with tempfile.TemporaryDirectory() as folder:
        for name in order:
            if name == "predict":
                forecast = attempt(lambda: made.predict(read, horizon, level, future, quantiles))
                if forecast is not None:
                    steps = 3 if horizon is None else int(horizon)
                    assert len(forecast) in (steps, steps * len(made.targets))
                    assert not np.isinf(forecast.select_dtypes("number").to_numpy(dtype=float)).any()
            elif name == "evaluate":
                attempt(lambda: made.evaluate(part, horizon))
            elif name == "scores":
                attempt(lambda: made.scores(part, horizon, by, level))
            elif name == "coverage":
                attempt(lambda: made.coverage("test", level, horizon))
            elif name == "calibrate":
                attempt(lambda: made.calibrate(horizon, level if level is not None else ()))
            elif name == "save":
                attempt(lambda: made.save(Path(folder) / "run"))
                attempt(lambda: femts.load(Path(folder) / "run").predict(read))
            elif name == "plot" and forecast is not None and isinstance(read, pd.DataFrame):
                attempt(partial(plot_forecast, read, forecast, Path(folder) / "x.svg"))
            elif name == "explain":
                attempt(lambda: made.explain(read))
    for each, before in kept:
        assert same(each, before)


@DRAWN
@given(
    frame=panels(),
    later=mostly(None, panels()),
    future=mostly(None, panels()),
    roles=mostly(USUAL_ROLES, ODD_ROLES),
    steps=mostly({}, STEP_OPTIONS),
    model=st.sampled_from(["naive", "ridge", "dlinear", "fem_sm", "fem_sm"]),
)
def test_any_panel_succeeds_or_is_refused(
    frame: Any, later: Any, future: Any, roles: dict[str, Any], steps: dict[str, Any], model: str
) -> None:
    history = frame if later is None else later
    ahead = frame if future is None else future
    given = [(each, copied(each)) for each in (frame, history, ahead)]
    panel = attempt(lambda: femts.load_dataset(frame, **roles, **steps, panel=True))
    made = None
    if panel is not None:
        made = attempt(
            lambda: femts.train(
                panel, model, 3, seq_len=8, max_steps=2, device="cpu", settings=SMALL if model == "fem_sm" else {}
            )
        )
    if made is not None:
        known = {"future": ahead} if made.config.schema.roles.future else {}
        forecast = attempt(lambda: made.predict(history, level=None, **known))
        if forecast is not None:
            assert len(forecast) % 3 == 0
            assert not np.isinf(forecast.select_dtypes("number").to_numpy(dtype=float)).any()
        attempt(made.scores)
        with tempfile.TemporaryDirectory() as folder:
            made.save(Path(folder) / "run")
            again = attempt(lambda: femts.load(Path(folder) / "run").predict(history, **known))
            assert (forecast is None) == (again is None)
            if forecast is not None:
                pd.testing.assert_frame_equal(again, forecast)
    for each, before in given:
        assert same(each, before)


@DRAWN
@given(frame=panels(odd=False), roles=mostly(st.just({"target": ["y"]}), USUAL_ROLES), drop=st.integers(0, 9))
def test_panel_equals_series_read_separately(frame: pd.DataFrame, roles: dict[str, Any], drop: int) -> None:
    frame = frame.drop(index=frame.index[5 :: drop + 3]) if drop else frame
    together = attempt(lambda: femts.load_dataset(frame, **roles, panel=True))
    if together is None:
        return
    for name in together.series:
        data = together[name]
        alone = frame[frame["unique_id"] == name]
        known, kept = data.schema.roles.future, [name in alone for name in data.columns]  # categories are encoded
        columns = [name for name in data.columns if name in alone]
        wide = alone[["ds", *columns, *known]].rename(columns={"ds": "date"})
        expected = attempt(partial(checked, wide, freq=together.freq))
        if expected is None:  # its stamps alone may leave open which number is the day
            continue
        assert pd.Index(expected["date"]).equals(data.stamps)
        np.testing.assert_array_equal(expected[columns], data.values[:, kept])
        np.testing.assert_array_equal(expected[list(known)], data.covariates)


def corrupt(content: bytes, kind: str, at: int) -> bytes:
    at %= len(content) + 1
    kinds = {
        "cut": content[:at],
        "zero byte": content[:at] + b"\0" + content[at:],
        "odd byte": content[:at] + b"\xff" + content[at:],
        "quote": content[:at] + b'"' + content[at:],
        "lines": content[:at] + b"\n\n\r" + content[at:],
        "packed": gzip.compress(content),
        "packed and cut": gzip.compress(content)[: max(2, at // 4)],
        "semicolons": content.replace(b",", b";"),
        "tabs": content.replace(b",", b"\t"),
        "bars": content.replace(b",", b"|"),
        "decimal commas": content.replace(b",", b";").replace(b".", b","),
        "marks of both kinds": content.replace(b",", b";").replace(b"0.", b"0,"),
        "thousands": content.replace(b",", b";").replace(b".", b",123."),
        "other packers": (bz2.compress, lzma.compress)[at % 2](content),
        "zip": _zip(content, 1 + at % 5 // 4),
        "zip and cut": _zip(content, 1)[: max(4, at // 4)],
        "comments": b"# made, by; hand\n" * (1 + at % 3) + content,
        "zstd": b"\x28\xb5\x2f\xfd" + content[: at % 50],
        "no header": content.partition(b"\n")[2],
        "nameless": content.partition(b"date")[2],
        "other name": content.replace(b"date", b"Zeit", 1),
        "sixteen bits": content.decode(errors="replace").encode("utf-16"),
        "escape": content[:at] + b"\x1b[2J" + content[at:],
        "comma": content[:at] + b"," + content[at:],
        "nine": content[:at] + b"9" * 30 + content[at:],
    }
    return kinds.get(kind, content)


def _zip(content: bytes, files: int) -> bytes:
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(files):
                archive.writestr(f"{number}.csv", content)
        return file.getvalue()


FILES = st.sampled_from(
    [
        "in.csv.gz",
        "in.zip",
        "in.parquet",
        "in.txt",
        "in",
        "in.pq",
        "-in.csv",
        "in.xlsx",
        "in.csv.zst",
        "in.json",
        "in.jsonl",
        "in.feather",
    ]
)


def _one_of(lines: str) -> st.SearchStrategy[str]:
    return st.sampled_from([part.strip() for part in lines.replace("\n", ";").split(";")])


@DRAWN
@given(
    frame=mostly(good_frames(), odd_frames()),
    name=mostly("in.csv", FILES),
    spoil=mostly("", _one_of(SPOILS)),
    at=st.integers(0, 3000),
    model=MODELS,
    piped=st.integers(0, 5).map(lambda n: n == 5),
    flags=mostly([], st.lists(_one_of(FLAGS), max_size=2)),
    orders=st.lists(_one_of(ORDERS), min_size=1, max_size=4),
)
def test_any_command_succeeds_or_is_refused(
    frame: Any, name: str, spoil: str, at: int, model: str, piped: bool, flags: list[str], orders: list[str]
) -> None:
    if not isinstance(frame, pd.DataFrame):
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        file = Path(name)
        try:
            if file.suffix in (".parquet", ".pq"):
                frame.to_parquet(file)
            elif file.suffix == ".feather":
                frame.to_feather(file)
            elif file.suffix in (".json", ".jsonl"):
                frame.to_json(file, orient="records", lines=file.suffix == ".jsonl")
            elif file.suffix == ".xlsx" and find_spec("openpyxl"):
                frame.to_excel(file, index=False)
            else:
                frame.to_csv(file, index=isinstance(frame.index, pd.DatetimeIndex | pd.PeriodIndex))
        except (ValueError, TypeError, OverflowError, ArithmeticError, NotImplementedError, KeyError, ImportError):
            return  # pandas does not write it, or not without another library
        content = corrupt(file.read_bytes(), spoil, at)
        file.write_bytes(content)
        source = "-" if piped else f"./{name}"
        first = f"train --dataset {source} --model {model} --horizon 3 --seq-len 24 --max-steps 2 --out run"
        for order in [f"{first} {' '.join(flags)}", *orders]:
            line = f"{first} --resume" if order == "train" else order.format(f"./{name}")
            with mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(content))):
                run_command(line.split())
            assert file.read_bytes() == content, line


def run_command(arguments: list[str]) -> None:
    out, err = io.StringIO(), io.StringIO()
    with warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(arguments)
    assert status in (0, 1, 2), arguments
    lines = [line for line in err.getvalue().splitlines() if not line.startswith(("note: ", "warning: "))]
    assert all(line.isprintable() for line in lines), (arguments, lines)
    assert (len(lines) == 1 and lines[0].startswith("femts: ")) if status else not lines, (arguments, lines)
