"""Folder of the data files, and download of a missing one from its public source: hashed, and never half there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from femts.data.catalog import DatasetCard, card
from femts.errors import RunFailure, UsageError
from femts.progress import progress_line

_RETRIES = 1
_TIMEOUT = (10, 60)  # seconds to connect, and between two pieces


def data_root(explicit: str | Path | None = None) -> Path:
    """The folder of data files: `explicit`, else $FEMTS_DATA, else `datasets/` of the checkout, else the user's cache.

    Raises:
        UsageError: it is not a folder. (One that is not there yet is made by the first download.)
    """
    named = explicit or os.environ.get("FEMTS_DATA")
    if named:
        root = Path(named).expanduser()
        if root.exists() and not root.is_dir():
            raise UsageError(f"The data root {root} is a file; give the folder that holds the data files.")
        return root
    checkout = Path(__file__).resolve().parents[2] / "datasets"
    if (checkout / "README.md").is_file():
        return checkout
    import pooch

    return Path(pooch.os_cache("femts"))


def locate(name: str | DatasetCard, root: str | Path | None = None) -> Path | None:
    """The file of a catalogue data set in the data root, or None; a gzipped file may also lie there unpacked."""
    entry = card(name)
    if entry.built_in:
        raise UsageError(f"{entry.name} is built in and has no file; use it by name.")
    target = data_root(root) / entry.filename
    places = [target, target.with_suffix("")] if target.suffix == ".gz" else [target]
    return next((path for path in places if path.is_file()), None)


def verify(name: str | DatasetCard, root: str | Path | None = None) -> Path:
    """The file of a catalogue data set, after its hash was compared with the pinned one.

    Raises:
        UsageError: no such file, another content, or a form of the file for which no hash is known.
    """
    entry, path = card(name), locate(name, root)
    target = data_root(root) / entry.filename
    if path is None:
        raise UsageError(f"{entry.name} is not at {target}; get it with 'femts datasets fetch {entry.name}'.")
    if path != target:
        raise UsageError(f"No hash is known for the unpacked {path}; only {entry.filename} can be verified.")
    if not _matches(entry, path):
        raise UsageError(
            f"{path} is not the published {entry.name} (its hash differs from {_pin(entry)}); "
            f"move it away and run 'femts datasets fetch {entry.name}'."
        )
    return path


def fetch(name: str | DatasetCard, root: str | Path | None = None, download: bool = True) -> Path:
    """The verified file of a catalogue data set, downloaded when it is missing; it appears whole or never.

    An unpacked file whose hash nobody published is returned unverified; `load_dataset` says so in its notes.

    Raises:
        UsageError: the file there is another one, or is missing and may not or cannot be downloaded.
        RunFailure: the download failed.
    """
    entry, path = card(name), locate(name, root)
    target = data_root(root) / entry.filename
    if path is not None:
        return path if path != target else verify(entry, root)
    if not download or entry.url is None:
        raise UsageError(f"{entry.name} is missing; place its file {entry.filename} at {target}.")
    _download(entry, entry.url, target)
    return target


def file_sha256(path: Path) -> str:
    """sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _git_blob(path: Path) -> str:
    """Git's hash of a file: sha1 of a short header and the content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _pin(entry: DatasetCard) -> str:
    return f"sha256 {entry.sha256}" if entry.sha256 else f"git blob {entry.git_blob}"


def _matches(entry: DatasetCard, path: Path) -> bool:
    return file_sha256(path) == entry.sha256 if entry.sha256 else _git_blob(path) == entry.git_blob


def _download(entry: DatasetCard, url: str, target: Path) -> None:
    import pooch
    import requests

    pooch.get_logger().setLevel("WARNING")
    hashes, urls = {target.name: entry.sha256}, {target.name: url}
    source = pooch.create(target.parent, "", registry=hashes, urls=urls, retry_if_failed=_RETRIES)
    ours = not target.parent.exists()
    try:
        source.fetch(target.name, downloader=partial(_transfer, entry))
    except (requests.RequestException, ValueError, _TooLarge) as error:
        raise RunFailure(
            f"Cannot download {entry.name} from {url} ({_why(entry, error)}); try again, or download {entry.filename} "
            f"elsewhere and save it as {target}."
        ) from error
    except OSError as error:
        raise RunFailure(
            f"Cannot write {target} ({error.strerror or error}); free some disk space or choose another data root."
        ) from error
    finally:
        if ours:
            with suppress(OSError):  # it holds the file, or was never made
                target.parent.rmdir()


def _why(entry: DatasetCard, error: Exception) -> str:
    """Say in a few words what a download failed of."""
    import requests

    if isinstance(error, requests.HTTPError):
        return f"the server answered {getattr(error.response, 'status_code', error)}"
    if isinstance(error, requests.RequestException):
        return "there is no connection, or it broke"
    if isinstance(error, _TooLarge):
        return f"it is larger than {entry.most_bytes} bytes, which {entry.name} is not"
    return f"what came differs from {_pin(entry)}"


def _transfer(entry: DatasetCard, url: str, path: str, manager: Any) -> None:
    """Download for pooch, which names a temporary `path`, compares the sha256 where there is one,
    and moves the file."""
    import pooch

    with progress_line() as show:
        options: dict[str, Any] = {"timeout": _TIMEOUT, "headers": {"Accept-Encoding": "identity"}}
        pooch.HTTPDownloader(_Meter(entry, show), chunk_size=1 << 14, **options)(url, path, manager)
    if entry.sha256 is None and not _matches(entry, Path(path)):
        raise ValueError("Another git blob.")


class _TooLarge(Exception):
    """A download is larger than its file can be."""


class _Meter:
    """Sizes of a download in bytes, as pooch tells them to a progress bar."""

    def __init__(self, entry: DatasetCard, show: Callable[[float, str], None]) -> None:
        self.entry, self.show, self.size, self.total = entry, show, 0, 0

    def update(self, more: int) -> None:
        self.size += more
        if max(self.size, self.total) > self.entry.most_bytes:
            raise _TooLarge
        self.show(min(1.0, self.size / self.total) if self.total else 0.0, self.entry.name)

    def reset(self) -> None:
        self.size = 0

    def close(self) -> None:
        """Pooch calls it at the end."""
