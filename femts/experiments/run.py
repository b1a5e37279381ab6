"""Tables and pairs in one call: what is missing of a grid is trained, and all of it returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from femts.config.arguments import check_flag, check_names, check_path
from femts.config.model import DEFAULT_MODEL
from femts.config.values import check_count, left_open, whole_number
from femts.data.schema import Reading, Schema
from femts.errors import CellWarning, UsageError, suggest, warn
from femts.experiments.cell import Cell
from femts.experiments.compare import (
    TABLE,
    check_pairs,
    check_published,
    make_pairs,
    make_scores,
    make_table,
    parse_pairs,
)
from femts.experiments.grid import Grid, check_roll_out, make_grid
from femts.experiments.results import Store
from femts.experiments.runner import Engine, refuse_damaged, run_cells
from femts.text import quote, sentence

if TYPE_CHECKING:
    import pandas as pd

_NAMED = ("datasets", "models", "pred_lens", "seeds", "results")


class Options(TypedDict, total=False):
    """Further arguments of `table`."""

    seq_lens: Sequence[int] | int | Literal["auto"] | None
    protocol: str | None
    settings: Mapping[str, Any]
    param_grid: Mapping[str, Sequence[Any]]
    reading: Reading
    roll_out: Sequence[int]
    engine: str
    jobs: int | None
    time_limit: str | None
    device: str
    data_root: str | Path | None
    train: bool


def table(
    datasets: Sequence[str | Path] | str | Path = "ETTh1",
    models: Sequence[str] | str = DEFAULT_MODEL,
    pred_lens: Sequence[int] | int | None = None,
    *,
    seeds: Sequence[int] | int = 42,
    results: str | Path = "results",
    **options: Unpack[Options],
) -> pd.DataFrame:
    """Train what is missing of a table, and return all of it, as `femts table` does.

    Every finished cell is a record in the folder of results. Called again, or after an
    interruption, it goes on with what is left; cells that crashed are tried again. Those that crash
    have no score, and a `CellWarning` says why. A model of your own is imported by the processes
    that train, so its class lies in a file of its own, not in the script.

    Args:
        datasets: names of the catalogue, and files of your own.
        models: names of `femts.models()`.
        pred_lens: horizons; None takes the published ones for the catalogue, and for a file one by its step.
        seeds: of weights, order and dropout, a run each.
        results: folder of the records.
        options: `seq_lens` (look-backs, of which validation chooses; `auto` offers some that fit),
            `protocol`, `settings` by name for all models, `param_grid` (values of settings, of which
            validation chooses for the models that have them), `reading` (as of `load_dataset`),
            `roll_out` (horizons at which models of shorter ones count, too),
            `engine` (`local`, `ray`), `jobs` (cells at a time), `time_limit`, `device`, `data_root`,
            and `train=False` for what there is.

    Returns:
        One row for each data set, model and horizon, and one for the mean of several, without a
        `pred_len`: `seq_len`, finished `seeds`, `mse` with its deviation `mse_sd` over seeds,
        `mae`, the `published_mse` where there is one, and beside the seasonal naive forecast its
        `naive_mse`, `skill` and `mase`, and in raw units `wape` and `bias`. Then the test `windows` that were scored,
        of the mean over all its horizons, how many of the cells of which validation chooses are `missing`, what it
        has `chosen`, by seed, and whether a pretrained model has `seen` the data set before.

    Raises:
        UsageError: something asked for does not exist or does not fit, or a record in the folder cannot be used.
        RunFailure: the disk refuses, or a download failed.
    """
    grid = _grid(datasets, check_names(models, "models"), pred_lens, seeds, options)
    return make_table(_scores(grid, results, options))[list(TABLE)]


def pairs(
    pairs: Sequence[Sequence[str]] | str,
    datasets: Sequence[str | Path] | str | Path = "ETTh1",
    pred_lens: Sequence[int] | int | None = None,
    *,
    seeds: Sequence[int] | int = 42,
    results: str | Path = "results",
    **options: Unpack[Options],
) -> pd.DataFrame:
    """Compare two models each by seed and window, as `femts table --pairs` does; what is missing is trained.

    Args:
        pairs: two names of `femts.models()` each, such as `[("fem_sm", "sm")]` or `fem_sm:sm`.
        datasets, pred_lens, seeds, results, options: as in `femts.table`.

    Returns:
        One row for each data set, pair and horizon: the models `first` and `second`, finished
        `seeds`, `first_mse` and `second_mse`, their `difference` (below 0 the first is better) with
        its deviation `difference_sd` over seeds, the ends `low` and `high` of its 95 % interval,
        and `why` there is none. The interval is over windows, by the circular block bootstrap; of a
        panel it is over series. Then `seeds_lower` and `windows_lower` (of a panel, series), where
        the first is lower, and the seconds of both trainings.

    Raises:
        UsageError: as in `femts.table`, or the models of a pair did not score the same windows.
        RunFailure: the disk refuses, or a download failed.
    """
    if not isinstance(pairs, str | list | tuple):
        raise UsageError(f"Argument 'pairs' is a {type(pairs).__name__}; give a list of two names each.")
    if not pairs:
        raise UsageError("Argument 'pairs' is empty; give two models, such as fem_sm:sm.")
    both = parse_pairs(pairs) if isinstance(pairs, str) else check_pairs(pairs)
    models = tuple(dict.fromkeys(name for pair in both for name in pair))
    return make_pairs(both, _scores(_grid(datasets, models, pred_lens, seeds, options), results, options))


def run_grid(
    grid: Grid,
    store: Store,
    engine: Engine,
    roll_out: Sequence[int] = (),
    *,
    train: bool = True,
    published: bool = False,
) -> list[Cell]:
    """Train what is missing of a grid, where that is asked for, and return its cells.

    Raises:
        UsageError: before anything is trained, for a grid that cannot be, horizons `roll_out` or `published` means
            that nothing could stand at or beside, and where something is to be trained for a damaged record.
    """
    cells = make_grid(grid, engine.data_root)
    if published:
        check_published(cells, roll_out)
    check_roll_out(cells, roll_out, engine.data_root)
    store.check_folder(to_show=not train)
    if train:
        run_cells(cells, store, engine)
    return cells


def _grid(
    datasets: object, models: tuple[str, ...], pred_lens: object, seeds: object, options: Mapping[str, Any]
) -> Grid:
    """The grid that the arguments of a table ask for; UsageError where one cannot be read."""
    unknown = next((name for name in options if name not in Options.__annotations__), None)
    if unknown is not None:
        raise UsageError(
            f"Unknown argument '{quote(unknown)}' of a table{suggest(unknown, [*_NAMED, *Options.__annotations__])}"
        )
    look_backs = options.get("seq_lens")
    auto = look_backs is not None and left_open(look_backs)
    return Grid(
        datasets=check_names(datasets, "datasets"),
        models=models,
        pred_lens=_steps(pred_lens, "pred_lens"),
        seeds=tuple(_seed(seed) for seed in _several(seeds, "seeds")),
        protocol=options.get("protocol"),
        seq_lens="auto" if auto else _steps(look_backs, "seq_lens") or (None,),
        settings=_mapping(options.get("settings"), "settings"),
        reading=Schema.of(**_mapping(options.get("reading"), "reading")).reading(),  # as the command line says it
        param_grid={
            key: _several(value, f"param_grid['{key}']")
            for key, value in _mapping(options.get("param_grid"), "param_grid").items()
        },
    )


def _scores(grid: Grid, results: str | Path, options: Options) -> pd.DataFrame:
    """Scores of the cells of a grid, trained where they are missing."""
    store = Store(check_path(results, "The folder of results"))
    roll_out, train = _steps(options.get("roll_out"), "roll_out"), check_flag(options.get("train", True), "train")
    cells = run_grid(grid, store, _engine(options), roll_out, train=train)
    refuse_damaged(cells, store)
    failures = [f"{cell.path}: {why}" for cell in cells if not store.finished(cell) and (why := store.failure(cell))]
    if failures:
        text = f"{len(failures)} of {len(cells)} cells have failed and have no score; the first is {failures[0]}"
        warn(sentence(text), CellWarning)
    return make_scores(cells, store, roll_out)


def _engine(options: Options) -> Engine:
    root, jobs = options.get("data_root"), options.get("jobs")
    return Engine(
        options.get("engine", "local"),
        None if jobs is None else check_count(jobs, "Argument 'jobs'"),
        options.get("time_limit"),
        options.get("device", "auto"),
        None if root is None else check_path(root, "The data root"),
    )


def _several(value: object, name: str) -> tuple[Any, ...]:
    """One value, or several; UsageError that names the argument where it is an empty list."""
    several = tuple(value) if isinstance(value, list | tuple | range) else (value,)
    if not several:
        raise UsageError(f"Argument '{quote(name)}' is empty; pass at least one value, or omit it.")
    return several


def _steps(value: object, name: str) -> tuple[int, ...]:
    what = f"Argument '{name}'"
    return () if value is None else tuple(dict.fromkeys(check_count(each, what) for each in _several(value, name)))


def _seed(value: object) -> int:
    number = whole_number(value, "A seed")
    if number is None or number < 0:
        raise UsageError(f"Seed '{quote(value)}' is not valid; use whole numbers of at least 0.")
    return number


def _mapping(value: object, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise UsageError(f"Argument '{name}' is a {type(value).__name__}; give a mapping of names to values.")
    return dict(value)
