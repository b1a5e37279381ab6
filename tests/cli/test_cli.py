"""Output and files of each command; invalid input is in test_bad_input.py."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml
from commands import COMMANDS
from numbers_of import numbers_of
from small_tables import small_table

import femts
from femts.cli import main
from femts.data.catalog import CATALOG
from femts.mixers.priors.registry import prior_names
from femts.models.listing import USES
from femts.models.registry import model_names

TINY = "--seq-len 48 --max-epochs 1 --set model.n_layers=1 --set model.d_model=16 --set training.batch_size=256".split()


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("", *COMMANDS):
        assert main([*command.split(), "--help"]) == 0
        out, err = capsys.readouterr()
        assert out.startswith(f"Usage: femts {command}".rstrip()) and err == ""


def test_no_command_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "train" in capsys.readouterr().out


def imported(command: list[str], libraries: set[str]) -> str:
    """Those of `libraries` that `femts` imports for `command`, as a list in text."""
    code = f"import sys; from femts.cli import main; main({command}); print(sorted({libraries} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return result.stdout.splitlines()[-1]


@pytest.mark.parametrize("command", ["datasets list", "train --help"])
def test_light_commands_import_nothing_heavy(command: str) -> None:
    heavy = {"torch", "lightning_fabric", "sklearn", "pandas", "numpy", "matplotlib"}
    assert imported(command.split(), heavy) == "[]"


@pytest.mark.parametrize("command", ["train --dataset", "compare", "tune --dataset"])
def test_refusing_a_table_imports_no_torch(command: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.csv"
    path.write_text("date,x\n" + "".join(f"2024-01-{day:02d},{'x9 y' if day == 3 else day}\n" for day in range(1, 29)))
    assert imported([*command.split(), str(path), "--target", "x"], {"torch", "lightning_fabric", "sklearn"}) == "[]"


def test_predict_imports_no_library_for_training(own: Path, tmp_path: Path) -> None:
    heavy = {"pytorch_lightning", "lightning_fabric", "sklearn", "scipy", "matplotlib", "torch._dynamo"}
    command = ["predict", str(own / "run"), str(own / "past.csv"), "-o", str(tmp_path / "out.csv")]
    assert imported(command, heavy) == "[]"
    assert (tmp_path / "out.csv").is_file()


def test_linear_model_imports_no_library_for_networks(own: Path, tmp_path: Path) -> None:
    heavy = {"pytorch_lightning", "lightning_fabric", "torch._dynamo"}
    command = f"train --dataset {own}/past.csv --model ridge --horizon 4 --seq-len 16 --out {tmp_path}/run"
    assert imported(command.split(), heavy) == "[]"
    assert (tmp_path / "run" / "metrics.json").is_file()


def test_datasets_list_and_info(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ETTh2.csv").write_text("date,OT\n")
    assert main(["datasets", "list", "--data-root", str(tmp_path)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["name", "rows", "channels", "step", "here"]
    assert {row[0]: row[4] for row in rows[1:]} == dict.fromkeys(CATALOG, "no") | {
        "ETTh2": "yes",
        "synthetic": "built-in",
    }
    assert main(["datasets", "info", "etth1", "--data-root", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert str(CATALOG["ETTh1"].sha256) in out
    assert f"missing; it belongs at {tmp_path / 'ETTh1.csv'}" in out


def test_models_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.endswith(":")] == [f"{use}:" for use in USES]
    rows = [line.split(maxsplit=2) for line in lines if not line.endswith(":") and not line.startswith("name ")]
    assert sorted(row[0] for row in rows) == model_names()
    assert all(row[1].isdigit() and row[2] for row in rows)
    assert main(["models", "fem_gla"]) == 0
    out = capsys.readouterr().out
    assert "model.components  CLTG" in out


def test_doctor_lists_priors_and_accelerators(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert ["femts", femts.__version__] in [line.split() for line in lines]
    for prior in prior_names():
        assert sum(line.split()[:1] == [prior] for line in lines) == 1
    assert all(any(f"{name} is not used: " in line for line in lines) for name in ("fla", "flash_attn", "mamba_ssm"))
    devices = {line.split()[0]: line for line in lines if line}
    assert "training steps are not replayed" in devices["cpu"]
    assert ("not available" in devices["cuda"]) != ("training.graph=on replays training steps" in devices["cuda"])


def test_train_writes_a_run_and_prints_its_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--dataset", "synthetic", "--model", "fem_gla", "--horizon", "24", *TINY]) == 0
    out, err = capsys.readouterr()
    run = tmp_path / "runs" / "synthetic-fem_gla-24"
    scores = json.loads((run / "metrics.json").read_text())["test"]
    lines = out.splitlines()
    assert lines[0] == "run: runs/synthetic-fem_gla-24"
    assert lines[1].split() == "pred_len mse mae windows naive_mse naive_mae skill mase wape bias".split()
    own = [f"{scores['mse']:.4f}", f"{scores['mae']:.4f}", str(scores["windows"])]
    naive = scores["baselines"]["seasonal_naive"]
    beside = [*naive.values(), *(scores[name] for name in ("skill", "mase", "wape", "bias"))]
    assert lines[2].split() == ["24", *own, *(f"{value:.4f}" for value in beside)]
    assert scores["skill"] == pytest.approx(1 - scores["mse"] / naive["mse"])
    lowest = {measure: min(each[measure] for each in scores["baselines"].values()) for measure in ("mse", "mae")}
    assert (scores["verdict"] in err) == any(scores[measure] > lowest[measure] for measure in lowest)
    config = yaml.safe_load((run / "config.yaml").read_text())
    assert config["model"]["d_model"] == 16
    assert config["training"]["max_epochs"] == 1

    # A run's own configuration repeats it; flags go before it; and the folder takes the next number.
    again = ["train", "--config", str(run / "config.yaml"), "--model", "naive", "--horizon", "24"]
    assert main(again) == 2  # naive has none of the settings of fem_gla
    assert main(["train", "--config", str(run / "config.yaml")]) == 0
    out = capsys.readouterr().out
    assert "runs/synthetic-fem_gla-24 exists, so this run goes to runs/synthetic-fem_gla-24-2" in out
    repeated = json.loads((tmp_path / "runs" / "synthetic-fem_gla-24-2" / "metrics.json").read_text())
    assert repeated["test"] == scores


def test_several_horizons_make_runs_and_a_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [*"train --dataset synthetic --model naive --horizon 24,12 --out".split(), str(tmp_path / "all")]
    assert main(command) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    summary = json.loads((tmp_path / "all" / "metrics.json").read_text())
    single = {p: json.loads((tmp_path / "all" / p / "metrics.json").read_text())["test"] for p in ("24", "12")}
    assert summary["pred_len"] == single
    assert summary["mean"]["mse"] == pytest.approx((single["24"]["mse"] + single["12"]["mse"]) / 2)
    assert [line[0] for line in lines[1:]] == ["pred_len", "24", "12", "mean", "24", "12"]
    assert [line[:3] for line in lines[5:]] == [["24", "steps:", "intervals"], ["12", "steps:", "intervals"]]
    assert lines[4][1] == f"{summary['mean']['mse']:.4f}"

    # Interrupted between two horizons: the finished one is kept, the other one trained.
    (tmp_path / "all" / "metrics.json").unlink()
    (tmp_path / "all" / "12" / "metrics.json").unlink()
    before = (tmp_path / "all" / "24" / "metrics.json").stat().st_mtime_ns
    assert main([*command, "--resume"]) == 0
    assert json.loads((tmp_path / "all" / "metrics.json").read_text()) == summary
    assert (tmp_path / "all" / "24" / "metrics.json").stat().st_mtime_ns == before


def test_several_horizons_share_the_time_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["train", "--dataset", "synthetic", "--model", "dlinear", "--horizon", "24,12", "--seq-len", "48"]
    assert (
        main(
            [
                *command,
                "--max-steps",
                "1000000",
                "--set",
                "training.patience=1000000",
                "--time-limit",
                "4s",
                "--out",
                str(tmp_path / "all"),
            ]
        )
        == 0
    )
    said = capsys.readouterr().err
    for horizon in ("24", "12"):
        metrics = json.loads((tmp_path / "all" / horizon / "metrics.json").read_text())
        assert metrics["stopped"] == "max_time"
        assert (
            f"{horizon} reached the time limit after {metrics['steps']} steps, over which the learning rate decayed to zero"
            in said
        )
    spans = [
        yaml.safe_load((tmp_path / "all" / p / "config.yaml").read_text())["training"]["max_time"] for p in ("24", "12")
    ]
    first, second = (float(each.removesuffix("s")) for each in spans)
    assert 1 <= first < 2 and 1 <= second < 4, "what is left of the limit, which began with the command"


def test_evaluate_command_matches_python(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forecaster = femts.load(own / "run")
    assert main(["evaluate", str(own / "run"), "--horizon", "6,30", "--part", "val", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["part"] == "val"
    expected = {str(p): forecaster.evaluate("val", p) for p in (6, 30)}
    for horizon, scores in expected.items():
        assert numbers_of(record["pred_len"][horizon]) == pytest.approx(numbers_of(scores), rel=1e-6)
        assert record["pred_len"][horizon]["verdict"] == scores["verdict"]
    assert record["mean"]["mae"] == pytest.approx(sum(s["mae"] for s in expected.values()) / 2)
    assert main(["evaluate", str(own / "run")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1][0] == "12"
    assert len(lines) == 2
    assert float(lines[1][1]) == pytest.approx(forecaster.evaluate()["mse"], abs=5e-5)


def test_predict_command_matches_python(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    past = small_table()
    expected = femts.load(own / "run").predict(past, 30)
    command = ["predict", str(own / "run"), str(own / "past.csv"), "--horizon", "30"]
    assert main([*command, "-o", str(tmp_path / "out.csv"), "--plot", str(tmp_path / "out.png")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out.csv'}: 30 steps of 2 columns\n"
    written = pd.read_csv(tmp_path / "out.csv", parse_dates=["date"])
    assert list(written.columns) == list(past.columns)
    assert written["date"].iloc[0] == past["date"].iloc[-1] + pd.Timedelta(hours=1)
    pd.testing.assert_frame_equal(written, expected, check_dtype=False)
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in tmp_path.iterdir()} == {"out.csv", "out.png"}

    assert main(command) == 0
    assert capsys.readouterr().out == (tmp_path / "out.csv").read_text()


def test_evaluate_prints_detailed_scores(own: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forecaster = femts.load(own / "run")
    command = ["evaluate", str(own / "run")]
    assert main([*command, "--by", "channel", "--horizon", "6,12", "--csv"]) == 0
    printed = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert printed["pred_len"].tolist() == [6] * 4 + [12] * 4
    expected = forecaster.scores(pred_len=12, by="channel")
    pd.testing.assert_frame_equal(printed[4:].reset_index(drop=True).drop(columns="pred_len"), expected)
    assert main([*command, "--by", "step,channel", "--level", "80", "--part", "val", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["part"], len(record["scores"])) == ("val", 12 * 2 * 2)
    expected = forecaster.scores("val", by=("step", "channel"), level=[80])
    raw = 5 + len(expected) // 2
    assert record["scores"][raw] == {"pred_len": 12, **expected.iloc[raw]}
    assert record["scores"][5]["smape"] is None, "scaled values have no zero of their own"
    assert main([*command, "--level", "80,90"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0][-6:] == [f"{name}-{level}" for level in (80, 90) for name in ("coverage", "width", "pinball")]
    assert [line[1] for line in lines[1:]] == ["scaled", "raw"]
    assert lines[2][3:6] == ["-"] * 3 != lines[1][3:6], "two channels, of different units for all we know"
    covered = float(lines[1][lines[0].index("coverage-80")])
    assert covered == pytest.approx(forecaster.metrics["intervals"]["test"]["80"]["coverage"], abs=5e-5)


def test_calibrate_and_predict_with_levels(own: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(own / "run", tmp_path / "run")
    predict = ["predict", str(tmp_path / "run"), str(own / "past.csv"), "--horizon", "14"]
    assert main([*predict, "--level", "80"]) == 2
    assert "calibrated for 12 steps, not for 14" in capsys.readouterr().err
    assert main(["calibrate", str(tmp_path / "run"), "--horizon", "14", "--level", "72.5"]) == 0
    out, err = capsys.readouterr()
    (path,) = (tmp_path / "run").glob("intervals*")
    assert out == f"{path}: levels up to 99.9 for 14 steps, from 17 windows\n"
    assert (
        err
        == "note: intervals are an estimate: 17 validation windows, 2 without overlap, are too few to calibrate on\n"
    )
    assert main([*predict, "--level", "80,72.5", "-o", str(tmp_path / "o.csv"), "--plot", str(tmp_path / "o.svg")]) == 0
    written = pd.read_csv(tmp_path / "o.csv")
    assert list(written)[1:6] == ["load", "load-lo-80", "load-hi-80", "load-lo-72.5", "load-hi-72.5"]
    forecaster = femts.load(tmp_path / "run")
    expected = forecaster.predict(small_table(), 14, level=[80, 72.5])
    pd.testing.assert_frame_equal(written.drop(columns="date"), expected.drop(columns="date"))


def test_python_m_femts() -> None:
    command = [sys.executable, "-m", "femts", "datasets", "list"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert "synthetic" in result.stdout
    assert result.stderr == ""


def test_waiting_threads_leave_their_core_to_others() -> None:
    code = "import os, sys; from femts.cli import main; main(['models', '--json']); print(os.environ.get('GOMP_SPINCOUNT'))"
    for given, expected in (({}, "10000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "None")):
        environment = {k: v for k, v in os.environ.items() if k not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")} | given
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == expected
