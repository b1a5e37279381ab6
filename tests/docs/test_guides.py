"""The guides in `docs/` are run from top to bottom: every command, every block of Python, every output they show."""

from __future__ import annotations

import re
from pathlib import Path
from unittest.mock import patch

import pytest
from checkout import Checkout
from pages import ROOT, Reader, blocks, compare, less

from femts.data.catalog import CATALOG
from femts.mixers.priors import registry as priors
from femts.models import registry

DOCS = ROOT / "docs"
NOT_RUN = ("promises", "measured", "performance", "short-measured", "tasks")  # pages of figures, which take hours
GUIDES = sorted(page.stem for page in DOCS.glob("*.md") if page.stem not in NOT_RUN)
NEEDS = {"choose": "statsforecast", "many-machines": "ray", "serving": "onnxruntime", "tune": "optuna"}
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_does_what_it_says(guide: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if guide in NEEDS:
        pytest.importorskip(NEEDS[guide], reason=f"this guide needs {NEEDS[guide]}")
    monkeypatch.delenv("FEMTS_DATA", raising=False)  # what a guide needs it makes itself
    registry.model_names()  # what is loaded now stays when the patches end
    priors.prior_names()
    checkout = guide == "extend"
    if checkout:
        Checkout.make(tmp_path)
    with patch.dict(registry._CARDS), patch.dict(priors._PRIORS), patch.dict(CATALOG):
        Reader(tmp_path, less(max_steps=8), checkout).read(DOCS / f"{guide}.md")


def test_there_is_a_guide_for_every_task_and_the_readme_names_it() -> None:
    assert {"train", "own-data", "uncertainty", "backtest", "explain", "compare", "extend", "many-machines"} <= set(
        GUIDES
    )
    for guide in (*GUIDES, *NOT_RUN):
        assert f"](docs/{guide}.md)" in README, guide


@pytest.mark.parametrize("page", [*GUIDES, *NOT_RUN])
def test_links_lead_somewhere(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", (DOCS / f"{page}.md").read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target, heading in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", text):
        found = (DOCS / target).resolve() if target else DOCS / f"{page}.md"
        assert found.exists(), target
        titles = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), flags=re.MULTILINE) if heading else []
        assert not heading or heading in {
            re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles
        }, heading


@pytest.mark.parametrize("guide", GUIDES)
def test_a_guide_is_short_and_says_what_to_do_when_it_goes_wrong(guide: str) -> None:
    text = (DOCS / f"{guide}.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 750
    assert "## When it goes wrong" in text
    assert any(kind == "text" for kind, _ in blocks(DOCS / f"{guide}.md"))


def test_output_that_is_not_what_is_shown_is_found() -> None:
    compare("mse  windows\n0.1234  7", "mse  windows\n0.12341  7\n", figures=True)
    compare("...\nrun: x\n0.5 in 3 s", "noise\nmore\nrun: x\n0.5 in 9 s", figures=True)
    compare("check ...\n0.1", "check what was found\n0.9", figures=False)
    for shown, printed, figures in (
        ("0.1234", "0.1240", True),
        ("mse 0.1", "mae 0.1", False),
        ("a\nb", "a", False),
        ("a b", "a b c", False),
        ("...\nb", "a\nc", False),
    ):
        with pytest.raises(AssertionError):
            compare(shown, printed, figures)
