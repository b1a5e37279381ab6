"""A task of selection: its sizes, what it draws, and how an answer is scored."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import ClassVar, Literal, TypeVar

from torch import Generator, Tensor, nn
from torch.nn import functional as F

from femts.config.arguments import check_text
from femts.config.bounds import Count, Positive, check_bounds
from femts.errors import UsageError, suggest

Part = Literal["train", "test"]
Pair = tuple[Tensor, Tensor]
IGNORED = -100  # target of a token that is not scored
MEASURES = {"error": "lower is better", "accuracy": "higher is better", "bits": "lower is better"}


@dataclass(frozen=True)
class Task(ABC):
    """Task and the sizes that it is run in; every mixer gets the same.

    Attributes:
        NAME: what the user types.
        ASKS: one sentence on what has to be done.
        MEASURE: a name of `MEASURES`.
        width: D of a token.
        heads: of the prior.
        layers: blocks.
        length: tokens T of a sequence.
        steps: of AdamW.
        batch: samples of a step.
        rate: largest learning rate.
        scored: samples that the score is taken over.
    """

    NAME: ClassVar[str]
    ASKS: ClassVar[str]
    MEASURE: ClassVar[str]

    width: Count = 64
    heads: Count = 4
    layers: Count = 2
    length: Count = 64
    steps: Count = 600
    batch: Count = 32
    rate: Positive = 3e-3
    scored: Count = 1024

    def __post_init__(self) -> None:
        check_bounds(self, "task")

    @abstractmethod
    def host(self, mixer: str) -> nn.Module:
        """The network around the layers of `mixer`, a name of `femts.bench.tasks.layer.mixer_names`."""

    @abstractmethod
    def draw(self, part: Part, count: int, generator: Generator) -> Pair:
        """`count` inputs and targets of a part."""

    @abstractmethod
    def loss(self, answer: Tensor, target: Tensor) -> Tensor:
        """The scalar that is trained on."""

    @abstractmethod
    def score(self, answer: Tensor, target: Tensor) -> float:
        """The measure over all `answer`s to the test part."""

    def data(self) -> str | None:
        """SHA-256 of what is not drawn but read; None where all is drawn."""
        return None


@dataclass(frozen=True)
class Choices(Task):
    """Task whose answers are one of several classes; targets of `IGNORED` do not count."""

    MEASURE = "accuracy"

    def loss(self, answer: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(answer.flatten(0, -2), target.flatten(), ignore_index=IGNORED)

    def score(self, answer: Tensor, target: Tensor) -> float:
        scored = target != IGNORED
        return (answer.argmax(-1) == target)[scored].double().mean().item()


_TASKS: dict[str, type[Task]] = {}
_Class = TypeVar("_Class", bound=type[Task])
_DEFAULT_ORDER = 100
_ORDER: dict[str, int] = {}


def register_task(order: int = _DEFAULT_ORDER) -> Callable[[_Class], _Class]:
    """Class decorator: make a task available under its `NAME`; tables list tasks by rising `order`."""

    def add(task: _Class) -> _Class:
        _TASKS[task.NAME], _ORDER[task.NAME] = task, order
        return task

    return add


def task_names() -> tuple[str, ...]:
    """Every registered name, in the order of the tables."""
    package = import_module(__package__)
    for module in iter_modules(package.__path__):
        import_module(f"{__package__}.{module.name}")
    return tuple(sorted(_TASKS, key=lambda name: _ORDER[name]))


def task_class(name: str) -> type[Task]:
    """The task called `name`; UsageError with the nearest right name when there is none."""
    names = task_names()
    if check_text(name, "task") not in names:
        raise UsageError(f"Unknown task '{name}'{suggest(name, names)}")
    return _TASKS[name]
