"""Invalid settings: one sentence on stderr, exit status 2, and nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_cases import ABSENT_DEVICE, TRAIN, Case, check_case

TABLE = "table --datasets synthetic --models naive --horizons 96"
CASES = {
    "setting without a value": Case(f"{TRAIN} --set training.lr", r"'training.lr' has no value; write .*=VALUE"),
    "setting without a section": Case(f"{TRAIN} --set lr=1", r"'lr'; did you mean 'training.lr'\?"),
    "model setting without a section": Case(
        f"{TRAIN} --set patch_len=3", r"'patch_len'; did you mean 'model.patch_len'\?"
    ),
    "nearly a setting without a section": Case(f"{TRAIN} --set pach_len=3", r"did you mean 'model.patch_len'\?"),
    "no setting": Case(f"{TRAIN} --set qqq=1", r"'qqq'; write model.NAME=VALUE or training.NAME=VALUE"),
    "unknown setting": Case(f"{TRAIN} --set training.lrr=1", r"'training.lrr'; did you mean 'training.lr'"),
    "number out of range": Case(f"{TRAIN} --set training.batch_size=0", r"'training.batch_size'.* at least 1, not 0"),
    "no epochs": Case(f"{TRAIN} --max-epochs 0", r"max_epochs' takes a whole number of at least 1, not 0"),
    "a budget in two ways": Case(
        f"{TRAIN} --max-steps 5 --max-epochs 2", r"max_steps' \(5\) and .*max_epochs' \(2\).*; give only one"
    ),
    "drawn channels": Case(
        f"{TRAIN} --set training.channels=2", r"'naive' does not support channel subsampling; remove training.channels"
    ),
    "unreadable time": Case(f"{TRAIN} --time-limit soon", r"'soon'.*9m"),
    "device that is not there": Case(
        f"{TRAIN} --device {ABSENT_DEVICE}", rf"(?i:{ABSENT_DEVICE}).* is not available.*--device cpu"
    ),
    "graph on a CPU": Case(
        f"{TRAIN} --device cpu --set training.graph=true",
        r"'training.graph=on' requires a CUDA device, not 'cpu'; leave it at auto",
    ),
    "unknown precision": Case(f"{TRAIN} --precision bf61", r"'bf61'; did you mean 'bf16'"),
    "unknown loss": Case(f"{TRAIN} --set training.loss=pinbal", r"Unknown loss 'pinbal'; did you mean 'pinball'"),
    "quantiles without the median": Case(f"{TRAIN} --set training.quantiles=.1,.9", r"include 0.5, .*not 0.1, 0.9"),
    "pinball without weights to learn": Case(
        f"{TRAIN} --set training.loss=pinball", r"'naive' does not support .*or dlinear"
    ),
    "setting of a model without any": Case(
        f"{TRAIN} --set model.windows=3", r"'model.windows'; there is none to choose"
    ),
    "quantiles that fall": Case(f"{TRAIN} --set training.quantiles=.9,.5,.1", r"increasing.*not 0.9, 0.5, 0.1"),
    "setting given twice": Case(
        f"{TRAIN} --set training.lr=1e-3 --set training.lr=1",
        r"'training.lr' is given twice, as 1e-3 and as 1; give it",
    ),
    "protocol beside a look-back": Case(f"{TRAIN} --seq-len 96 --protocol ../up", r"Unknown protocol '../up'; choose"),
    # tables
    "protocol beside a look-back, table": Case(
        f"{TABLE} --seq-len 96 --protocol ../../up --results deep/a", r"Unknown protocol '../../up'; choose from paper"
    ),
    "choices given twice": Case(
        f"{TABLE} --param-grid training.lr=1,2 --param-grid training.lr=3",
        r"--param-grid 'training.lr' is given twice, as 1,2 and",
    ),
    "choice of the windows": Case(
        "table --models auto_ets --param-grid model.windows=8,24", r"'model.windows' changes which windows are scored"
    ),
    "no models": Case("table --datasets synthetic --models ''", r"Unknown model ''; choose from"),
    "pinball for a linear map": Case(
        "train --dataset synthetic --model ridge --set training.loss=pinball --out new", r"'ridge' does not support"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_invalid_settings_print_one_sentence_and_write_nothing(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_case(case, tmp_path, monkeypatch, capsys)
