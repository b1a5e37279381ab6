"""The README is run: every command and every block of Python, with less time to train."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from pages import ROOT, Reader, blocks, commands, less

from femts.data.loading import load_dataset

PAGE = ROOT / "README.md"
BLOCKS = blocks(PAGE)
COMMANDS = [line for kind, text in BLOCKS if kind == "bash" for line in commands(text)]
FEMTS = [line for line in COMMANDS if line.startswith("femts ")]


def needs(text: str) -> None:
    if "ETTh1" in text and not os.environ.get("FEMTS_DATA"):
        pytest.skip("needs the real ETTh1; set FEMTS_DATA to a folder that holds it")


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path, less(max_time="5s"))


def run(command: str, reader: Reader) -> None:
    words = command.split()
    if words[1] == "table":
        words[words.index("--models") + 1] = "dlinear,naive"
        words += ["--set", "training.max_epochs=1", "--set", "training.batch_size=512", "--seq-len", "192"]
    if words[1] == "verify":  # other settings, other place
        (words[2],) = map(str, reader.folder.glob(f"results/*/{words[2].partition('/paper/')[2]}"))
    status, said = reader.type(" ".join(words))
    assert status == 0, f"{command}\n{said}"


def test_every_block_is_known() -> None:
    assert {kind for kind, _ in BLOCKS} == {"bash", "python", "text"}
    scripts = [line for line in COMMANDS if not line.startswith("femts ")]
    assert scripts == ["scripts/quickstart", "scripts/test"], "who adds a script here adds a test of it"


def test_commands_on_real_data_in_their_order(reader: Reader) -> None:
    needs("ETTh1")
    real = [line for line in FEMTS if "ETTh1" in line]
    assert len(real) == 8
    for command in real:
        run(command, reader)


def test_commands_on_own_data_in_their_order(reader: Reader) -> None:
    frame = load_dataset("synthetic").frame()
    frame.iloc[:3000].to_csv(reader.folder / "mine.csv", index=False)
    frame.iloc[3000:6000].to_csv(reader.folder / "recent.csv", index=False)
    own = [line for line in FEMTS if "ETTh1" not in line]
    assert len(own) == 5
    for command in own:
        run(command, reader)
    assert (reader.folder / "forecast.csv").read_text().count("\n") == 49
    for picture in ("forecast.png", "why.png"):
        assert (reader.folder / picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("code", [text for kind, text in BLOCKS if kind == "python"], ids=["forecaster", "layer"])
def test_python_blocks(code: str, reader: Reader) -> None:
    needs(code)
    reader.python(code)


def test_links_and_pictures_are_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text(encoding="utf-8")):
        assert (ROOT / target).exists(), target
