"""A run is replaced in one move, and read as a whole."""

from __future__ import annotations

import itertools
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from run_damage import all_of, loaded
from small_tables import small_table

import femts
from femts.errors import RunFailure, UsageError
from femts.files import Busy
from femts.forecaster import replacing as module
from femts.forecaster.forecaster import Forecaster
from femts.forecaster.replacing import locked_run, replacing
from femts.forecaster.run_folder import CALIBRATED, READY, check_new_folder, check_replaceable
from femts.forecaster.saved_run import write_recalibrated
from scripts.bench.kills.cases import leftovers
from scripts.bench.kills.process import call

P, L = 6, 24
STRIDE = 5  # of the changes at which a kill is tried; `python -m scripts.bench.kills` tries others


@pytest.fixture(scope="module")
def forecasters(tmp_path_factory: pytest.TempPathFactory) -> list[Forecaster]:
    """Refitted forecasters of two tables, and the first with intervals for other horizons."""
    table, folder = small_table(), tmp_path_factory.mktemp("runs")
    tables = (table, table.assign(load=table["load"] + 1))
    made = [femts.train(each, "ridge", P, seq_len=L, refit=True, device="cpu") for each in tables]
    for number, each in enumerate(made):
        each.save(folder / f"{number}")
    made[0].calibrate(2 * P).save(folder / "2")
    return [femts.load(folder / f"{number}") for number in range(3)]


@pytest.fixture
def place(forecasters: list[Forecaster], tmp_path: Path) -> Path:
    """A folder with the first forecaster as `run`, beside whose files there is another one."""
    forecasters[0].save(tmp_path / "place" / "run")
    (tmp_path / "place" / "run" / "notes.txt").write_text("mine")
    return tmp_path / "place"


def overwrite(run: Path, by: Forecaster) -> int:
    with replacing(run) as new:
        by.write(new)
    return 0


def recalibrate(run: Path, by: Forecaster) -> int:
    assert by.intervals is not None and by.scored is not None and by.scored.intervals is not None
    with replacing(run, CALIBRATED) as new:
        write_recalibrated(run, new, by.intervals.to_bytes(), by.scored.intervals.to_bytes())
    return 0


CHANGES: list[tuple[Callable[[Path, Forecaster], int], int]] = [(overwrite, 1), (recalibrate, 2)]


@pytest.mark.parametrize(("change", "number"), CHANGES, ids=["overwrite", "calibrate"])
def test_run_is_the_old_or_the_new_one_after_a_kill_at_any_change(
    change: Callable[[Path, Forecaster], int], number: int, forecasters: list[Forecaster], place: Path, tmp_path: Path
) -> None:
    run, wholes = place / "run", [all_of(forecasters[0]), all_of(forecasters[number])]
    clean, read = shutil.copytree(place, tmp_path / "clean"), list[int]()
    count = call(lambda: change(run, forecasters[number]), place).changes
    assert loaded(run) == wholes[1] and leftovers(place) == [] and count > 30
    for turn in range(1, count + 1, STRIDE):
        shutil.rmtree(place)
        shutil.copytree(clean, place)
        assert call(lambda: change(run, forecasters[number]), place, turn).status == -signal.SIGKILL
        read.append(wholes.index(loaded(run)))
        with pytest.raises(UsageError, match="already holds a finished run"):
            check_new_folder(run)
        check_replaceable(run)
        if turn % 2:
            with locked_run(run):
                assert wholes.index(loaded(run)) == read[-1]
        change(run, forecasters[number])
        assert loaded(run) == wholes[1] and leftovers(place) == [] and (run / "notes.txt").read_text() == "mine"
    assert read == sorted(read) and set(read) == {0, 1}, "it changes once"


def test_loads_beside_overwrites_and_calibrations_read_whole_runs(forecasters: list[Forecaster], place: Path) -> None:
    run, wholes, stop = place / "run", [all_of(each) for each in forecasters], threading.Event()

    def changes() -> None:
        while not stop.is_set():
            for number in (1, 0):
                overwrite(run, forecasters[number])
            recalibrate(run, forecasters[2])

    beside = threading.Thread(target=changes)
    beside.start()
    try:
        read = [wholes.index(loaded(run)) for _ in range(150)]
    finally:
        stop.set()
        beside.join()
    assert set(read) == {0, 1, 2}


def test_stopped_reader_reads_one_run(
    forecasters: list[Forecaster], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between any two files, the run is overwritten."""
    read_bytes, wholes = Path.read_bytes, [all_of(each) for each in forecasters]

    def read(stop_at: int) -> dict[str, Any]:
        numbers = itertools.count(1)

        def stopped(path: Path) -> bytes:
            if next(numbers) == stop_at:
                overwrite(place / "run", forecasters[1])
            return read_bytes(path)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", stopped)
            return loaded(place / "run")

    for stop_at in range(1, 10):
        shutil.rmtree(place / "run")
        forecasters[0].save(place / "run")
        assert read(stop_at) in wholes[:2]


def test_refused_replacement_changes_nothing(place: Path) -> None:
    before = loaded(place / "run")
    with pytest.raises(UsageError, match="wrong"), replacing(place / "run") as new:
        new.mkdir()
        raise UsageError("wrong")
    with pytest.raises(UsageError), replacing(place / "none") as new:
        raise UsageError("wrong")
    assert loaded(place / "run") == before and leftovers(place) == [] and not (place / "none").exists()


def test_file_system_without_links(forecasters: list[Forecaster], place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("femts.forecaster.replacing.os.link", refused)
    monkeypatch.setattr("femts.files._unnamed", lambda folder: None)
    recalibrate(place / "run", forecasters[2])
    assert loaded(place / "run") == all_of(forecasters[2])
    overwrite(place / "run", forecasters[1])
    assert loaded(place / "run") == all_of(forecasters[1]) and leftovers(place) == []


def test_full_disk_while_the_new_run_is_moved_keeps_it(
    forecasters: list[Forecaster], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(module, "link", full)
        with pytest.raises(RunFailure, match="No space left on device; free some disk space and run the command again"):
            overwrite(place / "run", forecasters[1])
    assert loaded(place / "run") == all_of(forecasters[1]) and (place / "run" / READY).is_dir()
    with locked_run(place / "run"):
        pass
    assert loaded(place / "run") == all_of(forecasters[1]) and leftovers(place) == []


def test_run_cannot_be_replaced_twice_at_once(forecasters: list[Forecaster], place: Path) -> None:
    with replacing(place / "run") as new:
        with pytest.raises(Busy, match="is being written by another run"):
            overwrite(place / "run", forecasters[1])
        forecasters[1].write(new)
    assert loaded(place / "run") == all_of(forecasters[1])
