"""A data set in memory: values, stamps, names and split, from the catalogue, a CSV file or a DataFrame."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.catalog import CATALOG, DatasetCard, card
from femts.data.download import fetch, file_sha256
from femts.data.frames import check_frame
from femts.data.grid import season_of, step_of
from femts.data.interchange import is_table, to_frame
from femts.data.naming import settle
from femts.data.opening import STDIN, name_of, place, raw
from femts.data.reading import read_headless, read_table
from femts.data.roles import NO_ROLES, Roles
from femts.data.schema import PLAIN, Reading, Schema
from femts.data.splits import Split, ratio_split
from femts.data.synthetic import synthetic_frame
from femts.errors import UsageError
from femts.text import shown


@dataclass(frozen=True, eq=False)
class Dataset:
    """Everything that training needs to know of its data.

    Attributes:
        name: catalogue name, or the file's name without its ending.
        values: (rows, C) float64, raw units, NaN where a value is missing; rows after the test part stay in it.
        dates: one stamp a row, a date or a whole number, or None when the data has none.
        columns: C names.
        freq: the step between stamps, a pandas frequency or a number; None without stamps.
        split: row ranges of the three parts.
        sha256: of the file, or of the values where there is no file.
        season: steps in the natural season, for `seasonal_naive`.
        notes: what a user should be told once.
        source: what `load_dataset` finds it by again, a catalogue name or a path; None for a table in memory.
        schema: how it was read; where columns have roles, every target is named.
        known: (rows, K) float64, the columns `schema.roles.future` in raw units; None where nothing is known for the steps to
            come.
    """

    name: str
    values: NDArray[np.float64]
    dates: pd.Index | None
    columns: tuple[str, ...]
    freq: str | None
    split: Split
    sha256: str
    season: int
    notes: tuple[str, ...] = ()
    source: str | None = None
    schema: Schema = PLAIN
    known: NDArray[np.float64] | None = None

    @cached_property
    def observed(self) -> NDArray[np.bool_] | None:
        """Observed mask of the values, (rows, C); None where none is missing."""
        observed = ~np.isnan(self.values)
        return None if observed.all() else observed

    @property
    def targets(self) -> int:
        """Number of the columns, the first ones, that are to be forecast and scored; after them come those known up to now."""
        return len(self.columns) - len(self.schema.roles.past)

    @property
    def record(self) -> dict[str, Any]:
        """Record that identifies the data of a training: hash and split, in plain types."""
        split = {part: list(getattr(self.split, part)) for part in ("train", "val", "test")}
        return {"sha256": self.sha256, "split": split}

    @property
    def train_values(self) -> NDArray[np.float64]:
        """The training rows, (rows, C): what a scaler may see."""
        return self.values[slice(*self.split.train)]

    def frame(self) -> pd.DataFrame:
        """A wide table: `date` first where the data has stamps, then the columns and what is known, in raw units."""
        table = pd.DataFrame(self.values, columns=list(self.columns))
        if self.known is not None:
            table[list(self.schema.roles.future)] = self.known
        if self.dates is not None:
            table.insert(0, "date", self.dates)
        return table


def load_dataset(
    source: str | Path | pd.DataFrame,
    data_root: str | Path | None = None,
    download: bool = True,
    schema: Schema | None = None,
    **reading: Unpack[Reading],
) -> Dataset:
    """A data set by catalogue name, by the path of a file, or from a DataFrame.

    Args:
        source: a name of the catalogue (any case), a file that `read_table` reads (`-` is standard input), with `date` and
            value columns or `unique_id, ds, y`, or such a table of pandas, polars or pyarrow, its stamps in a column or in the
            index. Files and frames of one's own are split .7, .1, .2.
        data_root: folder of the catalogue's files; None finds it as `femts.data.data_root` does.
        download: whether a missing catalogue file may be downloaded.
        schema: how the table is read, where that is at hand as an object.
        reading: the same by name. `na`: numbers that stand for a missing value, beside empty cells. What is missing counts
            neither in losses nor in scores; models read the last value before it instead.
            `columns`: what one's own columns are called where not as usual: `time` for `date`, or for `ds` in a long table,
            whose other columns are `series` and `value` for `unique_id` and `y`.
            `target`: columns to forecast and to score; by default all that are neither `past` nor `future`.
            `past`: columns that are known up to now: models read them, and nobody scores them.
            `future`: columns that are known for the steps to come as well, such as holidays; `femts.data.effects` says how
            they act. Where targets are named, columns without a role are left out.
            `calendar`: let the hour of the week and the season of the year act likewise.

    Returns:
        The data set, its values (rows, C) in raw units, split in three; `notes` say what is odd about it.

    Raises:
        UsageError: unknown name, or data that cannot be used; the text says what and where.
        RunFailure: a download failed.

    Examples:
        >>> data = load_dataset("synthetic")
        >>> data.values.shape, data.freq, data.split.test
        ((8760, 6), 'h', (7008, 8760))
    """
    schema = Schema.of(**reading) if schema is None else schema
    data = _load(source, data_root, download, schema)
    return with_roles(data, schema.roles) if schema.roles.any else data


def with_roles(data: Dataset, roles: Roles) -> Dataset:
    """`data`, of which every column is to be forecast, with its columns in these roles.

    Raises:
        UsageError: names that do not fit, or a known column that tells the future.
    """
    roles = roles.sorted_out(data.columns, data.name)
    at = {name: number for number, name in enumerate(data.columns)}
    columns = (*roles.target, *roles.past)
    values = np.ascontiguousarray(data.values[:, [at[name] for name in columns]])
    known = np.ascontiguousarray(data.values[:, [at[name] for name in roles.future]])
    _check_known(values, known, roles, data.dates)
    something = known if roles.future or roles.calendar else None
    return replace(data, values=values, columns=columns, schema=replace(data.schema, roles=roles), known=something)


def _check_known(values: NDArray[np.float64], known: NDArray[np.float64], roles: Roles, dates: pd.Index | None) -> None:
    """Refuse what would tell the future: a known column that is a target, under another name; and a calendar without dates."""
    if roles.calendar and not isinstance(dates, pd.DatetimeIndex):
        raise UsageError("Calendar features need dates, which these data do not have; leave --calendar out.")
    for k, name in enumerate(roles.future):
        for c, target in enumerate(roles.target):
            if np.array_equal(known[:, k], values[:, c], equal_nan=True):
                raise UsageError(
                    f"Column '{shown(name)}' of --future equals '{shown(target)}' in every row, so it would tell what is to be "
                    "forecast; leave it out."
                )


def _load(source: str | Path | pd.DataFrame, data_root: str | Path | None, download: bool, schema: Schema) -> Dataset:
    """The data with every column a target; `schema.roles` only say which columns of one's own table are read."""
    if is_table(source):
        return _own(to_frame(source, "The frame", schema.form), "frame", schema)
    if not isinstance(source, str | Path):
        raise UsageError(f"The data are a {type(source).__name__}; give a name, the path of a file, or a DataFrame.")
    if isinstance(source, str) and not is_path(source):
        return _from_catalogue(card(source), data_root, download, schema)
    path = Path(source).expanduser()
    table = read_table(path, schema.form)
    sha256 = hashlib.sha256(raw(path).read()).hexdigest() if path == STDIN else file_sha256(path)
    data = _own(to_frame(table, place(path), schema.form), name_of(path), schema, place(path), sha256)
    data = replace(data, notes=(*table.attrs.get("notes", ()), *data.notes))
    if path == STDIN:
        return data
    data = replace(data, source=str(path.resolve()))
    published = next((c for c in CATALOG.values() if c.sha256 == data.sha256 and c.split_rule == "ett"), None)
    if published is None:
        return data
    note = f"{path} is {published.name}; by its path it is split .7, .1, .2, and only by its name as published"
    return replace(data, notes=(note, *data.notes))


