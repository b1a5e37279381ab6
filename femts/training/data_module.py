"""Data of a training: split, scaled, and cut into windows of each part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from femts.data.dataset import Dataset
from femts.data.preprocess import Preprocess
from femts.data.splits import PARTS, check_room
from femts.data.windows import Windows, check_windows, part_windows, training_rows
from femts.forecaster.run_folder import RunConfig
from femts.models.base import ForecastModel
from femts.training.resolve import horizon


@dataclass(frozen=True, eq=False)
class DataModule:
    """Data of a training.

    Attributes:
        data: split as it is trained on.
        preprocess: fitted on the training rows.
        windows: by part, those of the training among them.
    """

    data: Dataset
    preprocess: Preprocess
    windows: dict[str, Windows]

    @classmethod
    def of(
        cls, data: Dataset, config: RunConfig, parts: Sequence[str] = PARTS, units: Preprocess | None = None
    ) -> DataModule:
        """The data of a run of `config`, with windows of `parts`.

        Values keep the `units`, and static columns the codes, of the run by which this one was chosen: a penalty, a
        learning rate and errors mean the same in no others. None fits them to the training rows.

        Raises:
            UsageError: lengths that do not fit the data.
        """
        lengths, windows = (config.seq_len, config.pred_len), dict[str, Windows]()
        for part in parts:  # before many series are fitted
            check_windows(data, part, *lengths, config.reads_raw)
        preprocess = Preprocess.fit(data, units, config.reads, config.training.scaler).reading(config.reads_raw)
        for part in parts:
            windows[part] = part_windows(data, preprocess, part, *lengths, windows.get("train"))
        return cls(data, preprocess, windows)

    def fit_closed_form(self, model: ForecastModel) -> None:
        """Fit what `model` has in closed form to the training rows."""
        distance = max(model.config.seq_len, int(self.data.train_lengths.max()))
        model.prepare(*training_rows(self.data, self.windows["train"], distance))


def split_for(data: Dataset, pred_len: int | str | None) -> Dataset:
    """The data, split for this horizon; UsageError for a table that has no room for it."""
    steps = horizon(data, pred_len).steps
    if not data.schema.panel and not data.fixed_split:
        check_room(data.rows, steps, data.name)
    return data.for_horizon(steps)
