"""Data folder, and verified atomic downloads of missing files from their public source."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from femts.data.catalog import DatasetCard, card
from femts.errors import RunFailure, UsageError, write_remedy
from femts.files import file_sha256
from femts.progress import progress_line

_RETRIES = 1
_TIMEOUT = (10, 60)  # seconds to connect, and between two chunks


def data_root(explicit: str | Path | None = None) -> Path:
    """Data folder: `explicit` if given, otherwise $FEMTS_DATA, `datasets/` in the checkout, or the user's cache.

    Raises:
        UsageError: The path is a file. (A missing folder is created by the first download.)
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
    """Path of a catalogue dataset in the data folder, compressed or unpacked; None if it is missing."""
    entry = card(name)
    if entry.built_in:
        raise UsageError(f"{entry.name} is built in and has no file; use it by name.")
    target = data_root(root) / entry.filename
    places = [target, target.with_suffix("")] if target.suffix == ".gz" else [target]
    return next((path for path in places if path.is_file()), None)


def verify(name: str | DatasetCard, root: str | Path | None = None) -> Path:
    """Path of a catalogue dataset after comparing its hash with the published one.

    Raises:
        UsageError: The file is missing, its content differs, or no hash is known for its format.
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
    """Path of the verified file of a catalogue dataset, downloaded if missing. Downloads are atomic.

    An unpacked file without a published hash is returned unverified; `load_dataset` adds a note about it.

    Raises:
        UsageError: The file differs from the published one, or is missing and may not or cannot be downloaded.
        RunFailure: The download failed.
    """
    entry, path = card(name), locate(name, root)
    target = data_root(root) / entry.filename
    if path is not None:
        return path if path != target else verify(entry, root)
    if not download or entry.url is None:
        raise UsageError(f"{entry.name} is missing; place its file {entry.filename} at {target}.")
    _download(entry, entry.url, target)
    return target


def _git_blob(path: Path) -> str:
    """Git blob hash of a file: SHA-1 of a short header and the content."""
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
            f"Cannot write {target} ({error.strerror or error}); {write_remedy(error, 'choose another data root')}."
        ) from error
    finally:
        if ours:
            with suppress(OSError):  # it is not empty, or was never created
                target.parent.rmdir()


def _why(entry: DatasetCard, error: Exception) -> str:
    """Describe in a few words why a download failed."""
    import requests

    if isinstance(error, requests.HTTPError):
        return f"the server answered {getattr(error.response, 'status_code', error)}"
    if isinstance(error, requests.RequestException):
        return "there is no connection, or it was interrupted"
    if isinstance(error, _TooLarge):
        return f"it exceeds {entry.most_bytes} bytes, the maximum for {entry.name}"
    return f"its content differs from {_pin(entry)}"


def _transfer(entry: DatasetCard, url: str, path: str, manager: Any) -> None:
    """Downloader for pooch, which provides a temporary `path`, checks the sha256 if there is one, and moves the
    file."""
    import pooch

    with progress_line() as show:
        options: dict[str, Any] = {"timeout": _TIMEOUT, "headers": {"Accept-Encoding": "identity"}}
        pooch.HTTPDownloader(_Meter(entry, show), chunk_size=1 << 14, **options)(url, path, manager)
    if entry.sha256 is None and not _matches(entry, Path(path)):
        raise ValueError("Another git blob.")


class _TooLarge(Exception):
    """A download exceeds the maximum size of its file."""


class _Meter:
    """Progress of a download in bytes, with the interface of the progress bars of pooch."""

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
        """Called by pooch at the end."""
