"""`femts verify`: rerun cells of a table from their records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from femts.cli.command import command
from femts.cli.options import DataRoot, TrainingDevice
from femts.cli.streams import say
from femts.text import printable


@command(110)
def verify(
    records: Annotated[list[Path], typer.Argument(metavar="RECORD...", help="Records of `femts table`.")],
    data_root: DataRoot = None,
    device: TrainingDevice = "auto",
) -> int:
    """Rerun cells of a table from their records and compare.

    On the same hardware and with the same libraries, the cell, data, model and scores of a record must
    match to the bit. Elsewhere the scores must agree within 2 %, and fields that do not depend on the
    machine must be equal. Prints which case applied and what differs. When, where and how long the
    cell ran is not checked. The exit status is 1 if a record does not verify.
    """
    from femts.experiments.cell import Cell
    from femts.experiments.results import read_record
    from femts.experiments.task_cell import TaskCell
    from femts.experiments.verify import verify_record

    given = [(path, read_record(path, Cell, TaskCell)) for path in records]
    root = None if data_root is None else str(data_root)
    failed = 0
    for path, record in given:
        verdict = verify_record(record, device, root)
        say(printable(f"{path}: {verdict}"))
        failed += not verdict.holds
    return 1 if failed else 0
