"""Bad input of a stranger kind: stray stamps, sizes nobody means, files that are not what they are
called, text that acts."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bad_cases import OWN, TRAIN, Case, check_case
from small_tables import small_table

from femts.cli import main

HUGE = "9" * 20
LONG = "x" * 300
PREDICT = "predict run"

CASES = {
    # published means
    "published beside pairs": Case(
        "table --pairs fem_sm:sm --published", r"'--pairs' and '--published'.* leave one of"
    ),
    "published as a page": Case("table --published --format html", r"'html' does not support published means; use"),
    "published, one horizon": Case(
        "table --published --horizons 96", r"192, 336, 720 steps, not over 96; give '--horizons"
    ),
    "published of other data": Case(
        "table --datasets synthetic --published", r"on 'synthetic' .*leave '--published' out"
    ),
    # folders of results
    "results that are not there": Case(
        "table --models naive --results nowhere --show", r"Results folder 'nowhere' does not exist; name the folder"
    ),
    "results that are a file": Case(
        "table --models naive --results stamp1970.csv", r"Results 'stamp1970\.csv' is a file; name a folder"
    ),
    # stamps
    "a stamp of 1970": Case(f"{OWN} stamp1970.csv", r"from 1970-01-01 .* to 2024-01-01 01:00:00 \(data rows 1 and 2\)"),
    "a stamp of 2224, predict": Case(
        f"{PREDICT} stamp2224.csv", r"step 'h' .*data row 24 \(2224-01-01 .*after 2024-01-13 10"
    ),
    "a number far off": Case(f"{OWN} number.csv", r"none between 298 and 4000000000 \(data rows 299 and 300\)"),
    "a number beyond all": Case(f"{OWN} number18.csv", r"stamp 900000000000000000 at data row 300"),
    "times of day": Case(f"{OWN} clock.csv", r"'00:00' at data row 1, a time without its date; write it as 2024-12-31"),
    "days without a year": Case(f"{OWN} yearless.csv", r"'1 May' at data row 1, a time without its date"),
    "a year too early": Case(f"{OWN} year1500.csv", r"the year 1500 at data row 1; dates are from 1678"),
    "a year too late": Case(f"{OWN} year2300.csv", r"the year 2300 at data row 1; dates are from 1678"),
    "two stamps in a month": Case(
        f"{OWN} months.csv",
        r"irregular frequency: from 2020-05-.*mostly 31 days.*give --freq 1 to number the rows instead",
    ),
    "a series called date": Case(f"{OWN} series_date.csv --multivariate", r"has a series named 'date'"),
    "a long table of strangers": Case(
        f"{OWN} strangers.csv --multivariate", r"6000 series and 6000 different dates, but only 6000 values"
    ),
    # numbers
    "a cell beyond float32": Case(
        f"{OWN} big.csv", r"1e\+200 in column 'heat' at data row 8, which exceeds single precision"
    ),
    "a cell beyond its scale": Case(
        f"{OWN} jump.csv", r"'jump' has, in column 'heat' at data row 290, .*1e\+15 deviations"
    ),
    "a history beyond its scale": Case(f"{PREDICT} jump.csv", r"The history has, in column 'heat' at data row 14"),
    "a seed of twenty digits": Case(f"{TRAIN} --seed {HUGE}", r"'training.seed' is 9{20}, but .* is 4294967295"),
    "a batch of twenty digits": Case(
        f"{TRAIN} --set training.batch_size={HUGE}", r"'training.batch_size' is 9{20}, but"
    ),
    "a seed of too many digits": Case(f"{TRAIN} --seed {'9' * 5000}", r"'training.seed' is 9+\.\.\.9+, but"),
    "a horizon of twenty digits": Case(f"{PREDICT} good.csv --horizon {HUGE}", r"Horizon --horizon is 9{20}, but"),
    "a horizon of a billion": Case(
        f"{PREDICT} good.csv --horizon 1000000000", r"1000000000 steps .* from 1 to 1000000"
    ),
    "a training horizon of twenty digits": Case(f"{TRAIN} --horizon {HUGE}", r"Horizon is 9{20}, but"),
    "a look-back of twenty digits": Case(f"{TRAIN} --seq-len {HUGE}", r"Look-back is 9{20}, but"),
    "windows of twenty digits": Case(
        f"backtest run good.csv --n-windows {HUGE}", r"Option '--n-windows' is 9{20}, but"
    ),
    "seeds of twenty digits": Case(f"table --seeds {HUGE}", r"Option '--seeds' is 9{20}, but"),
    # recipes
    "a recipe that grows a billionfold": Case(
        "train --config laughs.yaml", r"laughs.yaml has the alias '\*a' in line 2, which is not supported; write"
    ),
    "a recipe of lists in lists": Case(
        "train --config deep.yaml", r"deep.yaml is nested more than 12 levels deep in line 1"
    ),
    "a recipe of five thousand digits": Case("train --config digits.yaml", r"digits.yaml is not YAML"),
    "a recipe of two megabytes": Case("train --config large.yaml", r"large.yaml is larger than 1 MB"),
    "a recipe with a date": Case("train --config dated.yaml", r"text, numbers and lists of them, not a date"),
    "a recipe with one beta": Case("train --config beta.yaml", r"'training.betas' takes 2 values, not '5'"),
    # files that are not what they are called, and names that no file can have
    "a broken packed table": Case(f"{OWN} cut.csv.gz", r"cut.csv.gz is damaged \(.*\); download it again"),
    "a table packed twice": Case(f"{OWN} twice.csv.gz", r"twice.csv.gz is compressed twice; decompress it"),
    "a zip file of two": Case(f"{OWN} packed.zip", r"packed.zip holds 2 files; compress only one table"),
    "a zip file by another name": Case(f"{PREDICT} zipped.csv", r"zipped.csv holds 2 files"),
    "a workbook by another name": Case(f"{PREDICT} book.csv", r"book.csv is an Excel workbook; .* end in .xlsx"),
    "no workbook": Case(
        f"{OWN} not.xlsx", r"not.xlsx (cannot be read as an Excel workbook|needs openpyxl, which is not installed)"
    ),
    "no zstd": Case(f"{OWN} not.zst", r"not.zst is (damaged|compressed with zstd; run pip install pyarrow)"),
    "an empty standard input": Case(f"{OWN} -", r"The standard input (is empty|cannot be opened)"),
    "thousands": Case(
        f"{OWN} thousands.csv", r"has the text '1,234.5' in column 'heat' at data row 8; leave out marks between"
    ),
    "thousands or decimals": Case(f"{OWN} either.csv", r"has '1,234', in which the comma could be a decimal"),
    "points and decimal commas": Case(
        f"{PREDICT} both.csv", r"has '\d+\.\d+' in column 'load' at data row 1, but other numbers"
    ),
    "no header": Case(f"{OWN} headerless.csv", r"has '2024-01-01.*' as the name of its first column; add a header row"),
    "dates in two columns": Case(f"{OWN} two_dates.csv", r"has no 'date' column .*with --columns time=NAME"),
    "a week that is none": Case(f"{OWN} weeks.csv", r"has '2019-W53' where data row 53 should have a date"),
    "offsets in some rows": Case(f"{OWN} offsets.csv", r"dates of several time zones; write them all in UTC"),
    "a stray after a hole": Case(
        f"{OWN} stray.csv", r"only 300 of 2089 stamps are there; leave out those beyond a long hole"
    ),
    "no Parquet": Case(f"{OWN} not.parquet", r"not.parquet cannot be read as Parquet"),
    "an input of too long a name": Case(f"{OWN} {LONG}.csv", r"File x+\.csv cannot be opened \(File name too long\)"),
    "a run of too long a name": Case(f"{OWN} good.csv --out {LONG}", r"File name too long"),
    "an output of too long a name": Case(f"{PREDICT} good.csv -o {LONG}.csv", r"File name too long"),
    "a recipe of too long a name": Case(f"train --config {LONG}.yaml", r"File name too long"),
    "a data root of too long a name": Case(f"train --dataset ETTh1 --data-root {LONG}", r"File name too long"),
    # text that acts on a terminal, and text without end
    "a cell that clears the screen": Case(
        f"{OWN} clears.csv", r"the text '\\x1b\[2Jowned' in column 'heat' at data row 8"
    ),
    "a column that clears the screen": Case(f"{OWN} clears_column.csv", r"in column '\\x1b\[2Jheat' at data row 8"),
    "a cell without end": Case(f"{OWN} endless.csv", r"the text 'y+\.\.\.y+' in column 'heat'"),
    "a date without end": Case(f"{OWN} endless_date.csv", r"has 'z+\.\.\.z+' where data row 1 should have a date"),
    "an option that clears the screen": Case(f"{TRAIN} --model '\x1b[2J'", r"'\\x1b\[2J'"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of such files, and one good run."""
    folder = tmp_path_factory.mktemp("more")
    good = small_table()
    good.to_csv(folder / "good.csv", index=False)
    for name, table in _tables(good).items():
        table.to_csv(folder / f"{name}.csv", index=False)
    text = (folder / "good.csv").read_bytes()
    (folder / "cut.csv.gz").write_bytes(gzip.compress(text)[:500])
    (folder / "twice.csv.gz").write_bytes(gzip.compress(gzip.compress(text)))
    for name, members in (("packed.zip", "ab"), ("zipped.csv", "ab"), ("book.csv", ["xl/workbook.xml"])):
        with zipfile.ZipFile(folder / name, "w") as archive:
            for member in members:
                archive.writestr(member, text)
    (folder / "not.xlsx").write_bytes(text)
    (folder / "not.zst").write_bytes(b"\x28\xb5\x2f\xfd" + text)
    (folder / "headerless.csv").write_bytes(text.partition(b"\n")[2])
    for name, table in _tables_of_other_marks(good).items():
        (folder / f"{name}.csv").write_text(table)
    (folder / "not.parquet").write_bytes(text)
    for name, recipe in _recipes().items():
        (folder / f"{name}.yaml").write_text(recipe)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(f"{OWN} good.csv --out run".split()) == 0
    return folder


