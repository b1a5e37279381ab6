"""Recipe of a training: the configuration file and, over it, the flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from femts.cli.option_groups import given
from femts.cli.options import option
from femts.cli.reading_options import READING, ReadingOptions
from femts.config.arguments import check_flag
from femts.config.model import AUTO, DEFAULT_MODEL, SHAPE
from femts.config.values import check_plain, left_open, read_yaml, whole_number
from femts.data.catalog import CATALOG
from femts.data.protocols import HORIZONS
from femts.data.roles import to_arguments
from femts.errors import UsageError, suggest
from femts.text import quote

if TYPE_CHECKING:
    from femts.data.dataset import Dataset

SECTIONS = ("model", "training")
HORIZON = ("--horizon", "--pred-len")  # the second as in the scripts of the literature
_BUDGETS = {"training.max_steps", "training.max_epochs"}  # two ways to say one thing
_KEYS = ("dataset", *READING, "model", "pred_len", "seq_len", "protocol", "training", "refit")


@dataclass(frozen=True)
class RecipeOptions:
    """Flags that say what is trained, on which data, and the file that they go before."""

    dataset: Annotated[str | None, option("A name from `femts datasets list`, or a table file.", "NAME|FILE")] = None
    model: Annotated[
        str | None,
        option(f"A name of `femts models`; by default auto, or {DEFAULT_MODEL} for catalogue data.", "NAME|auto"),
    ] = None
    pred_len: Annotated[
        str | None,
        option(
            "Forecast horizon in steps; auto depends on the frequency; several train one model each.",
            "N[,N...]|all|auto",
            *HORIZON,
        ),
    ] = None
    seq_len: Annotated[str | None, option("Look-back in steps; auto leaves it to the protocol.", "N|auto")] = None
    protocol: Annotated[
        str | None,
        option(
            "Rule that sets the look-back; by default seasons, or paper for catalogue data.", "paper|lookback96|seasons"
        ),
    ] = None
    reading: ReadingOptions = field(default_factory=ReadingOptions)
    config: Annotated[Path | None, option("Recipe in YAML; flags override it.", "FILE")] = None
    assignments: Annotated[
        list[str] | None, option("Override one setting, such as model.components=CL.", "KEY=VALUE", "--set")
    ] = None
    refit: Annotated[
        bool | None,
        typer.Option(
            "--refit/--no-refit",
            help="Refit on all rows after scoring; both models are kept.",
            show_default="refit, but for the catalogue",
        ),
    ] = None


@dataclass(frozen=True)
class TrainingOptions:
    """Fields of `TrainingConfig` that have a flag of their own."""

    seed: Annotated[str | None, option("Random seed for weights, window order and dropout; by default 42.", "N")] = None
    max_steps: Annotated[str | None, option("Optimiser steps; by default 1000.", "N")] = None
    max_epochs: Annotated[str | None, option("Training budget in epochs instead of steps.", "N")] = None
    max_time: Annotated[
        str | None,
        option("Time limit for all horizons, such as 9m; the schedule is fitted to it.", "SPAN", "--time-limit"),
    ] = None
    metric: Annotated[
        str | None,
        option(
            "Validation metric to select by; by default mae for auto and mse for single models.",
            "mse|mae|mase|wql|NAME",
        ),
    ] = None
    device: Annotated[str | None, option("Device to train on.", "auto|cpu|cuda|mps")] = None
    precision: Annotated[str | None, option("Numeric precision.", "auto|32|bf16")] = None


@dataclass(frozen=True)
class Recipe:
    """One `femts train` call, before the data are seen.

    Attributes:
        dataset: a name of the catalogue or the path of a CSV file.
        model: registered name.
        pred_lens: horizons, one run each; empty where the step of the data decides.
        seq_len: look-back; None leaves it to the protocol.
        protocol: named protocol; None leaves it to the data.
        settings: dotted keys (`model.components`, `training.lr`) -> value or text.
        reading: how the data are read, arguments of `load_dataset`.
        refit: train once more on all rows; None leaves it to the data.
    """

    dataset: str
    model: str
    pred_lens: tuple[int, ...]
    seq_len: int | None
    protocol: str | None
    settings: Mapping[str, Any]
    reading: Mapping[str, Any]
    refit: bool | None = None

    @property
    def default_name(self) -> str:
        """Name of the run folder where none is given."""
        horizons = "all" if self.pred_lens == HORIZONS else "-".join(map(str, self.pred_lens))
        return f"{Path(self.dataset).stem}-{self.model}-{horizons}"

    def load(self, data_root: Path | None) -> Dataset:
        """The data, as the recipe says that they are to be read."""
        from femts.data.loading import load_dataset

        return load_dataset(self.dataset, data_root, **self.reading)


def make_recipe(options: RecipeOptions, training: TrainingOptions, model: str | None = None) -> Recipe:
    """Merge defaults, the YAML file, `--set` assignments and the flags that were given, in rising order.

    Args:
        options: flags, and the file: a recipe, or the `config.yaml` of a run.
        training: flags that stand for `training.*`.
        model: the one where none is named; None leaves it to the data.

    Raises:
        UsageError: a fault in any of them, in one sentence.
    """
    merged: dict[str, Any] = {"pred_len": "auto", "seq_len": "auto"}
    settings: dict[str, Any] = {}
    if options.config is not None:
        top, settings = _read_config(options.config)
        merged |= top
    merged |= {name: value for name, value in given(options).items() if name in _KEYS}
    flags = {f"training.{name}": value for name, value in given(training).items()}
    for more in (each_once(map(parse_assignment, options.assignments or []), "--set"), flags):
        if _BUDGETS & more.keys():  # what says how long goes before what said it in another way
            settings = {name: value for name, value in settings.items() if name not in _BUDGETS}
        settings |= more
    if "dataset" not in merged:
        raise UsageError("No dataset is given; add --dataset NAME (see 'femts datasets list') or --dataset FILE.csv.")
    return Recipe(
        dataset=merged["dataset"],
        model=merged.get("model") or model or (DEFAULT_MODEL if merged["dataset"] in CATALOG else AUTO),
        pred_lens=() if left_open(merged["pred_len"]) else parse_horizons(merged["pred_len"]),
        seq_len=_seq_len(merged["seq_len"]),
        protocol=merged.get("protocol"),
        settings=settings,
        reading=ReadingOptions.of(merged).reading(),
        refit=None if merged.get("refit") is None else check_flag(merged["refit"], "refit"),
    )


def parse_horizons(value: object) -> tuple[int, ...]:
    """`96`, `96,192`, `[96, 192]` or `all` as a tuple of distinct horizons, in the order given."""
    if str(value).strip().lower() == "all":
        return HORIZONS
    parts = value if isinstance(value, list | tuple) else str(value).split(",")
    horizons = tuple(dict.fromkeys(whole_number(part, "Horizon") for part in parts))
    numbers = tuple(number for number in horizons if number is not None and number >= 1)
    if not horizons or len(numbers) < len(horizons):
        raise UsageError(f"Horizon '{quote(value)}' is not a number of steps; write 96, 96,192 or all.")
    return numbers


def _seq_len(value: object) -> int | None:
    if left_open(value):
        return None
    steps = whole_number(value, "Look-back")
    if steps is None or steps < 1:
        raise UsageError(f"Look-back '{quote(value)}' is not a number of steps; write --seq-len 512 or auto.")
    return steps


def parse_assignment(text: str, option: str = "--set") -> tuple[str, str]:
    """`section.name=value`, as `option` was given it, as key and value."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{option} '{quote(text)}' has no value; write it as {quote(text) or 'training.lr'}=VALUE.")
    section, dot, name = key.strip().partition(".")
    if section not in SECTIONS or not dot or not name:
        raise UsageError(f"Unknown setting '{quote(key)}'; write model.NAME=VALUE or training.NAME=VALUE.")
    return key.strip(), value.strip()


