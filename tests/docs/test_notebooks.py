"""Execution of the notebooks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from forks import Forked
from pages import ROOT, compare

pytest.importorskip("IPython", reason="notebooks need IPython, of pip install '.[dev]'")

from notebook_cells import Output, kind_and_text

FOLDER = ROOT / "docs" / "notebooks"
SUPPORT = ROOT / "tests" / "support"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))


LESS = {"width=64": "width=8", "max_steps=100": "max_steps=10"}  # the numbers are not compared


def _cells(name: str) -> list[dict[str, Any]]:
    """The cells of code."""
    cells: list[dict[str, Any]] = json.loads((FOLDER / name).read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def _shown(name: str) -> list[list[Output]]:
    """Outputs of each cell, as they are committed."""
    return [
        [
            (output["name"], "".join(output["text"]))
            if output["output_type"] == "stream"
            else kind_and_text({kind: "".join(text) for kind, text in output["data"].items()})
            for output in cell["outputs"]
        ]
        for cell in _cells(name)
    ]


def _executed(name: str, place: Path) -> list[list[Output]]:
    """Outputs of each cell, as they are now, for `LESS` work."""
    code = ["".join(cell["source"]) for cell in _cells(name)]
    for usual, less in LESS.items():
        code = [each.replace(usual, less) for each in code]
    (place / "cells.json").write_text(json.dumps(code))
    own = {"PYTHONPATH": f"{ROOT}{os.pathsep}{SUPPORT}", "IPYTHONDIR": str(place)}
    kept = {key: value for key, value in os.environ.items() if key != "FEMTS_DATA"}  # what it needs comes with femts
    done = Forked([SUPPORT / "notebook_cells.py", place / "cells.json"], FOLDER, {**kept, **own}).completed()
    assert (done.returncode, done.stderr) == (0, "")
    made: list[list[Output]] = json.loads(done.stdout)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_notebook_reproduces_its_output(name: str, tmp_path: Path) -> None:
    for before, now in zip(_shown(name), _executed(name, tmp_path), strict=True):
        assert [kind for kind, _ in before] == [kind for kind, _ in now]
        for (_, text), (_, printed) in zip(before, now, strict=True):
            compare(text, printed, figures=False)


@pytest.mark.parametrize("name", NAMES)
def test_notebook_has_a_figure_and_no_warnings(name: str) -> None:
    kinds = [kind for cell in _shown(name) for kind, _ in cell]
    assert "image" in kinds and "stderr" not in kinds
    content = (FOLDER / name).read_text()
    assert len(content) < 300_000 and str(ROOT) not in content
