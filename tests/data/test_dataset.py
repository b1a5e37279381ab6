from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from data_cases import wide

from femts.data.catalog import CATALOG
from femts.data.dataset import Dataset
from femts.data.loading import load_dataset
from femts.data.preprocess import Preprocess
from femts.data.read import write_table
from femts.data.scaler import Scaler
from femts.data.splits import ratio_split
from femts.data.windows import part_windows
from femts.errors import UsageError

REAL = [name for name in CATALOG if name not in ("Solar", "synthetic")]


def test_own_csv_and_own_frame_are_the_same_data(tmp_path: Path, table: pd.DataFrame) -> None:
    from_file = load_dataset(str(write_table(table, tmp_path / "mine.csv")))
    from_frame = load_dataset(table)
    assert from_file.name == "mine" and from_frame.name == "frame"
    for data in (from_file, from_frame):
        assert np.array_equal(data.values, table[["a", "b"]].to_numpy()) and data.values.dtype == np.float64
        assert data.columns == ("a", "b") and data.freq == "h" and data.season == 24 and data.notes == ()
        assert data.split == ratio_split(30)
        pd.testing.assert_frame_equal(data.frame(), table, check_dtype=False)


def test_the_hash_tells_frames_apart(table: pd.DataFrame) -> None:
    same, other = load_dataset(table.copy()), load_dataset(table.assign(a=table["a"] + 1))
    later = load_dataset(table.assign(date=table["date"] + pd.Timedelta("1h")))
    assert load_dataset(table).sha256 == same.sha256
    assert len({same.sha256, other.sha256, later.sha256}) == 3


def test_a_constant_column_is_taken_and_said_once(table: pd.DataFrame) -> None:
    data = load_dataset(table.assign(b=5.0))
    assert data.notes == ("column 'b' is constant in training, so its scale is 1",)
    assert Scaler.fit(data.train_values).scale[1] == 1.0


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("ETTh9", "Unknown dataset 'ETTh9'.*did you mean 'ETTh"),
        ("mine.csv", "File mine.csv does not exist"),
        ("folder/mine", "does not exist"),
    ],
)
def test_a_source_that_is_neither_name_nor_file(
    source: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=words):
        load_dataset(source)


def test_a_file_without_an_ending_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: pd.DataFrame
) -> None:
    monkeypatch.chdir(tmp_path)
    write_table(table, "series")
    assert load_dataset("series").columns == ("a", "b")


def test_synthetic_needs_no_file() -> None:
    data = load_dataset("Synthetic")
    assert (data.name, data.values.shape, data.freq, data.season) == ("synthetic", (8760, 6), "h", 24)
    assert data.sha256 == load_dataset("synthetic").sha256 and data.stamps is not None


def solar_text(rows: int, channels: int) -> str:
    lines = [",".join(f"{(i + j) % 97}.{j % 10}" for j in range(channels)) for i in range(97)]
    return "".join(f"{lines[i % 97]}\n" for i in range(rows))


def test_solar_unpacked_is_taken_by_its_form_and_says_that_it_is_unverified(tmp_path: Path) -> None:
    (tmp_path / "solar_AL.txt").write_text(solar_text(52560, 137))
    data = load_dataset("solar", data_root=tmp_path)
    assert data.values.shape == (52560, 137) and data.values[1, 2] == 3.2
    assert data.stamps is None and data.freq is None and "date" not in data.frame().columns
    assert any("no hash is published" in note for note in data.notes)
    windows = part_windows(data, Preprocess.fit(data), "test", 96, 96)
    assert len(windows) == 10417


def test_solar_of_another_size_is_refused(tmp_path: Path) -> None:
    (tmp_path / "solar_AL.txt").write_text(solar_text(100, 5))
    with pytest.raises(UsageError, match="has 100 rows of 5 values, but Solar has 52560 of 137"):
        load_dataset("Solar", data_root=tmp_path)


def test_solar_gzipped_must_be_the_published_blob(tmp_path: Path) -> None:
    pd.DataFrame(np.ones((10, 3))).to_csv(tmp_path / "solar_AL.txt.gz", header=False, index=False)
    with pytest.raises(UsageError, match=r"not the published Solar .*git blob 08a1f235"):
        load_dataset("Solar", data_root=tmp_path)


def test_a_dataset_cannot_be_changed_by_accident(table: pd.DataFrame) -> None:
    data = load_dataset(table)
    with pytest.raises(AttributeError):
        data.name = "other"  # type: ignore[misc]
    assert isinstance(replace(data, name="other"), Dataset)


def test_uneven_own_data_is_refused() -> None:
    with pytest.raises(UsageError, match="The frame has an uneven step"):
        load_dataset(wide(30).assign(date=lambda f: f["date"] + pd.to_timedelta(20 * (f.index == 7), unit="min")))


@pytest.mark.parametrize("name", REAL)
def test_real_file_has_the_form_of_its_card(name: str, real_root: Path) -> None:
    data, known = load_dataset(name, data_root=real_root, download=False), CATALOG[name]
    assert data.values.shape == (known.rows, known.channels) and np.isfinite(data.values).all()
    assert data.sha256 == known.sha256 and data.freq == known.freq and data.split == known.split
    preprocess = Preprocess.fit(data)
    for part in ("train", "val", "test"):
        assert len(part_windows(data, preprocess, part, 336, 96)) == known.split.windows(part, 336, 96)


def test_weather_keeps_its_sentinels_and_its_repeated_stamp(real_root: Path) -> None:
    data = load_dataset("Weather", data_root=real_root, download=False)
    assert data.stamps is not None
    assert int((data.values == -9999).sum()) == 81 and int(data.stamps.duplicated().sum()) == 1


def test_a_catalogue_file_given_by_its_path_says_what_that_means(real_root: Path) -> None:
    data = load_dataset(real_root / "ETTh2.csv")
    assert data.split == ratio_split(17420) and "is ETTh2" in data.notes[0]
