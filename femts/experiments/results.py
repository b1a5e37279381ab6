"""A results folder: a JSON record for each finished cell, a note for each that crashed, and unfinished runs next to
them."""

from __future__ import annotations

import json
import re
import reprlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from femts.config.records import RecordError, read_json
from femts.errors import RunFailure, UsageError
from femts.evaluation.constants import MOST_ERRORS
from femts.files import Busy, locked, remove_parts, write_file
from femts.text import strict_json

WORK, LOCK = ".work", ".lock"
_NUMBERS = re.compile(r"\[[-+.\de,\s]+\]")

Loss = Annotated[float, Field(ge=0)]
Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Horizon = Annotated[str, Field(pattern="^[1-9][0-9]{0,5}$")]
Setting = Annotated[str, Field(pattern=r"^(model|training)\..")]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Errors = dict[Horizon, Annotated[list[Loss | None], Field(min_length=1, max_length=MOST_ERRORS)]]
Span = Annotated[list[Count], Field(min_length=2, max_length=2)]


class Part(BaseModel):
    """A part of a record: exactly these fields and types, without NaN."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class OpenPart(Part):
    """A part that may have further fields."""

    model_config = ConfigDict(extra="allow")


class Scores(OpenPart):
    mse: Loss
    mae: Loss
    windows: Positive
    wape: Loss | None = None  # missing in older records
    bias: float | None = None


class Naive(Part):
    season: Positive
    mse: Loss | None
    mae: Loss | None
    mase: Loss | None
    skill: float | None


class Rolled(Part):
    val: Scores
    test: Scores
    naive: Naive | None = None


class Own(OpenPart):
    source: str
    sha256: Sha256


class CellFields(Part):
    dataset: str
    model: str
    pred_len: Positive
    seed: Count
    protocol: str
    seq_len: Positive | None
    settings: dict[Setting, str]
    own: Own | None = None


class ModelFields(OpenPart):
    name: str
    seq_len: Positive
    pred_len: Positive
    n_channels: Positive


class Config(OpenPart):
    model: ModelFields
    pred_len: Positive
    seq_len: Positive
    training: dict[str, Any]


class Data(Part):
    sha256: Sha256
    split: dict[str, Span]


class Validation(OpenPart):
    step: Positive
    train_loss: float
    val_mse: Loss
    val_mae: Loss
    lr: Loss
    seconds: Loss


class Sample(Part):
    row: Count
    channel: str
    past: list[float | None]
    truth: list[float | None]
    forecast: Annotated[list[float], Field(min_length=1)]
    series: str = ""


class Environment(Part):
    device: str
    name: str
    threads: Annotated[int, Field(ge=1, le=4096)]
    precision: str
    system: str
    python: str
    libraries: dict[str, str]


class AnyRecord(Part):
    """Fields of records of every kind: what was requested, and how it was computed."""

    cell: Any
    seconds: Loss
    parameters: Count
    kernels: dict[str, str]
    place: Environment
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}\+?$")] | None


class Record(AnyRecord):
    """The record of a cell of a table."""

    format: int
    cell: CellFields
    test: Scores
    val: Scores
    naive: Naive | None = None
    rolled: dict[Horizon, Rolled]
    window_errors: Errors = {}
    series_errors: Errors = {}
    kept_step: Count | None
    steps: Count
    stopped: str | None
    config: Config
    data: Data
    history: list[Validation]
    samples: Annotated[list[Sample], Field(min_length=1)]


class Failure(Part):
    """The note of a crash."""

    reason: str


class Job(ABC):
    """A run that is fully determined by its fields: a frozen dataclass, since it is recreated in another process."""

    record_format: ClassVar[int | str]
    record_model: ClassVar[type[BaseModel]]
    command: ClassVar[str]  # command that writes such records, for messages

    @property
    @abstractmethod
    def path(self) -> str:
        """Path of its record in a results folder, without suffix."""

    @property
    def source(self) -> str:
        """Name of its data; jobs with the same name share them."""
        return ""

    def notes(self, data_root: Path | None) -> Sequence[str]:
        """Sentences on anything unusual about its data; raise UsageError, before anything is run, if they cannot be
        loaded."""
        return ()

    @abstractmethod
    def check_is_of(self, record: Mapping[str, Any]) -> None:
        """Raise ValueError if `record` belongs to another job."""

    @abstractmethod
    def run(self, work: Path | None, device: str, data_root: str | None) -> dict[str, Any]:
        """Run the job, or continue an earlier run in the folder `work`, and return the record."""

    @classmethod
    @abstractmethod
    def of(cls, record: Mapping[str, Any], data_root: str | None) -> Self:
        """The job of a record; raise UsageError if its data cannot be found."""

    def with_newer_fields(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """`record` with fields that are newer than it, at their defaults."""
        return record

    @abstractmethod
    def check_data(self, record: Mapping[str, Any], data_root: str | None) -> None:
        """Raise UsageError if the data are not those of `record`, or if a repeated run cannot equal it."""

    @abstractmethod
    def main_score(self, record: Mapping[str, Any]) -> tuple[str, float]:
        """Name and value of the main score in `record`."""

    @abstractmethod
    def summary(self, record: Mapping[str, Any]) -> str:
        """Summary of its score for the final log line."""


class Store:
    """Records of cells in `folder`: `PATH.json` when finished, `PATH.failed.json` after a crash.

    Records are written atomically, so a cell is either finished or not; an unfinished one keeps its progress in its run
    folder under `.work`, which is continued by the next start and removed when it finishes.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check_folder(self, to_show: bool) -> None:
        """Raise UsageError if the folder is a file, or if it is only to be shown and does not exist."""
        if self.folder.exists() and not self.folder.is_dir():
            raise UsageError(f"Results '{self.folder}' is a file; name a folder, which is created if missing.")
        if to_show and not self.folder.exists():
            raise UsageError(
                f"Results folder '{self.folder}' does not exist; name the folder that a table was trained into."
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
        """Return whether the cell has a record."""
        return self.record_path(cell).is_file()

    def record(self, cell: Job) -> dict[str, Any] | None:
        """Record of a finished cell, or None; raise UsageError if its file is invalid."""
        if not self.finished(cell):
            return None
        path = self.record_path(cell)
        record = read_record(path, type(cell))
        try:
            cell.check_is_of(record)
        except ValueError as error:
            raise UsageError(f"Record {path} belongs to another cell: {error}; {_remedy(type(cell))}") from error
        return record

    def readable(self, cell: Job) -> dict[str, Any] | None:
        """As `record`, but None also if the file is invalid."""
        try:
            return self.record(cell)
        except UsageError:
            return None

    def damage(self, cell: Job) -> str | None:
        """Reason why the record of a finished cell is invalid; None if it is valid or does not exist."""
        try:
            self.record(cell)
        except UsageError as error:
            return str(error)
        return None

    def failure(self, cell: Job) -> str | None:
        """Reason why the cell last crashed, or None."""
        path = self.failure_path(cell)
        if not path.is_file():
            return None
        try:
            return Failure.model_validate(read_json(path)).reason
        except (ValueError, OSError) as error:  # the cell is tried again, so only the reason is lost
            reason = first_error(error) if isinstance(error, ValidationError) else error
            return f"its reason cannot be read from {path}: {reason}"

    def finish(self, cell: Job, record: dict[str, Any]) -> None:
        """Store the record of a cell and remove its run folder; raise RunFailure, keeping the run folder, if the record
        could not be read again."""
        record = json.loads(json.dumps(record))  # as it will be read again
        try:
            cell.record_model.model_validate(record)
            cell.check_is_of(record)
        except ValueError as error:
            reason = first_error(error) if isinstance(error, ValidationError) else error
            raise RunFailure(f"The record of {cell.path} cannot be kept: {reason}.") from error
        _write(self.record_path(cell), record)
        self._clear(cell)

    @contextmanager
    def held(self, cell: Job) -> Iterator[None]:
        """Hold a cell against other processes, and remove temporary files that killed ones left; raise Busy if another
        process holds it."""
        lock = self._lock(cell)
        with locked(lock):
            for path in (self.record_path(cell), self.failure_path(cell)):
                remove_parts(path.parent, path.name)
            try:
                yield
            finally:
                lock.rmdir()
                self._prune(cell)

    def tidy(self, cells: Sequence[Job]) -> None:
        """Remove what is left of finished cells among `cells` if their processes were killed after their last line."""
        for cell in cells:
            left = (self.failure_path(cell), self.work(cell), self._lock(cell))
            if self.finished(cell) and any(path.exists() for path in left):
                with suppress(Busy), self.held(cell):
                    self._clear(cell)
            self._prune(cell)

    def _prune(self, cell: Job) -> None:
        """Remove the folders that held the run folder of a cell, if they are empty."""
        for path in list(Path(WORK, cell.path).parents)[:-1]:
            with suppress(OSError):  # there is none, or other cells are running there
                (self.folder / path).rmdir()

    def _lock(self, cell: Job) -> Path:
        return self.folder / WORK / f"{cell.path}{LOCK}"

    def _clear(self, cell: Job) -> None:
        self.failure_path(cell).unlink(missing_ok=True)
        shutil.rmtree(self.work(cell), ignore_errors=True)

    def fail(self, cell: Job, reason: str) -> None:
        """Store why a cell crashed; its run folder remains, to be continued or inspected."""
        _write(self.failure_path(cell), {"reason": reason})


def read_record(path: Path, *kinds: type[Job]) -> dict[str, Any]:
    """Read the record of a job of one of `kinds`; raise UsageError if `path` does not hold one."""
    remedy = f"give a file that {' or '.join(repr(kind.command) for kind in kinds)} wrote."
    try:
        record = read_json(path)
    except OSError as error:
        raise UsageError(f"Record {path} cannot be read: {error.strerror}; {remedy}") from error
    except RecordError as error:
        raise UsageError(f"Record {path} is not JSON; {remedy}") from error
    of_format = [kind for kind in kinds if isinstance(record, dict) and record.get("format") == kind.record_format]
    if not of_format:
        formats = " or ".join(str(kind.record_format) for kind in kinds)
        raise UsageError(f"File {path} is not a record of format {formats}; {remedy}")
    check_record(record, of_format[0], f"Record {path}")
    return dict(record)


def check_record(record: Any, kind: type[Job], name: str) -> None:
    """Raise UsageError naming the first invalid field of `record` for a job of `kind`."""
    try:
        kind.record_model.model_validate(record)
    except ValidationError as error:
        raise UsageError(f"{name} is damaged: {first_error(error)}; {_remedy(kind)}") from error


def first_error(error: ValidationError) -> str:
    """The first validation error as part of a sentence."""
    first = error.errors(include_url=False)[0]
    name = ".".join(map(str, first["loc"])) or "its content"
    if first["type"] == "missing":
        return f"{name} is missing"
    return f"{name} is {reprlib.repr(first['input'])}, {first['msg'][:1].lower()}{first['msg'][1:]}"


def _remedy(kind: type[Job]) -> str:
    return f"restore the file that '{kind.command}' wrote, or delete it to run the cell again."


def _write(path: Path, content: dict[str, Any]) -> None:
    text = strict_json(content, indent=1)
    text = _NUMBERS.sub(lambda series: re.sub(r"\s+", " ", series[0]), text)  # each series on one line
    write_file(path, (text + "\n").encode())
