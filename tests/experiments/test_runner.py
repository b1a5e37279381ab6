"""Cells that finish, crash, are stopped or are killed."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from forks import Forked, forked_cells
from logged import logged
from orphans import marked, wait_for_workers
from pages import cells_in_this_process
from small_grid import COMMAND, SETTINGS, small_grid, two_columns, without_times
from small_tables import small_table

import femts
from femts.cli import main
from femts.errors import UsageError
from femts.experiments.cell import Cell
from femts.experiments.results import Store, read_record
from femts.experiments.runner import Engine, run_cells
from femts.experiments.task_cell import TaskCell
from femts.experiments.tasks import Task
from femts.experiments.verify import verify_record
from femts.files import Busy

pytestmark = pytest.mark.slow

TWO = Engine(jobs=2, device="cpu")  # a thread each


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The small grid, run without interruption."""
    store = Store(tmp_path_factory.mktemp("results"))
    with cells_in_this_process():
        run_cells(small_grid(), store, TWO)
    return store


def test_records_hold_their_provenance(finished: Store) -> None:
    for cell in small_grid():
        record = finished.record(cell)
        assert record is not None
        assert record["cell"] == {
            **{"dataset": "synthetic", "model": cell.model, "pred_len": cell.pred_len, "seed": 42, "protocol": "paper"},
            **{"seq_len": 48, "settings": dict(cell.settings)},
        }
        assert record["test"]["mse"] > 0 and record["test"]["windows"] == 1753 - cell.pred_len
        assert record["config"]["seq_len"] == 48 and len(record["data"]["sha256"]) == 64
        assert len(finished.record_path(cell).read_text().splitlines()) < 200, "a series takes one line"
        assert record["place"]["device"] == "cpu" and record["place"]["libraries"]["torch"]
    assert not list(finished.folder.rglob("*.lock")) and not list(finished.folder.rglob("*.safetensors"))


def test_model_is_scored_recursively_at_longer_horizons(tmp_path: Path) -> None:
    small = {"training.max_epochs": "1", "training.batch_size": "512", "model.d_model": "8", "model.n_layers": "1"}
    settings, store = {**small, "model.n_heads": "1"}, Store(tmp_path)
    cell, longer = (Cell("synthetic", "sm", pred_len, seq_len=192, settings=settings) for pred_len in (96, 192))
    with cells_in_this_process(), two_columns():
        run_cells([cell, longer], store, TWO)
    record, rival = store.record(cell) or {}, store.record(longer) or {}
    assert list(record["rolled"]) == ["192", "336", "720"]
    assert record["rolled"]["720"]["test"]["windows"] == 1753 - 720
    assert record["rolled"]["192"]["val"]["mse"] != record["val"]["mse"]
    own = rival["rolled"]["192"]
    assert own["test"] == pytest.approx(rival["test"]) and own["naive"] == pytest.approx(rival["naive"])
    assert own["val"]["windows"] == record["rolled"]["192"]["val"]["windows"] < rival["val"]["windows"], "alike"


def test_finished_cells_are_not_rerun(finished: Store, capsys: pytest.CaptureFixture[str]) -> None:
    paths = sorted(finished.folder.rglob("*.json"))
    before = [path.stat().st_mtime_ns for path in paths]
    assert main([*COMMAND, "--results", str(finished.folder)]) == 0
    out, err = capsys.readouterr()
    assert out.split()[:4] == ["synthetic", "naive", "dlinear", "seasonal_naive"]
    naive = "warning: synthetic naive is worse than the seasonal naive forecast by its squared error at 12, 24 steps\n"
    assert err == naive and [path.stat().st_mtime_ns for path in paths] == before


def test_html_table_is_self_contained(finished: Store, capsys: pytest.CaptureFixture[str]) -> None:
    missing = [*COMMAND, "--seeds", "42,7", "--show", "--format", "html", "--results", str(finished.folder)]
    assert main(missing) == 0
    page, err = capsys.readouterr()
    assert page.count("<polyline class=forecast") == 4 * 2 and page.count("<polyline class=truth") == 4 * 2 + 2
    assert "4 of 8 cells have not been run" in page and "4 of 8 cells are unfinished" in err
    assert "http" not in page and "<script" not in page


