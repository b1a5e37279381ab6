"""Options of `femts bench`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from femts.cli.options import MaxTime, Settings, count, names, option, parse_seeds
from femts.cli.recipe import each_once, parse_assignment
from femts.errors import UsageError
from femts.text import shown

if TYPE_CHECKING:
    from femts.bench.mixer import MixerBench
    from femts.bench.tasks.cell import TaskCell
    from femts.bench.train import TrainBench
    from femts.experiments.results import Store
    from femts.experiments.runner import Engine

Precision = Annotated[str, typer.Option(metavar="auto|32|bf16", help="What to compute in.")]
Datasets = Annotated[str, typer.Option(metavar="NAME[,NAME...]", help="Shapes of these data sets; no file is read.")]
PredLen = Annotated[str, typer.Option(metavar="N", help="Steps to forecast.")]
Width = Annotated[str, typer.Option(metavar="N", help="Width of a token.")]
Heads = Annotated[str, typer.Option(metavar="N", help="Heads of the prior.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@dataclass(frozen=True)
class MeasuringOptions:
    """Measurement: how often, with how many threads, on which device."""

    repeats: Annotated[str, typer.Option(metavar="N", help="Turns; what is shown are their medians.")] = "7"
    threads: Annotated[str | None, option("CPU threads.", "N", default="torch's")] = None
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where to compute.")] = "auto"

    @property
    def turns(self) -> int:
        """`repeats` as a number."""
        return count("--repeats", self.repeats)

    @property
    def cpu_threads(self) -> int | None:
        """`threads` as a number."""
        return None if self.threads is None else count("--threads", self.threads)


@dataclass(frozen=True)
class LayerOptions:
    """Layers that are measured, and their input."""

    priors: Annotated[str | None, option("Priors.", "NAME[,NAME...]", default="all")] = None
    lengths: Annotated[str, typer.Option(metavar="T[,T...]", help="Tokens of a sequence.")] = "22,256,1024"
    tokens: Annotated[str, typer.Option(metavar="N", help="Tokens of a batch.")] = "4928"
    d_model: Width = "64"
    n_heads: Heads = "8"
    components: Annotated[
        str, typer.Option(metavar="SET[,SET...]", help="Component sets; alone has none, naive has no fast read.")
    ] = "alone,L,LT,LTG,CLTG,naive"

    def bench(self, turns: int) -> MixerBench:
        """The measurement that is asked for; UsageError where it cannot be made."""
        from femts.bench.mixer import MixerBench
        from femts.mixers.priors.registry import prior_names

        return MixerBench(
            priors=prior_names() if self.priors is None else names(self.priors),
            lengths=tuple(count("--lengths", part) for part in names(self.lengths)),
            cases=names(self.components),
            tokens=count("--tokens", self.tokens),
            d_model=count("--d-model", self.d_model),
            n_heads=count("--n-heads", self.n_heads),
            repeats=turns,
        )


@dataclass(frozen=True)
class StepOptions:
    """Models whose training steps are measured, and their batches."""

    datasets: Datasets = "ETTh1"
    models: Annotated[
        str, typer.Option(metavar="NAME[,NAME...]", help="Names of `femts models`; ratios are to the first.")
    ] = "sm,fem_sm,fem_gla,fem_aft,fem_mamba"
    pred_len: PredLen = "96"
    batch_size: Annotated[str, typer.Option(metavar="N", help="Windows of a step.")] = "32"
    assignments: Settings = None
    compiled: Annotated[bool, typer.Option("--compile", help="Steps through torch.compile.")] = False

    def bench(self, turns: int) -> TrainBench:
        """The measurement that is asked for; UsageError where it cannot be made."""
        settings = {}
        for key, value in each_once(map(parse_assignment, self.assignments or []), "--set").items():
            section, _, name = key.partition(".")
            if section != "model":
                raise UsageError(f"Setting '{key}' has no place in a measurement; --set takes model.NAME=VALUE here.")
            settings[name] = value
        from femts.bench.train import TrainBench

        return TrainBench(
            datasets=names(self.datasets),
            models=names(self.models),
            pred_len=count("--pred-len", self.pred_len),
            batch_size=count("--batch-size", self.batch_size),
            repeats=turns,
            settings=settings,
            compile=self.compiled,
        )


@dataclass(frozen=True)
class TaskOptions:
    """Tasks of selection, the mixers that they are given to, and what runs them."""

    tasks: Annotated[str | None, option("Tasks.", "NAME[,NAME...]", default="all")] = None
    mixers: Annotated[
        str, typer.Option(metavar="NAME[,NAME...]", help="Models of `femts models` that are mixers in one host.")
    ] = "fem_sm,sm,fem_gla,gla"
    seeds: Annotated[str, typer.Option(metavar="N[,N...]", help="Seeds, a training each.")] = "42,1,2"
    assignments: Annotated[
        list[str] | None, option("One size of all tasks that have it, such as steps=100.", "NAME=VALUE", "--set")
    ] = None
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the records.")] = Path("results/tasks")
    jobs: Annotated[str | None, option("Trainings at a time, a core each.", "N", default="one a core")] = None
    max_time: MaxTime = None
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda|mps", help="Where to train.")] = "cpu"

    def cells(self) -> list[TaskCell]:
        """The trainings that are asked for; UsageError where one cannot be made."""
        from femts.bench.tasks.base import task_names
        from femts.bench.tasks.cell import make_cells

        pairs = []
        for text in self.assignments or []:
            name, equals, value = text.partition("=")
            if not equals:
                raise UsageError(f"--set '{shown(text)}' has no value; write it as NAME=VALUE, such as steps=100.")
            pairs.append((name, value))
        settings = each_once(pairs, "--set")
        chosen = task_names() if self.tasks is None else names(self.tasks)
        return make_cells(chosen, names(self.mixers), parse_seeds(self.seeds), settings)

    def store(self) -> Store:
        """The folder of the records."""
        from femts.experiments.results import Store

        return Store(self.out)

    def engine(self) -> Engine:
        """The engine that the options ask for."""
        from femts.experiments.runner import Engine

        return Engine("local", None if self.jobs is None else count("--jobs", self.jobs), self.max_time, self.device)
