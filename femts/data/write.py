"""Writing tables to files, in the format that the name of the file implies."""

from __future__ import annotations

import gzip
import io
import logging
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from femts.errors import UsageError
from femts.files import check_target, is_stream, write_file
from femts.text import quote, strict_json

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS, MOST_COLUMNS, MOST_TEXT = 2**20 - 1, 2**14, 2**15 - 1  # of a sheet, below its header, and of a cell
MOST_DIGITS = 15  # that a spreadsheet keeps of a number
FIRST_YEAR = 1901  # that a sheet has dates for; it takes 1900 for a leap year
WIDE = 20  # characters of a column with time stamps

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableFormat:
    """A format of table files.

    Attributes:
        content: makes the content of a file; its arguments are the table and what to call the file in messages.
        library: package that it needs, if any.
        text: whether it is text, which may be compressed.
    """

    content: Callable[[pd.DataFrame, str], bytes]
    library: str | None = None
    text: bool = False


@dataclass(frozen=True)
class Packing:
    """A compression of files.

    Attributes:
        content: compresses the content of a file.
        library: package that it needs, if any.
    """

    content: Callable[[bytes], bytes]
    library: str | None = None


def check_format(path: Path | None) -> None:
    """Refuse a file, if one is given, whose name implies no format or one that needs a package that is not installed.

    Raises:
        UsageError: The message names what is possible, or the package.
    """
    if path is not None:
        _writer(path)


def write_table(frame: pd.DataFrame, path: str | Path) -> Path:
    """Write `frame` without its index, atomically, in the format that the name of the file implies.

    These are `.csv`, `.tsv`, `.json` (an array of rows as objects) and `.jsonl` (a row per line), each of which may be
    followed by `.gz` or `.zst`, `.parquet`, `.feather` and `.xlsx`. A pipe or device without one of these names
    receives CSV.

    Raises:
        UsageError: The name implies no format, the folder is missing, `path` is a folder, a package is not installed,
            or the format cannot hold the table.
        RunFailure: Writing failed.
    """
    path = Path(path)
    check_target(path)
    content = _writer(path)
    try:
        write_file(path, content(frame))
    except UnicodeEncodeError as error:  # text of JSON may have halves of characters
        raise UsageError(
            f"{path} cannot hold '{quote(error.object[error.start])}', which is half of a character; replace it in the "
            "data."
        ) from error
    return path


def _writer(path: Path) -> Callable[[pd.DataFrame], bytes]:
    """Function from a table to the content of `path`, whose libraries can be imported."""
    name = Path(path.name.lower())
    packing = PACKED.get(name.suffix)
    suffix = name.suffix if packing is None else name.with_suffix("").suffix
    kind = FORMATS.get(ALIASES.get(suffix, suffix))
    if kind is None and packing is None and is_stream(path):
        kind = FORMATS[".csv"]
    if kind is None or not (kind.text or packing is None):
        text, other = ([key for key, each in FORMATS.items() if each.text is kind] for kind in (True, False))
        raise UsageError(
            f"A table cannot be written as '{quote(path.name)}'; name it {', '.join(text)}, one of these with "
            f"{' or '.join(PACKED)} after it, {', '.join(other[:-1])} or {other[-1]}."
        )
    _import(kind.library, path)
    if packing is None:
        return lambda frame: kind.content(frame, str(path))
    _import(packing.library, path)
    return lambda frame: packing.content(kind.content(frame, str(path)))


def _import(library: str | None, path: Path) -> None:
    if library is None:
        return
    try:
        import_module(library)
    except ImportError as error:
        raise UsageError(
            f"{path} needs {library}, which is not installed; run pip install {library}, or use CSV."
        ) from error


def _gzip(content: bytes) -> bytes:
    return gzip.compress(content, 6, mtime=0)  # the same table gives the same file


def _zstd(content: bytes) -> bytes:
    import pyarrow

    return bytes(pyarrow.compress(content, codec="zstd", asbytes=True))


def _csv(frame: pd.DataFrame, where: str) -> bytes:
    return str(frame.to_csv(index=False)).encode()


def _tsv(frame: pd.DataFrame, where: str) -> bytes:
    return str(frame.to_csv(index=False, sep="\t")).encode()


def _json(frame: pd.DataFrame, where: str) -> bytes:
    return f"[{','.join(_objects(frame))}\n]\n".encode()


def _json_lines(frame: pd.DataFrame, where: str) -> bytes:
    return "".join(_objects(frame)).removeprefix("\n").encode() + b"\n" * (len(frame) > 0)


def _objects(frame: pd.DataFrame) -> Iterator[str]:
    """Each row as an object of JSON on a line of its own, with dates in ISO 8601 and null for missing cells."""
    columns = [_of_json(frame.iloc[:, number]) for number in range(frame.shape[1])]
    names = list(map(str, frame.columns))
    for row in zip(*columns, strict=True):
        yield "\n" + strict_json(dict(zip(names, row, strict=True)), ensure_ascii=False)


def _of_json(column: pd.Series) -> list[Any]:
    return list(_iso(column)) if _is_stamps(column) else _cells(column)


