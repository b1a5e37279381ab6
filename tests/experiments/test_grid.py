"""A grid says which cells there are; a cell's path says which it is."""

from __future__ import annotations

import pytest
from small_grid import small_grid

from femts.errors import UsageError
from femts.experiments.grid import Cell, make_grid


def test_a_grid_is_every_combination_row_by_row() -> None:
    cells = make_grid(("etth1", "ETTh2"), ("naive", "fem_sm"), (96, 192), (1, 2), "paper", (None,), {})
    assert len(cells) == 16
    assert [cell.path for cell in cells[:3]] == [
        "paper/ETTh1/naive-96-seed1",
        "paper/ETTh1/fem_sm-96-seed1",
        "paper/ETTh1/naive-96-seed2",
    ]


def test_of_several_look_backs_those_that_fit_are_cells() -> None:
    cells = make_grid(("ETTh1",), ("dlinear",), (96, 720), (1,), "paper", (512, 8200), {})
    assert [(cell.pred_len, cell.seq_len) for cell in cells] == [(96, 512), (96, 8200), (720, 512)]
    assert len({cell.path for cell in cells}) == 3


def test_what_changes_a_number_changes_the_path() -> None:
    first = Cell("ETTh1", "fem_sm", 96)
    others = [
        Cell("ETTh1", "fem_sm", 96, seq_len=512),
        Cell("ETTh1", "fem_sm", 96, settings={"training.lr": 1e-4}),
        Cell("ETTh1", "fem_sm", 96, settings={"training.lr": 2e-4}),
        Cell("ETTh1", "fem_sm", 96, protocol="lookback96"),
        Cell("ETTh1", "fem_sm", 96, seed=1),
    ]
    assert len({cell.path for cell in (first, *others)}) == 6
    typed, text = (Cell("ETTh1", "fem_sm", 96, settings={"training.patience": value}) for value in (5, "5"))
    assert typed.path == text.path
    assert small_grid()[0].path.startswith("paper-")


def test_what_a_recipe_says_anyway_changes_nothing() -> None:
    settings = {"training.patience": "3", "model.dropout": "0.3"}
    cells = make_grid(("ETTh1",), ("itransformer", "patchtst"), (96,), (1,), "paper", (None,), settings)
    assert [dict(cell.settings) for cell in cells] == [{"model.dropout": "0.3"}, {"training.patience": "3"}]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"datasets": ("ETTh3",)}, "Unknown dataset 'ETTh3'"),
        ({"models": ("fem_smm",)}, "Unknown model 'fem_smm'; did you mean 'fem_sm'"),
        ({"protocol": "papers"}, "Unknown protocol 'papers'"),
        ({"settings": {"training.lrr": "1"}}, "did you mean 'lr'"),
        ({"settings": {"model.seasn": "1"}}, "Unknown setting 'model.seasn'"),
        ({"settings": {"model.seq_len": "48"}}, "'model.seq_len' follows from the data, --seq-len and --pred-len"),
        ({"models": ("patchtst",), "settings": {"model.n_heads": "3"}}, "takes a multiple of 'model.n_heads' \\(3\\)"),
        ({"settings": {"training.max_time": "1m"}}, "'training.max_time' is no part of a cell"),
        ({"settings": {"training.seed": "1"}}, "'training.seed' is no part of a cell"),
        ({"seeds": (-1,)}, "Seed -1 is none"),
    ],
)
def test_mistakes_are_named(changes: dict, message: str) -> None:
    given = {"datasets": ("ETTh1",), "models": ("naive",), "pred_lens": (96,), "seeds": (42,), "protocol": "paper"}
    with pytest.raises(UsageError, match=message):
        make_grid(**{**given, "seq_lens": (None,), "settings": {}, **changes})
