"""Reading and writing of run folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from forks import Forked

import femts
from femts.data.loading import load_dataset
from femts.errors import RunFailure, UsageError
from femts.files import write_file
from femts.forecaster.run_folder import check_new_folder, sealed
from femts.forecaster.saved_run import read_run
from femts.training.train import train

TEST_WINDOWS = load_dataset("synthetic").split.windows("test", 48, 24)[0, 3]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Files of a small finished run."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    train("synthetic", "seasonal_naive", pred_len=24, seq_len=48, out=folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def run(template: dict[str, bytes], tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    for name, content in template.items():
        (folder / name).write_bytes(content)
    return folder


def test_run_is_read(run: Path) -> None:
    saved = read_run(run)
    assert saved.config.model == "seasonal_naive" and getattr(saved.config.model_config, "season", None) == 24
    assert saved.metrics["test"]["windows"] == TEST_WINDOWS


def _edit(path: Path, **changes: Any) -> None:
    record = json.loads(path.read_text())
    path.write_bytes(sealed({**record, **changes}))


def test_invalid_run_folders_are_refused(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Run folder .*nowhere does not exist"):
        femts.load(tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"Run folder .* does not exist"):
        femts.load(run / "config.yaml")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"other is not a femts run"):
        femts.load(tmp_path / "other")
    metrics = run / "metrics.json"
    whole = metrics.read_text()
    metrics.unlink()
    with pytest.raises(UsageError, match=r"is unfinished: it has no metrics\.json; finish it with"):
        femts.load(run)
    for broken in ("", "{", "[]", '{"model": 1}'):
        metrics.write_text(broken)
        with pytest.raises(UsageError, match=r"metrics\.json cannot be read"):
            femts.load(run)
    metrics.write_text(whole)
    assert femts.load(run)


def test_other_format_is_refused_but_other_version_loads(run: Path) -> None:
    _edit(run / "metrics.json", versions={"femts": "0.1.99", "torch": "2", "python": "3"})
    assert femts.load(run)
    _edit(run / "metrics.json", format=2, versions={"femts": "9.0.0"})
    with pytest.raises(
        UsageError, match=r"has format 2 but this femts reads format 6; use femts 9\.0\.0 or train again"
    ):
        femts.load(run)


def test_loading_needs_no_pickle(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("pickle was used")

    for target in ("pickle.load", "pickle.loads", "pickle.Unpickler", "torch.load"):
        monkeypatch.setattr(target, refuse)
    assert femts.load(run).evaluate("test")["windows"] == TEST_WINDOWS


def test_new_run_needs_an_empty_folder(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="already holds a finished run"):
        check_new_folder(run)
    with pytest.raises(UsageError, match="is a file"):
        check_new_folder(run / "config.yaml")
    (tmp_path / "other").mkdir()
    check_new_folder(tmp_path / "other")
    (tmp_path / "other" / ".config.yaml.1.part").write_bytes(b"of a killed write")
    check_new_folder(tmp_path / "other")
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="files that are not a run"):
        check_new_folder(tmp_path / "other")


def test_uncreatable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailure, match=r"Could not write .*file/run/config\.yaml: Not a directory"):
        write_file(tmp_path / "file" / "run" / "config.yaml", b"x")


# With a limit on the size of files, which fails like a full disk.
_FULL = """
import resource, signal, sys
import femts
from femts.errors import RunFailure

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))
try:
    femts.load(sys.argv[1]).save(sys.argv[2])
except RunFailure as error:
    print(error)
"""


def test_full_disk_while_saving_leaves_no_loadable_run(run: Path, tmp_path: Path) -> None:
    done = Forked(["-c", _FULL, run, tmp_path / "out"]).completed()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Could not write {tmp_path / 'out'}/")
    assert not list((tmp_path / "out").glob("*.part")) and not list((tmp_path / "out").glob(".*"))
    with pytest.raises(UsageError):
        femts.load(tmp_path / "out")
