"""Options and parsing for commands that work on a run: its folder, history, device and numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from femts.cli.options import DataRoot, names, option
from femts.cli.output import final_note, say_notes
from femts.cli.wording import as_options
from femts.config.values import whole_number
from femts.errors import OF_FORECASTS, UsageError
from femts.forecaster.replacing import current
from femts.forecaster.run_folder import CONFIG, runs_within
from femts.text import quote

if TYPE_CHECKING:
    import pandas as pd

    from femts.forecaster.forecaster import Forecaster, Source

Run = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished run.", show_default=False)]
History = Annotated[Path, typer.Argument(metavar="INPUT.csv", help="Recent history, in raw units.", show_default=False)]
Histories = Annotated[
    list[Path],
    typer.Argument(
        metavar="INPUT.csv",
        help="Recent history, in raw units; several files hold different series of a panel.",
        show_default=False,
    ),
]
KINDS = ".csv, .tsv, .json or .jsonl, each also with .gz or .zst, .parquet, .feather or .xlsx"
ToTable = Annotated[
    Path | None,
    option(f"Output file: {KINDS}.", "OUT.csv", "--out", "-o", default="standard output"),
]
Moved = Annotated[str | None, option("Location of the run's data, if it has moved.", "FILE", "--dataset")]
Series = Annotated[
    str | None,
    option("Series of a panel; quote names that contain a comma.", "NAME[,NAME...]", "--series", default="all"),
]
Outliers = Annotated[
    str | None,
    option("Whether values far outside the usual range are read as missing.", "missing|keep", default="as in training"),
]
New = Annotated[
    str | None,
    option(
        "Also forecast series without history, like those that share most of the static covariates in the file.",
        "NAME[,NAME...]|FILE",
    ),
]
Device = Annotated[str, typer.Option(metavar="auto|cpu|cuda|mps", help="Device to compute on.")]


@dataclass(frozen=True)
class PlaceOptions:
    """Location of the run's data, and the device to compute on."""

    dataset: Moved = None
    data_root: DataRoot = None
    device: Device = "auto"


def read_history(table: Path, forecaster: Forecaster, steps: int = 0, ends: bool = False) -> pd.DataFrame:
    """Read the end of a user's file in the format of the training data: a look-back, or `steps` if larger. The whole file
    is read for a panel, whose series end at different times, unless only the `ends` of its series are needed."""
    from femts.data.read import read_table
    from femts.data.recent import read_recent
    from femts.data.recent_series import read_recent_series

    config, preprocess, freq = forecaster.config, forecaster.preprocess, forecaster.freq
    steps = max(config.seq_len + preprocess.reach, steps)
    if not config.schema.panel:
        return read_recent(table, steps, config.schema, forecaster.columns, freq)
    if not ends:
        return read_table(table, config.schema.form)
    return read_recent_series(table, steps, config.schema, freq, preprocess)


def names_or_file(given: str) -> tuple[str, ...] | Path:
    """The file or the names given to `--new`."""
    return Path(given) if Path(given).is_file() else names(given)


@contextmanager
def gaps_noted() -> Iterator[list[str]]:
    """Collect warnings about a forecast and its history as notes, which are in the list at the end."""
    notes = list[str]()
    with warnings.catch_warnings(record=True) as gaps:
        for kind in OF_FORECASTS:
            warnings.simplefilter("always", kind)
        yield notes
    notes += [as_options(gap.message).removesuffix(".") for gap in gaps]


@contextmanager
def gaps_as_notes() -> Iterator[None]:
    """Print warnings about a forecast and its history as notes after the forecast; an error is shown without them."""
    with gaps_noted() as notes:
        yield
    say_notes(notes)


def load_run(run: Path, device: str, dataset: str | None = None) -> Forecaster:
    """Load the forecaster of a run with a single horizon on `device`; `dataset` is the location of its data if they
    have moved."""
    from femts.forecaster.forecaster import load
    from femts.training.accelerator import named_accelerator

    check_single(run)
    place = named_accelerator(device)
    forecaster = load(run, place.device)
    return forecaster if dataset is None else _moved(forecaster, dataset)


def data_like(forecaster: Forecaster, named: str, data_root: Path | None) -> Source:
    """Data given to a command by path or catalogue name, as the functions on the data of a run take them."""
    from femts.data.loading import is_path, load_dataset

    return named if is_path(named) else load_dataset(named, data_root, schema=forecaster.config.schema)


def _moved(forecaster: Forecaster, dataset: str) -> Forecaster:
    scored = None if forecaster.scored is None else _moved(forecaster.scored, dataset)
    return replace(forecaster, config=replace(forecaster.config, source=dataset), scored=scored)


def load_scored(run: Path, device: str, dataset: str | None = None) -> Forecaster:
    """As `load_run`, but the model that was scored: for a refit run, the one stored next to it, with a note."""
    forecaster = load_run(run, device, dataset)
    if forecaster.scored is None:
        return forecaster
    say_notes([final_note(forecaster.metrics)])
    return forecaster.scored


def check_series(forecaster: Forecaster, series: str | None) -> tuple[str, ...] | None:
    """Names given to `--series`; UsageError if the run is not a panel."""
    if series is None:
        return None
    if not forecaster.config.schema.panel:
        raise UsageError("Option --series requires a panel, but this run was trained on a single table; remove it.")
    return names(series)


def one_series(forecaster: Forecaster, series: str | None) -> Forecaster:
    """View of the single series given to `--series` for a panel, otherwise the forecaster itself."""

    if not forecaster.config.schema.panel:
        check_series(forecaster, series)
        return forecaster
    if series is None:
        first = quote(forecaster.series[0])
        raise UsageError(f"This run was trained on a panel; select one series, such as --series '{first}'.")
    return forecaster.of(series)


def parse_levels(text: str) -> tuple[float, ...]:
    """Parse `80,95` as numbers."""
    from femts.evaluation.intervals import check_levels

    return _numbers(
        text, check_levels, f"Level '{quote(text)}' is not a number; write --level 80 or 80,95, in percent."
    )


def parse_quantiles(text: str) -> tuple[float, ...]:
    """Parse `0.1,0.9` as numbers."""
    from femts.evaluation.quantiles import check_quantiles

    return _numbers(
        text, check_quantiles, f"Quantile '{quote(text)}' is not a number; write --quantiles 0.1 or 0.1,0.9."
    )


def _numbers(text: str, check: Callable[[list[float]], tuple[float, ...]], otherwise: str) -> tuple[float, ...]:
    """Parse and check comma-separated numbers; UsageError with the message `otherwise` if they are not numbers."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise UsageError(otherwise) from error
    return check(numbers)


def parse_steps(text: str) -> int:
    """Parse a horizon; UsageError if it is not a number."""
    steps = whole_number(text, "Horizon --horizon")
    if steps is None or steps < 1:
        raise UsageError(f"Horizon '{quote(text)}' is not a number of steps; write --horizon 96.")
    return steps


def check_single(run: Path) -> None:
    """Raise UsageError for a folder of `femts train` with several horizons, which contains one run each."""
    place = current(run)
    if not (place / CONFIG).exists():
        inside = [run / path.name for path in runs_within(place)]
        if inside:
            raise UsageError(
                f"Folder {run} contains {len(inside)} runs, one per horizon; name one, such as {inside[0]}."
            )
