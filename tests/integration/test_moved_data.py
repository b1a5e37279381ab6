"""Runs whose data have moved or changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_panels import P as PANEL_P
from small_panels import panel_table

from femts.cli import main
from femts.data.synthetic import synthetic_frame
from femts.training.train import train

L, P = 48, 12


def test_moved_data_are_accepted_by_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The report does not show where the data were in training."""
    synthetic_frame(400).to_csv(tmp_path / "mine.csv", index=False)
    run = str(tmp_path / "run")
    train(tmp_path / "mine.csv", "naive", P, seq_len=L, device="cpu", out=run)
    assert main(["evaluate", run]) == 0
    before = capsys.readouterr().out
    (tmp_path / "there").mkdir()
    moved = str((tmp_path / "mine.csv").rename(tmp_path / "there" / "other.csv"))
    assert main(["evaluate", run, "--dataset", moved]) == 0
    assert capsys.readouterr().out == before
    assert main(["calibrate", run, "--dataset", moved]) == 0
    assert main(["audit", run]) == 2
    assert "--dataset TABLE" in capsys.readouterr().err
    assert main(["audit", run, "--dataset", moved]) == 0
    assert main(["report", run, "--dataset", moved]) == 0
    page = (tmp_path / "run" / "report.html").read_text()
    assert "other.csv" in page
    assert str(tmp_path) not in page
    synthetic_frame(500).to_csv(moved, index=False)
    assert main(["evaluate", run, "--dataset", moved]) == 2
    refused = capsys.readouterr().err
    assert "is not what this model was trained on" in refused
    assert refused.endswith("or at the command line to `femts backtest RUN DATA`.\n")
    assert main(["audit", run, "--dataset", moved]) == 2
    assert "is not what this model was trained on" in capsys.readouterr().err
    assert main(["backtest", run, moved]) == 0


def test_changed_panel_data_are_refused_with_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, other = str(tmp_path / "run"), tmp_path / "other.csv"
    panel_table().to_csv(tmp_path / "mine.csv", index=False)
    table = panel_table()
    table[table.columns[-1]] *= 2.0
    table.to_csv(other, index=False)
    train(tmp_path / "mine.csv", "naive", PANEL_P, device="cpu", out=run)
    assert main(["evaluate", run, "--dataset", str(other)]) == 2
    assert capsys.readouterr().err.endswith("or at the command line to `femts backtest RUN DATA`.\n")
    assert main(["backtest", run, str(other)]) == 0
