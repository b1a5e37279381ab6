"""What bad input gets: one sentence on stderr, the right exit status, and nothing written."""

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
    "argument too many": Case("evaluate run more", r"unexpected extra argument.* \(more\)"),
    # names
    "no dataset": Case("train", r"No dataset is given; add --dataset"),
    "unknown dataset": Case("train --dataset ETTh11", r"'ETTh11'.*did you mean 'ETTh[12]'"),
    "unknown dataset, info": Case("datasets info wether", r"'wether'.*did you mean 'Weather'"),
    "fetch of built-in data": Case("datasets fetch synthetic", r"synthetic is built in"),
    "verify of a missing file": Case("datasets verify ETTh1 --data-root empty", r"ETTh1 is not at empty/ETTh1.csv"),
    "wrong file under a known name": Case("datasets verify ETTh1 --data-root wrong", r"not the published ETTh1"),
    "data root that is a file": Case("datasets verify ETTh1 --data-root good.csv", r"data root good.csv is a file"),
    "unknown model": Case("train --dataset synthetic --model fem_gal", r"'fem_gal'; did you mean 'fem_gla'"),
    "unknown model, models": Case("models dliner", r"'dliner'; did you mean 'dlinear'"),
    "mean to be trained": Case(
        "train --dataset synthetic --model mean",
        r"'mean' is an ensemble of trained models, built by femts.mean_of or --model auto",
    ),
    "member of no mean": Case("explain run good.csv --member ridge", r"is not an ensemble .*; remove --member"),
    "unknown component": Case(
        "train --dataset synthetic --model fem_sm --set model.components=CX", r"'CX'.*C, L, T, G"
    ),
    "component T without L": Case("train --dataset synthetic --model fem_sm --set model.components=CT", r"'CT'.* L"),
    "stacks of different numbers": Case(
        "train --dataset synthetic --model nhits --set model.pool=2,2", r"'model.pool' \(2,2\).* as many of one"
    ),
    "unknown protocol": Case(f"{TRAIN} --protocol papper", r"'papper'; did you mean 'paper'"),
    "unknown part": Case("evaluate run --part tset", r"'tset'.*test"),
    "unknown device, evaluate": Case("evaluate run --device tpu", r"'tpu'"),
    # configuration files
    "config missing": Case("train --config none.yaml", r"none.yaml cannot be read: No such file"),
    "config that is a folder": Case("train --config empty", r"empty cannot be read: Is a directory"),
    "config that is binary": Case("train --config binary.csv", r"binary.csv cannot be read: it is not UTF-8"),
    "config that is no YAML": Case("train --config broken.yaml", r"broken.yaml is not YAML in line \d"),
    "config that is a list": Case("train --config list.yaml", r"list.yaml is not .*'key: value'"),
    "config with an unknown key": Case("train --config key.yaml", r"unknown key 'datset'; did you mean 'dataset'"),
    "config with an unknown setting": Case("train --config setting.yaml", r"'training.lrr'; did you mean 'lr'"),
    "config with a bad value": Case("train --config value.yaml", r"'training.lr' takes a number, not 'fast'"),
    "config with a number for a name": Case("train --config number.yaml", r"'dataset: 7', which is not a name"),
    "config with a key twice": Case("train --config twice.yaml", r"the key 'lr' twice, in lines 3 and 5; keep one"),
    "config with a flat training": Case("train --config flat.yaml", r"'training: fast'"),
    "final that is no flag": Case("train --config refit.yaml", r"Argument 'refit' is .*often.*True or False"),
    # horizons and look-backs
    "horizon that is no number": Case(f"{TRAIN} --horizon week", r"'week' is not .*; write 96, 96,192 or all"),
    "horizon zero": Case(f"{TRAIN} --horizon 0", r"Horizon '0'"),
    "look-back that is no number": Case(f"{TRAIN} --seq-len -5", r"'-5'.*--seq-len 512"),
    "look-back too long": Case(f"{TRAIN} --seq-len 9999", r"look-back of 9999 .* longest look-back that fits is \d+"),
    "horizon too long": Case(f"{TRAIN} --horizon 5000", r"forecast of 5000 .* longest .*fits is \d+"),
    "one horizon of several too long": Case(f"{TRAIN} --horizon 12,5000", r"forecast of 5000 "),
    "horizon too long to score": Case("evaluate run --horizon 12,5000", r"forecast of 5000 "),
    "horizon of a prediction": Case("predict run good.csv --horizon 0", r"Horizon '0'.*--horizon 96"),
    # tables
    "table missing": Case(f"{OWN} none.csv", r"none.csv does not exist"),
    "table that is a folder": Case(f"{OWN} ./empty", r"empty is a folder"),
    "table empty": Case(f"{OWN} empty.csv", r"empty.csv is empty"),
    "table with a header alone": Case(f"{OWN} header.csv", r"header.csv has (0|no) data rows"),
    "table that is binary": Case(f"{OWN} binary.csv", r"binary.csv is .*UTF-8"),
    "history without dates": Case("predict run undated.csv", r"no 'date' .*time=NAME when training"),
    "backtest without dates": Case("backtest run undated.csv", r"has the step '1', but .* the step 'h'"),
    "table with repeated dates": Case(f"{OWN} repeated.csv", r"2024-01-01 05:00:00 at data row 7"),
    "table with an irregular frequency": Case(f"{OWN} uneven.csv", r"irregular frequency"),
    "table with text": Case(f"{OWN} text.csv", r"'broken' in column 'heat' at data row 8"),
    "table with an empty column": Case(
        f"{OWN} nan.csv", r"Column 'load' of 'nan' has no value in its 210 training rows"
    ),
    "table with infinities": Case(f"{OWN} inf.csv", r"1 infinite cell,.*column 'heat' at data row 9"),
    "sentinel that is no number": Case(
        f"{OWN} good.csv --na none", r"Sentinel 'none' is not a number; write --na -9999"
    ),
    "sentinel that has no end": Case(f"{OWN} good.csv --na nan,-1", r"Sentinel nan is not finite; leave such cells"),
    "columns that are no columns": Case(
        f"{OWN} good.csv --columns when", r"Columns 'when' cannot be read; write --columns time=NAME"
    ),
    "a kind of column twice": Case(
        f"{OWN} good.csv --columns time=date,time=load", r"'time=date,time=load' cannot be read; .*each once"
    ),
    "a name that is not there": Case(f"{OWN} good.csv --columns time=when", r"good.csv has no 'when' column"),
    "table too short": Case(f"{OWN} short.csv", r"does not fit"),
    "static column of a single table": Case(
        f"{OWN} good.csv --static-covariates load", r"no static columns.*read a long table as"
    ),
    "roles of a panel of columns": Case(
        f"{OWN} good.csv --panel --past-covariates load", r"no column 'unique_id', so it is no"
    ),
    # prediction
    "column missing": Case("predict run one_column.csv", r"lacks 'heat'"),
    "column too many": Case("predict run three_columns.csv", r"has 'wind' besides"),
    "history without a value": Case("predict run nan_last.csv", r"has no value; provide at least one"),
    "history with another step": Case("predict run quarters.csv", r"step 'h'"),
    "output into a missing folder": Case("predict run good.csv -o none/out.csv", r"Folder none does not exist"),
    "output onto a folder": Case("predict run good.csv -o empty", r"empty is a folder"),
    "picture of an unknown kind": Case("predict run good.csv --plot out.xyz", r"\.xyz.*\.png"),
    # explanation
    "model that chooses nothing": Case(
        "explain run good.csv -o why.csv",
        r"Model 'naive' has no attention over past segments.*fem_sm.*femts explain RUN",
    ),
    "importance of an unknown column": Case("explain run --columns laod -o why.csv", r"reads no column 'laod'; did"),
    "importance on one window": Case("explain run --windows 1 -o why.csv", r"--windows' takes .* at least 2, not '1'"),
    "importance with a history": Case("explain run good.csv --windows 9", r"--windows applies to .*; remove INPUT.csv"),
    "importance of a series": Case(
        "explain run --series a", r"--series names series of INPUT.csv, but no INPUT.csv is given"
    ),
    "two scenarios of one name": Case(
        "predict run good.csv --future good.csv,wrong/good.csv -o f.csv", r"both be the scenario 'good'; rename one"
    ),
    "explanation into a missing folder": Case("explain run good.csv -o none/why.csv", r"Folder none does not exist"),
    "explanation as a picture of an unknown kind": Case("explain run good.csv --plot why.xyz", r"\.xyz.*\.png"),
    "folder of several runs, explain": Case("explain several good.csv", r"several contains 1 runs?, one per horizon"),
    # intervals and detailed scores
    "level zero": Case("predict run good.csv --level 0", r"Level 0 is not between 0 and 100"),
    "level of a hundred": Case("predict run good.csv --level 80,100", r"Level 100 is not between 0 and 100"),
    "level that is text": Case("predict run good.csv --level high", r"Level 'high' is not a number; write --level 80"),
    "level that is empty": Case("evaluate run --level ,", r"Level ',' is not a number"),
    "level that was not calibrated": Case(
        "predict run good.csv --level 99.99", r"99.99 is not calibrated; ask for 99.9 or less, .*--level 99.99"
    ),
    "level beyond the calibrated horizon": Case(
        "predict run good.csv --horizon 30 --level 80", r"calibrated for 12 steps, not for 30; .*--horizon 30"
    ),
    "quantile of a prediction that is 0": Case(
        "predict run good.csv --quantiles 0,.5", r"'0.0' is not .*between 0 and 1"
    ),
    "quantile of a prediction that is text": Case(
        "predict run good.csv --quantiles low", r"Quantile 'low' is not a number; write --quantiles 0.1"
    ),
    "quantile that was not calibrated": Case(
        "predict run good.csv --quantiles .00005", r"Level 99.99 is not calibrated.*--level 99.99"
    ),
    "level of a run without intervals": Case("predict bare good.csv --level 80", r"no intervals; .*femts calibrate"),
    "coverage beyond the calibrated horizon": Case("evaluate run --horizon 20 --level 80", r"12 steps, not for 20"),
    "calibration beyond the data": Case("calibrate run --horizon 5000", r"forecast of 5000 "),
    "calibration of no steps": Case("calibrate run --horizon 0", r"Horizon '0'.*--horizon 96"),
    "calibration of fewer steps than a forecast": Case(
        "calibrate run --horizon 1 --level 97",
        r"calibrated for 1 steps, because this run forecasts 12; use --horizon 12",
    ),
    "unknown group of scores": Case("evaluate run --by chanel", r"'chanel'; did you mean 'channel'"),
    "CSV of nothing": Case("evaluate run --csv", r"--csv .*--by or --level"),
    "run with other intervals": Case("predict swapped good.csv", r"swapped was changed .*intervals.safetensors"),
    # backtests and audits
    "backtest of no windows": Case("backtest run good.csv --n-windows 0", r"'--n-windows' takes .*at least 1, not '0'"),
    "backtest with a step that is no number": Case(
        "backtest run good.csv --step-size day", r"'--step-size' takes a whole number.*'day'"
    ),
    "backtest without a horizon": Case("backtest run good.csv --horizon 0", r"'--horizon' takes .*not '0'"),
    "backtest of too many windows": Case(
        "backtest run good.csv --n-windows 99 -o out.csv", r"300 rows.*at most 23 windows"
    ),
    "backtest of short data": Case("backtest run short.csv -o out.csv", r"short.csv has 20 rows.*provide more rows"),
    "backtest without a column": Case("backtest run one_column.csv -o out.csv", r"one_column.csv lacks 'heat'"),
    "backtest with another step": Case("backtest run quarters.csv", r"quarters.csv has the step '15min', .* 'h'"),
    "backtest from an empty column": Case(
        "backtest run nan.csv -o out.csv", r"'load' of 'nan' has no value in its 210 training rows"
    ),
    "backtest out of an empty past": Case(
        "backtest run nan_last.csv --n-windows 1 -o out.csv", r"has no value in its look-backs"
    ),
    "backtest with text": Case("backtest run text.csv -o out.csv", r"'broken' in column 'heat' at data row 8"),
    "backtest of a missing table": Case("backtest run none.csv", r"none.csv does not exist"),
    "backtest of an unknown dataset": Case("backtest run ETTh11", r"'ETTh11'.*did you mean 'ETTh[12]'"),
    "backtest of another dataset": Case("backtest run synthetic", r"'synthetic' lacks 'load', 'heat'"),
    "backtest into a missing folder": Case("backtest run good.csv -o none/out.csv", r"Folder none does not exist"),
    "backtest onto a folder": Case("backtest run good.csv -o empty", r"empty is a folder"),
    "backtest of no run": Case("backtest none good.csv", r"Run folder none does not exist"),
    "refit on too few rows": Case(
        "backtest run good.csv --refit --n-windows 23 -o out.csv", r"look-back of 24 .* 24 train rows"
    ),
    "audit of no run": Case("audit none", r"Run folder none does not exist"),
    "audit of half a run": Case("audit half", r"half is unfinished"),
    "audit of several runs": Case("audit several", r"several contains 1 runs?"),
    "report of no run": Case("report none", r"Run folder none does not exist"),
    "report of several runs": Case("report several", r"several contains 1 runs?"),
    "report into a missing folder": Case("report run -o none/out.html", r"Folder none does not exist"),
    "ridge over more steps than there are": Case(
        "train --dataset synthetic --model ridge --set model.longest=9000",
        r"to 9000 steps does not fit in 6132 training rows",
    ),
    # tables
    "unknown dataset, table": Case("table --datasets ETTh11", r"'ETTh11'.*did you mean 'ETTh[12]'"),
    "unknown model, table": Case("table --models fem_gal", r"'fem_gal'; did you mean 'fem_gla'"),
    "seed that is none": Case("table --seeds one", r"'--seeds' takes whole numbers .*'one'"),
    "horizon that is none, table": Case("table --horizons 0", r"Horizon '0'"),
    "look-back that is none, table": Case("table --seq-len 0", r"'--seq-len' takes .*at least 1, not '0'"),
    "pair that is none": Case("table --pairs fem_sm", r"Pair 'fem_sm' is not a pair of models; .*FIRST:SECOND"),
    "unknown model in a pair": Case("table --pairs fem_sm:smm", r"Unknown model 'smm'; did you mean 'sm'"),
    "pairs beside models": Case("table --pairs fem_sm:sm --models sm", r"'--pairs' and '--models'.* leave '--models'"),
    "pairs as a page": Case("table --pairs fem_sm:sm --format html", r"'html' does not support pairs; use text"),
    "unknown engine": Case("table --engine locl", r"'locl'; did you mean 'local'"),
    "unknown format": Case("table --format tex", r"Unknown format 'tex'"),
    "no jobs": Case("table --datasets synthetic --jobs 0", r"'--jobs' takes .*at least 1, not '0'"),
    "time for a cell": Case("table --set training.max_time=1m", r"'training.max_time' cannot be set for a cell"),
    "horizon beyond a table's rows": Case(
        "table --datasets good.csv --models naive --horizons 149",
        r"149 steps does not fit twice into the 300 rows of 'good'.* fits is 148",
    ),
    "table of a file with text": Case("table --datasets text.csv --models naive --horizons 12", r"'broken'"),
    "choice without values": Case(
        "table --datasets good.csv --param-grid training.lr", r"--param-grid 'training.lr' has no value"
    ),
    "time that is none, table": Case("table --datasets synthetic --time-limit soon", r"'soon'"),
    "unknown setting, table": Case("table --set training.lrr=1", r"did you mean 'lr'"),
    "record that is missing": Case("verify none.json", r"none.json cannot be read"),
    "record that is something else": Case("verify good.csv", r"good.csv is not JSON"),
    # run folders
    "run missing": Case("evaluate none", r"Run folder none does not exist"),
    "run that is something else": Case("evaluate empty", r"empty is not a femts run"),
    "run half written": Case("predict half good.csv", r"half is unfinished"),
    "run without weights": Case("predict headless good.csv", r"headless has no model.safetensors"),
    "run with other weights": Case("predict tampered good.csv", r"tampered was changed .*preprocess.json"),
    "run of another version": Case("predict future good.csv", r"future has format 99"),
    "folder of several runs": Case(
        "predict several good.csv", r"several contains 1 runs?, one per horizon.*several/12"
    ),
    "output exists": Case(f"{TRAIN} --out run", r"run already holds a finished run"),
    "output is a file": Case(f"{TRAIN} --out good.csv", r"good.csv is a file"),
    "output holds other things": Case(f"{TRAIN} --out wrong", r"wrong contains files that are not a run"),
    "overwritten where other things are": Case(
        f"{TRAIN} --overwrite --out wrong", r"wrong contains files that are not a run"
    ),
    "resumed and overwritten": Case(
        f"{TRAIN} --resume --overwrite --out run", r"--resume and --overwrite cannot be combined"
    ),
    "resumed where other things are": Case(f"{TRAIN} --resume --out wrong", r"wrong contains files that are not a run"),
    "finished with another recipe": Case(f"{OWN} good.csv --resume --out run --seed 7", r"run was started with .*seed"),
    "resumed with another recipe": Case(
        f"{OWN} good.csv --resume --out half --seed 7", r"half was started with .*seed=42, not 7"
    ),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every kind of bad file, and one good run."""
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
def test_one_sentence_and_nothing_written(
    case: Case, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    check_case(case, place, monkeypatch, capsys)


def test_there_are_at_least_thirty() -> None:
    assert len(CASES) >= 30
