"""Static covariates of a panel: read from the rows of its series and encoded as model inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.pieces import slices
from femts.data.stamps import as_text
from femts.errors import GapWarning, UsageError, warn
from femts.text import argument, quote

MOST_WORDS = 256  # categories per column; each is a model input


def read_static(
    frame: pd.DataFrame,
    columns: Sequence[str],
    codes: NDArray[np.integer[Any]],
    series: Sequence[str],
    countries: str | None = None,
) -> pd.DataFrame:
    """Values of static columns, one row per series: numbers or text; NaN or None if all are missing.

    Args:
        frame: long table.
        columns: names of its static columns.
        codes: series number of each row.
        series: names of the series.
        countries: the one of `columns` that has the countries whose holidays count, if any.

    Raises:
        UsageError: Values differ within a series, or are infinite; the message quotes them.
    """
    made = {name: _one_each(frame[name], name, codes, series, name == countries) for name in columns}
    return pd.DataFrame(made, index=list(series))


def _one_each(
    column: pd.Series, name: str, codes: NDArray[np.integer[Any]], series: Sequence[str], country: bool
) -> pd.Series:
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column)
    if numeric:
        each, values = pd.factorize(column.to_numpy(dtype=np.float64, na_value=np.nan))
    else:
        each, values = _texts(column)
    if (each < 0).any():
        codes, each = codes[each >= 0], each[each >= 0]
    of_series = np.full(len(series), -1)
    of_series[codes] = each
    if any((of_series[codes[rows]] != each[rows]).any() for rows in slices(len(each))):
        each, there = pd.factorize(each)  # in order of appearance
        values = values[there]
        low, high = np.full(len(series), len(values)), np.full(len(series), -1)
        np.minimum.at(low, codes, each)
        np.maximum.at(high, codes, each)
        first = int(np.argmax(high > low))
        one, other = (
            f"{values[place]:g}" if numeric else f"'{quote(values[place])}'" for place in (low[first], high[first])
        )
        what, role = ("Country", "holidays") if country else ("Static covariate", "static_covariates")
        fault = f"{what} '{quote(name)}' of series '{quote(series[first])}' changes from {one} to {other}"
        text = f"{fault}; use one value, or remove it from {argument(role)}."
        raise UsageError(text, argument=role)
    if numeric and np.isinf(values).any():
        first = int(codes[np.isin(each, np.flatnonzero(np.isinf(values)))][0])
        raise UsageError(
            f"Static covariate '{quote(name)}' of series '{quote(series[first])}' is infinite; enter a number."
        )
    cells = pd.Series([np.nan if numeric else None, *values], dtype=np.float64 if numeric else object)
    return cells.iloc[of_series + 1].set_axis(list(series))


def _texts(column: pd.Series) -> tuple[NDArray[np.integer[Any]], pd.Index]:
    """Number of the text of each cell, -1 if missing, and the distinct texts. Only distinct cells are converted to text,
    because there are few of them in millions of rows."""
    if isinstance(column.dtype, pd.CategoricalDtype) and len(column.dtype.categories) < len(column):
        numbers, cells = column.cat.codes.to_numpy(), column.dtype.categories
    else:
        try:
            numbers, cells = pd.factorize(column)
        except TypeError:  # unhashable cells, such as lists
            numbers, cells = pd.factorize(as_text(column).where(column.notna()))
    of_cells, texts = pd.factorize(as_text(pd.Series(cells)).astype(object))
    return (np.append(of_cells, -1)[numbers] if len(texts) < len(cells) else numbers), texts


@dataclass(frozen=True)
class StaticColumn:
    """Encoding of one static column.

    Attributes:
        name: name of the column.
        words: its categories in alphabetical order, one input each; empty for a numeric column.
        mean, scale: of its numbers over the series; 0 and 1 for text.
    """

    name: str
    words: tuple[str, ...] = ()
    mean: float = 0.0
    scale: float = 1.0

    @property
    def width(self) -> int:
        """Number of model inputs."""
        return max(1, len(self.words))

    @classmethod
    def fit(cls, cells: pd.Series, name: str) -> StaticColumn:
        """Fit to the `cells` of the training series; UsageError for too many categories, or if all are missing."""
        cells = cells.dropna()
        if cells.empty:
            text = f"Static covariate '{quote(name)}' has no value; remove it from {argument('static_covariates')}."
            raise UsageError(text, argument="static_covariates")
        if cells.dtype != object:
            spread = float(cells.std(ddof=0))
            return cls(name, (), float(cells.mean()), spread if spread > 0 else 1.0)
        words = tuple(sorted(set(cells)))
        if len(words) > MOST_WORDS:
            raise UsageError(
                f"Static covariate '{quote(name)}' has {len(words)} categories, but at most {MOST_WORDS} are "
                "supported; group them into fewer."
            )
        return cls(name, words)

    def encode(self, cells: pd.Series, where: str) -> NDArray[np.float64]:
        """Inputs (S, width) for S `cells`; missing values become the mean, or no category.

        Raises:
            UsageError: A cell is text in a numeric column; the message begins with `where`.

        Warns:
            GapWarning: Categories do not occur in the training data.
        """
        if not self.words:
            numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
            unread = np.isnan(numbers) & cells.notna().to_numpy()
            if unread.any():
                raise UsageError(
                    f"{where} has '{quote(cells.iloc[int(np.argmax(unread))])}' in the static covariate "
                    f"'{quote(self.name)}', which was numeric in training; enter a number there."
                )
            return np.nan_to_num((numbers - self.mean) / self.scale)[:, None]
        text = (cells if cells.dtype == object else cells.map(self._word)).where(cells.notna(), None)
        unknown = text[text.notna() & ~text.isin(self.words)]
        if len(unknown):
            warn(
                f"static covariate '{quote(self.name)}' has categories not seen in training, the first "
                f"'{quote(unknown.iloc[0])}'; they are treated as missing.",
                GapWarning,
            )
        return (text.to_numpy()[:, None] == np.array(self.words, dtype=object)[None]).astype(np.float64)

    def _word(self, number: float) -> str:
        """Category for a number: a table without the text categories is read as numeric."""
        plain = f"{number:.15g}"
        same = (word for word in self.words if _number(word) == number)
        return plain if plain in self.words else next(same, plain)


def _number(word: str) -> float:
    """Number that pandas reads from a category if a column has no other text; NaN for none."""
    try:
        return {"True": 1.0, "False": 0.0}[word] if word in ("True", "False") else float(word)
    except ValueError:
        return np.nan


@dataclass(frozen=True)
class StaticCodes:
    """Encodings of the static covariates of a panel, fitted to the training series and stored with the model.

    Attributes:
        columns: encoding of each column, in the order of `Roles.static`.
    """

    columns: tuple[StaticColumn, ...]

    @property
    def width(self) -> int:
        """Number E of inputs from all columns."""
        return sum(column.width for column in self.columns)

    @classmethod
    def fit(cls, static: pd.DataFrame) -> StaticCodes:
        """Fit to a table of `read_static`; UsageError if a column cannot be encoded."""
        return cls(tuple(StaticColumn.fit(static[name], str(name)) for name in static))

    def encode(self, static: pd.DataFrame, where: str = "The history") -> NDArray[np.float32]:
        """Inputs (S, E) of the series in a table of `read_static`; see `StaticColumn.encode`."""
        return np.concatenate(
            [each.encode(static[each.name], where) for each in self.columns], axis=1, dtype=np.float32
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON, by column name."""
        return {
            each.name: {"words": list(each.words)} if each.words else {"mean": each.mean, "scale": each.scale}
            for each in self.columns
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> StaticCodes:
        """The inverse of `to_dict`."""
        given = ({**asdict(StaticColumn(name)), **code, "name": name} for name, code in record.items())
        return cls(tuple(StaticColumn(**{**each, "words": tuple(each["words"])}) for each in given))
