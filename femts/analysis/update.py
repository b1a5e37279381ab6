"""Update of a forecaster with rows that came after its training."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from femts.analysis.backtest import backtest, rows_of, unused_rows
from femts.analysis.rolling_scores import backtest_scores
from femts.config.arguments import check_kind
from femts.data.describe import count, stamp
from femts.data.splits import Split
from femts.errors import memory_checked
from femts.forecaster.forecaster import Forecaster, Source
from femts.forecaster.seen import Use, rows_used
from femts.training.refit import held_out_intervals, refit

WINDOWS = 3  # most new windows on which both forecasters are compared


@dataclass(frozen=True, eq=False)
class Update:
    """Result of `update`.

    Attributes:
        forecaster: the forecaster trained on all rows of the table, with intervals from the errors of the model that was
            scored on all rows after its training.
        rows: number of rows that came after the old training, and of all rows.
        windows: number of the newest windows on which both are compared, each with new rows before it; 0 if there is none.
        before, after: mean absolute errors on them in the scaled units of the run, of the old forecaster and of one
            trained on all rows before each window; NaN without a window.
    """

    forecaster: Forecaster
    rows: tuple[int, int]
    windows: int
    before: float
    after: float

    @property
    def better(self) -> bool:
        """Whether training with the newer rows lowers the error on the newest windows; False if there is none."""
        return self.after < self.before

    def __str__(self) -> str:
        new, total = self.rows
        lines = [
            f"trained on all {count(total, 'row')}, with {count(new, 'new step')}, up to {stamp(self.forecaster.until)}"
        ]
        if not self.windows:
            return f"{lines[0]}; these are too few to compare on"
        verb = "lowers" if self.better else "does not lower"
        newest = f"the newest {self.windows} windows" if self.windows > 1 else "the newest window"
        lines.append(
            f"training on the rows before {verb} the error on {newest}: mean absolute error {self.after:.4f}, with the old "
            f"forecaster {self.before:.4f}, scaled"
        )
        return "\n".join(lines)


@memory_checked()
def update(forecaster: Forecaster, data: Source) -> Update:
    """Train a forecaster again on all rows of a table that has grown, with the choices of its first training.

    Model, look-back, settings, seed, scale and number of steps stay as they are, so there is nothing to select. Intervals
    are calibrated on the rows after those that the scored model was trained on, old and new. To see what the new rows are
    worth, a forecaster that was trained on the rows before each of the newest windows is compared with the old one there.

    Args:
        forecaster: a trained forecaster.
        data: a table as for `backtest`, with all rows to train on.

    Returns:
        The new forecaster and the comparison; see `Update`.

    Raises:
        NoNewRows: There is no new row; a `UsageError`.
        UsageError: As in `backtest`.
        RunFailure: As in `femts.train`.
    """
    check_kind(forecaster, Forecaster, "The forecaster", "give what femts.train or femts.load returned")
    rows, where = rows_of(forecaster, data)
    new = unused_rows(forecaster, rows, where)
    windows = min(WINDOWS, (new - 1) // forecaster.config.pred_len)  # before the first, there is a new row to train on
    errors = [np.nan, np.nan]
    if windows:
        frames = [backtest(forecaster, rows, n_windows=windows, refit=each) for each in (False, True)]
        scores = [backtest_scores(frame, forecaster).query("model == 'forecast'")["mae_scaled"] for frame in frames]
        errors = [float(each.iloc[-1]) for each in scores]
    scored = forecaster.scored or forecaster
    trained = rows_used(scored, rows, Use.TRAINING)
    held_out = replace(rows, split=Split.at(trained, rows.lengths, rows.lengths))
    intervals = held_out_intervals(replace(scored, preprocess=scored.preprocess.for_series(rows)), held_out)
    made = replace(refit(forecaster, rows), intervals=intervals)
    return Update(made, (new, int(rows.lengths.sum())), windows, errors[0], errors[1])
