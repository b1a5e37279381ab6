"""Static columns of a panel: what stays the same for a series, read from its rows, and as numbers for a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.stamps import as_text
from femts.errors import GapWarning, UsageError, warn
from femts.text import quote

MOST_WORDS = 256  # of a column: each is an input of the model


def read_static(
    frame: pd.DataFrame, columns: Sequence[str], codes: NDArray[np.integer[Any]], series: Sequence[str]
) -> pd.DataFrame:
    """The cells of `columns`, one row for each of `series`: numbers, or words; NaN or None where all are missing.

    Args:
        frame: a long table.
        columns: names of its static columns.
        codes: number of the series of each row.
        series: their names.

    Raises:
        UsageError: a cell differs from another of its series, or is infinite; the text names both.
    """
    return pd.DataFrame({name: _one_each(frame[name], name, codes, series) for name in columns}, index=list(series))


def _one_each(column: pd.Series, name: str, codes: NDArray[np.integer[Any]], series: Sequence[str]) -> pd.Series:
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_complex_dtype(column)
    if numeric:
        cells = pd.Series(column.to_numpy(dtype=np.float64, na_value=np.nan))
    else:
        cells = as_text(column).astype(object).where(column.notna().to_numpy(), None).reset_index(drop=True)
    each, values = pd.factorize(cells)
    given = each >= 0
    low, high = np.full(len(series), len(values)), np.full(len(series), -1)
    np.minimum.at(low, codes[given], each[given])
    np.maximum.at(high, codes[given], each[given])
    changing = high > low
    if changing.any():
        first = int(np.argmax(changing))
        one, other = (
            f"{values[place]:g}" if numeric else f"'{quote(values[place])}'" for place in (low[first], high[first])
        )
        raise UsageError(
            f"Static covariate '{quote(name)}' of series '{quote(series[first])}' changes from {one} to {other}; give it "
            "one value, or remove it from --static-covariates."
        )
    if numeric and np.isinf(np.asarray(values)).any():
        first = int(codes[np.isinf(cells.to_numpy())][0])
        raise UsageError(
            f"Static covariate '{quote(name)}' of series '{quote(series[first])}' is infinite; put a number there."
        )
    cells = pd.Series([np.nan if numeric else None, *values], dtype=np.float64 if numeric else object)
    return cells.iloc[high + 1].set_axis(list(series))


@dataclass(frozen=True)
class StaticColumn:
    """Code of one static column.

    Attributes:
        name: of the column.
        words: those that it has, sorted, an input each; empty for a column of numbers.
        mean, scale: of its numbers over the series; 0 and 1 for words.
    """

    name: str
    words: tuple[str, ...] = ()
    mean: float = 0.0
    scale: float = 1.0

    @property
    def width(self) -> int:
        """Number of inputs."""
        return max(1, len(self.words))

    @classmethod
    def fit(cls, cells: pd.Series, name: str) -> StaticColumn:
        """Code of the `cells` of the training's series; UsageError for too many words, or no cell at all."""
        cells = cells.dropna()
        if cells.empty:
            raise UsageError(f"Static covariate '{quote(name)}' has no value; remove it from --static-covariates.")
        if cells.dtype != object:
            spread = float(cells.std(ddof=0))
            return cls(name, (), float(cells.mean()), spread if spread > 0 else 1.0)
        words = tuple(sorted(set(cells)))
        if len(words) > MOST_WORDS:
            raise UsageError(
                f"Static covariate '{quote(name)}' has {len(words)} different words, but at most {MOST_WORDS} are "
                "supported; group them into fewer."
            )
        return cls(name, words)

    def encode(self, cells: pd.Series, where: str) -> NDArray[np.float64]:
        """Inputs (S, width) of S `cells`; what is missing counts as the mean, or as no word.

        Raises:
            UsageError: a word where the training had numbers; the text begins with `where`.

        Warns:
            GapWarning: words that the training did not have.
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
        """The word of a number: a table that lacks the words has a column of numbers."""
        plain = f"{number:.15g}"
        same = (word for word in self.words if _number(word) == number)
        return plain if plain in self.words else next(same, plain)


def _number(word: str) -> float:
    """The number that pandas takes a word for in a column without others; NaN for none."""
    try:
        return {"True": 1.0, "False": 0.0}[word] if word in ("True", "False") else float(word)
    except ValueError:
        return np.nan


@dataclass(frozen=True)
class StaticCodes:
    """Codes of the static columns of a panel, fitted to the series of the training and kept with the model.

    Attributes:
        columns: a code for each, in the order of `Roles.static`.
    """

    columns: tuple[StaticColumn, ...]

    @property
    def width(self) -> int:
        """Number E of inputs of all columns."""
        return sum(column.width for column in self.columns)

    @classmethod
    def fit(cls, static: pd.DataFrame) -> StaticCodes:
        """Fit to a table of `read_static`; UsageError for a column that cannot be an input."""
        return cls(tuple(StaticColumn.fit(static[name], str(name)) for name in static))

    def encode(self, static: pd.DataFrame, where: str = "The history") -> NDArray[np.float32]:
        """Inputs (S, E) of the series of a table of `read_static`; see `StaticColumn.encode`."""
        return np.concatenate(
            [each.encode(static[each.name], where) for each in self.columns], axis=1, dtype=np.float32
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON, by the name of the column."""
        return {
            each.name: {"words": list(each.words)} if each.words else {"mean": each.mean, "scale": each.scale}
            for each in self.columns
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> StaticCodes:
        """The inverse of `to_dict`."""
        given = ({**asdict(StaticColumn(name)), **code, "name": name} for name, code in record.items())
        return cls(tuple(StaticColumn(**{**each, "words": tuple(each["words"])}) for each in given))
