"""Tables in the .tsf format."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from femts.cli import main
from femts.data.formats.tsf import read_tsf
from femts.data.loading import load_dataset

HEADER = """# A comment
@relation demand
@attribute series_name string
@attribute start_timestamp date
@attribute store string
@frequency {frequency}
@missing true
@equallength false
@data
"""
SERIES = "T1:1979-03-01 00-00-00:north:1,2.5,?,4\nT2:1980-01-01 00-00-00:south:-7,8\n"


def written(folder: Path, series: str = SERIES, frequency: str = "monthly", header: str = HEADER) -> Path:
    path = folder / "demand.tsf"
    path.write_text(header.format(frequency=frequency) + series)
    return path


def test_series_are_read_as_a_long_table(tmp_path: Path) -> None:
    table = read_tsf(written(tmp_path))
    assert list(table.columns) == ["unique_id", "ds", "y", "store"]
    assert table["unique_id"].tolist() == ["T1"] * 4 + ["T2"] * 2 and table["store"].tolist()[-1] == "south"
    np.testing.assert_array_equal(table["y"], [1, 2.5, np.nan, 4, -7, 8])
    assert table["ds"].tolist()[:2] == [pd.Timestamp("1979-03-01"), pd.Timestamp("1979-04-01")]


@pytest.mark.parametrize(
    ("frequency", "step"),
    [
        ("yearly", "YS-JAN"),
        ("quarterly", "QS-OCT"),
        ("weekly", "7D"),
        ("half_hourly", "30min"),
        ("10_minutes", "10min"),
    ],
)
def test_frequency_gives_the_step(tmp_path: Path, frequency: str, step: str) -> None:
    path = written(tmp_path, "T1:1979-01-01 00-00-00:a:" + ",".join(map(str, range(30))), frequency)
    table = read_tsf(path)
    assert (pd.date_range("1979-01-01", periods=30, freq=step) == table["ds"]).all()


def test_compressed_files_load_as_panels(tmp_path: Path) -> None:
    path = tmp_path / "demand.tsf.gz"
    plain = written(tmp_path, "\n".join(f"T{n}:1979-01-01 00-00-00:a:" + "1,2,3,4,5,6,7,8,9,8" for n in range(3)))
    path.write_bytes(gzip.compress(plain.read_bytes()))
    data = load_dataset(path, static_covariates="store")
    assert len(data) == 3 and data.freq == "MS" and data.name == "demand" and data.schema.roles.static == ("store",)


def test_series_without_start_are_numbered(tmp_path: Path) -> None:
    header = HEADER.replace("@attribute start_timestamp date\n@attribute store string\n", "")
    table = read_tsf(written(tmp_path, "A:5,6\nB:7\n", header=header))
    assert table["ds"].tolist() == [0, 1, 0] and table["y"].tolist() == [5, 6, 7]


@pytest.mark.parametrize(
    ("series", "frequency", "message"),
    [
        (SERIES, "fortnightly", "unknown frequency 'fortnightly'"),
        ("T1:1979-03-01 00-00-00:1,2\n", "monthly", "line 10, has 2 attributes, but the header declares 3"),
        ("T1:1979-03-01 00-00-00:a:1,x\n", "monthly", "line 10, has a value that is not a number"),
        ("T1:soon:a:1,2\n", "monthly", "line 10, has the start 'soon'"),
        ("", "monthly", "has no series after '@data'"),
    ],
)
def test_invalid_files_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], series: str, frequency: str, message: str
) -> None:
    path = written(tmp_path, series, frequency)
    assert main(["train", "--dataset", str(path), "--out", str(tmp_path / "run")]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "run").exists()


def test_file_without_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.tsf"
    path.write_text("@relation demand\n")
    with pytest.raises(ValueError, match="no line '@data'"):
        load_dataset(path)
