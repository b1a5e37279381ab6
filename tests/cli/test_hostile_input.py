"""Hostile input: stray time stamps, huge sizes, YAML bombs, damaged files and escape sequences."""

from __future__ import annotations

import gzip
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
        "table --pairs fem_sm:sm --published", r"'--pairs' and '--published'.* remove one of"
    ),
    "published of other data": Case(
        "table --datasets synthetic --published", r"for 'synthetic'.*leave --published out"
    ),
    "published, one horizon": Case(
        "table --published --horizons 96", r"192, 336, 720 steps, not over 96; give --horizons all"
    ),
    # folders of results
    "results that are a file": Case(
        "table --models naive --results stamp1970.csv", r"Results 'stamp1970\.csv' is a file; name a folder"
    ),
    "results that are not there": Case(
        "table --models naive --results nowhere --show", r"Results folder 'nowhere' does not exist; name the folder"
    ),
    # stamps
    "a stamp of 1970": Case(
        f"{OWN} stamp1970.csv", r"1970-01-01 .* and 2024-01-01 01:00:00 \(data rows 1 and 2\) are 19723 days apart"
    ),
    "a stamp of 2224, predict": Case(
        f"{PREDICT} stamp2224.csv", r"step 'h' .*data row \d+ \(2224-01-01 .*after 2024-01-13 10"
    ),
    "a number far off": Case(f"{OWN} number.csv", r"none between 298 and 4000000000 \(data rows 299 and 300\)"),
    "times of day": Case(f"{OWN} clock.csv", r"'00:00' at data row 1, a time without its date; write it as 2024-12-31"),
    "a year too early": Case(f"{OWN} year1500.csv", r"the year 1500 at data row 1; supported years are 1678"),
    "a stray after a hole": Case(
        f"{OWN} stray.csv", r"remove those beyond a long gap, as only 300 of 2089 are present"
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
    "a seed of too many digits": Case(f"{TRAIN} --seed {'9' * 5000}", r"'training.seed' is 9+\.\.\.9+, but"),
    "a horizon of a billion": Case(
        f"{PREDICT} good.csv --horizon 1000000000", r"1000000000 steps .* from 1 to 1000000"
    ),
    "seeds of twenty digits": Case(f"table --seeds {HUGE}", r"Option '--seeds' is 9{20}, but"),
    # recipes
    "a recipe that grows a billionfold": Case(
        "train --config laughs.yaml", r"laughs.yaml has the alias '\*a' in line 2.*; write"
    ),
    "a recipe of lists in lists": Case(
        "train --config deep.yaml", r"deep.yaml is not YAML; write it as .key: value. lines"
    ),
    "a recipe of two megabytes": Case("train --config large.yaml", r"large.yaml is larger than 1 MB"),
    "a recipe with a date": Case("train --config dated.yaml", r"text, numbers and lists of them, not a date"),
    # files that are not what they are called, and names that no file can have
    "a broken packed table": Case(f"{OWN} cut.csv.gz", r"cut.csv.gz is damaged \(.*\); download it again"),
    "an input of too long a name": Case(f"{OWN} {LONG}.csv", r"File x+\.csv cannot be opened \(File name too long\)"),
    # text that acts on a terminal, and text without end
    "a cell that clears the screen": Case(
        f"{OWN} clears.csv", r"the text '\\x1b\[2Jowned' in column 'heat' at data row 8"
    ),
    "a cell without end": Case(f"{OWN} endless.csv", r"the text 'y+\.\.\.y+' in column 'heat'"),
    "an option that clears the screen": Case(f"{TRAIN} --model '\x1b[2J'", r"'\\x1b\[2J'"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with hostile files and one valid run."""
    folder = tmp_path_factory.mktemp("more")
    good = small_table()
    good.to_csv(folder / "good.csv", index=False)
    for name, table in _tables(good).items():
        table.to_csv(folder / f"{name}.csv", index=False)
    text = (folder / "good.csv").read_bytes()
    (folder / "cut.csv.gz").write_bytes(gzip.compress(text)[:500])
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

    days = [str(day) for day in np.datetime64("2024-01-01") + np.arange(6000)]
    return {
        "stamp1970": stamp(0, "1970-01-01"),
        "stamp2224": stamp(299, "2224-01-01"),
        "number": dates([*range(299), 4_000_000_000]),
        "clock": dates([f"{i // 60:02d}:{i % 60:02d}" for i in range(300)]),
        "year1500": dates([str(day) for day in np.datetime64("1500-01-01") + np.arange(300)]),
        "stray": stamp(299, str(good["date"][0] + pd.Timedelta(hours=2088))),
        "jump": cell(289, 1e37),
        "series_date": good.rename(columns={"load": "date", "date": "ds"}).melt(
            "ds", var_name="unique_id", value_name="y"
        ),
        "strangers": pd.DataFrame({"unique_id": [f"s{i}" for i in range(6000)], "ds": days, "y": 1.5}),
        "big": cell(7, 1e200),
        "clears": cell(7, "\x1b[2Jowned"),
        "endless": cell(7, "y" * 100_000),
    }


def _recipes() -> dict[str, str]:
    laughs = "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    return {
        "laughs": f"a: &a [x, x]\n{laughs}dataset: *i\n",
        "deep": f"dataset: {'[' * 2000}{']' * 2000}\n",
        "large": "dataset: synthetic\n" + "# nothing\n" * 200_000,
        "dated": "dataset: synthetic\ntraining:\n  lr: 2024-01-01\n",
    }


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_hostile_input_prints_one_sentence_and_writes_nothing(
    case: Case, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_case(case, place, monkeypatch, capsys)


def test_uncompressed_file_with_gz_suffix_is_read(place: Path, tmp_path: Path) -> None:
    named = tmp_path / "plain.csv.gz"
    named.write_bytes((place / "good.csv").read_bytes())
    assert main(f"{OWN} {named} --out {tmp_path / 'run'}".split()) == 0
