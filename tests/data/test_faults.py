"""Faults of a table: all in one message, from its first rows, with keywords that mend them together."""

from __future__ import annotations

import pickle
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from femts.cli import main
from femts.data import faults, read
from femts.data.loading import load_dataset
from femts.data.write import write_table
from femts.errors import TableFault, TableFaults, UsageError

N = 2000


def table(repeats: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    dates = pd.date_range("2024-01-01", periods=N, freq="h")
    frame = pd.DataFrame({"date": np.repeat(dates[: N // 2], 2) if repeats else dates})
    for name in ("load", "heat"):
        frame[name] = rng.normal(20, 5, N).round(2)
    return frame.assign(state=rng.choice(["low", "mid", "high"], N))


SEVERAL: dict[str, tuple[bool, dict[str, Any], tuple[str, ...]]] = {
    "names": (
        False,
        {"target": ["loda", "heat"], "future_covariates": "holiday", "drop": "status"},
        ("'status' to drop", "'loda' for target", "'holiday' for future_covariates"),
    ),
    "repeats": (True, {"target": ["load", "het"], "drop": "sate"}, ("'sate' to drop", "'het'", "1000 dates")),
    "text": (False, {"target": ["state", "lod"]}, ("'lod' for target", "in column 'state'")),
}


def mended(error: TableFaults, reading: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in (reading | error.remedy).items() if value is not None}


@pytest.mark.parametrize("suffix", ["frame", ".csv", ".csv.gz", ".parquet", ".feather", ".json"])
@pytest.mark.parametrize("case", SEVERAL)
def test_one_message_names_all_faults_and_its_keywords_mend_them(case: str, suffix: str, tmp_path: Path) -> None:
    repeats, reading, parts = SEVERAL[case]
    source = table(repeats) if suffix == "frame" else write_table(table(repeats), tmp_path / f"mine{suffix}")
    with pytest.raises(TableFaults) as caught:
        load_dataset(source, **reading)
    message = str(caught.value)
    assert f"has {len(parts)} faults: (1) it " in message
    assert all(part in message for part in parts)
    assert load_dataset(source, **mended(caught.value, reading)).n_targets


@pytest.mark.parametrize("suffix", [".json", ".xlsx"])
def test_large_files_of_formats_without_pieces_are_read_once(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeats, reading, parts = SEVERAL["repeats"]
    path, opened = write_table(table(repeats), tmp_path / f"mine{suffix}"), list[Path]()
    monkeypatch.setattr(faults, "LARGE_FILE", 0)
    whole = read.read_table

    def counted(file: Path, *names: Any) -> pd.DataFrame:
        opened.append(file)
        return whole(file, *names)

    monkeypatch.setattr(read, "read_table", counted)
    with pytest.raises(TableFaults) as caught:
        load_dataset(path, **reading)
    assert all(part in str(caught.value) for part in parts) and opened == [path]


def test_text_in_a_named_column_is_one_fault(tmp_path: Path) -> None:
    frame = table().astype({"load": object})
    frame.loc[700, "load"] = "calibrating 5"
    with pytest.raises(TableFault, match="has the text 'calibrating 5' in column 'load' at data row 701") as caught:
        load_dataset(frame, target="load")
    assert not isinstance(caught.value, TableFaults)


def test_a_single_fault_is_told_as_before(tmp_path: Path) -> None:
    with pytest.raises(TableFault, match=r"no column 'loda' for target; did you mean 'load'\?") as caught:
        load_dataset(table(), target="loda")
    assert caught.value.remedy == {"target": ["load"]}


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet", ".feather"])
@pytest.mark.parametrize("case", SEVERAL)
def test_a_large_file_is_refused_by_its_first_rows(
    case: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repeats, reading, _ = SEVERAL[case]
    path = write_table(table(repeats), tmp_path / f"mine{suffix}")
    with pytest.raises(TableFaults) as whole:
        load_dataset(path, **reading)
    monkeypatch.setattr(faults, "LARGE_FILE", 0)
    monkeypatch.setattr(read, "HEAD", 400)
    monkeypatch.setattr(read, "read_table", lambda *given: pytest.fail("all rows were read"))
    with pytest.raises(TableFaults, match=r"\(its first 100 rows\) has") as caught:
        load_dataset(path, **reading)
    assert caught.value.remedy == whole.value.remedy


def test_what_later_rows_mend_is_not_refused_by_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dates = pd.date_range("2024-01-01", periods=200, freq="D")
    shops = [f"shop {n}" for n in range(60)]
    sales = pd.DataFrame([(day, shop) for day in dates for shop in shops], columns=["day", "shop"])
    sales["sales"] = np.random.default_rng(1).normal(100, 9, len(sales)).round(2)
    frames: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {
        "one date, and shops that look like identifiers": (sales, {}),
        "a series of a later row as the target": (
            sales.sort_values(["shop", "day"]).set_axis(["ds", "unique_id", "y"], axis=1),
            {"target": ["shop 9", "shop 3"]},
        ),
        "text where others are numbers, in a column that is not used": (
            table().assign(state=["n/v"] * 50 + [1.5] * (N - 50)),
            {"target": "load"},
        ),
        "constant at first": (table().assign(load=np.r_[np.zeros(500), np.arange(N - 500) % 7])[["date", "load"]], {}),
    }
    for name, (frame, reading) in frames.items():
        path = write_table(frame, tmp_path / "mine.csv")
        expected = load_dataset(path, **reading)
        with monkeypatch.context() as patched:
            patched.setattr(faults, "LARGE_FILE", 0)
            patched.setattr(read, "HEAD", 90)
            assert np.array_equal(load_dataset(path, **reading).values, expected.values, equal_nan=True), name


def test_stamps_that_cannot_be_read_do_not_hide_other_faults(tmp_path: Path) -> None:
    frame = table().assign(date="x" + table()["date"].astype(str))
    with pytest.raises(UsageError, match=r"\(1\) it has 'x2024.*write it as 2024.*\(2\) .*'het'.*; give target="):
        load_dataset(frame, target=["het", "load"])


def test_the_command_line_prints_the_command_that_mends_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_table(table(repeats=True), tmp_path / "my table.csv")
    given = ["--target=load,het", "--model", "dlinear", "--drop", "sate", "--out", str(tmp_path / "run")]
    limits = ["--seq-len", "48", "--horizon", "12", "--max-steps", "2"]
    assert main(["train", "--dataset", str(path), *given, *limits]) == 2
    message = capsys.readouterr().err
    command = re.search(r"; run femts (.*)", message)
    assert command is not None, message
    words = shlex.split(command[1].rstrip("."))
    assert "--model" in words and "--target=load,het" not in words
    assert main(words) == 0


def test_faults_can_be_sent_between_processes() -> None:
    for kind in (TableFault, TableFaults):
        made = kind("The table has no rows", "; provide some.", {"drop": ["a"]}, "a")
        again = pickle.loads(pickle.dumps(made))
        assert (type(again), str(again), vars(again)) == (kind, str(made), vars(made))
