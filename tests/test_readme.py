"""The README is run: every command and every block of Python, with less time to train."""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import femts
from femts.data import load_dataset

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
COMMANDS = [line for kind, text in BLOCKS if kind == "bash" for line in text.splitlines()]
FEMTS = [line for line in COMMANDS if line.startswith("femts ")]
SMALL = {"model.n_layers": "1", "model.d_model": "16", "model.n_heads": "2"}
LESS = ["--max-time", "5s", *(part for key, value in SMALL.items() for part in ("--set", f"{key}={value}"))]


def needs(text: str) -> None:
    if "ETTh1" in text and not os.environ.get("FEMTS_DATA"):
        pytest.skip("needs the real ETTh1; set FEMTS_DATA to a folder that holds it")


def run(command: str, folder: Path) -> None:
    arguments = shlex.split(command)[1:]
    if arguments[0] == "train":
        arguments += LESS
    if arguments[0] == "table":
        arguments += ["--set", "training.max_epochs=1", "--set", "training.batch_size=512", "--seq-len", "192"]
        arguments[arguments.index("--models") + 1] = "dlinear,naive"
    if arguments[0] == "verify":  # other settings, other place
        (arguments[1],) = map(str, folder.glob(f"results/*/{arguments[1].partition('/paper/')[2]}"))
    done = subprocess.run([sys.executable, "-m", "femts", *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def test_every_block_is_known() -> None:
    assert {kind for kind, _ in BLOCKS} == {"bash", "python", "text"}
    scripts = [line for line in COMMANDS if not line.startswith("femts ")]
    assert scripts == ["scripts/quickstart", "scripts/test"], "who adds a script here adds a test of it"


def test_commands_on_real_data_in_their_order(tmp_path: Path) -> None:
    needs("ETTh1")
    real = [line for line in FEMTS if "ETTh1" in line]
    assert len(real) == 8
    for command in real:
        run(command, tmp_path)


def test_commands_on_own_data_in_their_order(tmp_path: Path) -> None:
    frame = load_dataset("synthetic").frame()
    frame.iloc[:3000].to_csv(tmp_path / "mine.csv", index=False)
    frame.iloc[3000:6000].to_csv(tmp_path / "recent.csv", index=False)
    own = [line for line in FEMTS if "ETTh1" not in line]
    assert len(own) == 7
    for command in own:
        if not command.startswith("femts export") or find_spec("onnxruntime"):
            run(command, tmp_path)
    assert (tmp_path / "forecast.csv").read_text().count("\n") == 49
    for picture in ("forecast.png", "why.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("code", [text for kind, text in BLOCKS if kind == "python"], ids=["forecaster", "layer"])
def test_python_blocks(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    needs(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(femts, "train", functools.partial(femts.train, max_time="5s", settings=SMALL), raising=False)
    exec(compile(code, "README.md", "exec"), {})


def test_links_and_pictures_are_there() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
