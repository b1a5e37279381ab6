"""Loading of single series and panels from the catalogue, files and frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from data_cases import wide
from small_panels import LENGTHS, panel_table

from femts.data.catalog import CATALOG
from femts.data.loading import load_dataset
from femts.data.preprocess import Preprocess
from femts.data.read import write_table
from femts.data.splits import Split, ratio_split
from femts.data.windows import part_windows
from femts.errors import UsageError

REAL = [name for name in CATALOG if name not in ("Solar", "synthetic")]


def test_csv_and_frame_load_equally(tmp_path: Path, table: pd.DataFrame) -> None:
    from_file = load_dataset(str(write_table(table, tmp_path / "mine.csv")))
    from_frame = load_dataset(table)
    assert from_file.name == "mine" and from_frame.name == "frame"
    for data in (from_file, from_frame):
        assert np.array_equal(data.values, table[["a", "b"]].to_numpy()) and data.values.dtype == np.float64
        assert data.columns == ("a", "b") and data.freq == "h" and data.season == 24 and data.notes == ()
        assert data.series == ("",) and data.split == ratio_split(30)
        pd.testing.assert_frame_equal(data.frame(), table, check_dtype=False)


def test_hash_distinguishes_frames(table: pd.DataFrame) -> None:
    same, other = load_dataset(table.copy()), load_dataset(table.assign(a=table["a"] + 1))
    later = load_dataset(table.assign(date=table["date"] + pd.Timedelta("1h")))
    assert load_dataset(table).sha256 == same.sha256
    assert len({same.sha256, other.sha256, later.sha256, load_dataset(table, panel=True).sha256}) == 4


def test_long_table_is_a_panel_unless_multivariate(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    panel_table().to_csv(path, index=False)
    for source in (path, panel_table()):
        data = load_dataset(source)
        assert data.series == tuple(LENGTHS) and data.columns == ("y",)
        assert data.spans.tolist() == [[0, 300], [300, 360], [360, 384], [384, 390]]
        learn, said = data.notes
        assert (
            learn == "the table is long, so one model is trained on separate series; panel=False forecasts them jointly"
        )
        assert said == "it has 4 series of 6 to 300 rows, 1 of them with gaps"
        assert load_dataset(source, panel=True).notes == (said,)
        assert load_dataset(source, panel=False).columns == tuple(LENGTHS)


def test_panel_option_splits_a_wide_table(table: pd.DataFrame) -> None:
    data = load_dataset(table, panel=True)
    assert data.series == ("a", "b") and data.columns == ("y",)
    np.testing.assert_array_equal(data["b"].values[:, 0], table["b"])


def test_series_can_be_selected_from_a_panel() -> None:
    data = load_dataset(panel_table()).for_horizon(7)
    for number, (name, rows) in enumerate(LENGTHS.items()):
        one, (first, stop) = data[name], data.spans[number]
        assert (one.series, one.spans.tolist(), len(one.stamps)) == ((name,), [[0, rows]], rows)  # type: ignore[arg-type]
        np.testing.assert_array_equal(one.values, data.values[first:stop])
        assert one.split == Split(data.split.rows[[number]])
        assert rows < 2 * 7 + 8 or one.split == one.for_horizon(7).split
    some = data.take(np.array([2, 0]), np.array([20, 50]))
    assert some.series == ("young", "long") and some.lengths.tolist() == [20, 50]
    np.testing.assert_array_equal(some["long"].values, data["long"].values[:50])
    assert (some.split.rows <= some.lengths[:, None, None]).all()
    with pytest.raises(UsageError, match="Dataset 'frame' has no series 'lonk'; did you mean 'long'"):
        data["lonk"]


def test_training_rows_can_be_extended() -> None:
    data = load_dataset(panel_table()).for_horizon(7)
    assert data.all_rows().train_lengths.tolist() == data.lengths.tolist()
    held = data.held_out().split
    assert np.array_equal(held.val[:, 1], data.split.test[:, 1]) and np.array_equal(held.train, data.split.train)
    assert np.array_equal(data.learning("val").split.train[:, 1], data.split.rows[:, :2, 1].max(1))


def test_panel_scaler_equals_single_series_scalers() -> None:
    data = load_dataset(panel_table()).for_horizon(7)
    together = Preprocess.fit(data)
    for number, name in enumerate(("long", "short", "young")):
        alone = Preprocess.fit(data[name]).scaler
        np.testing.assert_array_equal(together.scaler.mean[number], alone.mean[0])
        np.testing.assert_array_equal(together.scaler.scale[number], alone.scale[0])
    again = Preprocess.from_dict(together.to_dict())
    np.testing.assert_array_equal(again.scaler.scale, together.scaler.scale)
    new = together.for_series(load_dataset(panel_table().replace({"short": "stranger"})))
    values = data["short"].values
    np.testing.assert_allclose(new.scaler.mean[1], np.nanmean(values, axis=0), err_msg="a new one, by its own rows")
    np.testing.assert_array_equal(new.scaler.mean[[0, 2, 3]], together.scaler.mean[[0, 2, 3]])


LONG = panel_table()


def test_invalid_panel_is_refused() -> None:
    cases: list[tuple[Any, ...]] = [
        (pd.concat([LONG, LONG.head(1).assign(y=-9.5)]), {}, "Series 'long' of The frame repeats 1 date"),
        (pd.concat([LONG, LONG.assign(y=-9.5)]), {}, "Series 'long' of The frame repeats 300 dates, the first"),
        (LONG.assign(ds=range(390)), {"calendar": True}, "Calendar features need dates"),
        (LONG, {"target": ["z"]}, "The frame has no column 'z' for target; choose from y."),
        (LONG, {"static_covariates": ["z"]}, "The frame has no column 'z' for static_covariates"),
        (LONG, {"past_covariates": ["y"]}, r"Column 'y' is listed in both target=\['y'\] and past_covariates=\['y'\]"),
        (
            LONG.assign(more=LONG["y"]),
            {"future_covariates": "more"},
            "Column 'more' of future_covariates equals the target 'y' in every row",
        ),
        (
            LONG.assign(more=1.0).drop(columns="ds"),
            {"past_covariates": "more"},
            "has no 'date' column",
        ),
        (
            LONG.assign(more=np.arange(390) > 350),
            {"static_covariates": "more"},
            "Static covariate 'more' of series 'short' changes from 0 to 1; use one value",
        ),
        (
            LONG.assign(more=np.inf),
            {"static_covariates": "more"},
            "Static covariate 'more' of series 'long' is infinite",
        ),
        (LONG.assign(unique_id=[*[None] * 3, *["a"] * 387]), {}, "has no name in 'unique_id' at data row 1"),
        (LONG.head(0), {}, "has no rows"),
        (LONG.assign(y="much"), {}, "has the text 'much' in column 'y'"),
        (3, {}, "The data are a int"),
        (
            wide(30).assign(date=lambda f: f["date"] + pd.to_timedelta(20 * (f.index == 7), unit="min")),
            {"panel": None},
            "The frame has irregular time stamps",
        ),
    ]
    for frame, reading, says in cases:
        with pytest.raises(UsageError, match=says):
            load_dataset(frame, **{"panel": True, **reading})


def test_unknown_source_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for source, words in [
        ("ETTh9", "Unknown dataset 'ETTh9'.*did you mean 'ETTh"),
        ("mine.csv", "File mine.csv does not exist"),
        ("folder/mine", "does not exist"),
    ]:
        monkeypatch.chdir(tmp_path)
        with pytest.raises(UsageError, match=words):
            load_dataset(source)


def test_file_without_extension_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: pd.DataFrame) -> None:
    monkeypatch.chdir(tmp_path)
    table.to_csv("series", index=False)
    assert load_dataset("series").columns == ("a", "b")


def solar_text(rows: int, channels: int) -> str:
    lines = [",".join(f"{(i + j) % 97}.{j % 10}" for j in range(channels)) for i in range(97)]
    return "".join(f"{lines[i % 97]}\n" for i in range(rows))


def test_unpacked_solar_is_accepted_as_unverified(tmp_path: Path) -> None:
    (tmp_path / "solar_AL.txt").write_text(solar_text(52560, 137))
    data = load_dataset("solar", data_root=tmp_path)
    assert data.values.shape == (52560, 137) and data.values[1, 2] == 3.2
    assert data.stamps is None and data.freq is None and "date" not in data.frame().columns
    assert any("only the compressed file has a published hash" in note for note in data.notes)
    windows = part_windows(data, Preprocess.fit(data), "test", 96, 96)
    assert len(windows) == 10417


def test_altered_solar_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "solar_AL.txt").write_text(solar_text(100, 5))
    with pytest.raises(UsageError, match="has 100 rows of 5 values, but Solar has 52560 of 137"):
        load_dataset("Solar", data_root=tmp_path)
    pd.DataFrame(np.ones((10, 3))).to_csv(tmp_path / "solar_AL.txt.gz", header=False, index=False)
    with pytest.raises(UsageError, match=r"not the published Solar .*git blob 08a1f235"):
        load_dataset("Solar", data_root=tmp_path)


@pytest.mark.parametrize("name", REAL)
def test_real_file_matches_its_card(name: str, real_root: Path) -> None:
    data, known = load_dataset(name, data_root=real_root, download=False), CATALOG[name]
    assert data.values.shape == (known.rows, known.channels) and np.isfinite(data.values).all()
    assert data.sha256 == known.sha256 and data.freq == known.freq and data.split == known.split
    preprocess = Preprocess.fit(data)
    for part in ("train", "val", "test"):
        assert len(part_windows(data, preprocess, part, 336, 96)) == known.split.windows(part, 336, 96)[0, 3]


def test_weather_keeps_sentinels_and_duplicate_stamp(real_root: Path) -> None:
    data = load_dataset("Weather", data_root=real_root, download=False)
    assert data.stamps is not None
    assert int((data.values == -9999).sum()) == 81 and int(data.stamps.duplicated().sum()) == 1


def test_catalogue_file_given_by_path_is_noted(real_root: Path) -> None:
    data = load_dataset(real_root / "ETTh2.csv")
    assert data.split == ratio_split(17420) and "is ETTh2" in data.notes[0]
