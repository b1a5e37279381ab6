"""Cells of a grid and their paths."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from small_tables import small_table

from femts.errors import UsageError
from femts.experiments.cell import Cell
from femts.experiments.grid import Grid, make_grid
from femts.models.registry import model_card


def test_grid_is_the_cartesian_product() -> None:
    cells = make_grid(Grid(("etth1", "ETTh2"), ("naive", "fem_sm"), (96, 192), (1, 2), "paper", (None,), {}))
    assert len(cells) == 16
    assert [cell.path for cell in cells[:3]] == [
        "paper/ETTh1/naive-96-seed1",
        "paper/ETTh1/fem_sm-96-seed1",
        "paper/ETTh1/naive-96-seed2",
    ]


def test_too_long_look_backs_are_skipped() -> None:
    cells = make_grid(Grid(("ETTh1",), ("dlinear",), (96, 720), (1,), "paper", (512, 8200), {}))
    assert [(cell.pred_len, cell.seq_len) for cell in cells] == [(96, 512), (96, 8200), (720, 512)]
    assert len({cell.path for cell in cells}) == 3


def test_every_relevant_setting_changes_the_path() -> None:
    changes: list[dict[str, Any]] = [
        *({}, {"seq_len": 512}, {"protocol": "lookback96"}, {"seed": 1}),
        *({"settings": {"training.lr": lr}} for lr in (1e-4, 2e-4)),
    ]
    assert len({Cell("ETTh1", "fem_sm", 96, **each).path for each in changes}) == len(changes)
    typed, text = (Cell("ETTh1", "fem_sm", 96, settings={"training.patience": value}) for value in (5, "5"))
    assert typed.path == text.path


def test_record_path_encodes_settings_portably_or_as_a_hash() -> None:
    def variant(**settings: object) -> str:
        named = {key.replace("__", "."): value for key, value in settings.items()}
        return Cell("ETTh1", "fem_sm", 96, seq_len=512, settings=named).variant

    assert variant(training__lr=1e-4, model__d_model=64) == "paper-model.d_model=64,seq_len=512,training.lr=0.0001"
    for key, value in (("betas", [0.9, 0.95]), ("prior", "a/b"), ("lr", "9" * 21), ("lr", "1.")):
        assert re.fullmatch("paper-[0-9a-f]{8}", variant(**{f"training__{key}": value}))
    many = {f"model__name{number}": number for number in range(8)}
    assert re.fullmatch("paper-[0-9a-f]{8}", variant(**many))
    assert len({variant(training__betas=[0.9, last]) for last in (0.95, 0.99)}) == 2


def test_default_values_do_not_change_the_path() -> None:
    own = model_card("itransformer").model_class.training_defaults["lr"]
    settings = {"training.lr": str(own), "model.dropout": "0.3"}
    cells = make_grid(Grid(("ETTh1",), ("itransformer", "patchtst"), (96,), (1,), "paper", (None,), settings))
    assert [dict(cell.settings) for cell in cells] == [{"model.dropout": "0.3"}, {"training.lr": str(own)}]


def test_param_grid_combinations_are_cells_without_duplicates() -> None:
    choices = {"training.lr": ("5e-3", "1e-3"), "training.patience": ("4", "3")}  # 1e-3 and 4 are dlinear's own
    cells = make_grid(Grid(("ETTh1",), ("dlinear",), (96,), (1,), "paper", (512, 1024), {}, param_grid=choices))
    assert len({cell.path for cell in cells}) == len(cells) == 8
    assert [dict(cell.settings) for cell in cells if cell.seq_len == 512] == [
        {"training.lr": "5e-3"},
        {"training.lr": "5e-3", "training.patience": "3"},
        {},
        {"training.patience": "3"},
    ]
    choices = {"training.lr": ("1e-3", "0.001")}
    assert len(make_grid(Grid(("ETTh1",), ("dlinear",), (96,), (1,), "paper", (None,), {}, param_grid=choices))) == 1


def test_param_grid_skips_models_without_the_setting() -> None:
    choices = {"model.kernel_size": ("3", "25"), "model.ridge": ("0.1", "1")}
    cells = make_grid(Grid(("ETTh1",), ("dlinear", "ridge", "naive"), (96,), (1,), "paper", (512,), param_grid=choices))
    assert [(cell.model, dict(cell.settings)) for cell in cells] == [
        ("dlinear", {"model.kernel_size": "3"}),
        ("dlinear", {}),  # 25 is its own
        ("ridge", {"model.ridge": "0.1"}),
        ("ridge", {"model.ridge": "1"}),
        ("naive", {}),
    ]
    with pytest.raises(UsageError, match=r"Unknown setting 'model\.rigde'"):
        make_grid(Grid(("ETTh1",), ("dlinear", "ridge"), (96,), param_grid={"model.rigde": ("0.1", "1")}))


def test_auto_look_backs_per_dataset(tmp_path: Path) -> None:
    for name, rows in (("short.csv", 120), ("long.csv", 3000)):
        small_table(rows).to_csv(tmp_path / name, index=False)
    sources = ("ETTh1", str(tmp_path / "short.csv"), str(tmp_path / "long.csv"))
    cells = make_grid(Grid(sources, ("naive",), (12,), seq_lens="auto"))
    offered = {name: [c.seq_len for c in cells if c.dataset == name] for name in ("ETTh1", "short", "long")}
    assert offered == {"ETTh1": [512, 1024, 2048, 4096], "short": [24], "long": [120, 240, 504, 1008]}


def test_invalid_grids_are_refused() -> None:
    cases: list[tuple[Any, ...]] = [
        ({"datasets": ("ETTh3",)}, "Unknown dataset 'ETTh3'"),
        ({"models": ("fem_smm",)}, "Unknown model 'fem_smm'; did you mean 'fem_sm'"),
        ({"protocol": "papers"}, "Unknown protocol 'papers'"),
        ({"protocol": "../up", "seq_lens": (96,)}, "Unknown protocol '../up'; choose from paper"),
        ({"protocol": 5, "seq_lens": "auto"}, "Argument 'protocol' is '5'; pass a name as a string"),
        ({"settings": {"training.lrr": "1"}}, "did you mean 'training.lr'"),
        ({"settings": {"model.seasn": "1"}}, "Unknown setting 'model.seasn'"),
        ({"settings": {"model.seq_len": "48"}}, "'model.seq_len' is determined by the data, seq_len and pred_len"),
        ({"models": ("patchtst",), "settings": {"model.n_heads": "3"}}, "takes a multiple of 'model.n_heads' \\(3\\)"),
        ({"settings": {"training.max_time": "1m"}}, "'training.max_time' cannot be set for a cell"),
        ({"settings": {"training.seed": "1"}}, "'training.seed' cannot be set for a cell"),
        ({"seeds": (-1,)}, "Seed -1 is negative"),
        ({"datasets": ("ETTh1", "etth1")}, "'ETTh1' and 'etth1' have the same name; leave one out, or rename a file"),
        ({"pred_lens": (2881,)}, "2881 steps does not fit the 2880 val rows of 'ETTh1'; the longest that fits is 2880"),
        ({"seq_lens": (8600, 9000)}, "8600 steps with a forecast of 96 does not fit the 8640 train rows of 'ETTh1'"),
        (
            {"settings": {"training.lr": "1"}, "param_grid": {"training.lr": ("1", "2")}},
            "given both a value and a param_grid",
        ),
        ({"param_grid": {"training.max_time": ("1m", "2m")}}, "'training.max_time' cannot be set for a cell"),
        ({"param_grid": {"model.kernel_size": ("3", "25")}}, "Model 'naive' does not accept these settings"),
        (
            {"param_grid": {"model.windows": ("8", "24")}},
            "'model.windows' changes which windows are scored, so validation",
        ),
        ({"settings": {"model.windows": "8"}}, "Unknown setting 'model.windows'; there is none to choose from"),
        (
            {"reading": {"past_covariates": ("OT",)}},
            "Model 'naive' forecasts each column from its own past alone, so past_covariates=.'OT'",
        ),
        ({"datasets": ("mine.csv",)}, "File mine.csv does not exist"),
    ]
    for changes, message in cases:
        given = {"datasets": ("ETTh1",), "models": ("naive",), "pred_lens": (96,), "seeds": (42,), "protocol": "paper"}
        with pytest.raises(UsageError, match=message):
            make_grid(Grid(**{**given, "seq_lens": (None,), "settings": {}, **changes}))


def test_files_are_identified_by_content_and_reading_options(tmp_path: Path) -> None:
    def cell(source: str | Path, reading: dict[str, Any] | None = None) -> Cell:
        return make_grid(Grid((str(source),), ("naive",), (12,), (1,), "paper", (48,), {}, reading or {}))[0]

    mine = tmp_path / "mine.csv"
    small_table().to_csv(mine, index=False)
    first = cell(mine)
    variant, folder, name = first.path.split("/")
    assert variant.startswith("paper-") and folder.startswith("mine-") and name == "naive-12-seed1"
    assert first.load().columns == ("load", "heat")
    moved = tmp_path / "elsewhere" / "mine.csv"
    moved.parent.mkdir()
    mine.rename(moved)
    assert cell(moved).path == first.path
    other = cell(moved, {"target": ("load",), "na": (-1.0,)})
    assert other.path != first.path and other.load().columns == ("load",)
    assert (
        cell("synthetic").path.split("/")[1] == "synthetic" != cell("synthetic", {"calendar": True}).path.split("/")[1]
    )

    small_table(301).to_csv(moved, index=False)
    assert cell(moved).path != first.path
    with pytest.raises(UsageError, match=r"mine\.csv has changed since the table was started; run 'femts table' again"):
        other.load()
