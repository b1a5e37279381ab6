"""One call of `train`: the trainings that it begins or continues in a folder, the last one on all rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from femts.files import remove_parts
from femts.forecaster.forecaster import Forecaster, load
from femts.forecaster.run_folder import CHECKPOINT, METRICS, SCORED, begin_run
from femts.mixers.kernels import recorded
from femts.training.fit import Course, fit, is_trained
from femts.training.outset import Outset
from femts.training.refit import held_out_intervals, learn_all
from femts.training.resume import changed_data, find_state
from femts.training.room import check_resources
from femts.training.state import TrainState
from femts.training.thinning import most_scored, scored_on

if TYPE_CHECKING:
    from femts.training.order import Order

SHARE = 0.5  # of the time for the training that is scored, where another one follows


@dataclass(frozen=True)
class Begun:
    """A training that stands in a folder.

    Attributes:
        forecaster: made by `outset`, or read from the folder.
        outset: its data, windows and configuration.
        state: where it stands; None where it is finished.
        folder: what keeps it; None keeps nothing.
    """

    forecaster: Forecaster
    outset: Outset
    state: TrainState | None
    folder: Path | None

    def write(self) -> None:
        """Write what a folder begins with, where it does not have that yet."""
        if self.folder is None or self.state is None:
            return
        remove_parts(self.folder)
        remove_parts((self.folder / CHECKPOINT).parent)
        if not self.state.model:
            begin_run(self.folder, self.outset.config, self.forecaster.preprocess_record())


@dataclass(frozen=True)
class Sitting:
    """Trainings by an order.

    Attributes:
        order: of the call.
        folder: what keeps the run, its `out` or a temporary one; None keeps nothing.
    """

    order: Order
    folder: Path | None

    def begin(self, outset: Outset, whole: Outset | None) -> tuple[Begun, ...]:
        """Begin the training of `outset`, and after it that of `whole`, on all rows, or find where they stand.

        Raises:
            UsageError: the folder cannot take them; nothing was written.
            RunFailure: there is too little memory or time for them; nothing was written.
        """
        if whole is None:
            trainings: tuple[Begun, ...] = (self._find(outset, self.folder, self.order.resume),)
        else:
            last = self._find(whole, self.folder, self.order.resume)  # its folder is the user's, and says what is wrong
            trainings = (self._find_scored(outset), last)
        for begun in reversed(trainings):
            begun.write()
        return trainings

    def finish(self, trainings: tuple[Begun, ...]) -> Forecaster:
        """Train and score; what a `--final` run scores is written before the training on all rows begins.

        Raises:
            KeyboardInterrupt: a signal came.
        """
        first, *after = trainings
        forecaster = first.forecaster
        if first.state is not None:
            with recorded() as kernels:
                fit(forecaster, first.outset, self._course(first, SHARE if after else 1.0), later=len(after))
            forecaster.metrics = {**forecaster.metrics, "kernels": dict(sorted(kernels.items()))}
        if not after:
            return forecaster
        last = after[0].forecaster
        if self.order.out is not None and first.folder is not None and first.state is not None:
            forecaster.write(first.folder)
        with scored_on(forecaster.model, most_scored(forecaster.metrics)):
            intervals = held_out_intervals(forecaster)
        learn_all(last, forecaster, after[0].outset, self._course(after[0]))
        last.intervals = intervals
        return last

    def _course(self, begun: Begun, share: float = 1.0) -> Course:
        assert begun.state is not None
        order = self.order
        limit = None if order.limit is None else share * order.limit
        return Course(order.place, begun.state, begun.folder, order.started, limit, order.progress)

    def _find(self, outset: Outset, folder: Path | None, resume: bool) -> Begun:
        forecaster = outset.forecaster()
        record, saved = forecaster.preprocess_record(), None if self.order.out is None else folder
        state = find_state(outset.config, record, saved, resume)
        if self.order.place.device == "cpu" and is_trained(forecaster.model) and not state.complete:
            limit, spent = self.order.limit, time.monotonic() - self.order.started
            left = None if limit is None else limit - spent
            check_resources(forecaster.model, outset.windows["train"], outset.config.training, left)
        if not state.model:
            outset.fit_closed_form(forecaster.model)
        return Begun(forecaster, outset, state, folder)

    def _find_scored(self, outset: Outset) -> Begun:
        """The training that is scored, in a folder within that of the run."""
        folder, resume = None if self.folder is None else self.folder / SCORED, self.order.resume
        if folder is None or not resume or not (folder / METRICS).is_file():
            return self._find(outset, folder, resume)
        forecaster: Forecaster = load(folder, self.order.place.device)
        if forecaster.data != outset.data.record:
            raise changed_data(outset.config.dataset, folder)
        forecaster._dataset = outset.data
        return Begun(forecaster, outset, None, folder)