def each_once(pairs: Iterable[tuple[str, str]], option: str) -> dict[str, str]:
    """`pairs` as key and value by key; UsageError for a key that `option` has twice, of which one would be lost."""
    values: dict[str, str] = {}
    for key, value in pairs:
        if key in values:
            raise UsageError(
                f"{option} '{quote(key)}' is given twice, as {quote(values[key])} and as {quote(value)}; give it once."
            )
        values[key] = value
    return values


def _read_config(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Top-level values and dotted settings of a YAML file."""
    content = read_yaml(path, "Configuration")
    check_plain(content, f"Configuration {path}")
    if not isinstance(content, dict):
        raise UsageError(f"Configuration {path} is not a list of 'key: value' lines; see the files in configs/.")
    top = {str(key): value for key, value in content.items() if key != "format"}
    for key in top:
        if key not in _KEYS:
            raise UsageError(f"Configuration {path} has the unknown key '{quote(key)}'{suggest(key, _KEYS)}")
    return _flatten(top, path)


def _flatten(top: dict[str, Any], path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    settings: dict[str, Any] = {}
    if isinstance(top.get("dataset"), dict):  # the form of a run's own config.yaml
        data = top["dataset"]
        top |= {key: data[key] for key in ("na", "columns", "season", "freq") if key in data}
        top |= {
            "panel": data.get("panel"),
            **to_arguments(data.get("roles") or {}),
            **(data.get("split") or {}),
            **(data.get("domain") or {}),
        }
        top["dataset"] = data.get("source") or data.get("name")
        top.setdefault("refit", False)
    model = top.pop("model", None)
    if isinstance(model, dict):
        model = {str(key): value for key, value in model.items()}
        settings |= {f"model.{key}": value for key, value in model.items() if key not in ("name", *SHAPE)}
        model = model.get("name")
    training = top.pop("training", {})
    if not isinstance(training, dict):
        raise UsageError(
            f"Configuration {path} has 'training: {quote(training)}'; give it indented lines such as 'lr: 1e-4'."
        )
    settings |= {f"training.{key}": value for key, value in training.items()}
    if model is not None:
        top["model"] = model
    for key in ("dataset", "model", "protocol"):
        if not isinstance(top.get(key, ""), str):
            raise UsageError(f"Configuration {path} has '{key}: {quote(top[key])}', which is not a name.")
    return top, settings
