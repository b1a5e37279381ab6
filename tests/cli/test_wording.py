"""Messages of the library on the command line."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.cli import main
from femts.cli.wording import as_options, running
from femts.errors import AgeWarning, UsageError, warn
from femts.text import Blank, Message, argument, arguments


@pytest.mark.parametrize(
    ("marked", "python", "options"),
    [
        (argument("seq_len=1"), "seq_len=1", "--seq-len 1"),
        (argument("seq_len"), "seq_len", "--seq-len"),
        (argument("pred_len"), "pred_len", "--horizon"),
        (argument("calendar=True"), "calendar=True", "--calendar"),
        (argument("panel=False"), "panel=False", "--multivariate"),
        (argument("refit=False"), "refit=False", "--no-refit"),
        (argument("sheet=NAME"), "sheet=NAME", "--sheet NAME"),
        (argument("min=-5"), "min=-5", "--min -5"),
        (argument("season=[24, 168]"), "season=[24, 168]", "--season 24,168"),
        (argument("probabilistic=False"), "probabilistic=False", "probabilistic=False"),  # no option
    ],
)
def test_arguments_become_options(marked: str, python: str, options: str) -> None:
    message = Message(f"use {marked}.")
    assert message == f"use {python}."
    assert as_options(message) == f"use {options}."


@pytest.mark.parametrize(
    ("given", "python", "options"),
    [
        ({"freq": "D", "aggregate": "sum"}, "freq='D', aggregate='sum'", "--freq D --aggregate sum"),
        ({"target": ["a b", "c,d"]}, "target=['a b', 'c,d']", "--target 'a b,\"c,d\"'"),
        (
            {"columns": {"time": Blank("NAME"), "series": "a+b"}},
            "columns={'time': NAME, 'series': 'a+b'}",
            "--columns time=NAME,series=a+b",
        ),
        (
            {"columns": {"time": "Date d'entrée"}},
            "columns={'time': \"Date d'entrée\"}",
            "--columns 'time=Date d'\"'\"'entrée'",
        ),
        ({"target": ["it's"]}, 'target=["it\'s"]', "--target 'it'\"'\"'s'"),
        ({"target": ["both ' and \""]}, "target=['both \\' and \"']", "--target 'both '\"'\"' and \"'"),
        ({"columns": {"time": "C:\\new"}}, "columns={'time': 'C:\\\\new'}", "--columns 'time=C:\\new'"),
        (
            {"settings": {"model.download": True}},
            "settings={'model.download': True}",
            "--set model.download=true",
        ),
        ({"na": [-9999.0, "off"]}, "na=[-9999.0, 'off']", "--na -9999.0,off"),
    ],
)
def test_values_are_written_as_the_caller_writes_them(given: dict[str, Any], python: str, options: str) -> None:
    message = Message(f"with {arguments(given)}")
    assert message == f"with {python}"
    assert as_options(message) == f"with {options}"


@pytest.mark.parametrize(
    "text",
    [
        "paper-seq_len=48/synthetic/naive-12: test MSE",
        "Setting 'model.seq_len' and model.windows=N",
        "Column 'freq=3' has no value",
        "A column of seq_len=5 and the model reads columns; out of memory",
        "File seq_len.csv does not exist",
    ],
)
def test_text_without_marks_is_kept(text: str) -> None:
    assert as_options(Message(text)) == as_options(text) == text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("train --dataset a.csv", "use --panel, --seq-len 1, --horizon or --set a=1"),
        (
            "predict run a.csv",
            "use --panel of femts train, --seq-len 1 of femts train, --horizon or --set a=1 of femts train",
        ),
        ("datasets info a.csv", "use --panel, --seq-len 1, --horizon or --set a=1"),
        ("", "use --panel, --seq-len 1, --horizon or --set a=1"),
    ],
)
def test_options_that_a_command_lacks_are_those_of_the_training(line: str, said: str) -> None:
    marks = argument("panel=True"), argument("seq_len=1"), argument("pred_len"), arguments({"settings": {"a": 1}})
    message = Message("use {}, {}, {} or {}".format(*marks))
    with running(line.split()):
        assert as_options(message) == said


@pytest.mark.parametrize("command", ["predict", "totals"])
def test_remedies_of_a_history_are_options_of_the_command_or_of_the_training(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    days = pd.date_range("2024-01-01", periods=120, freq="D")
    parts = [
        pd.DataFrame({"unique_id": name, "ds": days, "y": np.arange(120.0) % 7, "size": k})
        for k, name in enumerate("ab")
    ]
    long = pd.concat(parts, ignore_index=True)
    run = tmp_path / "run"
    few = {"model.rounds": 5}
    femts.train(long, "boost", 7, seq_len=14, static_covariates="size", out=run, device="cpu", settings=few)
    femts.train(long.drop(columns="size"), "naive", 7, seq_len=14, out=tmp_path / "plain", device="cpu")
    tables = {
        ("run", "changes"): (
            long.assign(size=np.arange(len(long))),
            "remove it from --static-covariates of femts train.",
        ),
        ("run", "lacks"): (long.drop(columns="size"), "has no column 'size', which the training data had; add it."),
        ("run", "wide"): (pd.DataFrame({"ds": days, "a": 1.0, "b": 2.0}), "provide a long table."),
        ("plain", "more"): (long, "has the additional column 'size'; remove it."),
    }
    for (model, name), (table, said) in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        assert main([command, str(tmp_path / model), str(tmp_path / f"{name}.csv")]) == 2
        assert capsys.readouterr().err.endswith(f"{said}\n")


def test_names_in_data_are_no_marks() -> None:
    """A cell with the characters of a mark is shown escaped, and is not turned into an option."""
    error = UsageError(f"Column '{femts.text.quote(argument('seq_len'))}' is bad.")
    assert str(error) == as_options(error) == r"Column '\x02seq_len\x03' is bad."


def test_marks_stay_inside_of_messages() -> None:
    error = UsageError(f"remove {argument('freq')}{'.' * 3000}", argument="freq", value="D", remedy={"freq": None})
    again = pickle.loads(pickle.dumps(error))
    for one in (error, again):
        for text in (str(one), repr(one), f"{one}", one.args[0], f"{one.args[0]}", *map(str, one.args)):
            assert "\x02" not in text and "\x03" not in text
        assert len(str(one)) <= 1500
        assert as_options(one).startswith("remove --freq...")
        assert (one.argument, one.value, one.remedy) == ("freq", "D", {"freq": None})


def test_errors_name_what_the_caller_writes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=r"not 'D'; remove freq='D'\.$"):
        femts.load_dataset("ETTh1", freq="D")
    assert main("train --dataset ETTh1 --freq D --model naive --out run".split()) == 2
    assert capsys.readouterr().err.endswith("not 'D'; remove --freq D.\n")


@pytest.fixture
def long_table(tmp_path: Path) -> Path:
    hours = pd.date_range("2024-01-01", periods=300, freq="h")
    parts = [
        pd.DataFrame({"unique_id": name, "ds": hours, "y": np.arange(300) % 24 + k}) for k, name in enumerate("ab")
    ]
    pd.concat(parts).to_csv(tmp_path / "long.csv", index=False)
    return tmp_path / "long.csv"


def test_notes_name_what_the_caller_writes(
    long_table: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="femts")
    data = femts.load_dataset(long_table)
    femts.train(data, "naive", 12)
    noted = "\n".join(caplog.messages)
    for one in (noted, "\n".join(data.notes), json.dumps(data.notes), repr(data.notes)):
        assert "panel=False forecasts them jointly" in one
        assert "\x02" not in one and "\\u0002" not in one and "\\x02" not in one
    assert "change it with seq_len" in noted
    assert main(["train", "--dataset", str(long_table), "--model", "naive", "--horizon", "12"]) == 0
    printed = capsys.readouterr().err
    assert "; --multivariate forecasts them jointly\n" in printed
    assert "; change it with --seq-len\n" in printed
    assert as_options(pickle.loads(pickle.dumps(data.notes))[-2]) == as_options(data.notes[-2])


def test_warnings_name_what_the_caller_writes() -> None:
    with pytest.warns(AgeWarning, match=r"^Train again \(refit=True\)\.$") as caught:
        warn(f"Train again ({argument('refit=True')}).", AgeWarning)
    assert as_options(caught[0].message) == "Train again (--refit)."


def test_a_message_that_quotes_another_keeps_its_arguments() -> None:
    inner = UsageError(f"give {argument('seq_len')}")
    outer = UsageError(f"Scenario 'a': {inner.marked}")
    assert str(outer) == "Scenario 'a': give seq_len"
    assert as_options(outer) == "Scenario 'a': give --seq-len"
