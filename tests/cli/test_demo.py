"""`femts demo` runs commands that a user could type."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from bad_files import state_of

from femts.cli import main
from femts.cli.commands import demo


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder and a smaller demo."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "ROWS", 600)
    monkeypatch.setattr(demo, "SMALL", "--model dlinear --horizon 12 --seq-len 24 --max-steps 2")
    return tmp_path


def test_demo_trains_forecasts_and_reports(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "ROWS", 2000)  # of which one column has no negative values
    assert main(["demo"]) == 0
    out, err = capsys.readouterr()
    assert "--refit of femts train" in err and "--min none\n" in err  # predict lacks the one, train has the other
    typed = [shlex.split(line.removeprefix("$ ")) for line in out.splitlines() if line.startswith("$ ")]
    assert [words[:2] for words in typed] == [["femts", name] for name in ("train", "predict", "report")]
    assert "naive_mse" in out and "skill" in out
    assert out.endswith(
        "\nLook at demo/forecast.png and demo/report.html. To use your own table, replace demo/history.csv.\n"
    )
    assert (place / "demo/forecast.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (place / "demo/report.html").read_text(encoding="utf-8")
    assert len((place / "demo/forecast.csv").read_text().splitlines()) == 1 + 12


def test_printed_commands_can_be_run(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", "a first look/demo"]) == 0
    first = place / "a first look/demo/forecast.csv"
    forecast = first.read_bytes()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("$ ")]
    (place / "a first look/demo/run").rename(place / "another")
    for line in lines:
        assert main(shlex.split(line)[2:]) == 0
    assert first.read_bytes() == forecast


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("full", "Folder full is not empty; name a new or empty one with --out."),
        ("file", "The output file is a file; name a folder."),
        ("-x", "Folder -x looks like an option; choose another one with --out."),
    ],
)
def test_demo_refuses_existing_folders(place: Path, out: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "full").mkdir()
    (place / "full/mine.txt").write_text("mine")
    (place / "file").write_text("mine")
    before = state_of(place)
    assert main(["demo", "--out", out]) == 2
    assert capsys.readouterr() == ("", f"femts: {says}\n")
    assert state_of(place) == before
