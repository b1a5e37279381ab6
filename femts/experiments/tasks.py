"""Forecasting tasks, listed in YAML: data, horizon, rolling windows and metric, scored by the protocol of fev.

At the end of each series, `windows` forecasts of `horizon` steps follow one another; each may read all rows before it.
`femts.analysis.rolling_scores` scores them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.tseries.frequencies import to_offset
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from femts.analysis.rolling_scores import RollingSums
from femts.config.training import parse_span
from femts.config.values import read_yaml
from femts.data.cutoffs import rows_before
from femts.data.dataset import Dataset
from femts.data.describe import count
from femts.data.download import data_root
from femts.data.loading import is_path, load_dataset
from femts.data.schema import Schema
from femts.errors import UsageError
from femts.evaluation.scale import SeasonalScale
from femts.experiments.results import first_error
from femts.text import argument, quote

Metric = Literal["mase", "sql", "wape", "wql"]
METRICS: tuple[str, ...] = get_args(Metric)
Positive = Annotated[int, Field(ge=1)]


class Task(BaseModel):
    """A forecasting task.

    Attributes:
        name: name of the task, also of its folder of records.
        data: catalogue names, and files relative to the list of tasks or to the data folder; one forecaster is trained
            on each.
        horizon: forecast horizon in steps.
        windows: number of forecasts at the end of each series, a horizon apart.
        season: steps in a season, for the scale of errors and for the models; None is that of the step between rows.
        aggregate: longer step, a pandas frequency, over which rows are averaged; incomplete periods at the ends are
            dropped.
        metric: metric that decides comparisons.
        refit: train before each window instead of only before the first one.
        time_limit: longest duration of each training of `auto`; other models follow their own recipe.
        reading: further keywords of `load_dataset`, such as `target` and `future_covariates`. Models that cannot read
            past or static covariates run without them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[str, Field(pattern=r"^\w[\w.+-]{0,59}$")]
    data: Annotated[tuple[str, ...], Field(min_length=1)]
    horizon: Positive
    windows: Positive = 1
    season: Positive | None = None
    aggregate: str | None = None
    metric: Metric = "mase"
    refit: bool = False
    time_limit: str | None = None
    reading: dict[str, Any] = {}

    @field_validator("data", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("time_limit")
    @classmethod
    def _limit(cls, value: str | None) -> str | None:
        if value is not None:
            parse_span(value)
        return value

    def to_dict(self) -> dict[str, Any]:
        """Fields that differ from their defaults, in plain types."""
        return self.model_dump(mode="json", exclude_defaults=True)

    def load(self, source: str, root: str | Path | None = None) -> Dataset:
        """Load one of the datasets from the path or catalogue name `source`.

        Raises:
            UsageError: It cannot be read, or no series has enough rows.
        """
        season = {} if self.season is None else {"season": self.season}
        data = load_dataset(source, root, **{**self.reading, **season})
        if self.aggregate is not None:
            data = _averaged(data, self.aggregate, self.name)
        if not (rows_before(data.lengths, self.windows, self.horizon, self.horizon)[:, 0] > self.horizon).any():
            raise UsageError(
                f"Task '{self.name}' scores {count(self.windows, 'window')} of {count(self.horizon, 'step')}, but the longest series of "
                f"{source} has {count(data.rows, 'row')}; reduce the windows or the horizon."
            )
        return replace(data, name=Path(source).stem if is_path(source) else source)


def read_tasks(paths: Sequence[Path]) -> list[tuple[Task, Path]]:
    """Read lists of tasks, each the YAML entry `tasks` of a file: mappings with the fields of `Task`.

    Returns:
        The tasks, each with the file that lists it.

    Raises:
        UsageError: A file is not such a list, a field is invalid, or a name is repeated.
    """
    tasks = [(task, path) for path in paths for task in _read_list(path)]
    names = [task.name.lower() for task, _ in tasks]  # some file systems ignore case
    repeated = next((task.name for task, _ in tasks if names.count(task.name.lower()) > 1), None)
    if repeated is not None:
        raise UsageError(f"Several tasks are named '{repeated}'; give each its own name.")
    return tasks


def _read_list(path: Path) -> list[Task]:
    content = read_yaml(path, "The list of tasks")
    entries = content.get("tasks") if isinstance(content, Mapping) else None
    if not isinstance(entries, list) or not entries or set(content) - {"tasks"}:
        raise UsageError(f"{path} is not a list of tasks; write 'tasks:' and below it entries with name and data.")
    tasks = list[Task]()
    for number, entry in enumerate(entries, 1):
        try:
            tasks.append(Task.model_validate(entry))
            Schema.of(**tasks[-1].reading)
        except (ValidationError, UsageError) as error:
            name = f" '{quote(entry['name'])}'" if isinstance(entry, Mapping) and "name" in entry else ""
            reason = first_error(error) if isinstance(error, ValidationError) else error.marked.rstrip(".")
            raise UsageError(f"Task {number}{name} of {path} is invalid: {reason}.") from error
    return tasks


def resolve_source(source: str, folder: Path, root: str | Path | None) -> str:
    """Catalogue name, or path of a file relative to `folder` or to the data folder.

    Raises:
        UsageError: There is no such file.
    """
    if not is_path(source):
        return source
    tried = [folder / source, data_root(root) / source]
    found = next((path for path in tried if path.is_file()), None)
    if found is None:
        places = " or ".join(str(path.parent) for path in tried)
        raise UsageError(f"File {quote(source)} is not in {places}; check its name, or set {argument('data_root')}.")
    return str(found.resolve())


def _averaged(data: Dataset, step: str, name: str) -> Dataset:
    """Means of `data` over periods of `step`, without incomplete ones at the ends of a series."""
    if not isinstance(data.stamps, pd.DatetimeIndex):
        raise UsageError(f"Task '{name}' is to be aggregated, but its data have no dates; remove 'aggregate'.")
    try:
        offset = to_offset(step)
    except ValueError as error:
        raise UsageError(f"Task '{name}' has the step '{quote(step)}', which is not a pandas frequency.") from error
    rows, parts = pd.DataFrame(np.hstack([data.values, data.covariates]), index=data.stamps), list[pd.DataFrame]()
    for first, stop in data.spans.tolist():
        grouped = rows.iloc[first:stop].resample(offset)
        means = grouped.mean()
        whole = np.flatnonzero(grouped.size() == _whole_sizes(rows.index[first:stop], to_offset(data.freq), offset))
        parts.append(means.iloc[whole[0] : whole[-1] + 1] if len(whole) else means.iloc[:0])
    means, ends = pd.concat(parts), np.cumsum([len(part) for part in parts])
    spans = np.stack([np.append(0, ends[:-1]), ends], axis=1)
    values, covariates = np.split(means.to_numpy(), [data.values.shape[1]], axis=1)
    made = replace(
        data,
        values=np.ascontiguousarray(values),
        covariates=np.ascontiguousarray(covariates),
        stamps=pd.DatetimeIndex(means.index),
        spans=spans,
        freq=offset.freqstr,
        season=data.schema.season_of(offset.freqstr),
        split=data.schema.split.split(means.index, spans, f"'{data.name}'"),
        source=None,
    )
    return replace(made, sha256=made.fingerprint())


def _whole_sizes(stamps: pd.DatetimeIndex, step: pd.DateOffset, period: pd.DateOffset) -> NDArray[np.int64]:
    """Number of steps in each period of `stamps`, had the rows begun and ended with whole periods."""
    more = len(pd.date_range(stamps[0], stamps[0] + 2 * period, freq=step)) + 1
    before, after = (
        pd.date_range(end=stamps[0], periods=more, freq=step),
        pd.date_range(stamps[-1], periods=more, freq=step),
    )
    sizes = pd.Series(1, before.union(stamps).union(after)).resample(period).size()
    return sizes.reindex(pd.Series(1, stamps).resample(period).size().index).to_numpy()


def score_forecasts(forecasts: Sequence[pd.DataFrame], tables: Sequence[Dataset], task: Task) -> pd.DataFrame:
    """Scores of a task by window.

    Args:
        forecasts: for each dataset, the result of `rolling_forecasts` with all `QUANTILES`.
        tables: the datasets.
        task: the task.

    Returns:
        A row for each window, with `mase`, `sql` (scaled quantile loss), `wape`, `wql`, and metrics that plugins
        register. As in fev, `mase` and `sql` are means over the values of all series, and those whose scale is 0 or
        unknown do not count.
    """
    parts = list[RollingSums]()
    for frame, data in zip(forecasts, tables, strict=True):
        before = rows_before(data.lengths, task.windows, task.horizon, task.horizon)
        scale = SeasonalScale.before(data, before, task.season or data.season, or_step=False)
        parts.append(RollingSums.of(frame, data, scale, "q-50"))
    return RollingSums.joined(parts).by_window(pooled=("mase", "sql")).drop(columns="rmsse")