def _tables(good: pd.DataFrame) -> dict[str, pd.DataFrame]:
    def dates(values: object) -> pd.DataFrame:
        return good.assign(date=values)

    def stamp(row: int, value: str) -> pd.DataFrame:
        return dates(good["date"].where(good.index != row, pd.Timestamp(value)))

    def cell(row: int, value: object) -> pd.DataFrame:
        return good.assign(heat=[value if i == row else each for i, each in enumerate(good["heat"])])

    twice = pd.Series(pd.date_range("2020-01-01", periods=300, freq="MS"))
    twice[5] = pd.Timestamp("2020-05-15")
    days = [str(day) for day in np.datetime64("2024-01-01") + np.arange(6000)]
    return {
        "stamp1970": stamp(0, "1970-01-01"),
        "stamp2224": stamp(299, "2224-01-01"),
        "number": dates([*range(299), 4_000_000_000]),
        "number18": dates([*range(299), 9 * 10**17]),
        "clock": dates([f"{i // 60:02d}:{i % 60:02d}" for i in range(300)]),
        "yearless": dates([f"{i % 28 + 1} May" for i in range(300)]),
        "year1500": dates([str(day) for day in np.datetime64("1500-01-01") + np.arange(300)]),
        "year2300": dates([str(day) for day in np.datetime64("2300-01-01") + np.arange(300)]),
        "months": dates(twice),
        "two_dates": good.rename(columns={"date": "begin"}).assign(end=good["date"])[["load", "begin", "end"]],
        "weeks": dates([f"{2019 + i // 53}-W{i % 53 + 1:02d}" for i in range(300)]),
        "offsets": dates([f"{when.isoformat()}{'+01:00' * (i > 9)}" for i, when in enumerate(good["date"])]),
        "stray": stamp(299, str(good["date"][0] + pd.Timedelta(hours=2088))),
        "series_date": good.rename(columns={"load": "date", "date": "ds"}).melt(
            "ds", var_name="unique_id", value_name="y"
        ),
        "strangers": pd.DataFrame({"unique_id": [f"s{i}" for i in range(6000)], "ds": days, "y": 1.5}),
        "big": cell(7, 1e200),
        "jump": cell(289, 1e37),
        "clears": cell(7, "\x1b[2Jowned"),
        "clears_column": cell(7, "text").rename(columns={"heat": "\x1b[2Jheat"}),
        "endless": cell(7, "y" * 100_000),
        "endless_date": dates(["z" * 100_000, *good["date"].astype(str)[1:]]),
    }


