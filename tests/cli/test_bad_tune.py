"""Invalid studies: one sentence on stderr, exit status 2, and nothing written."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bad_cases import Case, check_case
from small_tables import small_table

import femts

pytest.importorskip("optuna", reason="tuning needs Optuna, of pip install '.[tune]'")
TUNE = "tune --dataset good.csv --model ridge --horizon 12"
SEARCH = f"{TUNE} --search"
CASES = {
    "two horizons": Case(f"{TUNE},24", r"Only one horizon can be tuned at a time, not 2; pass a single --horizon"),
    "no trials": Case(f"{TUNE} --trials 0", r"'--trials' takes a whole number of at least 1, not '0'"),
    "too many origins": Case(f"{TUNE} --origins 50", r"50 origins, each 30 rows .*good'; ask for at most 4"),
    "nothing to search": Case(
        "tune --dataset good.csv --model naive", r"'naive' has nothing to search; name a setting to search"
    ),
    "search without values": Case(f"{SEARCH} model.ridge", r"--search 'model.ridge' has no value"),
    "look-backs without values": Case(f"{SEARCH} seq_len", r"--search 'seq_len' has no value; .* 'seq_len=VALUE'"),
    "search of an unknown setting": Case(f"{SEARCH} model.rigde=1,2", r"'model.rigde'; did you mean 'model.ridge'"),
    "range that falls": Case(f"{SEARCH} model.ridge=2..1", r"'2\.\.1' of 'model.ridge' is not increasing"),
    "range of words": Case(
        f"{SEARCH} training.schedule=cosine..linear", r"'training.schedule' does not support the range .*=a,b"
    ),
    "search of a list": Case(f"{SEARCH} training.betas=0.9,0.95", r"'training.betas' .*(takes 2 values|is a list)"),
    "search of the seed": Case(f"{SEARCH} training.seed=1,2", r"'training.seed' cannot be searched"),
    "a setting searched twice": Case(
        f"{SEARCH} model.ridge=1,2 --search model.ridge=3", r"--search 'model.ridge' is given twice, as 1,2 and as 3"
    ),
    "search of no look-back": Case(f"{SEARCH} seq_len=long", r"Look-back 'long' is not a number of steps"),
    "a look-back set and searched": Case(
        f"{TUNE} --seq-len 24 --search seq_len=24,48", r"'seq_len' is both fixed and searched; remove one"
    ),
    "time of a trial": Case(f"{TUNE} --set training.max_time=9s", r"'training.max_time' would make scores"),
    "a folder of something else": Case(f"{TUNE} --out other", r"Folder other holds 'notes.txt' but no study"),
    "another study": Case(
        f"{TUNE} --trials 1 --out asked",
        r"started with --horizon 24, not 12; .* another folder",
    ),
    "a study that is none": Case(f"{TUNE} --out broken", r"broken/study.db cannot be read: .*not a database"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table and folders that are not its studies."""
    folder = tmp_path_factory.mktemp("tune")
    small_table().to_csv(folder / "good.csv", index=False)
    for path in (folder / "other" / "notes.txt", folder / "broken" / "study.db"):
        path.parent.mkdir()
        path.write_text("mine")
    femts.tune(folder / "good.csv", "ridge", 24, search={"model.ridge": [1]}, trials=1, out=folder / "asked")
    return folder


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_invalid_study_prints_one_sentence_and_writes_nothing(
    case: Case, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_case(case, place, monkeypatch, capsys)


def test_missing_optuna_is_refused(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    check_case(Case(TUNE, r"needs Optuna, .*; run pip install 'femts\[tune\]'"), place, monkeypatch, capsys)
