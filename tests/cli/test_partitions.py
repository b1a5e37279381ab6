"""Forecasts of a panel in several files and cells of a table, in one process and on a Ray cluster whose workers and
nodes die."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from pages import ROOT, cells_in_this_process
from small_grid import small_grid, without_times
from small_panels import panel_table

from femts.cli import main
from femts.cluster import connected
from femts.environment import cores
from femts.experiments.results import Store
from femts.experiments.runner import Engine, run_cells

pytestmark = pytest.mark.slow

GOOD = ["one.csv", "two.parquet", "three.csv"]
# Imported by each worker of the cluster when it starts. A file in the folder is a fault for the first one to find it:
# its process ends in the middle of a task (worker), its node dies with it (node), or, for all, femts is absent.
FAULTS = """
import os, pathlib, signal, sys

FOLDER = pathlib.Path(__file__).parent


def takes(fault):
    try:
        (FOLDER / fault).unlink()
    except FileNotFoundError:
        return False
    return True


class Faults:
    def find_spec(self, name, path=None, target=None):
        if name == "femts" and (FOLDER / "absent").exists():
            raise ModuleNotFoundError("No module named 'femts'")
        if name == "femts.forecaster.forecaster":
            node = os.environ["NODE"] == "second" and takes("node")
            if node:
                os.kill(os.getppid(), signal.SIGKILL)
            if node or takes("worker"):
                os._exit(1)


