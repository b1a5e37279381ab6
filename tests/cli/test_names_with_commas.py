"""Names that contain commas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from femts.cli import main
from femts.cli.options import names, parts

LOAD = "load (MW), gross"


def test_quoted_names_may_contain_commas() -> None:
    for text, expected in {
        "a, b": ["a", " b"],
        "": [""],
        "a,": ["a", ""],
        '"a, b",c': ["a, b", "c"],
        'c, "a, b"': ["c", "a, b"],
        '5" pipe,b': ['5" pipe', "b"],
        '"a,b': ['"a', "b"],
        "a\nb,c": ["a\nb", "c"],
    }.items():
        assert parts(text) == expected
        assert names(text) == tuple(part.strip() for part in expected)


def test_commas_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dates, wave = pd.date_range("2024-01-01", periods=80), np.sin(np.arange(80.0))
    pd.DataFrame({"date": dates, LOAD: wave, "heat": wave**2}).to_csv("mine.csv", index=False)
    shops = [pd.DataFrame({"unique_id": f"shop, {k}", "ds": dates, "y": wave + k}) for k in range(2)]
    pd.concat(shops).to_csv("shops.csv", index=False)
    train = "train --model ridge --horizon 7 --seq-len 14 --device cpu".split()
    assert main([*train, "--dataset", "mine.csv", "--out", "run", "--target", f'"{LOAD}"']) == 0
    assert main(["predict", "run", "mine.csv", "-o", "mine_ahead.csv"]) == 0
    assert LOAD in pd.read_csv("mine_ahead.csv")
    assert main([*train, "--dataset", "shops.csv", "--panel", "--out", "runs"]) == 0
    assert main(["predict", "runs", "shops.csv", "--series", '"shop, 1"', "-o", "ahead.csv"]) == 0
    assert set(pd.read_csv("ahead.csv")["unique_id"]) == {"shop, 1"}