def test_table_of_a_file_with_gaps_and_covariates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, results = small_table(columns=("load", "open", "heat")), tmp_path / "results"
    table.loc[290:292, "load"] = np.nan
    table.to_csv(tmp_path / "mine.csv", index=False)
    words = "--models ridge,naive --horizons 24 --seq-len 48 --target load --future-covariates open --device cpu"
    command = ["table", "--datasets", str(tmp_path / "mine.csv"), *words.split(), "--results", str(results)]
    with cells_in_this_process():
        assert main(command) == 0
    out, err = capsys.readouterr()
    assert out.split()[:3] == ["mine", "ridge", "naive"] and "published" not in out
    assert "note: mine: 3 of 600 values are missing, in 1 of 2 columns" in err
    (path,) = results.rglob("ridge-24-seed42.json")
    record, strict = read_record(path, Cell), json.loads(path.read_text(), parse_constant=pytest.fail)
    last = strict["samples"][1]
    assert last["channel"] == "load" and last["row"] == 276 and last["truth"][14:17] == [None] * 3
    np.testing.assert_allclose(last["truth"][:14], table["load"][276:290], rtol=1e-4)
    forecaster = femts.train(Cell(**record["cell"]).load(), "ridge", 24, seq_len=48, device="cpu")
    forecast = forecaster.predict(table[["date", "load", "open"]][:276], 24, future=table[["date", "open"]][276:])
    np.testing.assert_allclose(last["forecast"], forecast["load"], rtol=1e-3, atol=1e-4)
    assert verify_record(record, "cpu").holds
    assert main([*command, "--show", "--format", "html"]) == 0
    assert capsys.readouterr().out.count("<polyline class=truth") == 2 * 2


def test_panel_table_verifies(tmp_path: Path) -> None:
    parts = []
    for name, rows in (("north", 60), ("south", 48), ("young", 9)):
        values = len(name) + np.sin(np.arange(rows)) + 0.1 * np.random.default_rng(rows).normal(size=rows)
        stamps = pd.date_range("2020-01-01", periods=rows, freq="MS")
        parts.append(pd.DataFrame({"unique_id": name, "ds": stamps, "y": values}))
    panel, shops = pd.concat(parts), tmp_path / "shops.csv"
    panel.to_csv(shops, index=False)
    with cells_in_this_process():
        scores = femts.table(shops, ["naive", "ridge"], 6, seq_lens=12, results=tmp_path / "results", device="cpu")
    assert len(scores) == 2 and np.isfinite(scores["mse"]).all()
    windows = femts.train(shops, "naive", 6, seq_len=12, device="cpu").scores(by="series")["windows"]
    for path in (tmp_path / "results").rglob("*seed*.json"):
        record = json.loads(path.read_text())
        assert record["cell"]["own"]["panel"] is True
        errors = np.array(record["series_errors"]["6"], dtype=np.float64)
        scaled = ~np.isnan(errors)  # a series of constant training rows has no scale to err in
        assert record["test"]["mse"] == pytest.approx(np.average(errors[scaled], weights=windows[scaled]), rel=1e-4)
        assert verify_record(record, "cpu").holds, str(verify_record(record, "cpu"))
        for sample in record["samples"]:
            values = panel.query("unique_id == @sample['series']")["y"].to_numpy()
            np.testing.assert_allclose(values[sample["row"] :][: len(sample["truth"])], sample["truth"], rtol=1e-4)


def test_failed_cell_is_reported_and_others_continue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store, good = Store(tmp_path), small_grid(("naive",))[0]
    bad = Cell("synthetic", "dlinear", 12, seq_len=48, settings={"training.lr": "1e30"})
    store.fail(good, "an earlier crash")
    with forked_cells():
        run_cells([bad, good], store, Engine(jobs=1, device="cpu"))
    assert "loss" in (store.failure(bad) or "") and not store.finished(bad)
    assert store.finished(good) and store.failure(good) is None
    command = "table --datasets synthetic --models dlinear --horizons 12 --seq-len 48 --jobs 1 --device cpu"
    command += f" --set training.lr=1e30 --protocol paper --results {tmp_path}"
    assert main([*command.split(), "--show"]) == 0
    out, err = capsys.readouterr()
    assert "failed: synthetic dlinear 12" in out and "1 of 1 cell is unfinished" in err
    with cells_in_this_process():
        assert main(command.split()) == 1, "it is tried again"


LONG_CELL = Cell(
    "synthetic",
    "dlinear",
    12,
    seq_len=48,
    settings={**SETTINGS, "training.max_epochs": "100000", "training.patience": "100000"},
)


def test_killed_process_fails_only_its_cell(tmp_path: Path) -> None:
    store, good = Store(tmp_path), small_grid(("naive",))[:1]

    def kill() -> None:
        while not (store.work(LONG_CELL) / "config.yaml").exists():
            time.sleep(0.1)
        cells[0].send_signal(signal.SIGKILL)

    with ThreadPoolExecutor() as pool, logged() as notes, forked_cells() as cells:
        killed = pool.submit(kill)
        run_cells([LONG_CELL, *good], store, Engine(jobs=1, device="cpu", time_limit="90s"))
    killed.result()
    assert (
        notes[0] == f"{LONG_CELL.path}: failed: killed by signal 9" and store.failure(LONG_CELL) == "killed by signal 9"
    )
    assert all(map(store.finished, good)) and len(notes) == 2


