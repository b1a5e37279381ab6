"""Downloads from a local HTTP server that may fail or serve wrong content."""

from __future__ import annotations

import gzip
import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from femts.data.catalog import CATALOG, DatasetCard
from femts.data.download import data_root, fetch, locate, verify
from femts.errors import RunFailure, UsageError

BODY = b"date,a\n" + b"2024-01-01,1.25\n" * 20_000
CUT = 12 * 8192


class Server(ThreadingHTTPServer):
    """Serves BODY; the first `cuts` responses are truncated; `seen` records the Range headers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body, self.cuts, self.says_length = BODY, 0, True
        self.seen: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file.csv"

    def serve(self, wanted: DatasetCard, **how: Any) -> DatasetCard:
        """Change the server's behavior and return `wanted`."""
        vars(self).update(how)
        return wanted


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.seen.append(self.headers.get("Range"))
        if not self.path.startswith("/file.csv"):
            self.send_error(404)
            return
        body = self.server.body
        self.send_response(200)
        if self.server.says_length:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.server.cuts:
            self.server.cuts -= 1
            body = body[:CUT]
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Keep the test's output quiet."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def wanted(server: Server) -> DatasetCard:
    return replace(CATALOG["ETTh1"], url=server.url, sha256=hashlib.sha256(BODY).hexdigest())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_download_is_complete_and_cached(server: Server, wanted: DatasetCard, tmp_path: Path) -> None:
    root = tmp_path / "new"
    assert fetch(wanted, root) == root / "ETTh1.csv" and (root / "ETTh1.csv").read_bytes() == BODY
    assert fetch(wanted, root) == verify(wanted, root) == locate(wanted, root)
    assert names(root) == ["ETTh1.csv"] and server.seen == [None]


REFUSED: dict[str, tuple[str, Callable[[Server, DatasetCard], DatasetCard]]] = {
    "other content": (
        "its content differs from sha256",
        lambda server, wanted: server.serve(wanted, body=BODY.replace(b"1.25", b"1.26")),
    ),
    "cut twice": ("there is no connection, or it was interrupted", lambda server, wanted: server.serve(wanted, cuts=2)),
    "not found": (
        "the server answered 404",
        lambda server, wanted: replace(wanted, url=server.url.replace("file.csv", "gone.csv")),
    ),
    "no network": (
        "there is no connection",
        lambda server, wanted: replace(wanted, url=f"http://127.0.0.1:{closed_port()}/file.csv"),
    ),
    "too large": (
        "exceeds 100000 bytes, the maximum for ETTh1",
        lambda server, wanted: replace(wanted, most_bytes=100_000),
    ),
    "too large, of no said length": (
        "exceeds 100000 bytes, the maximum for ETTh1",
        lambda server, wanted: replace(server.serve(wanted, says_length=False), most_bytes=100_000),
    ),
}


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("name", REFUSED)
def test_failed_download_leaves_no_file(name: str, server: Server, wanted: DatasetCard, tmp_path: Path) -> None:
    words, spoil = REFUSED[name]
    root = tmp_path / "made"
    with pytest.raises(RunFailure, match=words) as error:
        fetch(spoil(server, wanted), root)
    text = str(error.value)
    assert "\n" not in text and text.endswith(".") and f"save it as {root / wanted.filename}" in text
    assert names(root) == [] and (name != "no network" or not root.exists())


def test_interrupted_download_is_retried(server: Server, wanted: DatasetCard, tmp_path: Path) -> None:
    fetch(server.serve(wanted, cuts=1), tmp_path)
    assert (tmp_path / "ETTh1.csv").read_bytes() == BODY and names(tmp_path) == ["ETTh1.csv"]
    assert server.seen == [None, None]


def test_concurrent_downloads_produce_one_file(server: Server, wanted: DatasetCard, tmp_path: Path) -> None:
    server.cuts = 3
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda _: fetch(wanted, tmp_path), range(4)))
    assert set(paths) == {tmp_path / "ETTh1.csv"} and paths[0].read_bytes() == BODY
    assert names(tmp_path) == ["ETTh1.csv"]


def test_unwritable_data_root_is_refused(wanted: DatasetCard, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailure, match="Cannot write"):
        fetch(wanted, tmp_path / "file" / "root")


def test_git_blob_hash_is_verified(server: Server, tmp_path: Path) -> None:
    server.body = gzip.compress(b"1,2\n3,4\n", mtime=0)
    blob = hashlib.sha1(b"blob %d\0" % len(server.body) + server.body).hexdigest()
    solar = replace(CATALOG["Solar"], url=server.url, git_blob=blob)
    assert fetch(solar, tmp_path).read_bytes() == server.body and verify(solar, tmp_path).name == "solar_AL.txt.gz"
    with pytest.raises(RunFailure, match="its content differs from git blob 0000"):
        fetch(replace(solar, git_blob="0" * 40), tmp_path / "other")
    assert names(tmp_path / "other") == []


def test_altered_file_is_refused_and_kept(wanted: DatasetCard, tmp_path: Path, server: Server) -> None:
    (tmp_path / "ETTh1.csv").write_text("date,a\n")
    for look in (fetch, verify):
        with pytest.raises(UsageError, match=r"is not the published ETTh1 .*move it away"):
            look(wanted, tmp_path)
    assert (tmp_path / "ETTh1.csv").read_text() == "date,a\n" and server.seen == []


def test_missing_file_names_its_target_path(wanted: DatasetCard, tmp_path: Path, server: Server) -> None:
    for known, download in ((wanted, False), (replace(wanted, url=None), True)):
        with pytest.raises(UsageError, match=rf"place its file ETTh1\.csv at {tmp_path / 'ETTh1.csv'}"):
            fetch(known, tmp_path, download=download)
    with pytest.raises(UsageError, match="femts datasets fetch ETTh1"):
        verify(wanted, tmp_path)
    assert server.seen == []


def test_unpacked_file_is_found_but_not_verifiable(tmp_path: Path) -> None:
    (tmp_path / "solar_AL.txt").write_text("1,2\n")
    assert fetch("Solar", tmp_path) == locate("Solar", tmp_path) == tmp_path / "solar_AL.txt"
    with pytest.raises(UsageError, match=r"only solar_AL\.txt\.gz can be verified"):
        verify("Solar", tmp_path)


def test_built_in_dataset_has_no_file(tmp_path: Path) -> None:
    for look in [fetch, verify, locate]:
        with pytest.raises(UsageError, match="synthetic is built in"):
            look("synthetic", tmp_path)


def test_data_root_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEMTS_DATA", str(tmp_path / "environment"))
    assert data_root(tmp_path / "argument") == tmp_path / "argument"
    assert data_root() == tmp_path / "environment"
    monkeypatch.delenv("FEMTS_DATA")
    assert data_root() == Path(__file__).resolve().parents[2] / "datasets"


def test_data_root_defaults_to_the_user_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEMTS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("femts.data.download.__file__", str(tmp_path / "lib" / "femts" / "data" / "sources.py"))
    assert data_root().name in ("femts", "Cache") and data_root() != tmp_path / "lib" / "datasets"


def test_data_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file; give the folder"):
        data_root(tmp_path / "file")


@pytest.mark.parametrize("name", [c.name for c in CATALOG.values() if c.sha256])
def test_real_files_match_pinned_hashes(name: str, real_root: Path) -> None:
    assert verify(name, real_root).is_file()
