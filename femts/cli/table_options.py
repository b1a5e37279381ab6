"""Options of `femts table`: the grid of cells and the engine that runs them."""

from __future__ import annotations

from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from femts.cli.options import EngineName, Settings, TimeLimit, count, names, option, parse_seeds
from femts.cli.reading_options import ReadingOptions
from femts.cli.recipe import each_once, parse_assignment, parse_horizons
from femts.config.model import DEFAULT_MODEL
from femts.config.values import left_open
from femts.errors import UsageError

if TYPE_CHECKING:
    from femts.experiments.grid import Grid
    from femts.experiments.runner import Engine
    from femts.experiments.task_cell import TaskCell

MIXERS = "fem_sm,fem_gla,fem_mamba,fem_aft,sm,gla,aft"
OTHERS = "lintrans,itransformer,patchtst,dlinear,naive,seasonal_naive"
MODELS = f"{DEFAULT_MODEL},ridge,{MIXERS},{OTHERS}"
TASK_MODELS = "auto,ridge,boost,nhits,fem_sm,fem_sm_ridge,stat_ensemble,seasonal_naive"


@dataclass(frozen=True)
class GridOptions:
    """Options for the cells of a table."""

    datasets: Annotated[
        str, typer.Option(metavar="NAME|FILE[,...]", help="Names from `femts datasets list`, or your own files.")
    ] = "ETTh1"
    models: Annotated[str | None, option("Names from `femts models`.", "NAME[,NAME...]", default=MODELS)] = None
    tasks: Annotated[
        str | None,
        option("Run the forecasting tasks of these lists instead of datasets and horizons.", "TASKS.yaml[,...]"),
    ] = None
    pairs: Annotated[
        str | None,
        option("Print paired differences of two models by seed and window instead of the table.", "FIRST:SECOND[,...]"),
    ] = None
    published: Annotated[
        bool,
        typer.Option("--published", help="Print means, or scores of tasks, next to published ones."),
    ] = False
    pred_lens: Annotated[
        str,
        typer.Option(
            "--horizons",
            "--pred-lens",
            metavar="N[,N...]|all|auto",
            help="Horizons; auto is all published ones for the catalogue, and one by frequency for a file.",
        ),
    ] = "auto"
    roll_out: Annotated[
        str | None,
        option(
            "Horizons at which recursive forecasts of shorter models compete (marked r); validation selects.",
            "N[,N...]|all",
        ),
    ] = None
    seeds: Annotated[str, typer.Option(metavar="N[,N...]", help="Random seeds, one run each.")] = "42"
    seq_len: Annotated[
        str,
        typer.Option(
            metavar="N[,N...]|auto|protocol",
            help="Look-back in steps; among several, or with auto, validation selects.",
        ),
    ] = "protocol"
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    protocol: Annotated[
        str | None,
        option("Rule that sets the look-back.", "paper|lookback96|seasons", default="paper; seasons for files"),
    ] = None
    assignments: Settings = None
    param_grid: Annotated[
        list[str] | None,
        option(
            "Candidate values of a setting; the validation split selects among them.", "KEY=VALUE,...", "--param-grid"
        ),
    ] = None

    def paired(self) -> tuple[tuple[str, str], ...]:
        """Pairs of models to compare; UsageError if one cannot be parsed, or if models are given as well."""
        from femts.experiments.summary import parse_pairs

        if self.pairs is not None and self.models is not None:
            raise UsageError("Options '--pairs' and '--models' both name models; remove '--models'.")
        if self.pairs is not None and self.published:
            raise UsageError("Options '--pairs' and '--published' each print their own table; remove one of them.")
        return () if self.pairs is None else parse_pairs(self.pairs)

    def task_cells(self, data_root: Path | None, show: bool) -> list[TaskCell]:
        """Cells of the list of tasks; UsageError if an option cannot be parsed or applies to datasets alone."""
        from femts.experiments.task_cell import make_task_cells

        assert self.tasks is not None
        of_tasks = ("tasks", "models", "published", "seeds", "assignments")
        given = next((each.name for each in fields(self) if each.name not in of_tasks and self._is_given(each)), None)
        if given is not None:
            name = {"pred_lens": "horizons"}.get(given, given.replace("_", "-"))
            name = "about reading data" if given == "reading" else f"'--{name}'"
            raise UsageError(f"A list of tasks defines its own data and horizons; remove the option {name}.")
        models = names(TASK_MODELS if self.models is None else self.models)
        settings = each_once(map(parse_assignment, self.assignments or []), "--set")
        seeds = parse_seeds(self.seeds)
        return make_task_cells([Path(each) for each in names(self.tasks)], models, seeds, settings, data_root, show)

    def _is_given(self, option: Field[Any]) -> bool:
        usual = option.default if option.default_factory is MISSING else option.default_factory()
        return bool(getattr(self, option.name) != usual)

    def grid(self) -> Grid:
        """Grid given by the options; UsageError if an option cannot be parsed."""
        from femts.experiments.grid import Grid

        of_pairs = tuple(dict.fromkeys(model for pair in self.paired() for model in pair))
        presets: dict[str, tuple[int | None, ...] | Literal["auto"]] = {"auto": "auto", "protocol": (None,)}
        param_grid = each_once(
            (parse_assignment(text, "--param-grid") for text in self.param_grid or []), "--param-grid"
        )
        return Grid(
            datasets=names(self.datasets),
            models=of_pairs or names(MODELS if self.models is None else self.models),
            pred_lens=() if left_open(self.pred_lens) else parse_horizons(self.pred_lens),
            seeds=parse_seeds(self.seeds),
            protocol=self.protocol,
            seq_lens=presets.get(self.seq_len.lower())
            or tuple(count("--seq-len", part) for part in names(self.seq_len)),
            settings=each_once(map(parse_assignment, self.assignments or []), "--set"),
            reading=self.reading.reading(),
            param_grid={key: names(value) for key, value in param_grid.items()},
        )


@dataclass(frozen=True)
class EngineOptions:
    """Options for the engine: its kind, parallelism, time limit, and the folder of records."""

    engine: EngineName = "local"
    jobs: Annotated[
        str | None, option("Number of cells to run in parallel.", "N", default="one a core, 4 on a GPU")
    ] = None
    time_limit: TimeLimit = None
    results: Annotated[Path, typer.Option(metavar="DIR", help="Folder with the records.")] = Path("results")

    def engine_on(self, device: str, data_root: Path | None) -> Engine:
        """Engine given by the options; UsageError if it is unknown."""
        from femts.experiments.runner import Engine

        return Engine(
            self.engine, None if self.jobs is None else count("--jobs", self.jobs), self.time_limit, device, data_root
        )