sys.meta_path.insert(0, Faults())
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run of a classical model, its panel in three files, and files that do not fit them."""
    pytest.importorskip("statsforecast")
    folder, table = tmp_path_factory.mktemp("partitions"), panel_table()
    table.to_csv(folder / "panel.csv", index=False)
    one, two, three = (table[table["unique_id"].isin(names)] for names in (["long"], ["short", "young"], ["tiny"]))
    one.to_csv(folder / "one.csv", index=False)
    two.to_parquet(folder / "two.parquet", index=False)
    three.to_csv(folder / "three.csv", index=False)
    new = one.head(24).assign(unique_id="new")
    new.drop(columns="y").to_csv(folder / "column.csv", index=False)
    new.assign(y="high").to_csv(folder / "text.csv", index=False)
    new.assign(ds=new["ds"].iloc[0] + 7 * (new["ds"] - new["ds"].iloc[0])).to_csv(folder / "weeks.csv", index=False)
    new.rename(columns={"ds": "day"}).to_csv(folder / "named.csv", index=False)
    new.assign(ds=new["ds"].dt.tz_localize("UTC")).to_parquet(folder / "zone.parquet", index=False)
    new[["ds", "y"]].to_csv(folder / "wide.csv", index=False)
    pd.concat([new, three]).to_csv(folder / "again.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main("train --dataset panel.csv --panel --model dotm --horizon 7 --seq-len 14 --out run".split()) == 0
    return folder


@pytest.fixture(autouse=True)
def in_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def predicted(files: list[str], *options: str) -> tuple[int, pd.DataFrame | None]:
    """Exit status and output of a prediction."""
    out = Path("forecast.parquet")
    status = main(["predict", "run", *files, "--level", "80", "-o", str(out), *options])
    if not out.exists():
        return status, None
    forecast = pd.read_parquet(out)
    out.unlink()
    return status, forecast


@pytest.fixture(scope="module")
def whole(place: Path) -> pd.DataFrame:
    """The forecast of the panel in a single file, whose series are in the order of the partitions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        status, forecast = predicted(["panel.csv"])
    assert status == 0 and forecast is not None and len(forecast) == 4 * 7
    return forecast


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with the faults of a Ray cluster of two nodes with a worker each, to which RAY_ADDRESS points."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    folder, cluster = tmp_path_factory.mktemp("faults"), Cluster()
    (folder / "sitecustomize.py").write_text(FAULTS)
    path = os.pathsep.join(map(str, (folder, ROOT)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        patch.setenv("RAY_worker_niceness", "0")  # other tests would leave it no time at its own, 15
        for node in ("first", "second"):
            cluster.add_node(num_cpus=1, object_store_memory=10**8, env_vars={"PYTHONPATH": path, "NODE": node})
        patch.setenv("RAY_ADDRESS", cluster.address)
        yield folder
        cluster.shutdown()


def test_partitions_equal_a_single_file(whole: pd.DataFrame) -> None:
    status, forecast = predicted(GOOD)
    assert status == 0
    pd.testing.assert_frame_equal(forecast, whole, check_exact=True)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("column.csv", r"has no column 'y', which the training data had"),
        ("text.csv", r"Series 'new' .* has the text 'high' in column 'y' at data row 1; enter a number"),
        ("weeks.csv", r"does not keep the step 'D' .*; resample the rows to that grid"),
        ("named.csv", r"stamps in column 'day' .*, but one.csv in column 'ds' .*; write them alike"),
        ("zone.parquet", r"in the time zone UTC, but one.csv in .* without a time zone; write them alike"),
        ("wide.csv", r"no column 'unique_id', which tells the series of several files apart; give a long table"),
        ("none.csv", r"File none.csv does not exist; check the path"),
    ],
)
def test_bad_partition_is_reported_and_left_out(
    bad: str, says: str, whole: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    status, forecast = predicted([*GOOD[:2], bad, GOOD[2]])
    assert status == 2
    pd.testing.assert_frame_equal(forecast, whole, check_exact=True)
    (said,) = (line for line in capsys.readouterr().err.splitlines() if "failed" in line)
    assert re.match(rf"{bad}: failed: .*{says}", said), said


def test_nothing_is_written_without_a_forecast(capsys: pytest.CaptureFixture[str]) -> None:
    assert predicted(["text.csv", "none.csv"]) == (2, None)
    assert capsys.readouterr().err.count(": failed: ") == 2


def test_series_in_two_partitions_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert predicted([*GOOD, "again.csv"]) == (2, None)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "femts: Series 'tiny' is in three.csv and in again.csv; put its rows into one file."


@pytest.mark.parametrize("option", ["--series long", "--plot all.png"])
def test_options_for_a_single_file_are_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert predicted(GOOD, *option.split()) == (2, None)
    assert f"{option.split()[0]} applies to a single file; name one instead of 3" in capsys.readouterr().err


@pytest.mark.parametrize("fault", ["worker", "node"])
def test_ray_gives_identical_forecasts_if_a_process_dies(
    fault: str, faults: Path, whole: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    (faults / fault).touch()
    assert main(["predict", "run", *GOOD, "text.csv", "--level", "80", "--engine", "ray"]) == 2
    out, err = capsys.readouterr()
    assert not (faults / fault).exists()
    assert out == whole.to_csv(index=False)
    assert "text.csv: failed: Series 'new' of The history has the text 'high'" in err
    assert "note: three.csv: 1 of 1 series is too short for reliable intervals" in err


def test_ray_gives_identical_records(faults: Path, tmp_path: Path) -> None:
    cells = small_grid(("dlinear",))[:1]
    ray, local = (Store(tmp_path / name) for name in ("ray", "local"))
    run_cells(cells, ray, Engine("ray", jobs=cores(), device="cpu"))
    with cells_in_this_process():
        run_cells(cells, local, Engine(jobs=cores(), device="cpu"))
    made, expected = (store.record(cells[0]) for store in (ray, local))
    assert made is not None and expected is not None and without_times(made) == without_times(expected)


def test_node_without_femts_is_named(faults: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (faults / "absent").touch()
    assert predicted(["one.csv"], "--engine", "ray") == (2, None)
    (faults / "absent").unlink()
    assert re.search(r"A node .* \([\d.]+\) cannot import this version of femts; install it", capsys.readouterr().err)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "127.0.0.1:99999", "nowhere"])
def test_unreachable_cluster_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_ADDRESS", address)
    assert predicted(GOOD, "--engine", "ray") == (2, None)
    says = rf"RAY_ADDRESS '{address}' cannot be used \(.+\); start it with ray start"
    assert re.search(says, capsys.readouterr().err)


def test_without_an_address_no_other_cluster_is_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray itself would join any cluster on this machine, such as one of another version of Python."""
    ray, asked = pytest.importorskip("ray"), list[str]()
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "init", lambda address, **_: asked.append(address))
    with connected():
        assert asked == ["local"]
