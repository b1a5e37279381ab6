"""Atomic writes and folder locks."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from forks import Forked

import femts
from femts import files
from femts.cli import main
from femts.errors import FemtsError, RunFailure, UsageError
from femts.files import locked, remove_parts, write_file

TRAIN = "--dataset synthetic --model dlinear --horizon 12 --seq-len 24 --max-steps 30".split()


@pytest.fixture(params=["unnamed", "named"])
def naming_mode(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write unnamed temporary files, or named ones."""
    if request.param == "named":
        monkeypatch.setattr(files, "_unnamed", lambda folder: None)
    return str(request.param)


@pytest.mark.usefixtures("naming_mode")
def test_new_file_mode_follows_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "deep" / "file", b"one")
    finally:
        os.umask(before)
    assert (tmp_path / "deep" / "file").read_bytes() == b"one"
    assert stat.S_IMODE((tmp_path / "deep" / "file").stat().st_mode) == 0o640
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file"]


@pytest.mark.usefixtures("naming_mode")
def test_file_mode_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for mode in (0o600, 0o444, 0o664):
        path.write_bytes(b"old") if not path.exists() else None
        path.chmod(mode)
        write_file(path, b"new")
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", mode)


@pytest.mark.usefixtures("naming_mode")
def test_symlink_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(Path("there") / "file")
    (tmp_path / "ahead").symlink_to(Path("there") / "new")
    write_file(tmp_path / "link", b"new")
    write_file(tmp_path / "ahead", b"first")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_bytes() == b"new"
    assert (tmp_path / "there" / "new").read_bytes() == b"first"
    assert not list(tmp_path.glob(".*"))


def test_pipes_and_devices_are_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"through")
    reader.join(timeout=10)
    assert got == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    write_file("/dev/null", b"away")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="this system has no /dev/stdout")
def test_dev_stdout_is_appended_to(tmp_path: Path) -> None:
    code = "from femts.files import write_file; write_file('/dev/stdout', b'table')"
    (tmp_path / "kept").write_bytes(b"before ")
    with open(tmp_path / "kept", "ab") as kept:
        subprocess.run([sys.executable, "-c", code], stdout=kept, check=True)
    assert (tmp_path / "kept").read_bytes() == b"before table"
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout == b"table"


@pytest.mark.usefixtures("naming_mode")
def test_concurrent_writes_are_atomic(tmp_path: Path) -> None:
    path, failures = tmp_path / "file", []
    contents = [bytes([65 + i]) * 50_000 for i in range(4)]
    write_file(path, contents[0])

    def write(content: bytes) -> None:
        for _ in range(20):
            try:
                write_file(path, content)
                if path.read_bytes() not in contents:
                    failures.append("torn")
            except FemtsError as error:
                failures.append(str(error))

    writers = [threading.Thread(target=write, args=(content,)) for content in contents]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_planted_symlink_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_unnamed", lambda folder: None)
    monkeypatch.setattr("secrets.token_hex", lambda count: "guessed")
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / ".file.guessed.part").symlink_to(tmp_path / "victim")
    with pytest.raises(RunFailure, match="File exists"):
        write_file(tmp_path / "file", b"evil")
    assert (tmp_path / "victim").read_bytes() == b"mine"
    assert not (tmp_path / "file").exists()


def test_disk_space_is_the_remedy_only_for_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(descriptor: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "fsync", read_only)
    with pytest.raises(RunFailure, match=r"file: Read-only file system; choose another location\.$"):
        write_file(tmp_path / "file", b"new")


