"""Execution of the notebooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT, compare

nbformat = pytest.importorskip("nbformat", reason="notebooks need nbclient and ipykernel, of pip install '.[dev]'")
nbclient = pytest.importorskip("nbclient", reason="notebooks need nbclient and ipykernel, of pip install '.[dev]'")

FOLDER = ROOT / "docs" / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def _outputs(notebook: Any) -> list[list[tuple[str, str]]]:
    """Kind and text of the outputs of each code cell; images have no text."""
    kinds = []
    for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
        outputs = []
        for output in cell.outputs:
            data = output.get("data", {})
            drawn = "image/png" in data
            outputs.append(("image" if drawn else output.get("name", "table"), "" if drawn else _text(output, data)))
        kinds.append(outputs)
    return kinds


def _text(output: Any, data: Any) -> str:
    return str(output.get("text") or data.get("text/plain", ""))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_notebook_reproduces_its_output(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("FEMTS_DATA", raising=False)  # what a notebook needs comes with femts
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(variable, str(tmp_path))
    notebook = nbformat.read(FOLDER / name, as_version=4)
    shown = _outputs(notebook)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(FOLDER)}}).execute()
    for before, now in zip(shown, _outputs(notebook), strict=True):
        assert [kind for kind, _ in before] == [kind for kind, _ in now]
        for (_, text), (_, printed) in zip(before, now, strict=True):
            compare(text, printed, figures=False)


@pytest.mark.parametrize("name", NAMES)
def test_notebook_has_a_figure_and_no_warnings(name: str) -> None:
    notebook = nbformat.read(FOLDER / name, as_version=4)
    kinds = [kind for cell in _outputs(notebook) for kind, _ in cell]
    assert "image" in kinds and "stderr" not in kinds
    assert (FOLDER / name).stat().st_size < 300_000
    assert str(ROOT) not in json.dumps(notebook)
