"""Everything that the first rows of a table show to stand between it and a forecast, in one message with what mends it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from femts.data.columns import holds_dates
from femts.data.read import LoadedTable
from femts.data.schema import Schema
from femts.data.unpack import STDIN
from femts.errors import FemtsError, TableFault, TableFaults
from femts.text import argument, arguments, marked

LARGE_FILE, LARGE_FRAME = 2**25, 2**22  # bytes, and cells, from which on the first rows are judged before all are
MOST_COLUMNS = 500  # of a large table whose first rows are judged, because that takes a millisecond a column
MOST_FAULTS = 8  # in a message


def is_large(source: Any) -> bool:
    """Return whether a table is so large that reading all of it before refusing it takes long."""
    if isinstance(source, pd.DataFrame):
        return source.size > LARGE_FRAME
    if not isinstance(source, str | Path) or Path(source) == STDIN:
        return False
    path = Path(source).expanduser()
    return os.path.isfile(path) and os.path.getsize(path) > LARGE_FILE  # False for invalid names, unlike `Path`


def faults_of(head: LoadedTable, schema: Schema, judge: Callable[[LoadedTable, Schema], object]) -> TableFault | None:
    """The faults of the first rows of a table, as one; None if there is none, or if later rows could mend it.

    The rows are judged again with each fault mended, so the remedy in the message has been tried on them as a whole.

    Args:
        head: the rows.
        schema: how the user wants the table to be read.
        judge: raises the first fault of a table that is read with a schema.
    """
    found, remedy, mended = list[TableFault](), dict[str, Any](), schema
    if head.frame.shape[1] > MOST_COLUMNS:
        return None
    while len(found) < MOST_FAULTS:
        try:
            with warnings.catch_warnings(action="ignore"):  # they are given for the whole table
                judge(head, mended)
            break
        except TableFault as fault:
            if not _is_certain(fault, schema, head.frame):
                break
            offered, dropped = fault.remedy or mended.roles.without(fault.column), mended.form.layout.drop
            if any(fault.fault == other.fault for other in found):  # in a column that is used without being named, too
                if fault.column is None or fault.column in dropped:
                    break
                offered = {"drop": [*dropped, fault.column]}
            else:
                found.append(fault)
            remedy |= offered
            mended = mended.changed(offered or {"columns": {"time": "row"}, "drop": [*dropped, fault.column]})
        except FemtsError:  # raised again for the whole table, unless its other rows help
            break
    if len(found) < 2:
        return found[0] if found else None
    clauses = (_clause(number, fault, head.where) for number, fault in enumerate(found, 1))
    return TableFaults(f"{head.where} has {len(found)} faults: {', '.join(clauses)}", _advice(remedy), remedy)


def _is_certain(fault: TableFault, schema: Schema, head: pd.DataFrame) -> bool:
    """Whether other rows cannot help. They may change the use of columns that the user did not name, and absent columns
    may be series whose rows come later."""
    columns, named = set(map(str, head.columns)), schema.roles.named
    if fault.column is None:
        return True
    if fault.column in columns:
        return fault.column in {*named, "date", "ds", schema.form.time, schema.form.series}
    cells = (head.iloc[:, place] for place in range(head.shape[1]))
    words = (each for each in cells if not pd.api.types.is_numeric_dtype(each) and not holds_dates(each))
    return bool(named & columns) or next(words, None) is None


def _clause(number: int, fault: TableFault, where: str) -> str:
    """A fault, with its own advice if no keyword mends it or something is only left out."""
    text = marked(fault.fault).replace(where, "it", 1)
    sure = fault.remedy and None not in fault.remedy.values()
    return f"({number}) {text}" if sure else f"({number}) {text} ({marked(fault.advice).strip('; .')})"


def _advice(remedy: Mapping[str, Any]) -> str:
    """What to change in a call, as the end of a sentence."""
    given = arguments({name: value for name, value in remedy.items() if value is not None})
    left_out = " and ".join(argument(name) for name, value in remedy.items() if value is None)
    parts = [f"give {given}"] * bool(given) + [f"leave out {left_out}"] * bool(left_out)
    return f"; {', and '.join(parts)}." if parts else "."
