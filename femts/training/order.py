"""An order to train: what a call of `train` asks for, checked, and one model trained by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from femts.config.arguments import check_text
from femts.config.model import AUTO, DEFAULT_MODEL
from femts.config.training import TrainingConfig, parse_span
from femts.data.dataset import Dataset
from femts.errors import UsageError
from femts.forecaster.forecaster import Forecaster, load
from femts.text import shown
from femts.training.device import Place, resolve_place
from femts.training.outset import Outset, at_place, working_folder
from femts.training.resolve import Lengths, known_notes, length_notes, resolve_run, resolve_training, thinned_notes
from femts.training.resume import Finished, check_resumable
from femts.training.sitting import Sitting
from femts.training.stopping import Interrupted


def nothing(_: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Order:
    """Arguments of a call of `train`, but for the data.

    Attributes:
        model: registered name, or `auto`.
        settings: of the model, by name.
        training: the recipe.
        asked: what these two were made of, the last two arguments of `resolve_training`.
        place: device, precision and processes.
        started: `time.monotonic()` when the call began.
        lengths: as asked for.
        out: run folder; None keeps nothing.
        resume: go on with what is in it.
        final: then train on all rows.
        progress: show a line on a terminal.
        say: takes a sentence on what a reader should know.
        most_windows: of each part, how many are scored at most; None for as many as the model wants.
    """

    model: str
    settings: Mapping[str, Any]
    training: TrainingConfig
    asked: tuple[Mapping[str, Any], Mapping[str, Any]]
    place: Place
    started: float
    lengths: Lengths = field(default_factory=Lengths)
    out: Path | None = None
    resume: bool = False
    final: bool = False
    progress: bool = False
    say: Callable[[str], None] = nothing
    most_windows: int | None = None

    @classmethod
    def of(cls, model: str, given: Mapping[str, Any], settings: Mapping[str, Any], started: float) -> Order:
        """The order of `model` with `given` fields of the recipe and dotted `settings`; see `resolve_training`.

        Raises:
            UsageError: as `resolve_training` and `resolve_place`.
        """
        named = DEFAULT_MODEL if check_text(model, "model") == AUTO else model
        resolved, training = resolve_training(named, given, settings)
        if model == AUTO and (resolved or training.learned_quantiles):
            odd = f"model.{next(iter(resolved))}" if resolved else "training.loss=pinball"
            raise UsageError(f"Setting '{shown(odd)}' is of one model, and --model auto chooses it; name a model.")
        return cls(model, resolved, training, (given, settings), resolve_place(training), started)

    def to(self, model: str, seconds: float | None, out: Path | None, resume: bool) -> Order:
        """The same for another `model`, to be trained in the folder `out` within so many `seconds`, None for no limit;
        it says nothing, and is scored on as few windows as this one."""
        other = Order.of(model, *self.asked, time.monotonic())
        limit = None if seconds is None else f"{max(1, int(seconds))}s"
        # All candidates alike, or they have no mean: not all of them read what is known in advance.
        training = replace(other.training, max_time=limit, covariates="regress")
        same = {"lengths": self.lengths, "progress": self.progress, "most_windows": self.most_windows}
        return replace(other, training=training, out=out, resume=resume, **same)  # type: ignore[arg-type]

    @property
    def limit(self) -> float | None:
        """Seconds that it may take; None is no limit."""
        return None if self.training.max_time is None else parse_span(self.training.max_time)


def carry_out(order: Order, data: Dataset) -> Forecaster:
    """Train the model of `order` on `data`, which are split for it, and score it; see `train`."""
    config = resolve_run(data, order.model, order.lengths, order.settings, order.training)
    outset, whole = Outset.of(data, config), None
    if order.final:
        whole = Outset.of(data.all_rows(), replace(config, final=True), ("train",), outset.preprocess)
    out, place = order.out, order.place
    with at_place(place):
        check_resumable(out, order.resume)
        with working_folder(out, place) as folder:
            sitting = Sitting(order, folder)
            try:
                begun = sitting.begin(outset, whole)
            except Finished:
                assert out is not None
                return finished(order, out, data)
            if order.most_windows is not None:
                model = begun[0].forecaster.model
                model.most_windows = min(order.most_windows, model.most_windows or order.most_windows)
            thinned = thinned_notes(begun[0].forecaster.model, outset.windows)
            lengths = length_notes(data, order.model, order.lengths)
            for note in (*data.notes, *lengths, *known_notes(data, config), *thinned):
                order.say(note)
            try:
                forecaster = sitting.finish(begun)
            except KeyboardInterrupt as error:
                remedy = (
                    "nothing was kept" if out is None else f"what was reached is in {out}; continue it with --resume"
                )
                raise Interrupted(f"Training was interrupted; {remedy}.") from error
            if out is not None and folder is not None:
                forecaster.write(folder)
    return forecaster


def finished(order: Order, out: Path, data: Dataset) -> Forecaster:
    """The forecaster in `out`, which is what `order` asks for and was trained on `data`; says that nothing is left to
    do."""
    order.say(f"run {out} is finished; nothing is left to do")
    made: Forecaster = load(out, order.place.device)
    made._dataset = data.all_rows() if order.final else data
    if made.scored is not None:
        made.scored._dataset = data
    return made
