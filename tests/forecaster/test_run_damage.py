"""A damaged or forged run folder is told in one sentence, or what is damaged has no effect."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_damage import FILES, edit, flipped, loaded, rebind, reseal
from small_tables import small_table

import femts
from femts.cli import main
from femts.errors import UsageError
from femts.training.train import train

FLIPS = 60


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small trained run, with a column that is known in advance."""
    folder = tmp_path_factory.mktemp("damage")
    small_table(columns=("load", "heat", "open")).to_csv(folder / "past.csv", index=False)
    settings = {"training.batch_size": 100, "training.max_steps": 4}
    data = femts.load_dataset(folder / "past.csv", future=["open"])
    train(data, "dlinear", 12, seq_len=24, out=folder / "run", settings=settings, device="cpu")
    return folder / "run"


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("name", FILES)
def test_no_changed_bit_is_silent(run: Path, name: str) -> None:
    path, before, noticed = run / name, loaded(run), 0
    content = path.read_bytes()
    for changed in flipped(content, FLIPS):
        path.write_bytes(changed)
        try:
            assert loaded(run) == before
        except UsageError as error:
            assert "\n" not in str(error) and str(run) in str(error)
            noticed += 1
    assert noticed == {"metrics.csv": 0}.get(name, noticed)
    assert noticed >= 50 or name in ("metrics.csv", "metrics.json")
    path.unlink()
    if name == "metrics.csv":
        assert loaded(run) == before


def _put(*way: Any, value: Any) -> Callable[[Any], Any]:
    """Put `value`, or what it makes of the old one, at the end of `way`."""

    def change(content: Any) -> Any:
        inner = content
        for key in way[:-1]:
            inner = inner[key]
        if value is ...:
            del inner[way[-1]]
        else:
            inner[way[-1]] = value(inner[way[-1]]) if callable(value) else value
        return content

    return change


def _each(change: Callable[[np.ndarray], Any]) -> Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    def changed(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: np.ascontiguousarray(change(x)) if x.dtype.kind == "f" else x for name, x in tensors.items()}

    return changed


def _swap(values: list[Any]) -> list[Any]:
    return [values[1], values[0], *values[2:]]


def _cases(way: tuple[str, ...], *values: Any) -> list[tuple[Any, ...]]:
    return [(way, value) for value in values]


NAN = float("nan")
CONFIG: list[tuple[Any, ...]] = [
    *_cases(("model", "n_channels"), 0, -1, "2", 3, 10**5, None, True, 2.0),
    *_cases(("model", "seq_len"), 0, 23, 10**6, "24", []),
    *_cases(("pred_len",), 0, 13, None),
    *_cases(("model", "name"), "naive", "fem_sm", "nobody", 7, None),
    *_cases(("model", "kernel_size"), "wide", 0, -3, None, []),
    (("model",), []),
    (("model", "individual"), True),
    *_cases(("training",), [], {}, None, "fast"),
    *_cases(("training", "eval_batch_size"), 0, "many", None, 1.5),
    *_cases(("training", "quantiles"), "half", [2.0], [None]),
    *_cases(("training", "loss"), "pinball", "huber", 1),
    *_cases(("dataset",), None, [], "ETTh1"),
    *_cases(("dataset", "roles"), {}, [], {"past": ["heat"]}, {"target": "load"}, {"future": 7}, {"else": []}),
    *_cases(("dataset", "na"), None, ["x"], 7),
    *_cases(("dataset", "columns"), {"time": 7}, {"day": "x"}, [], {"series": "y"}),
    *_cases(("format",), None, "2", 99, []),
    (("protocol",), 7),
]
SCALER, EFFECTS = ("scaler",), ("scaler", "effects")
PREPROCESS: list[tuple[Any, ...]] = [
    *_cases(("columns",), _swap, [], ["load"], ["load", "load"], ["load", 7], None, "ab", ["load", "open"]),
    *_cases((*SCALER, "mean"), [0.0], [0.0, NAN], [0.0, "1"], None, [[0.0, 1.0]], _swap),
    *_cases((*SCALER, "scale"), [1.0], [1.0, 0.0], [1.0, -1.0], [1.0, float("inf")], {}, _swap),
    *_cases((*EFFECTS, "knots"), [], [[1.0], [2.0]], [["x"]], None, [[1.0] * 9]),
    *_cases((*EFFECTS, "mean"), [], [0.0, 1.0], [None]),
    *_cases((*EFFECTS, "weight"), [], [[1.0]], [[1.0, NAN]], 7),
    *_cases((*EFFECTS, "scale"), [], [0.0], [1.0] * 50),
    *_cases((*EFFECTS, "offset"), [], [1.0], [1.0] * 3),
    *_cases((*EFFECTS, "calendar"), True, None),
    *_cases((*EFFECTS, "zone"), 7, None, "UTC", "Europe/Nowhere"),
    *_cases((*EFFECTS,), ..., None, []),
    *_cases(("freq",), 7, "fortnight", "0", "", [], ...),
    *_cases(("data",), None, [], {"sha256": 7}, {"split": {}}),
    (("data", "split", "test"), [1]),
    (("scaler",), ...),
]
METRICS: list[tuple[Any, ...]] = [
    *_cases(("test",), None, {}, [], {"mse": "low", "mae": 1.0, "windows": 9}, ...),
    *_cases(("history",), None, {}, [7], [{}], ...),
    *_cases(("files",), None, [], {}, {"config.yaml": 7}, ...),
    *_cases(("versions",), None, 7, {"femts": 7}),
    *_cases(("steps",), "many", -1, None),
    *_cases(("kernels",), [], {"read": 7}),
    *_cases(("known",), [], {"load": "much"}),
    (("seconds",), "long"),
    (("format",), []),
    (("devices",), 0),
]
TENSORS: dict[str, Callable[[np.ndarray], Any]] = {
    "not a number": lambda x: np.full_like(x, NAN),
    "infinite": lambda x: np.full_like(x, -np.inf),
    "double": lambda x: x.astype(np.float64),
    "whole": lambda x: x.astype(np.int64),
    "short": lambda x: x[:-1],
    "flat": np.ravel,
    "empty": lambda x: x[:0],
    "one more dimension": lambda x: x[None],
}
FORGED = [
    *((f"config.yaml {way} {value}", "config.yaml", _put(*way, value=value)) for way, value in CONFIG),
    *((f"preprocess.json {way} {value}", "preprocess.json", _put(*way, value=value)) for way, value in PREPROCESS),
    *((f"metrics.json {way} {value}", "metrics.json", _put(*way, value=value)) for way, value in METRICS),
    *((f"weights {kind}", "model.safetensors", _each(change)) for kind, change in TENSORS.items()),
    *(
        (f"intervals {kind}", "intervals.safetensors", _put("half_widths", value=change))
        for kind, change in TENSORS.items()
    ),
    ("no tensors", "model.safetensors", lambda _: {}),
    ("no intervals", "intervals.safetensors", lambda _: {}),
    ("another name", "model.safetensors", lambda tensors: {f"{name}.x": value for name, value in tensors.items()}),
    ("falling levels", "intervals.safetensors", lambda found: {**found, "levels": found["levels"][::-1].copy()}),
    ("windows below none", "intervals.safetensors", lambda found: {**found, "windows": -found["windows"]}),
    *((f"{name} is a list", name, lambda _: [1]) for name in ("config.yaml", "preprocess.json", "metrics.json")),
]


