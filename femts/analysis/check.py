"""Check of a forecaster on rows that came after its training: is it still as good as it was?

The forecasts of the newest rows are compared with those of earlier windows that the forecaster has not seen either, the
later ones forecast by itself and, if it was refitted on all rows, the earlier ones by the model that was scored. For each
series and target, the logarithm of the mean absolute error of a window, and its mean error, are divided by their usual
distance from the median (the median absolute deviation). A distance is an alarm if Student's t distribution gives it a
probability below `FALSE`, divided among all series, targets and tests, and if no series was that far in any earlier
window but one, which may have had a fault: errors have heavier tails than the distribution. An alarm therefore means a
change, not a large error: a series that was always hard to forecast gives none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from femts.analysis.backtest import first_unseen, models_of, rows_of, unused_rows, uses_of
from femts.analysis.rolling import rolling_forecasts, rolling_naive_forecasts
from femts.analysis.rolling_scores import Places
from femts.config.arguments import check_kind
from femts.data.cutoffs import Cutoff, rolling_cutoffs
from femts.data.dataset import Dataset
from femts.data.describe import are, count, names, stamp
from femts.errors import UsageError, memory_checked
from femts.evaluation.scale import SeasonalScale
from femts.forecaster.bounds import QuantileSpec
from femts.forecaster.forecaster import Forecaster, Source
from femts.forecaster.seen import Use
from femts.text import argument, quote

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FALSE = 1e-3  # probability of an alarm without a change
WINDOWS = 90  # most windows that are forecast
NUMBERS = 3_000_000  # most values that are forecast
SPANS = 1, 7  # numbers of newest windows whose mean is compared
FEWEST = 6  # fewest earlier windows, without overlap of their means, to compare with
GREATER = 1.25  # least ratio of an alarming error to the highest of earlier windows
FAR = 2.0  # least distance of an alarming reading from the forecast, in half-widths of the widest interval
LONGER = 2.0  # least ratio of an alarming run of equal values to the longest one before
LISTED = 5  # most readings outside of their interval that are listed
COVERED, WIDEST = 80, 99.9  # levels of the interval whose coverage is reported, and of that which readings may leave
SHORTEST_RUN = 6  # fewest equal readings of an alarming run
NORMAL_MAD = 0.6745  # median absolute deviation of the normal distribution, in standard deviations
EFFICIENCY = 0.37  # share of values from which the standard deviation is as certain as the median absolute deviation
TRAIN = "train it again with femts update"
CALIBRATE = f"calibrate its intervals on the new rows with femts calibrate RUN DATA, or {TRAIN}"
LOOK = "look at where the data come from"
COLUMNS = ("kind", "series", "column", "at", "text", "alarm", "remedy")
Finding = tuple[str, str, str, str, str, bool, str]


@dataclass(frozen=True, eq=False)
class Check:
    """Result of `check`.

    Attributes:
        summary: `first` and `last`, time stamps of the new rows that were forecast; `steps` of a window, which are
            fewer than `asked` if fewer rows are new; `new` and `earlier`, numbers of windows of these and of those they
            are compared with; `new_rows`, number of rows of the table after those used for training; `mase` of the new
            windows and `mase_earlier`, NaN without earlier ones; `naive`, the best naive forecast of the new windows,
            and `mase_naive`; `coverage`, the fraction of new readings inside the 80 % interval, None without intervals.
        findings: one row each: `kind` (`error`, `bias`, `reading`, `constant`, `missing`, `naive` or `coverage`),
            `series`, `column`, `at` (time stamp), `text`, `alarm` (whether the data or the forecaster need attention),
            and `remedy`.
        windows: one row for each window: `last` (time stamp), `new`, `mase` of the forecaster, and that of each naive
            forecast by name.
    """

    summary: Mapping[str, Any]
    findings: pd.DataFrame
    windows: pd.DataFrame

    @property
    def ok(self) -> bool:
        """Whether there is no alarm."""
        return not self.findings["alarm"].any()

    def to_dict(self) -> dict[str, Any]:
        """Plain types for JSON."""
        tables = {"findings": self.findings, "windows": self.windows}
        return {"ok": self.ok, **self.summary} | {name: each.to_dict("records") for name, each in tables.items()}

    def __repr__(self) -> str:
        return str(self)  # what a notebook shows

    def __str__(self) -> str:
        of, lines = self.summary, list[str]()
        before = f", before {of['mase_earlier']:.3f}" if of["earlier"] else ""
        lines.append(
            f"{'good' if self.ok else 'alarm'}: {count(of['new'], 'window')} from {of['first']} to {of['last']}, "
            f"compared with {of['earlier']} before; {count(of['new_rows'], 'row')} came after training"
        )
        lines.append(f"MASE {of['mase']:.3f}{before}; best naive forecast ({of['naive']}) {of['mase_naive']:.3f}")
        if of["coverage"] is not None:
            lines.append(f"{100 * of['coverage']:.0f} % of the new readings are inside their {COVERED} % interval")
        if of["steps"] < of["asked"]:
            lines.append(
                f"note: fewer than {of['asked']} rows are new, so windows have {count(of['steps'], 'step')} instead"
            )
        if of["earlier"] < FEWEST:
            lines.append("note: too few windows before to tell whether errors have changed; provide earlier rows, too")
        for row in self.findings.itertuples(index=False):
            lines.append(f"{'alarm' if row.alarm else 'note'}: {row.text}{f'; {row.remedy}' if row.remedy else ''}")
        return "\n".join(lines)


@memory_checked()
def check(forecaster: Forecaster, data: Source, *, horizon: int | None = None) -> Check:
    """Check a forecaster on rows that came after its training.

    Args:
        forecaster: a trained forecaster.
        data: a table as for `backtest`, with the new rows at its end and as many rows before them as there are: earlier
            windows show which errors are usual.
        horizon: steps of a window; None takes the horizon of the training. If fewer rows are new, their number is taken.
            A check each night of hourly data takes 24.

    Returns:
        The result; see `Check`.

    Raises:
        NoNewRows: There is no new row; a `UsageError`.
        UsageError: As in `backtest`.
    """
    check_kind(forecaster, Forecaster, "The forecaster", "give what femts.train or femts.load returned")
    asked = _steps(forecaster.config.pred_len, horizon)
    rows, where = rows_of(forecaster, data)
    age = unused_rows(forecaster, rows, where)
    steps = min(asked, age)
    most = min(WINDOWS, max(FEWEST + 1, NUMBERS // (len(rows) * rows.n_targets * steps)))
    fewest = 1 if rows.schema.panel else forecaster.config.fewest_rows
    cutoffs = [each for each in rolling_cutoffs(rows.lengths, most, steps, steps, fewest) if len(each.series)]
    if not cutoffs:
        needed = f"at least {count(fewest, 'row')} before the newest {steps}"
        raise UsageError(
            f"{where} has {count(rows.rows, 'row')}, but a check needs {needed}; provide earlier rows, too."
        )
    uses = uses_of(forecaster, rows, cutoffs)
    first = first_unseen(uses)
    cutoffs = [replace(each, window=number) for number, each in enumerate(cutoffs[first:], 1)]
    new = np.array([bool((use[0] == Use.NONE).any()) for use in uses[first:]])
    table = _Windows.of(forecaster, rows, cutoffs, uses[first:], steps)
    found = [
        *_missing(forecaster, rows, steps),
        *_constant(rows, steps),
        *table.readings(new),
        *table.changes(),
        *table.naive(new),
        *table.coverage(new),
    ]
    findings = pd.DataFrame(found, columns=list(COLUMNS)).astype({"alarm": bool})
    findings = findings.sort_values("alarm", ascending=False, kind="stable").reset_index(drop=True)
    return Check(table.summary(new) | {"steps": steps, "asked": asked, "new_rows": age}, findings, table.by_window(new))


def _steps(usual: int, horizon: int | None) -> int:
    """Number of steps of a window that was asked for."""
    if horizon is None:
        return usual
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        text = f"A check requires a whole number of at least 1 for {argument('horizon')}, not {horizon}."
        raise UsageError(text, argument="horizon", value=horizon, remedy={"horizon": None})
    return int(horizon)


def _named(series: str, column: str) -> str:
    """How a target is named in a sentence."""
    return f"'{quote(column)}' of '{quote(series)}'" if series else f"'{quote(column)}'"


def _missing(forecaster: Forecaster, rows: Dataset, steps: int) -> Iterator[Finding]:
    """Series of the training that are absent, and targets without a value in the newest steps of the table."""
    absent = tuple(sorted(set(forecaster.series) - set(rows.series))) if rows.schema.panel else ()
    if absent:
        text = f"{len(absent)} of {len(forecaster.series)} series of the training {are(len(absent))} absent: {names(absent)}"
        yield "missing", absent[0], "", "", text, True, LOOK
    stamps = pd.RangeIndex(len(rows.values)) if rows.stamps is None else rows.stamps
    latest = int(np.argmax(stamps[rows.spans[:, 1] - 1]))
    since = stamps[max(rows.spans[latest, 0], rows.spans[latest, 1] - steps)]
    for (first, stop), name in zip(rows.spans.tolist(), rows.series, strict=True):
        observed, recent = ~np.isnan(rows.values[first:stop, : rows.n_targets]), stamps[first:stop] >= since
        if recent.all():
            continue
        usual, now = observed[~recent].mean(0), observed[recent].any(0)
        for column, share, any_now in zip(rows.columns, usual.tolist(), now.tolist(), strict=False):
            if share > 0.5 and not any_now:
                text = f"{_named(name, column)} has no value from {stamp(since)} on"
                yield "missing", name, column, str(since), text, True, LOOK


def _constant(rows: Dataset, steps: int) -> Iterator[Finding]:
    """Targets that end in a run of equal values much longer than those before, such as a dead sensor."""
    stamps = pd.RangeIndex(len(rows.values)) if rows.stamps is None else rows.stamps
    for (first, stop), name in zip(rows.spans.tolist(), rows.series, strict=True):
        for target, column in enumerate(rows.columns[: rows.n_targets]):
            values = rows.values[first:stop, target]
            seen = np.flatnonzero(~np.isnan(values))
            if len(seen) < 2:
                continue
            starts = np.flatnonzero(np.diff(values[seen], prepend=np.nan) != 0)
            lengths = np.diff(starts, append=len(seen))
            longest = int(lengths[:-1].max(initial=0))
            if len(lengths) > 1 and lengths[-1] >= max(SHORTEST_RUN, steps // 4) and lengths[-1] > LONGER * longest:
                at = stamps[first + seen[starts[-1]]]
                text = (
                    f"{_named(name, column)} has been {values[seen[-1]]:g} for {count(int(lengths[-1]), 'reading')}, since "
                    f"{stamp(at)}; before, it kept a value for at most {longest}"
                )
                yield "constant", name, column, str(at), text, True, LOOK


@dataclass(frozen=True, eq=False)
class _Windows:
    """Errors of W windows, S series and T targets; NaN where there are none.

    Attributes:
        rows: the series.
        first, last: time stamps of the first and last step of each window.
        sizes: mean absolute errors (W, S, T) in raw units.
        means: mean errors, forecast minus actual value (W, S, T).
        scale: mean absolute seasonal changes before the first window (S, T).
        others: `sizes` of the naive forecasts by name.
        inside: fraction of the readings inside the interval of `COVERED` percent (W, S, T); NaN without intervals.
        far: the forecasts of the readings outside of the widest interval, with `distance`, in half-widths.
        level: level of that interval in percent; 0 without intervals.
    """

    rows: Dataset
    first: list[str]
    last: list[str]
    sizes: Array
    means: Array
    scale: Array
    others: Mapping[str, Array]
    inside: Array
    far: pd.DataFrame
    level: float

    @classmethod
    def of(
        cls,
        forecaster: Forecaster,
        rows: Dataset,
        cutoffs: Sequence[Cutoff],
        uses: Sequence[NDArray[np.int64]],
        steps: int,
    ) -> _Windows:
        """Forecast the windows, each series by the first of the models that has not seen it."""
        origins, models, count_ = list[tuple[Forecaster, Cutoff]](), models_of(forecaster), len(cutoffs)
        for cutoff, use in zip(cutoffs, uses, strict=True):
            for number, model in enumerate(models):
                own = np.flatnonzero((use.argmin(axis=0) == number) & (use.min(axis=0) == Use.NONE))
                if len(own):
                    origins.append((model, replace(cutoff, series=cutoff.series[own], rows=cutoff.rows[own])))
        widest = min(
            max(one.intervals.levels, default=0.0)
            if one.intervals is not None and one.intervals.steps >= steps
            else 0.0
            for one in models
        )
        level = min(widest, WIDEST)
        frame = rolling_forecasts(
            rows, origins, steps, QuantileSpec.of((COVERED, level) if level > COVERED else None, None)
        )
        errors = (frame["forecast"] - frame["actual"]).to_numpy()
        inside, distance = np.full(len(frame), np.nan), np.zeros(len(frame))
        if level > COVERED:
            low, high = (frame[f"{end}-{COVERED:g}"].to_numpy() for end in ("lo", "hi"))
            inside = np.where(np.isnan(errors), np.nan, (frame["actual"] >= low) & (frame["actual"] <= high))
            end = np.where(errors < 0, frame[f"hi-{level:g}"], frame[f"lo-{level:g}"])
            half = np.abs(end - frame["forecast"].to_numpy())
            distance = np.divide(np.abs(errors), half, out=distance, where=half > 0)
        before = np.zeros((len(rows), 1), dtype=np.int64)
        for cutoff in reversed(cutoffs):
            before[cutoff.series, 0] = cutoff.rows
        naive = rolling_naive_forecasts(rows, cutoffs, steps, max(forecaster.config.seq_len, rows.season))
        ends = frame.groupby("window")["step" if rows.freq is None else "date"].agg(["min", "max"])
        return cls(
            rows,
            [stamp(each) for each in ends["min"]],
            [stamp(each) for each in ends["max"]],
            _spread(frame, np.abs(errors), rows, count_),
            _spread(frame, errors, rows, count_),
            SeasonalScale.before(rows, before, rows.season).absolute[:, 0],
            {
                name: _spread(made, (made["forecast"] - made["actual"]).abs().to_numpy(), rows, count_)
                for name, made in naive.items()
            },
            _spread(frame, inside, rows, count_),
            frame[distance > 1].assign(distance=distance[distance > 1]),
            level if level > COVERED else 0.0,
        )

    def mase(self, sizes: Array) -> Array:
        """MASE (W,) of each window, over series and targets that have a scale; NaN if none has."""
        relative = sizes / np.where(self.scale > 0, self.scale, np.nan)
        return _mean(relative.reshape(len(sizes), -1), 1)

    def readings(self, new: Mask) -> Iterator[Finding]:
        """New readings outside of their widest interval; those far outside, and further than any of earlier windows and
        those of more than one new window before, are alarms."""
        if self.far.empty:
            return
        is_new = new[self.far["window"].to_numpy() - 1]
        before = self.far.groupby("window")["distance"].max().drop(len(new), errors="ignore")
        # One new window may have been a fault; what two had is usual by now, and gives no alarm again.
        usual = max([1.0, *before[~new[before.index - 1]], *before.nlargest(2)[1:]])
        found = self.far[is_new].sort_values("distance", ascending=False)
        stamps = found.columns[3]  # `date` or `step`
        if len(found) > LISTED:
            text = f"{len(found)} new readings are outside their {self.level:g} % interval; the {LISTED} furthest are listed"
            yield "reading", "", "", "", text, False, ""
        for row in found.head(LISTED).to_dict("records"):
            alarm = row["distance"] > max(FAR, GREATER * usual) and row["window"] == len(new)
            text = (
                f"{_named(row['series'], row['column'])} was {row['actual']:.4g} at {stamp(row[stamps])}, {row['distance']:.1f} "
                f"times as far from the forecast of {row['forecast']:.4g} as its {self.level:g} % interval reaches"
            )
            yield "reading", row["series"], row["column"], str(row[stamps]), text, bool(alarm), LOOK if alarm else ""

    def changes(self) -> Iterator[Finding]:
        """Targets whose newest errors are larger, or more to one side, than those of earlier windows."""
        with np.errstate(divide="ignore"):
            kinds = {"error": np.log(self.sizes), "bias": self.means}
        tests = len(kinds) * len(SPANS) * self.sizes[0].size
        for (kind, values), span in product(kinds.items(), SPANS):
            if len(values) < (FEWEST + 1) * span:
                continue
            earlier, newest = _spans(values, span)
            middle = np.nanmedian(earlier, axis=0) if kind == "error" else np.zeros(values.shape[1:])
            usual = np.nanmedian(np.abs(earlier - middle), axis=0) / NORMAL_MAD
            excess = (newest - middle) if kind == "error" else np.abs(newest)
            before = (earlier - middle) if kind == "error" else np.abs(earlier)
            highest = np.nanmax(before, axis=0)
            beyond = excess > (highest + np.log(GREATER) if kind == "error" else GREATER * highest)
            counted = (usual > 0) & ~np.isnan(before)
            furthest = np.divide(before, usual, out=np.full(before.shape, -np.inf), where=counted).max(axis=(1, 2))
            limit = max(
                stdtrit(max(1.0, EFFICIENCY * len(earlier) / span), 1 - FALSE / tests),
                GREATER * np.sort(furthest)[-1 - span],  # one earlier window may have had a fault
            )
            for number, target in np.argwhere((excess > limit * usual) & beyond & (usual > 0)).tolist():
                name, column = self.rows.series[number], self.rows.columns[target]
                yield self._change(kind, span, name, column, float(newest[number, target]), earlier[:, number, target])

    def _change(self, kind: str, span: int, name: str, column: str, newest: float, earlier: Array) -> Finding:
        windows = "the newest window" if span == 1 else f"the newest {span} windows"
        if kind == "error":
            text = (
                f"the mean absolute error of {_named(name, column)} was {np.exp(newest):.4g} in {windows}, and at most "
                f"{np.exp(np.nanmax(earlier)):.4g} before"
            )
        else:
            text = (
                f"forecasts of {_named(name, column)} were {abs(newest):.4g} too {'high' if newest > 0 else 'low'} on average "
                f"in {windows}, and at most {np.nanmax(np.abs(earlier)):.4g} before"
            )
        return kind, name, column, self.last[-1], text, True, TRAIN

    def naive(self, new: Mask) -> Iterator[Finding]:
        """Whether a naive forecast has been better on the new windows, but not by chance."""
        own = self.mase(self.sizes)[new]
        others = {name: self.mase(sizes)[new] for name, sizes in self.others.items()}
        for name in sorted(others, key=lambda name: _mean(others[name]))[:1]:
            more = own - others[name]
            more = more[~np.isnan(more)]
            if len(more) >= FEWEST and more.mean() > 0.05 * own.mean():
                error = more.std(ddof=1) / np.sqrt(len(more))
                if more.mean() > stdtrit(len(more) - 1, 1 - FALSE / len(self.others)) * error:
                    text = (
                        f"the {name.replace('_', ' ')} forecast was better in the {len(more)} new windows: MASE "
                        f"{own.mean() - more.mean():.3f}, not {own.mean():.3f}"
                    )
                    yield "naive", "", "", self.last[-1], text, True, TRAIN

    def coverage(self, new: Mask) -> Iterator[Finding]:
        """Whether the intervals of the new windows cover less than their level, but not by chance."""
        covered = _mean(self.inside[new].reshape(int(new.sum()), -1), 1)
        covered = covered[~np.isnan(covered)]
        if len(covered) >= FEWEST:
            error = covered.std(ddof=1) / np.sqrt(len(covered))
            if covered.mean() + stdtrit(len(covered) - 1, 1 - FALSE) * error < COVERED / 100 - 0.05:
                text = f"{COVERED} % intervals cover {100 * covered.mean():.0f} % of the readings in {len(covered)} new windows"
                yield "coverage", "", "", self.last[-1], text, True, CALIBRATE

    def summary(self, new: Mask) -> dict[str, Any]:
        """What `Check.summary` describes, without `new_rows`."""
        own, others = self.mase(self.sizes), {name: _mean(self.mase(each)[new]) for name, each in self.others.items()}
        best = min(others, key=lambda name: others[name] if others[name] == others[name] else np.inf)
        inside = _mean(self.inside[new].ravel())
        return {
            "first": self.first[int(new.argmax())],
            "last": self.last[-1],
            "new": int(new.sum()),
            "earlier": int((~new).sum()),
            "mase": float(_mean(own[new])),
            "mase_earlier": float(_mean(own[~new])),
            "naive": best,
            "mase_naive": float(others[best]),
            "coverage": None if np.isnan(inside) else float(inside),
        }

    def by_window(self, new: Mask) -> pd.DataFrame:
        """What `Check.windows` describes."""
        others = {name: self.mase(each) for name, each in self.others.items()}
        return pd.DataFrame({"last": self.last, "new": new, "mase": self.mase(self.sizes), **others})


def _spread(frame: pd.DataFrame, values: Array, rows: Dataset, windows: int) -> Array:
    """Means (W, S, T) over the steps of the `values` (N,) of the rows of `frame`."""
    places = Places.of(frame, rows.series, rows.columns[: rows.n_targets])
    made = np.full((windows, len(rows), rows.n_targets), np.nan)
    made[places.window, places.series] = _mean(np.asarray(places.spread(values)), 1)
    return made


def _mean(values: Array, axis: int = 0) -> Array:
    """Mean without missing values; NaN where there are none."""
    there = ~np.isnan(values)
    total, number = np.where(there, values, 0.0).sum(axis), there.sum(axis)
    return np.divide(total, number, out=np.full(total.shape, np.nan), where=number > 0)


def _spans(values: Array, span: int) -> tuple[Array, Array]:
    """Moving means (N, S, T) of `span` windows before the newest ones, and the mean (S, T) of these."""
    means = np.lib.stride_tricks.sliding_window_view(values, span, axis=0).mean(-1)
    return means[:-span], means[-1]
