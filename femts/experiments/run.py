"""Tables and pairs in one call: trains the missing cells of a grid and returns all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from femts.config.arguments import check_flag, check_names, check_path
from femts.config.model import DEFAULT_MODEL
from femts.config.values import check_count, left_open, whole_number
from femts.data.describe import count as counted
from femts.data.schema import Reading, Schema
from femts.errors import CellWarning, UsageError, blamed, suggest, warn
from femts.experiments.cell import Cell
from femts.experiments.grid import Grid, check_roll_out, make_grid
from femts.experiments.results import Store
from femts.experiments.runner import Engine, refuse_damaged, run_cells
from femts.experiments.summary import (
    TABLE,
    check_pairs,
    check_published,
    make_pairs,
    make_scores,
    make_table,
    own_columns,
    parse_pairs,
)
from femts.experiments.task_cell import TaskCell, make_task_cells
from femts.text import quote, sentence

if TYPE_CHECKING:
    import pandas as pd

_NAMED = ("datasets", "models", "pred_lens", "seeds", "results")


class TaskOptions(TypedDict, total=False):
    """Keyword arguments of `score_tasks`."""

    settings: Mapping[str, Any]
    engine: str
    jobs: int | None
    time_limit: str | None
    device: str
    data_root: str | Path | None
    train: bool


class Options(TaskOptions, Reading, total=False):
    """Keyword arguments of `table`, among them those of `load_dataset`."""

    seq_lens: Sequence[int] | int | Literal["auto"] | None
    protocol: str | None
    param_grid: Mapping[str, Sequence[Any]]
    roll_out: Sequence[int]


def table(
    datasets: Sequence[str | Path] | str | Path = "ETTh1",
    models: Sequence[str] | str = DEFAULT_MODEL,
    pred_lens: Sequence[int] | int | None = None,
    *,
    seeds: Sequence[int] | int = 42,
    results: str | Path = "results",
    **options: Unpack[Options],
) -> pd.DataFrame:
    """Train the missing cells of a benchmark table and return the whole table, like `femts table`.

    Every finished cell is stored as a record in the results folder. Calling again, also after an interruption,
    continues with the missing cells and retries those that crashed. A crashed cell has no score, and a `CellWarning`
    says why. Worker processes import your own models, so define their classes in a module rather than in the script.

    Args:
        datasets: catalogue names, and your own files.
        models: names from `femts.models()`.
        pred_lens: horizons; None takes the published ones for the catalogue, and one that suits the step for a file.
        seeds: seeds of weights, order and dropout; one run each.
        results: folder of the records.
        options: `seq_lens` (candidate look-backs, of which the validation split selects one; `auto` proposes some),
            `protocol`, `settings` by name for all models, `param_grid` (candidate values of settings, selected on the
            validation split, for the models that have them), `roll_out` (longer horizons at which models are also scored
            recursively), `engine` (`local` or `ray`), `jobs` (cells at a time), `time_limit`, `device`, `data_root`,
            `train=False` to show only what exists, and keywords of `load_dataset`, such as `target`.

    Returns:
        One row for each dataset, model and horizon, and one for the mean over several, without a `pred_len`:
        `seq_len`, finished `seeds`, `mse` with its standard deviation `mse_sd` over seeds, `mae`, the `published_mse`
        if there is one; `naive_mse`, `skill` and `mase` relative to the seasonal naive forecast; `wape` and `bias` in
        raw units; the number of scored test `windows` (for the mean, over all horizons); how many cells of the
        selection are `missing`, what was `chosen` for each seed, and whether a pretrained model has `seen` the data
        set; then metrics that you registered.

    Raises:
        UsageError: An argument is unknown or does not fit, or a record in the folder cannot be used.
        RunFailure: A file cannot be written, or a download failed.
    """
    grid = _grid(datasets, check_names(models, "models"), pred_lens, seeds, options)
    made = make_table(_scores(grid, results, options))
    return made[[*TABLE, *own_columns(made)]]


def pairs(
    pairs: Sequence[Sequence[str]] | str,
    datasets: Sequence[str | Path] | str | Path = "ETTh1",
    pred_lens: Sequence[int] | int | None = None,
    *,
    seeds: Sequence[int] | int = 42,
    results: str | Path = "results",
    **options: Unpack[Options],
) -> pd.DataFrame:
    """Compare pairs of models seed by seed and window by window, like `femts table --pairs`; missing cells are trained.

    Args:
        pairs: pairs of names from `femts.models()`, such as `[("fem_sm", "sm")]` or `fem_sm:sm`.
        datasets, pred_lens, seeds, results, options: as in `femts.table`.

    Returns:
        One row for each dataset, pair and horizon: the models `first` and `second`, finished `seeds`, `first_mse` and
        `second_mse`, their `difference` (negative if the first is better) with its standard deviation `difference_sd`
        over seeds, the bounds `low` and `high` of its 95 % interval, and the reason `why` there is none. The interval
        is over windows, by a circular block bootstrap; for a panel it is over series. `seeds_lower` and `windows_lower`
        (series, for a panel) count where the first is lower, followed by the training times of both in seconds.

    Raises:
        UsageError: As in `femts.table`, or the models of a pair did not score the same windows.
        RunFailure: A file cannot be written, or a download failed.
    """
    if not isinstance(pairs, str | list | tuple):
        raise UsageError(f"Argument 'pairs' is a {type(pairs).__name__}; give a list of two names each.")
    if not pairs:
        raise UsageError("Argument 'pairs' is empty; give two models, such as fem_sm:sm.")
    both = parse_pairs(pairs) if isinstance(pairs, str) else check_pairs(pairs)
    models = tuple(dict.fromkeys(name for pair in both for name in pair))
    return make_pairs(both, _scores(_grid(datasets, models, pred_lens, seeds, options), results, options))


def score_tasks(
    tasks: Sequence[str | Path] | str | Path,
    models: Sequence[str] | str,
    *,
    seeds: Sequence[int] | int = 42,
    results: str | Path = "results",
    published: bool = False,
    **options: Unpack[TaskOptions],
) -> pd.DataFrame:
    """Run models on lists of forecasting tasks and return their scores, like `femts table --tasks`.

    Every finished run is stored as a record in the results folder, and calling again continues with the missing ones.
    `femts.leaderboard` compares the models over all tasks.

    Args:
        tasks: YAML files that list tasks; see `femts.experiments.tasks.Task` for the fields of a task.
        models: names from `femts.models()`, or `auto`.
        seeds: seeds of weights, order and dropout; one run each.
        results: folder of the records.
        published: add published scores of the same tasks, and leave out tasks without any.
        options: `settings` by name for all models, `engine` (`local` or `ray`), `jobs` (runs at a time), `time_limit` (of
            this call), `device`, `data_root`, and `train=False` to return only what exists.

    Returns:
        One row for each task and model, means over the seeds; see `femts.experiments.leaderboard.task_scores`.

    Raises:
        UsageError: An argument or a list is invalid, data cannot be read, or a record in the folder cannot be used.
        RunFailure: A file cannot be written, or a download failed.
    """
    _check_options(options, ("tasks", "models", "seeds", "results", "published", *TaskOptions.__annotations__))
    lists = [tasks] if isinstance(tasks, str | Path) else tasks
    if not isinstance(lists, list | tuple) or not lists:
        raise UsageError(f"The tasks are a {type(tasks).__name__}; give the path of a YAML file, or several in a list.")
    paths = [check_path(each, "A list of tasks") for each in lists]
    published = check_flag(published, "published")
    store, engine = Store(check_path(results, "The folder of results")), _engine(options)
    seeds = tuple(_seed(seed) for seed in _several(seeds, "seeds"))
    settings = _mapping(options.get("settings"), "settings")
    train = check_flag(options.get("train", True), "train")
    cells = make_task_cells(paths, check_names(models, "models"), seeds, settings, engine.data_root, not train)
    made = run_tasks(cells, store, engine, train=train, published=published)
    refuse_damaged(cells, store)
    return made


def run_tasks(
    cells: Sequence[TaskCell], store: Store, engine: Engine, *, train: bool = True, published: bool = False
) -> pd.DataFrame:
    """Run the missing cells of tasks if requested, and return the scores of all.

    Raises:
        UsageError: A record is damaged and cells are to be run, or no scores are published for any of the tasks.
    """
    from femts.experiments.leaderboard import task_scores, with_published

    store.check_folder(to_show=not train)
    if train:
        run_cells(cells, store, engine)
    scores = task_scores(cells, store)
    return with_published(scores) if published else scores


def run_grid(
    grid: Grid,
    store: Store,
    engine: Engine,
    roll_out: Sequence[int] = (),
    *,
    train: bool = True,
    published: bool = False,
) -> list[Cell]:
    """Train the missing cells of a grid if requested, and return its cells.

    Raises:
        UsageError: The grid is invalid, nothing is comparable at the horizons `roll_out` or with `published` means, or
            a record is damaged and cells are to be trained. Raised before anything is trained.
    """
    cells = make_grid(grid, engine.data_root)
    if published:
        check_published(cells, roll_out)
    with blamed("roll_out", roll_out):
        check_roll_out(cells, roll_out, engine.data_root)
    store.check_folder(to_show=not train)
    if train:
        run_cells(cells, store, engine)
    return cells


def _grid(
    datasets: object, models: tuple[str, ...], pred_lens: object, seeds: object, options: Mapping[str, Any]
) -> Grid:
    """Grid from the arguments of a table; raise UsageError if one is invalid."""
    _check_options(options, (*_NAMED, *Options.__annotations__))
    look_backs = options.get("seq_lens")
    auto = look_backs is not None and left_open(look_backs)
    reading = {name: value for name, value in options.items() if name in Reading.__annotations__}
    return Grid(
        datasets=check_names(datasets, "datasets"),
        models=models,
        pred_lens=_steps(pred_lens, "pred_lens"),
        seeds=tuple(_seed(seed) for seed in _several(seeds, "seeds")),
        protocol=options.get("protocol"),
        seq_lens="auto" if auto else _steps(look_backs, "seq_lens") or (None,),
        settings=_mapping(options.get("settings"), "settings"),
        reading=Schema.of(**reading).reading(),  # normalised as on the command line
        param_grid={
            key: _several(value, f"param_grid['{key}']")
            for key, value in _mapping(options.get("param_grid"), "param_grid").items()
        },
    )


def _scores(grid: Grid, results: str | Path, options: Options) -> pd.DataFrame:
    """Scores of the cells of a grid, after training the missing ones."""
    store = Store(check_path(results, "The folder of results"))
    roll_out, train = _steps(options.get("roll_out"), "roll_out"), check_flag(options.get("train", True), "train")
    cells = run_grid(grid, store, _engine(options), roll_out, train=train)
    refuse_damaged(cells, store)
    failures = [f"{cell.path}: {why}" for cell in cells if not store.finished(cell) and (why := store.failure(cell))]
    if failures:
        text = f"{len(failures)} of {counted(len(cells), 'cell')} failed and {'has' if len(failures) == 1 else 'have'} no score; the first is {failures[0]}"
        warn(sentence(text), CellWarning)
    return make_scores(cells, store, roll_out)


def _check_options(options: Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None:
        text = f"Unknown argument '{quote(unknown)}' of a table{suggest(unknown, known)}"
        raise UsageError(text, argument=unknown, value=options[unknown])


def _engine(options: TaskOptions) -> Engine:
    root, jobs = options.get("data_root"), options.get("jobs")
    return Engine(
        options.get("engine", "local"),
        None if jobs is None else check_count(jobs, "jobs"),
        options.get("time_limit"),
        options.get("device", "auto"),
        None if root is None else check_path(root, "The data root"),
    )


def _several(value: object, name: str) -> tuple[Any, ...]:
    """One or several values as a tuple; raise UsageError naming the argument for an empty list."""
    several = tuple(value) if isinstance(value, list | tuple | range) else (value,)
    if not several:
        text = f"Argument '{quote(name)}' is empty; pass at least one value, or omit it."
        raise UsageError(text, argument=name, value=value, remedy={name: None})
    return several


def _steps(value: object, name: str) -> tuple[int, ...]:
    return () if value is None else tuple(dict.fromkeys(check_count(each, name) for each in _several(value, name)))


def _seed(value: object) -> int:
    number = whole_number(value, "A seed")
    if number is None or number < 0:
        text = f"Seed '{quote(value)}' is not valid; use whole numbers of at least 0."
        raise UsageError(text, argument="seeds", value=value, remedy={"seeds": None})
    return number


def _mapping(value: object, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        text = f"Argument '{name}' is a {type(value).__name__}; give a mapping of names to values."
        raise UsageError(text, argument=name, value=value)
    return dict(value)