@pytest.mark.usefixtures("naming_mode")
def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    write_file(tmp_path / "file", b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunFailure, match=r"Could not write .*file: No space left on device; free some disk space"):
        write_file(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


_WRITE = """
import sys
from femts.files import write_file
print("ready", flush=True)
while True:
    write_file(sys.argv[1], b"x" * 3_000_000)
"""


def test_killed_writer_leaves_no_partial_file(tmp_path: Path) -> None:
    for wait in (0.01, 0.03, 0.05):
        process = subprocess.Popen([sys.executable, "-c", _WRITE, tmp_path / "file"], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(wait)
        process.kill()
        process.wait()
        process.stdout.close()
    # Killed between its naming and its replacing, a file stays under the name of a part: seldom, and whole.
    assert all(each.stat().st_size == 3_000_000 for each in tmp_path.iterdir())
    remove_parts(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] in ([], ["file"])


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="this system has no files without a name")
@pytest.mark.parametrize(("killed_in", "left"), [("fsync", 0), ("replace", 1)])
def test_writer_killed_before_rename_leaves_a_complete_file(killed_in: str, left: int, tmp_path: Path) -> None:
    code = f"import os; os.{killed_in} = lambda *_: os.kill(os.getpid(), 9)\n{_WRITE}"
    assert subprocess.run([sys.executable, "-c", code, tmp_path / "file"], stdout=subprocess.PIPE).returncode == -9
    assert [each.stat().st_size for each in tmp_path.iterdir()] == [3_000_000] * left
    remove_parts(tmp_path)
    assert not list(tmp_path.iterdir())


def test_folder_lock_is_exclusive_and_released_on_exit(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with locked(folder):
        (folder / "file").write_text("")
        with pytest.raises(
            UsageError, match=r"Folder .*run is being written by another run; wait for it or choose another"
        ):
            locked(folder).__enter__()
    code = "import sys, time; from pathlib import Path; from femts.files import locked\n"
    code += "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code, folder], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(UsageError, match="being written"):
        locked(folder).__enter__()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    with locked(folder):
        assert [each.name for each in folder.iterdir()] == ["file"]


def test_unused_folder_is_removed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="refused"), locked(tmp_path / "deep" / "run"):
        raise ValueError("refused")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file; name a folder"):
        locked(tmp_path / "file").__enter__()
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "to_file").symlink_to("file")
    for name, words in {
        "file/run": "would be in .*file, which is a file",
        "gone": "is a link to nowhere, which leads nowhere",
        "gone/run": "would be in .*gone, which is a link to nowhere, which leads nowhere",
        "circle": "is a link to circle, which leads nowhere",
        "to_file": "is a link to file, which is a file",
    }.items():
        with pytest.raises(UsageError, match=f"{words}; name a folder"):
            locked(tmp_path / name).__enter__()


def test_too_long_folder_name_is_refused(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 300)
    with pytest.raises(UsageError, match=r"Run folder .* does not exist"):
        femts.load(long)
    with pytest.raises(RunFailure, match=r"Could not write .*: File name too long; choose another folder"):
        femts.train("synthetic", "naive", 12, seq_len=24, out=long)


def test_concurrent_trainings_get_separate_folders(tmp_path: Path) -> None:
    processes = [Forked(["-m", "femts", "train", *TRAIN, "--seed", seed], tmp_path) for seed in ("1", "2")]
    printed = [process.communicate()[0] for process in processes]
    folders = [re.search(r"^run: (.*)$", each, re.MULTILINE)[1] for each in printed]  # type: ignore[index]
    assert len(set(folders)) == 2
    for seed, (process, text, folder) in enumerate(zip(processes, printed, folders, strict=True), 1):
        metrics = json.loads((tmp_path / folder / "metrics.json").read_text())
        assert (process.returncode, metrics["seed"]) == (0, seed)
        assert f"{metrics['test']['mse']:.4f}" in text


def test_second_training_in_one_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with locked(tmp_path / "run"):
        assert main(["train", *TRAIN, "--out", str(tmp_path / "run")]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"femts: Folder {tmp_path / 'run'} is being written") and err.count("\n") == 1
    assert out == "" and not list(tmp_path.rglob("*.json"))


def test_refused_training_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["train", "--dataset", "synthetic", "--model", "dlinear", "--seq-len", "999999"]) == 2
    assert list(tmp_path.iterdir()) == []
