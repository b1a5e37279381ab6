"""Rules that a record of the task suite has to keep."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from femts.experiments.results import AnyRecord, Count, Loss, Part, Positive, Sha256

FORMAT = "tasks 1"


class TaskFields(Part):
    task: str
    mixer: str
    seed: Count
    settings: dict[str, Any]


class TaskRecord(AnyRecord):
    format: str
    cell: TaskFields
    task: dict[str, Loss]
    recipe: dict[str, Any]
    measure: str
    score: Loss
    losses: Annotated[list[Loss], Field(min_length=1, max_length=10)]
    mixer_parameters: Positive
    data: Sha256 | None
    code: Sha256