def test_cells_killed_before_their_config_start_over(tmp_path: Path) -> None:
    store, cells = Store(tmp_path), small_grid(("naive",))
    for cell in cells:
        store.work(cell).mkdir(parents=True)
    (store.work(cells[0]) / ".0123456789abcdef.part").write_text("format")
    with cells_in_this_process():
        run_cells(cells, store, TWO)
    assert all(store.finished(cell) and store.failure(cell) is None for cell in cells)


@pytest.mark.parametrize("trains", [False, True], ids=["while it starts", "while it trains"])
def test_deadline_stops_running_cells(trains: bool, tmp_path: Path) -> None:
    store, started = Store(tmp_path), time.monotonic()
    seconds = 3 if trains else 1
    with logged() as notes, forked_cells() if trains else nullcontext():
        run_cells([LONG_CELL, *small_grid()], store, Engine(jobs=1, device="cpu", time_limit=f"{seconds}s"))
    assert time.monotonic() - started < seconds + 30
    assert notes == [f"{LONG_CELL.path}: stopped, continues next time"]
    assert store.failure(LONG_CELL) is None and not any(map(store.finished, small_grid()))


def test_ctrl_c_stops_running_cells_with_a_message(tmp_path: Path) -> None:
    command = (
        f"table --datasets synthetic --models dlinear --horizons 12 --seq-len 48 --device cpu --results {tmp_path}"
    )
    command += " --set training.max_epochs=100000 --set training.patience=100000"
    process = Forked(["-m", "femts", *command.split()], environment=marked(tmp_path))
    while not list(tmp_path.rglob("config.yaml")):
        time.sleep(0.1)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert "dlinear-12-seed42: stopped, continues next time" in process.communicate()[1]
    assert process.returncode == 130
    wait_for_workers(tmp_path, 1)


def test_killed_table_resumes_with_identical_records(finished: Store, tmp_path: Path) -> None:
    command = [*(part.replace("naive,dlinear", "dlinear") for part in COMMAND), "--results", str(tmp_path)]
    process = Forked(["-m", "femts", *command], environment=marked(tmp_path))
    while not list(tmp_path.rglob("config.yaml")):
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for_workers(tmp_path)
    with cells_in_this_process():
        assert main(command) == 0
    for cell in small_grid(("dlinear",)):
        made = read_record(Store(tmp_path).record_path(cell), Cell)
        assert without_times(made) == without_times(finished.record(cell) or {})


def test_missing_ray_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match="Engine 'ray' needs Ray"):
        run_cells(small_grid(), Store(tmp_path), Engine("ray", device="cpu"))
    assert not list(tmp_path.iterdir())


def test_settings_with_points_have_locks_of_their_own(tmp_path: Path) -> None:
    store, (cell,) = Store(tmp_path), small_grid(("naive",))[:1]
    task = Task(name="t", data=("a.csv",), horizon=1)
    tasks = [TaskCell(task, "dlinear", seed, {"training.lr": lr}) for lr in ("0.1", "0.2") for seed in (1, 2)]
    with ExitStack() as held:
        for one in (cell, *tasks):
            held.enter_context(store.held(one))
            with pytest.raises(Busy, match="is being written by another run"):
                held.enter_context(store.held(one))
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_killed_processes_are_removed(finished: Store, tmp_path: Path) -> None:
    """Killed after their last line, or while they wrote it, cells are finished; their failures of before do not count."""
    store, cells = Store(tmp_path), small_grid()
    shutil.copytree(finished.folder, tmp_path, dirs_exist_ok=True)
    for cell in cells:
        store.fail(cell, "an earlier crash")
        store.work(cell).mkdir(parents=True)
        (store.work(cell) / "config.yaml").touch()
        store.record_path(cell).with_name(f".{store.record_path(cell).name}.0123456789abcdef.part").touch()
    store._lock(cells[0]).mkdir()
    with store.held(cells[1]):  # by another process
        run_cells(cells, store, TWO)
        assert store.work(cells[1]).exists() and store.failure(cells[1])
    run_cells(cells, store, TWO)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == sorted(map(store.record_path, cells))
    assert not (tmp_path / ".work").exists()


STUCK = """
import signal, subprocess, sys, time
from femts.experiments import runner

runner.ORPHANED = 0.5
children = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])]
signal.signal(signal.SIGTERM, lambda *_: None)  # as if a library computed for long
runner.threading.Thread(target=runner._end_with_the_parent, daemon=True).start()
print("ready", flush=True)
while True:
    time.sleep(1)
"""


def test_orphan_that_computes_ends_with_its_children(tmp_path: Path) -> None:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "start_new_session": True}
    process = subprocess.Popen([sys.executable, "-c", STUCK], env=marked(tmp_path), **pipes)
    assert process.stdin is not None and process.stdout is not None and process.stdout.readline() == b"ready\n"
    process.stdin.close()  # as if the parent was killed
    assert process.wait(60) == -signal.SIGKILL
    wait_for_workers(tmp_path, 5)
