"""A folder of results: a JSON record for each finished cell, a note for each that crashed, and work in progress beside them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

from femts.errors import UsageError
from femts.experiments.grid import Cell
from femts.files import write_file

RECORD_FORMAT = 1
WORK = ".work"
_NUMBERS = re.compile(r"\[[-+.\de,\s]+\]")


class Store:
    """Records of cells under `folder`: `PATH.json` when finished, `PATH.failed.json` after a crash.

    A record is written whole or not at all, so a cell is finished or it is not; what an unfinished one has reached lies in its
    run folder under `.work`, which its next start continues and its end removes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def record_path(self, cell: Cell) -> Path:
        """The file of a finished cell."""
        return self.folder / f"{cell.path}.json"

    def failure_path(self, cell: Cell) -> Path:
        """The file of a crashed cell."""
        return self.folder / f"{cell.path}.failed.json"

    def work(self, cell: Cell) -> Path:
        """The run folder of a cell that is not finished."""
        return self.folder / WORK / cell.path

    def finished(self, cell: Cell) -> bool:
        """Whether the cell has a record."""
        return self.record_path(cell).is_file()

    def record(self, cell: Cell) -> dict[str, Any] | None:
        """The record of a finished cell, or None."""
        return read_record(self.record_path(cell)) if self.finished(cell) else None

    def failure(self, cell: Cell) -> str | None:
        """Why the cell crashed last, or None."""
        path = self.failure_path(cell)
        return str(json.loads(path.read_text(encoding="utf-8"))["reason"]) if path.is_file() else None

    def finish(self, cell: Cell, record: dict[str, Any]) -> None:
        """Keep the record of a cell and drop its work."""
        _write(self.record_path(cell), record)
        self.failure_path(cell).unlink(missing_ok=True)
        shutil.rmtree(self.work(cell), ignore_errors=True)

    def fail(self, cell: Cell, reason: str) -> None:
        """Keep why a cell crashed; its work stays, to be continued or looked at."""
        _write(self.failure_path(cell), {"reason": reason})


def read_record(path: Path) -> dict[str, Any]:
    """A record; UsageError when `path` holds none that this femts reads."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"Record {path} cannot be read: {error.strerror}; give a file that 'femts table' wrote.") from error
    except ValueError as error:
        raise UsageError(f"Record {path} is not JSON; give a file that 'femts table' wrote.") from error
    if not isinstance(record, dict) or record.get("format") != RECORD_FORMAT:
        raise UsageError(f"File {path} is no record of format {RECORD_FORMAT}; give a file that 'femts table' wrote.")
    return record


def _write(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=1)
    text = _NUMBERS.sub(lambda found: re.sub(r"\s+", " ", found[0]), text)  # a series is one line
    write_file(path, (text + "\n").encode())
