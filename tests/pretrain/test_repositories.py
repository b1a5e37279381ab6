"""Series of public repositories are those of their tables, and files that overlap with scored series are found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from femts.errors import UsageError
from scripts.pretrain import overlap
from scripts.pretrain.overlap import overlaps, runs_by_name
from scripts.pretrain.packages import Source
from scripts.pretrain.repositories import REPOSITORIES, SOURCES, main, table

DAYS = pd.date_range("2020-02-01", periods=300)


def read(source: Source, folder: Path) -> dict[str, list[float]]:
    return {name.removeprefix("Public ann/data tables/"): values.tolist() for name, values in source(folder)}


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    (tmp_path / "ann+data/tables").mkdir(parents=True)
    return tmp_path


def written(clones: Path, **columns: object) -> str:
    pd.DataFrame(columns).to_csv(clones / "ann+data/tables/x.csv", index=False)
    return "ann+data/tables/x.csv"


def squares(rows: int) -> np.ndarray:
    return np.arange(rows) ** 2 % 97 + 0.5


def test_missing_days_and_sentinels_are_empty_and_keys_are_series(clones: Path) -> None:
    values = squares(300)
    values[10] = -99.9
    kept = [day for day in range(300) if day not in (20, 21)]
    parts = [{"day": DAYS[day], "town": town, "zone": 1, "x": values[day]} for town in "ba" for day in kept]
    file = written(clones, **pd.DataFrame(parts).to_dict("list"))
    series = read(table("D", file, stamps="day", key="town+zone", na_values=[-99.9]), clones)
    values[[10, 20, 21]] = np.nan
    assert list(series) == ["x.csv a 1 x", "x.csv b 1 x"]
    np.testing.assert_array_equal(series["x.csv b 1 x"], values)


def test_stamps_in_columns_are_averaged_by_quarter_without_notes(clones: Path) -> None:
    months = pd.period_range("1990-01", periods=72, freq="M")
    file = written(
        clones, year=[*months.year, "Source:"], month=[*months.month, "none"], x=[*squares(72), 5.0], name="text"
    )
    series = read(table("QS", file, stamps="year+month", form="%Y %m"), clones)
    assert list(series) == ["x.csv x by quarter"]
    np.testing.assert_allclose(series["x.csv x by quarter"], squares(72).reshape(-1, 3).mean(1))


@pytest.mark.parametrize(
    ("freq", "form", "stamps"),
    [
        ("QS", "quarters", [f"{1990 + quarter // 4}Q{quarter % 4 + 1}" for quarter in range(40)]),
        ("QS", "quarters", [f"{1990 + quarter // 4}-Q{quarter % 4 + 1}" for quarter in range(40)]),
        ("W", "%G-W%V", [f"2020-W{week:02d}" for week in range(14, 54)]),
        ("h", "%d-%b-%Y %H", [f"{1 + hour // 24}-Mar-2020 {hour % 24}" for hour in range(240)]),
    ],
)
def test_stamps_of_a_form_are_even_steps(clones: Path, freq: str, form: str, stamps: list[str]) -> None:
    rows = len(stamps)
    file = written(clones, at=stamps, x=squares(rows))
    (values,) = read(table(freq, file, stamps="at", form=form), clones).values()
    np.testing.assert_array_equal(values, squares(rows))


def test_dates_as_columns_are_rows_of_time_and_cumulative_counts_differences(clones: Path) -> None:
    total = squares(300).cumsum()
    total[50:] -= 1000  # a correction
    days = {day.strftime("%m/%d/%y"): [count, 0] for day, count in zip(DAYS, total, strict=True)}
    file = written(clones, country=["A", "B"], land=[1, 0], **days)
    source = table("D", file, dates="/", form="%m/%d/%y", key="country", rows="land == 1", cumulative=True)
    expected = squares(300)[1:]
    expected[49] = np.nan
    assert list(read(source, clones)) == ["x.csv A value"]
    np.testing.assert_allclose(read(source, clones)["x.csv A value"], expected)


def test_series_are_taken_evenly_of_those_that_vary(clones: Path) -> None:
    varying = {f"v{number}": squares(60) + number for number in range(8)}
    few, repeated = np.arange(60.0) % 19, np.repeat(squares(20), 3)
    gaps = np.where(np.arange(60) % 5 < 2, np.nan, squares(60))
    gaps[[0, -1]] = 1
    dull = {"few": few, "repeated": repeated, "line": np.arange(60.0), "gaps": gaps, "zeros": squares(60) * (few > 10)}
    file = written(clones, **dull, **varying)
    assert list(read(table("MS", file), clones)) == [f"x.csv {name}" for name in varying]
    assert list(read(table("MS", file, part=slice(1, None, 2), most=2), clones)) == ["x.csv v1", "x.csv v5"]
    with pytest.raises(UsageError, match=r"No column of .*x\.csv .* check out the commit"):
        read(table("D", file), clones)  # 60 days are too few


def test_every_repository_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), str(tmp_path / "written")]) == 2 and not (tmp_path / "written").exists()
    error = capsys.readouterr().err
    assert error.startswith("There is no table tidyverts+tsibbledata/data-raw/world_bank/WDIData.csv in ")
    assert error.count("\n") == 1
    used = set()
    for source in (source for sources in SOURCES.values() for source in sources):
        with pytest.raises(UsageError) as missing:
            list(source(tmp_path))
        used.add(str(missing.value).removeprefix("There is no table ").split("/")[0].replace("+", "/", 1))
    assert used == set(REPOSITORIES)


def test_copies_in_other_units_are_found_and_random_series_are_not() -> None:
    rng = np.random.default_rng(0)
    walk = rng.normal(size=600).cumsum()
    known = runs_by_name([("scored", walk, 12), ("other", rng.normal(size=600), 12)])
    quarters = walk[1:-2].reshape(-1, 3)
    copies = {
        "copy": (7 - 3 * walk[100:140], 12),
        "means": (1e6 * quarters.mean(1)[:40], 4),
        "ends": (quarters[:, 2], 4),
    }
    others = {f"random {number}": (rng.normal(size=600).cumsum(), 12) for number in range(20)}
    others["short"], others["line"] = (walk[:12], 12), (np.arange(60.0), 12)
    found = overlaps({**copies, **others}, known)
    assert found.keys() == copies.keys() and all(scored.keys() == {"scored"} for scored in found.values())
    assert found["copy"]["scored"] >= 28, "each of the runs of the copy"


def test_the_report_names_series_and_tasks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overlap, "of_competitions", lambda: iter(()))
    walk = np.random.default_rng(1).normal(size=400).cumsum()
    pd.DataFrame({"date": pd.date_range("2024-01-01", periods=400), "y": walk}).to_csv(tmp_path / "y.csv", index=False)
    tasks = tmp_path / "tasks.yaml"
    tasks.write_text("tasks:\n" + "".join(f"  - {{name: {x}, data: {x}.csv, horizon: 7, windows: 1}}\n" for x in "yz"))
    for name, values, status in (("daily", walk, 1), ("daily_of_others", walk[::-1] ** 3, 0)):
        file = tmp_path / f"{name}.csv"
        file.write_text("a," + ",".join(f"{2 * value:.9g}" for value in values) + "\n")
        assert overlap.main([str(file), "--tasks", str(tasks)]) == status
        shown = capsys.readouterr()
        assert shown.err.startswith("Task z is left out: File z.csv is not in ")
        assert ("a: " in shown.out and "runs of y" in shown.out) == bool(status)
        assert f"{status} of 1 series overlap" in shown.out
    (tmp_path / "y.csv").unlink()
    assert overlap.main([str(file), "--tasks", str(tasks)]) == 2
    assert "No scored series is there" in capsys.readouterr().err
    file.write_text("a,one\n")
    assert overlap.main([str(file), "--tasks", str(tasks)]) == 2