def is_path(source: str) -> bool:
    """Tell whether `load_dataset` takes `source` for a file rather than for a name of the catalogue."""
    if source.lower() in (name.lower() for name in CATALOG):
        return False
    return source == str(STDIN) or bool(Path(source).suffix) or len(Path(source).parts) != 1 or os.path.exists(source)


def _own(table: pd.DataFrame, name: str, schema: Schema, where: str = "The frame", sha256: str = "") -> Dataset:
    form, named = settle(table, schema.form, where, long=not schema.roles.any)
    schema = replace(schema, form=form)
    frame = check_frame(schema.roles.narrow(table, form, where), schema, where=where)
    dates = pd.Index(frame.pop("date"))
    freq = step_of(dates)
    split = ratio_split(len(frame))
    return _checked(
        Dataset(
            name=name,
            values=_matrix(frame, schema),
            dates=dates,
            columns=tuple(map(str, frame.columns)),
            freq=freq,
            split=split,
            sha256=sha256,
            season=season_of(freq),
            notes=(*named, *frame.attrs["notes"]),
            schema=replace(schema, roles=NO_ROLES),
        )
    )


def _from_catalogue(known: DatasetCard, root: str | Path | None, download: bool, schema: Schema) -> Dataset:
    notes: tuple[str, ...] = ()
    when: pd.Index | None = None
    sha256 = ""
    if not known.filename:
        table = synthetic_frame(known.rows)
        when = pd.DatetimeIndex(table.pop("date"))
    else:
        path = fetch(known, root, download)
        sha256 = file_sha256(path)
        if known.dated:
            # Verified by its hash, so it is taken as it is: Weather repeats a stamp and holds sentinels of -9999.
            table = read_table(path)
            when = pd.DatetimeIndex(pd.to_datetime(table.pop("date")))
        else:
            table = read_headless(path)
            notes = ("it has no dates, so forecasts carry none",)
            if path.name != known.filename:
                notes = (*notes, f"{path.name} is unpacked, and no hash is published to verify it by")
        if table.shape != (known.rows, known.channels):
            raise UsageError(
                f"{path} has {table.shape[0]} rows of {table.shape[1]} values, but {known.name} has "
                f"{known.rows} of {known.channels}; get {known.filename} anew."
            )
    return _checked(
        Dataset(
            name=known.name,
            values=_matrix(table, schema),
            dates=when,
            columns=tuple(map(str, table.columns)),
            freq=None if when is None else known.freq,
            split=known.split,
            sha256=sha256,
            season=known.season,
            notes=notes,
            source=known.name,
            schema=Schema(na=schema.na),
        )
    )