def _cells(column: pd.Series) -> list[Any]:
    """Plain values of a column without time stamps, None for missing ones; what is neither number nor text becomes
    text."""
    plain = [cell.item() if hasattr(cell, "item") else cell for cell in column.tolist()]
    return [
        None if lacks else cell if isinstance(cell, int | float | str) else str(cell)
        for cell, lacks in zip(plain, column.isna(), strict=True)
    ]


def _is_stamps(column: pd.Series) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_datetime64_any_dtype(column.dtype))


def _iso(column: pd.Series) -> list[str | None]:
    """Time stamps in ISO 8601, with their offset from UTC if they have a time zone; days alone if they are all of
    midnight."""
    days = column.dt.tz is None and bool((column.dropna().dt.normalize() == column.dropna()).all())
    return [
        None if lacks else str(each.date()) if days else each.isoformat()
        for each, lacks in zip(column, column.isna(), strict=True)
    ]


def _parquet(frame: pd.DataFrame, where: str) -> bytes:
    file = io.BytesIO()
    frame.to_parquet(file, index=False, engine="pyarrow")
    return file.getvalue()


def _feather(frame: pd.DataFrame, where: str) -> bytes:
    file = io.BytesIO()
    frame.reset_index(drop=True).to_feather(file)
    return file.getvalue()


def _excel(frame: pd.DataFrame, where: str) -> bytes:
    """A workbook with one sheet, whose text is text even if it begins like a formula; pandas would write formulas."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils import get_column_letter

    if len(frame) > MOST_ROWS or frame.shape[1] > MOST_COLUMNS:
        raise UsageError(
            f"A sheet of Excel has at most {MOST_ROWS} rows and {MOST_COLUMNS} columns, but {where} would have "
            f"{len(frame)} and {frame.shape[1]}; write .csv or .parquet."
        )
    columns, forms = list[list[Any]](), list[str]()
    for number, name in enumerate(map(str, frame.columns)):
        values, form = _of_excel(frame.iloc[:, number], where)
        columns.append([name, *values])
        forms.append(form)
        _check_text(columns[-1])
    book = Workbook(write_only=True)
    sheet = book.create_sheet("table")
    for number, form in enumerate(forms, 1):
        if form:
            sheet.column_dimensions[get_column_letter(number)].width = WIDE

    def cell(value: Any, form: str) -> Any:
        if value is None or not (form or isinstance(value, str)):
            return value
        made = WriteOnlyCell(sheet, value)
        if isinstance(value, str):
            made.data_type = "s"
        else:
            made.number_format = form
        return made

    for row in zip(*columns, strict=True):
        sheet.append(list(map(cell, row, forms)))
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _check_text(cells: Iterable[Any]) -> None:
    """Refuse text that a workbook cannot hold."""
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    for text in {cell for cell in cells if isinstance(cell, str)}:
        text.encode()  # raises the error of other formats
        if len(text) > MOST_TEXT:
            raise UsageError(
                f"A cell of Excel has at most {MOST_TEXT} characters, but '{quote(text)}' has {len(text)}; write .csv or "
                ".parquet."
            )
        if ILLEGAL_CHARACTERS_RE.search(text):
            raise UsageError(f"Excel cannot hold the control characters in '{quote(text)}'; write .csv or .parquet.")


def _of_excel(column: pd.Series, where: str) -> tuple[list[Any], str]:
    """Cells of a sheet, None for missing ones, and their number format if they are time stamps."""
    if _is_stamps(column):
        return _stamps_of_excel(column, where)
    return list(map(_number, _cells(column))), ""


def _stamps_of_excel(column: pd.Series, where: str) -> tuple[list[Any], str]:
    """Time stamps as dates of Excel in local time, or as text if it would round them or has no such year."""
    local = column.dt.tz_localize(None)
    present = local.dropna()
    if len(present) and (present.dt.year.min() < FIRST_YEAR or (present != present.dt.floor("ms")).any()):
        return list(_iso(column)), ""
    if column.dt.tz is not None:
        twice = ", in which an hour is repeated where clocks go back" * (present.nunique() < column.nunique())
        logger.info(
            f"Excel has no time zones, so column '{quote(column.name)}' of {where} has the local time of "
            f"{column.dt.tz}{twice}"
        )
    form = "yyyy-mm-dd"
    if (present != present.dt.normalize()).any():
        form += " hh:mm:ss" if (present == present.dt.floor("s")).all() else " hh:mm:ss.000"
    return [None if lacks else each.to_pydatetime() for each, lacks in zip(local, local.isna(), strict=True)], form


def _number(cell: Any) -> Any:
    """A cell of Excel; numbers that it would change become text."""
    large = isinstance(cell, int) and abs(cell) >= 10**MOST_DIGITS
    return str(cell) if large or (isinstance(cell, float) and not math.isfinite(cell)) else cell


PACKED = {".gz": Packing(_gzip), ".zst": Packing(_zstd, "pyarrow")}
FORMATS = {
    ".csv": TableFormat(_csv, text=True),
    ".tsv": TableFormat(_tsv, text=True),
    ".json": TableFormat(_json, text=True),
    ".jsonl": TableFormat(_json_lines, text=True),
    ".parquet": TableFormat(_parquet, "pyarrow"),
    ".feather": TableFormat(_feather, "pyarrow"),
    ".xlsx": TableFormat(_excel, "openpyxl"),
}
ALIASES = {".ndjson": ".jsonl", ".pq": ".parquet", ".arrow": ".feather"}
