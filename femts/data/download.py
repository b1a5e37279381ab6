"""Folder of the data files, and download of a missing one from its public source: hashed, resumable, never half there."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

from femts.data.catalog import DatasetCard, card
from femts.errors import RunFailure, UsageError

_ATTEMPTS = 5
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
    wanted = data_root(root) / _named(card(name)).filename
    places = [wanted, wanted.with_suffix("")] if wanted.suffix == ".gz" else [wanted]
    return next((path for path in places if path.is_file()), None)


def verify(name: str | DatasetCard, root: str | Path | None = None) -> Path:
    """The file of a catalogue data set, after its hash was compared with the pinned one.

    Raises:
        UsageError: no such file, another content, or a form of the file for which no hash is known.
    """
    known, path = card(name), locate(name, root)
    target = data_root(root) / known.filename
    if path is None:
        raise UsageError(f"{known.name} is not at {target}; get it with 'femts datasets fetch {known.name}'.")
    if path != target:
        raise UsageError(f"No hash is known for the unpacked {path}; only {known.filename} can be verified.")
    if not _matches(known, path):
        raise UsageError(
            f"{path} is not the published {known.name} (its hash differs from {_pin(known)}); "
            f"move it away and run 'femts datasets fetch {known.name}'."
        )
    return path


def fetch(name: str | DatasetCard, root: str | Path | None = None, download: bool = True) -> Path:
    """The verified file of a catalogue data set, downloaded when it is missing.

    An unpacked file whose hash nobody published is returned unverified; `load_dataset` says so in its notes. A download
    that broke off leaves `<file>.<hash>.part`, which the next call continues; the file itself appears whole or never.

    Raises:
        UsageError: the file there is another one, or is missing and may not or cannot be downloaded.
        RunFailure: the download failed.
    """
    known, found = card(name), locate(name, root)
    target = data_root(root) / known.filename
    if found is not None:
        return found if found != target else verify(known, root)
    if not download or known.url is None:
        raise UsageError(f"{known.name} is missing; put its file {known.filename} at {target}.")
    _download(known, target)
    return target


def _named(known: DatasetCard) -> DatasetCard:
    if known.built_in:
        raise UsageError(f"{known.name} is built in and has no file; use it by name.")
    return known


def file_sha256(path: Path) -> str:
    """sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def git_blob(path: Path) -> str:
    """Git's hash of a file: sha1 of a short header and the content."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _pin(known: DatasetCard) -> str:
    return f"sha256 {known.sha256}" if known.sha256 else f"git blob {known.git_blob}"


def _matches(known: DatasetCard, path: Path) -> bool:
    return file_sha256(path) == known.sha256 if known.sha256 else git_blob(path) == known.git_blob


def _download(known: DatasetCard, target: Path) -> None:
    import pooch
    import requests

    part = target.with_name(f"{target.name}.{(known.sha256 or known.git_blob or '')[:8]}.part")
    assert known.url is not None  # the caller looked
    pooch.get_logger().setLevel("WARNING")
    try:
        pooch.retrieve(known.url, known.sha256, target.name, target.parent, downloader=_Resuming(known, part))
        part.unlink(missing_ok=True)
    except (requests.RequestException, ValueError, OSError) as error:
        if target.is_file() and _matches(known, target):
            part.unlink(missing_ok=True)  # another process was faster
            return
        if isinstance(error, requests.HTTPError):
            why = f"the server answered {getattr(error.response, 'status_code', error)}"
        elif isinstance(error, requests.RequestException):
            kept = part.stat().st_size if part.exists() else 0
            why = f"the connection broke after {kept} bytes, which are kept" if kept else "there is no connection"
            if not kept:
                part.unlink(missing_ok=True)
        elif isinstance(error, ValueError):
            part.unlink(missing_ok=True)
            why = str(error) if isinstance(error, TooLarge) else f"what came differs from {_pin(known)}"
        else:
            detail = error.strerror or error
            raise RunFailure(f"Cannot write {target} ({detail}); make room or name another data root.") from error
        raise RunFailure(
            f"Cannot download {known.name} from {known.url} ({why}); "
            f"try again, or get {known.filename} elsewhere and put it at {target}."
        ) from error


class TooLarge(ValueError):
    """A download that is larger than the file can be."""


class _Resuming:
    """Downloader for pooch that keeps what came in a `.part` file and asks only for the rest."""

    def __init__(self, known: DatasetCard, part: Path) -> None:
        self.known, self.part = known, part

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        import requests

        for attempt in range(1, _ATTEMPTS + 1):
            before = self._size()
            try:
                self._continue(url)
                break
            except requests.HTTPError:
                raise
            except requests.RequestException:
                if attempt == _ATTEMPTS or self._size() == before:  # cut off, not slow: go on only while bytes arrive
                    raise
        # A copy, not a move: another process that still writes to the .part cannot touch the verified file.
        shutil.copyfile(self.part, output_file)
        if self.known.sha256 is None and not _matches(self.known, Path(output_file)):
            raise ValueError("git blob differs")

    def _check_size(self, size: int) -> None:
        if size > self.known.most_bytes:
            raise TooLarge(f"it is larger than {self.known.most_bytes} bytes, which {self.known.name} is not")

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _continue(self, url: str) -> None:
        import requests

        have = self._size()
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as answer:
            if answer.status_code == 416:  # nothing left to send: the .part was whole, and its hash decides
                return
            answer.raise_for_status()
            resumed = answer.status_code == 206
            length = answer.headers.get("Content-Length")
            if length is not None:
                self._check_size(int(length) + have * resumed)
            self.part.touch()
            # Neither cut short nor appended to: two processes at once then write the same bytes to the same places.
            with self.part.open("r+b") as file:
                file.seek(have if resumed else 0)
                for piece in answer.iter_content(1 << 13):  # small: a piece that is cut off is lost
                    self._check_size(file.tell() + len(piece))
                    file.write(piece)
        if length is not None and self._size() < int(length) + have * resumed:
            raise requests.ConnectionError("the answer ended early")