def _matrix(table: pd.DataFrame, schema: Schema) -> NDArray[np.float64]:
    """Values (rows, C), NaN where missing."""
    return np.ascontiguousarray(table.mask(table.isin(schema.na)).to_numpy(dtype=np.float64))


def _checked(data: Dataset) -> Dataset:
    """`data` with a hash, where there is no file to have one, and with notes on constant columns and on gaps."""
    if not data.sha256:
        stamps = b"" if data.dates is None else "\n".join(map(str, data.dates)).encode()
        content = "\n".join(data.columns).encode() + stamps + data.values.tobytes()
        data = replace(data, sha256=hashlib.sha256(content).hexdigest())
    train = pd.DataFrame(data.train_values, columns=list(data.columns))
    empty = train.columns[train.isna().all()]
    if len(empty):
        raise UsageError(
            f"Column '{shown(empty[0])}' of '{shown(data.name)}' has no value in its {len(train)} training rows; leave it out."
        )
    constant = train.columns[train.min() == train.max()]
    notes = data.notes + tuple(f"column '{shown(c)}' is constant in training, so its scale is 1" for c in constant)
    gaps = () if data.observed is None else (_gaps(data.observed, data.columns, data.dates),)
    return replace(data, notes=(*notes, *gaps))


def _gaps(observed: NDArray[np.bool_], columns: Sequence[str], dates: pd.Index | None) -> str:
    """Describe how much is missing, and where it begins."""
    row, column = np.argwhere(~observed)[0]
    when = f"row {row + 1}" if dates is None else str(dates[row])
    missing = int((~observed).sum())
    where = f"in {int((~observed).any(0).sum())} of {len(columns)} columns, the first in '{shown(columns[column])}' at {when}"
    rule = "they count neither in losses nor in scores, and models read the last value before them"
    return f"{missing} of {observed.size} values are missing, {where}; {rule}"
