"""Rules that a record of the task suite has to keep."""

from __future__ import annotations

from typing import Any

from femts.bench.tasks.base import MEASURES
from femts.config.rules import anything, digest, entries, fields, maybe, number, one_of, several, text, whole
from femts.experiments.job import RecordForm
from femts.experiments.record_rules import MADE_BY

FORMAT = "tasks 1"
_RECORD = fields(
    {
        "format": one_of(FORMAT),
        "cell": fields({"task": text, "mixer": text, "seed": whole(), "settings": entries(anything)}),
        "task": entries(number(0)),
        "recipe": entries(anything),
        "measure": one_of(*MEASURES),
        "score": number(0),
        "losses": several(number(0), 1, 10),
        "parameters": whole(1),
        "mixer_parameters": whole(1),
        "seconds": number(0),
        "data": maybe(digest),
        "code": digest,
        **MADE_BY,
    }
)


def check_record(record: Any) -> None:
    """A Misfit that names the first field of `record` that cannot be."""
    _RECORD(record, "")


FORM = RecordForm(FORMAT, check_record, "femts bench tasks")
