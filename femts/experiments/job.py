"""One cell of results, whatever is measured in it: all that the engine, the store and the worker ask of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RecordForm:
    """Form of a kind of records.

    Attributes:
        format: what their field `format` says.
        check: raises a `Misfit` that names the first field of a record that cannot be.
        command: the command that writes them, for messages.
    """

    format: int | str
    check: Callable[[Any], None]
    command: str


class Job(ABC):
    """One run, decided by what it says and by nothing else.

    A subclass is a frozen dataclass of plain values, for a worker in another process makes it again from them.
    """

    @property
    @abstractmethod
    def path(self) -> str:
        """Path of its record in a folder of results, without suffix."""

    @property
    @abstractmethod
    def form(self) -> RecordForm:
        """The form of its record."""

    @property
    def source(self) -> str:
        """Name of its data; jobs of one name share them."""
        return ""

    def notes(self, data_root: Path | None) -> Sequence[str]:
        """Sentences on what is odd about its data; UsageError, before anything is run, where they cannot be had."""
        return ()

    @abstractmethod
    def check_is_of(self, record: Mapping[str, Any]) -> None:
        """A Misfit when `record` is that of another job."""

    @abstractmethod
    def run(self, work: Path, device: str, data_root: str | None) -> dict[str, Any]:
        """Do it, or go on with what an earlier run has left in the folder `work`, and return the record."""

    @abstractmethod
    def summary(self, record: Mapping[str, Any]) -> str:
        """Words on its score, for the line at its end."""
