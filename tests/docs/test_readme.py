"""Execution of the README."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pandas as pd
import pytest
from pages import ROOT, Reader, blocks, cells_in_this_process, commands, compare, less

from femts.cli.commands import demo
from femts.data.loading import load_dataset

PAGE = ROOT / "README.md"
BLOCKS = blocks(PAGE)
COMMANDS = [line for kind, text in BLOCKS if kind == "bash" for line in commands(text)]


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    frame = load_dataset("synthetic").frame().iloc[:, :2].set_axis(["date", "load"], axis=1)
    frame.iloc[:3000].to_csv(tmp_path / "mine.csv", index=False)
    frame.iloc[3000:6000].to_csv(tmp_path / "recent.csv", index=False)
    return Reader(tmp_path, less(time_limit="5s"))


def test_every_code_block_is_tested() -> None:
    assert [kind for kind, _ in BLOCKS] == ["bash", "python", "bash", "bash", "text", "bash", "bash", "python"]
    scripts = [line for line in COMMANDS if not line.startswith("femts ")]
    assert scripts == ["pip install '.[stats]'", "scripts/quickstart", "scripts/test"], (
        "who adds one here adds a test of it"
    )


def test_quickstart_output_matches_the_demo(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SMALL", demo.SMALL.replace("--max-steps 100", "--max-steps 20"))  # its words, no figures
    assert 'exec .venv/bin/femts demo --out "$out"' in (ROOT / "scripts" / "quickstart").read_text(encoding="utf-8")
    status, printed = reader.type("femts demo --out runs/quickstart")
    assert status == 0, printed
    lines = [line for line in printed.splitlines() if line and not line.startswith(("note: ", "run: ", "Look at "))]
    (shown,) = (text for kind, text in BLOCKS if kind == "text")
    compare(shown, "\n".join(lines[:-1]) + "\n", figures=False)


@pytest.mark.slow
def test_commands_run_on_own_data(reader: Reader) -> None:
    own = [line for line in COMMANDS if line.startswith("femts ") and "ETTh1" not in line]
    assert len(own) == 4
    shown = re.findall(r"^\| (2\S+ \S+) \| (\S+) \| (\S+) \| (\S+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    for number, command in enumerate(own):
        status, said = reader.type(command.replace("--time-limit 2m", "--time-limit 8s"))
        assert status == 0, f"{command}\n{said}"
        if number == 0:
            made = pd.read_csv(reader.folder / "forecast.csv", parse_dates=["date"]).head(len(shown))
            cells = [(f"{date:%Y-%m-%d %H:%M}", *(f"{value:.2f}" for value in row)) for date, *row in made.to_numpy()]
            assert shown == cells and shown
    assert (reader.folder / "forecast.csv").read_text().count("\n") == 25
    assert (reader.folder / "forecast.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (reader.folder / "runs/mine.html").read_text()


def test_benchmark_table_runs_on_real_data(reader: Reader) -> None:
    if not os.environ.get("FEMTS_DATA"):
        pytest.skip("needs the real ETTh1; set FEMTS_DATA to a folder that holds it")
    (command,) = (line for line in COMMANDS if "ETTh1" in line)
    words = command.split()
    for option, fewer in {"--datasets": "ETTh1", "--models": "naive", "--horizons": "96", "--seeds": "42"}.items():
        words[words.index(option) + 1] = fewer
    with cells_in_this_process():
        status, said = reader.type(" ".join(words))
    assert status == 0, said
    assert "TimeBase" in said


@pytest.mark.parametrize("code", [text for kind, text in BLOCKS if kind == "python"], ids=["forecaster", "layer"])
def test_python_blocks_run(code: str, reader: Reader) -> None:
    reader.python(code)