@pytest.mark.parametrize("bound", [False, True], ids=["hashes", "hashes and binding"])
def test_a_forged_folder_is_told_in_a_sentence(run: Path, bound: bool, tmp_path: Path) -> None:
    """With every hash right; a forger who also binds the weights to other scales or names of columns is believed."""
    believed = []
    for told, name, change in FORGED:
        shutil.rmtree(tmp_path / "forged", ignore_errors=True)
        shutil.copytree(run, tmp_path / "forged")
        edit(tmp_path / "forged", name, change)
        if bound and name == "preprocess.json":
            rebind(tmp_path / "forged")
        reseal(tmp_path / "forged")
        try:
            femts.load(tmp_path / "forged")
        except UsageError as error:
            assert "\n" not in str(error), told
        else:
            believed.append(told)
    swapped = ["preprocess.json ('scaler', 'mean')", "preprocess.json ('scaler', 'scale')"]
    assert [told.split(" <")[0] for told in believed] == (swapped if bound else [])


def test_bytes_that_are_no_file_of_their_kind_are_told(run: Path, tmp_path: Path) -> None:
    for name in FILES:
        for content in (b"", b"[" * 100_000, b"\xff" * 64, b"{}", b"\x00" * 64, b"9" * 5000, b"- &a [*a]"):
            shutil.rmtree(tmp_path / "forged", ignore_errors=True)
            shutil.copytree(run, tmp_path / "forged")
            (tmp_path / "forged" / name).write_bytes(content)
            if name not in ("metrics.json", "metrics.csv"):
                reseal(tmp_path / "forged")
            if name == "metrics.csv":
                assert femts.load(tmp_path / "forged")
                continue
            with pytest.raises(UsageError, match=r"Run .*; "):
                femts.load(tmp_path / "forged")


def test_a_model_of_a_million_layers_is_not_built(tmp_path: Path) -> None:
    settings = {"training.max_steps": 1, "model.n_layers": 1, "model.d_model": 8, "model.n_heads": 1}
    femts.train("synthetic", "sm", 24, seq_len=48, settings=settings, out=tmp_path / "run", device="cpu")
    edit(tmp_path / "run", "config.yaml", _put("model", "n_layers", value=10**6))
    reseal(tmp_path / "run")
    with pytest.raises(UsageError, match=r"model of config\.yaml is 'larger'"):
        femts.load(tmp_path / "run")


def test_the_command_says_the_same(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit(run, "model.safetensors", _each(TENSORS["not a number"]))
    reseal(run)
    with warnings.catch_warnings(action="error"):
        assert main(["predict", str(run), str(run.parent / "past.csv")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "is 'not finite', not numbers" in err
