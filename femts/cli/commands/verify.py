"""`femts verify`: cells of a table run again from their records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from femts.cli.command import command
from femts.cli.options import DataRoot, TrainingDevice
from femts.text import printable


@command(110)
def verify(
    records: Annotated[list[Path], typer.Argument(metavar="RECORD...", help="Records of `femts table`.")],
    data_root: DataRoot = None,
    device: TrainingDevice = "auto",
) -> int:
    """Run cells of a table again from their records, and compare.

    All that a record says of its cell, its data, its model and its scores must be equal to the bit
    with the same hardware and libraries. Elsewhere the scores must be within 2 %, and what does not
    depend on the place be equal. Says which it was, and what differs. Where, when and how long the
    cell ran is not checked. Exit status 1 when one does not hold.
    """
    from femts.experiments.cell import Cell
    from femts.experiments.results import read_record
    from femts.experiments.verify import verify_record

    given = [(path, read_record(path, Cell)) for path in records]
    root = None if data_root is None else str(data_root)
    failed = 0
    for path, record in given:
        verdict = verify_record(record, device, root)
        print(printable(f"{path}: {verdict}"), flush=True)
        failed += not verdict.holds
    return 1 if failed else 0
