"""A folder of results: a JSON record for each finished cell, a note for each that crashed, and work
in progress beside them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from femts.config.rules import Misfit, fields, read_json, text
from femts.errors import RunFailure, UsageError
from femts.experiments.job import Job, RecordForm
from femts.experiments.record_rules import FORM
from femts.files import write_file
from femts.text import strict_json

_FAILURE = fields({"reason": text})
WORK = ".work"
_REMEDY = "bring back the file that '{}' wrote, or remove it, and the cell is run again."
_NUMBERS = re.compile(r"\[[-+.\de,\s]+\]")


class Store:
    """Records of cells under `folder`: `PATH.json` when finished, `PATH.failed.json` after a crash.

    A record is written whole or not at all, so a cell is finished or it is not; what an unfinished
    one has reached lies in its run folder under `.work`, which its next start continues and its end
    removes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check_folder(self, to_show: bool) -> None:
        """UsageError where the folder is a file, or where it is only to be shown and does not exist."""
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"Results '{self.folder}' are a file; name a folder, and it is made where it is missing.")
        if to_show and not self.folder.exists():
            raise UsageError(
                f"There is no folder of results '{self.folder}' to show; name the one that a table was trained into."
            )

    def record_path(self, cell: Job) -> Path:
        """The file of a finished cell."""
        return self.folder / f"{cell.path}.json"

    def failure_path(self, cell: Job) -> Path:
        """The file of a crashed cell."""
        return self.folder / f"{cell.path}.failed.json"

    def work(self, cell: Job) -> Path:
        """The run folder of a cell that is not finished."""
        return self.folder / WORK / cell.path

    def finished(self, cell: Job) -> bool:
        """Tell whether the cell has a record."""
        return self.record_path(cell).is_file()

    def record(self, cell: Job) -> dict[str, Any] | None:
        """The record of a finished cell, or None; UsageError when its file holds something else."""
        if not self.finished(cell):
            return None
        path = self.record_path(cell)
        record = read_record(path, cell.form)
        try:
            cell.check_is_of(record)
        except Misfit as error:
            remedy = _REMEDY.format(cell.form.command)
            raise UsageError(f"Record {path} is of another cell: {error}; {remedy}") from error
        return record

    def readable(self, cell: Job) -> dict[str, Any] | None:
        """As `record`, and None also where the file holds something else."""
        try:
            return self.record(cell)
        except UsageError:
            return None

    def damage(self, cell: Job) -> str | None:
        """Reason why the record of a finished cell cannot be used; None when it can, or when there is none."""
        try:
            self.record(cell)
        except UsageError as error:
            return str(error)
        return None

    def failure(self, cell: Job) -> str | None:
        """Reason why the cell crashed last, or None."""
        path = self.failure_path(cell)
        if not path.is_file():
            return None
        try:
            note = read_json(path)
            _FAILURE(note, "")
        except (Misfit, OSError) as error:  # it crashed, and is tried again: only the reason is lost
            return f"its reason cannot be read from {path}: {error}"
        return str(note["reason"])

    def finish(self, cell: Job, record: dict[str, Any]) -> None:
        """Keep the record of a cell and drop its work; RunFailure, with the work kept, for one that
        could not be read again."""
        try:
            cell.form.check(record)
            cell.check_is_of(record)
        except Misfit as error:
            raise RunFailure(f"The record of {cell.path} cannot be kept: {error}.") from error
        _write(self.record_path(cell), record)
        self.failure_path(cell).unlink(missing_ok=True)
        shutil.rmtree(self.work(cell), ignore_errors=True)

    def fail(self, cell: Job, reason: str) -> None:
        """Keep why a cell crashed; its work stays, to be continued or looked at."""
        _write(self.failure_path(cell), {"reason": reason})


def read_record(path: Path, *forms: RecordForm) -> dict[str, Any]:
    """A record; UsageError when `path` holds none of these `forms`, those of a table without any."""
    forms = forms or (FORM,)
    remedy = f"give a file that {' or '.join(repr(form.command) for form in forms)} wrote."
    try:
        record = read_json(path)
    except OSError as error:
        raise UsageError(f"Record {path} cannot be read: {error.strerror}; {remedy}") from error
    except Misfit as error:
        raise UsageError(f"Record {path} is not JSON; {remedy}") from error
    form = next((each for each in forms if isinstance(record, dict) and record.get("format") == each.format), None)
    if form is None:
        expected = " or ".join(str(each.format) for each in forms)
        raise UsageError(f"File {path} is no record of format {expected}; {remedy}")
    try:
        form.check(record)
    except Misfit as error:
        raise UsageError(f"Record {path} is damaged: {error}; {_REMEDY.format(form.command)}") from error
    return dict(record)


def _write(path: Path, content: dict[str, Any]) -> None:
    text = strict_json(content, indent=1)
    text = _NUMBERS.sub(lambda series: re.sub(r"\s+", " ", series[0]), text)  # a series is one line
    write_file(path, (text + "\n").encode())
