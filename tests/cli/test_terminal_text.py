"""Text of the user's data cannot act on a terminal."""

from __future__ import annotations

import io
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from small_tables import small_table
from terminal import Terminal

from femts.cli import main
from femts.cli.streams import say, write_data

# Clears the screen, twice; sets a title; goes back; deletes; turns the line around; begins a line.
ACTS = "a\x1b[2Jb", "a\x9b2Jb", "a\x1b]0;mine\x07b", "a\x08\x08b\rc", "a\x7fb", "a\u202eb", "a\n\u2028b"
SMALL = "--model seasonal_naive --horizon 6 --seq-len 24"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables in which columns, series and categories have names that act, and runs on them."""
    folder = tmp_path_factory.mktemp("acts")
    wide = small_table(200, ACTS)
    tables = {
        "wide": wide,
        "cell": wide[:48].assign(**{ACTS[-1]: ["x"] * 47 + [ACTS[0]]}),
        "long": wide.melt("date", var_name="unique_id", value_name="y").rename(columns={"date": "ds"}),
        "kinds": small_table(200).assign(kind=[ACTS[row % len(ACTS)] for row in range(200)]),
    }
    for name, table in tables.items():
        table.to_parquet(folder / f"{name}.parquet")
    with chdir(folder):
        for name, more in (("wide", ""), ("long", ""), ("kinds", "--future-covariates kind")):
            assert main(f"train --dataset {name}.parquet {SMALL} {more} --out {name}".split()) == 0
    return folder


COMMANDS = {
    "info": "datasets info wide.parquet",
    "info of series": "datasets info long.parquet",
    "info of categories": "datasets info kinds.parquet --future-covariates kind",
    "train": f"train --dataset wide.parquet {SMALL} --out wide --overwrite",
    "predict": "predict wide wide.parquet",
    "predict series": "predict long long.parquet --level 80",
    "predict an unknown series": "predict long long.parquet --series none",
    "predict a cell": "predict wide cell.parquet",
    "backtest": "backtest long long.parquet --n-windows 2 --by series",
    "evaluate": "evaluate wide --by channel",
    "evaluate as CSV": "evaluate wide --by channel --csv",
    "evaluate as JSON": "evaluate wide --by channel --json",
    "evaluate series": "evaluate long --by series",
    "explain": "explain wide",
    "calibrate": "calibrate wide",
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_terminal_shows_escapes(place: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Terminal(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.chdir(place)
    assert main(command.split()) in (0, 2)
    shown = out.getvalue() + err.getvalue()
    assert shown and "Traceback" not in shown
    assert all(line.isprintable() for line in shown.split("\n"))


def test_piped_data_keep_their_characters(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with chdir(place):
        assert main("predict wide wide.parquet".split()) == 0
        piped = capsys.readouterr().out
        assert main("predict wide wide.parquet -o f.csv".split()) == 0
    assert piped == (place / "f.csv").read_bytes().decode()
    assert all(name in piped for name in ACTS)


def test_messages_show_escapes_in_pipes_too(capsys: pytest.CaptureFixture[str]) -> None:
    say("run: a\x1b[2J\nb\x07")
    say("note: \x9b2J", error=True)
    assert capsys.readouterr() == ("run: a\\x1b[2J\nb\\x07\n", "note: \\x9b2J\n")


def test_data_on_a_terminal_keep_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    write_data("date,été\x1b[2J\n2024-01-01,1\n")
    assert out.getvalue() == "date,été\\x1b[2J\n2024-01-01,1\n"