def _tables_of_other_marks(good: pd.DataFrame) -> dict[str, str]:
    heat = ["1,234.5" if row == 7 else "0.5" for row in range(300)]
    return {
        "thousands": good.assign(heat=heat).to_csv(index=False, sep=";"),
        "either": good.assign(heat="1,234").to_csv(index=False, sep="\t"),
        "both": good.assign(heat="1,5").to_csv(index=False, sep=";"),
    }


def _recipes() -> dict[str, str]:
    laughs = "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    return {
        "laughs": f"a: &a [x, x]\n{laughs}dataset: *i\n",
        "deep": f"dataset: {'[' * 2000}{']' * 2000}\n",
        "digits": f"dataset: synthetic\ntraining:\n  seed: {'9' * 5000}\n",
        "large": "dataset: synthetic\n" + "# nothing\n" * 200_000,
        "dated": "dataset: synthetic\ntraining:\n  lr: 2024-01-01\n",
        "beta": "dataset: synthetic\nmodel: dlinear\ntraining:\n  betas: 5\n",
    }


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_one_sentence_and_nothing_written(
    case: Case, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_case(case, place, monkeypatch, capsys)


def test_a_table_that_is_only_called_packed_is_read(place: Path, tmp_path: Path) -> None:
    named = tmp_path / "plain.csv.gz"
    named.write_bytes((place / "good.csv").read_bytes())
    assert main(f"{OWN} {named} --out {tmp_path / 'run'}".split()) == 0
