"""Invalid input: one sentence on stderr, the exit status, and nothing written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from bad_cases import OWN, TRAIN, Case, check_case
from bad_files import write_bad_configs, write_bad_tables

from femts.cli import main
from femts.forecaster.run_folder import sealed

CASES = {
    # the command line itself
    "unknown command": Case("trian", r"No such command 'trian'; did you mean 'train'"),
    "unknown option": Case(f"{TRAIN} --modle x", r"No such option: --modle .*--model"),
    "option without a value": Case("train --dataset", r"'--dataset' requires an argument"),
    "missing argument": Case("evaluate", r"Missing argument 'RUN'"),
    "table in place of a run": Case(
        "check good.csv", r"folder of a run comes first, and good.csv is a file; .*femts datasets info good.csv shows"
    ),
    "argument too many": Case("evaluate run more", r"unexpected extra argument.* \(more\)"),
    "file without its option": Case(
        "train good.csv", r"\(good.csv\); a file or .* follows --dataset; see 'femts train"
    ),
    # names
    "no dataset": Case("train", r"No dataset is given; add --dataset"),
    "unknown dataset": Case("train --dataset ETTh11", r"'ETTh11'.*did you mean 'ETTh[12]'"),
    "fetch of built-in data": Case("datasets fetch synthetic", r"synthetic is built in"),
    "verify of a missing file": Case("datasets verify ETTh1 --data-root empty", r"ETTh1 is not at empty/ETTh1.csv"),
    "wrong file under a known name": Case("datasets verify ETTh1 --data-root wrong", r"not the published ETTh1"),
    "data root that is a file": Case("datasets verify ETTh1 --data-root good.csv", r"data root good.csv is a file"),
    "unknown model": Case("train --dataset synthetic --model fem_gal", r"'fem_gal'; did you mean 'fem_gla'"),
    "mean to be trained": Case(
        "train --dataset synthetic --model mean",
        r"'mean' is an ensemble of trained models, built by femts.mean_of or --model auto",
    ),
    "member of no mean": Case("explain run good.csv --member ridge", r"is not an ensemble .*; remove --member"),
    "unknown protocol": Case(f"{TRAIN} --protocol papper", r"'papper'; did you mean 'paper'"),
    "unknown part": Case("evaluate run --part tset", r"'tset'.*test"),
    # configuration files
    "config missing": Case("train --config none.yaml", r"none.yaml cannot be read: No such file"),
    "config that is no YAML": Case("train --config broken.yaml", r"broken.yaml is not YAML in line \d"),
    "config with an unknown key": Case("train --config key.yaml", r"unknown key 'datset'; did you mean 'dataset'"),
    "config with an unknown setting": Case(
        "train --config setting.yaml", r"'training.lrr'; did you mean 'training.lr'"
    ),
    "config with a bad value": Case("train --config value.yaml", r"'training.lr' takes a number, not 'fast'"),
    "config with a number for a name": Case("train --config number.yaml", r"'dataset: 7', which is not a name"),
    "config with a key twice": Case("train --config twice.yaml", r"the key 'lr' twice, in lines 3 and 5; keep one"),
    "config with a flat training": Case("train --config flat.yaml", r"'training: fast'"),
    "final that is no flag": Case("train --config refit.yaml", r"Argument 'refit' is .*often.*True or False"),
    "config that is a list": Case("train --config list.yaml", r"list.yaml is not .*'key: value'"),
    # horizons and look-backs
    "horizon that is no number": Case(f"{TRAIN} --horizon week", r"'week' is not .*; write 96, 96,192 or all"),
    "horizon zero": Case(f"{TRAIN} --horizon 0", r"Horizon '0'"),
    "look-back that is no number": Case(f"{TRAIN} --seq-len -5", r"'-5'.*--seq-len 512"),
    "look-back too long": Case(f"{TRAIN} --seq-len 9999", r"look-back of 9999 .* longest look-back that fits is \d+"),
    "horizon too long": Case(f"{TRAIN} --horizon 5000", r"forecast of 5000 .* longest .*fits is \d+"),
    # tables
    "static column of a single table": Case(
        f"{OWN} good.csv --static-covariates load", r"cannot have static covariates.*read a long table as"
    ),
    "columns that are no columns": Case(
        f"{OWN} good.csv --columns when", r"Columns 'when' cannot be read; write --columns time=NAME"
    ),
    "table missing": Case(f"{OWN} none.csv", r"none.csv does not exist"),
    "table empty": Case(f"{OWN} empty.csv", r"empty.csv is empty"),
    "history without dates": Case("predict run undated.csv", r"no 'date' .*time=NAME of femts train when training"),
    "table with repeated dates": Case(f"{OWN} repeated.csv", r"2024-01-01 05:00:00 at data row 7"),
    "table with an empty column": Case(
        f"{OWN} nan.csv", r"'load' of 'nan' has no value in its 210 training rows; leave it out with --drop load\."
    ),
    "roles of a panel of columns": Case(
        f"{OWN} good.csv --panel --past-covariates load", r"no column 'unique_id', so it is no"
    ),
    # prediction
    "output into a missing folder": Case("predict run good.csv -o none/out.csv", r"Folder none does not exist"),
    "picture of an unknown kind": Case("predict run good.csv --plot out.xyz", r"\.xyz.*\.png"),
    "column missing": Case("predict run one_column.csv", r"lacks 'heat'"),
    "column too many": Case("predict run three_columns.csv", r"has 'wind' besides"),
    "history with another step": Case("predict run quarters.csv", r"step 'h'"),
    "several files of one table": Case(
        "predict run good.csv repeated.csv -o f.csv", r"trained on a single table, .*; name one instead of 2"
    ),
    "unknown engine of a forecast": Case("predict run good.csv --engine rya", r"engine 'rya'; did you mean 'ray'"),
    "standard input on a cluster": Case("predict run - --engine ray", r"'ray' cannot read standard input; give the"),
    # explanation
    "importance of a series": Case("explain run --series a", r"--series names series of INPUT.csv, but no INPUT.csv"),
    "model that chooses nothing": Case(
        "explain run good.csv -o why.csv",
        r"Model 'naive' has no attention over past segments.*fem_sm.*femts explain RUN",
    ),
    "importance of an unknown column": Case("explain run --columns laod -o why.csv", r"reads no column 'laod'; did"),
    "importance with a history": Case("explain run good.csv --windows 9", r"--windows applies to .*; remove INPUT.csv"),
    "two scenarios of one name": Case(
        "predict run good.csv --future good.csv,wrong/good.csv -o f.csv", r"both be the scenario 'good'; rename one"
    ),
    # intervals and detailed scores
    "level of a hundred": Case(
        "predict run good.csv --level 80,100", r"Level 100 is not a percentage between 1 and 100"
    ),
    "level that is text": Case("predict run good.csv --level high", r"Level 'high' is not a number; write --level 80"),
    "level that was not calibrated": Case(
        "predict run good.csv --level 99.99", r"99.99 is not calibrated; use at most 99.9, .*--level 99.99"
    ),
    "level beyond the calibrated horizon": Case(
        "predict run good.csv --horizon 30 --level 80", r"calibrated for 12 steps, not for 30; .*--horizon 30"
    ),
    "quantile of a prediction that is 0": Case(
        "predict run good.csv --quantiles 0,.5", r"'0.0' is not .*between 0 and 1"
    ),
    "level of a run without intervals": Case("predict bare good.csv --level 80", r"no intervals; .*femts calibrate"),
    "calibration of fewer steps than a forecast": Case(
        "calibrate run --horizon 1 --level 97",
        r"calibrated for 1 step, because this run forecasts 12; use --horizon 12",
    ),
    "unknown group of scores": Case("evaluate run --by chanel", r"'chanel'; did you mean 'channel'"),
    "CSV of nothing": Case("evaluate run --csv", r"--csv .*--by or --level"),
    "run with other intervals": Case("predict swapped good.csv", r"swapped was changed .*intervals.safetensors"),
    # backtests and audits
    "backtest with another step": Case("backtest run quarters.csv", r"quarters.csv has the step '15min', .* 'h'"),
    "backtest of no windows": Case("backtest run good.csv --n-windows 0", r"'--n-windows' takes .*at least 1, not '0'"),
    "refit on too few rows": Case(
        "backtest run good.csv --refit --n-windows 23 -o out.csv", r"require 301, 25 of them .* use at most 22 windows"
    ),
    "audit of half a run": Case("audit half", r"half is unfinished"),
    "ridge over more steps than there are": Case(
        "train --dataset synthetic --model ridge --set model.longest=9000",
        r"to 9000 steps does not fit in 6132 training rows",
    ),
    # tables
    "unknown engine": Case("table --engine locl", r"'locl'; did you mean 'local'"),
    "unknown format": Case("table --format tex", r"Unknown format 'tex'"),
    "choice without values": Case(
        "table --datasets good.csv --param-grid training.lr", r"--param-grid 'training.lr' has no value"
    ),
    "pairs as a page": Case("table --pairs fem_sm:sm --format html", r"'html' does not support pairs; use text"),
    "pair that is none": Case("table --pairs fem_sm", r"'fem_sm' is not a pair .*FIRST:SECOND"),
    "pairs beside models": Case("table --pairs fem_sm:sm --models sm", r"'--pairs' and '--models'.* remove '--models'"),
    "time for a cell": Case("table --set training.max_time=1m", r"'training.max_time' cannot be set for a cell"),
    # run folders
    "run missing": Case("evaluate none", r"Run folder none does not exist"),
    "run half written": Case("predict half good.csv", r"half is unfinished"),
    "run without weights": Case("predict headless good.csv", r"headless has no model.safetensors"),
    "run with other weights": Case("predict tampered good.csv", r"tampered was changed .*preprocess.json"),
    "run of another version": Case("predict future good.csv", r"future has format 99"),
    "folder of several runs": Case(
        "predict several good.csv", r"several contains 1 runs?, one per horizon.*several/12"
    ),
    "output exists": Case(f"{TRAIN} --out run", r"run already holds a finished run"),
    "output is a file": Case(f"{TRAIN} --out good.csv", r"good.csv is a file"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every kind of bad file and one valid run."""
    folder = tmp_path_factory.mktemp("bad")
    write_bad_tables(folder)
    write_bad_configs(folder)
    for name in ("empty", "wrong"):
        (folder / name).mkdir()
    shutil.copy(folder / "good.csv", folder / "wrong" / "ETTh1.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(f"{OWN} good.csv --out run".split()) == 0
    for name in ("half", "headless", "tampered", "future", "bare", "swapped", "several/12"):
        shutil.copytree(folder / "run", folder / name)
    (folder / "half" / "metrics.json").unlink()
    (folder / "headless" / "model.safetensors").unlink()
    preprocess = folder / "tampered" / "preprocess.json"
    preprocess.write_text(preprocess.read_text().replace("load", "daol"))
    metrics = folder / "future" / "metrics.json"
    metrics.write_text(json.dumps(json.loads(metrics.read_text()) | {"format": 99}))
    bare = folder / "bare" / "metrics.json"
    metrics = json.loads(bare.read_text())
    del metrics["files"]["intervals.safetensors"]
    bare.write_bytes(sealed(metrics))
    swapped = folder / "swapped" / "intervals.safetensors"
    content = swapped.read_bytes()
    swapped.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    return folder


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_invalid_input_prints_one_sentence_and_writes_nothing(
    case: Case, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_case(case, place, monkeypatch, capsys)
