"""Training recipe from a configuration file and command-line flags."""

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
HORIZON = ("--horizon", "--pred-len")  # the second is used by scripts in the literature
_BUDGETS = {"training.max_steps", "training.max_epochs"}  # mutually exclusive
_KEYS = ("dataset", *READING, "model", "pred_len", "seq_len", "protocol", "training", "refit")


@dataclass(frozen=True)
class RecipeOptions:
    """Flags for the model and the data, and the configuration file that they override."""

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
    """Fields of `TrainingConfig` with flags of their own."""

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
    """Arguments of one `femts train` call, before the data are read.

    Attributes:
        dataset: catalogue name or path of a table.
        model: registered name.
        pred_lens: horizons, one run each; empty to choose one by the frequency of the data.
        seq_len: look-back; None to use the protocol.
        protocol: name of the protocol; None to choose it by the data.
        settings: dotted keys (`model.components`, `training.lr`) -> value or text.
        reading: arguments of `load_dataset`.
        refit: whether to refit on all rows; None to decide by the data.
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
        """Name of the run folder if none is given."""
        horizons = "all" if self.pred_lens == HORIZONS else "-".join(map(str, self.pred_lens))
        return f"{Path(self.dataset).stem}-{self.model}-{horizons}"

    def load(self, data_root: Path | None) -> Dataset:
        """Load the data as specified."""
        from femts.data.loading import load_dataset

        return load_dataset(self.dataset, data_root, **self.reading)


def make_recipe(options: RecipeOptions, training: TrainingOptions, model: str | None = None) -> Recipe:
    """Merge defaults, the YAML file, `--set` assignments and flags, in increasing order of precedence.

    Args:
        options: flags, and the file: a recipe, or the `config.yaml` of a run.
        training: flags for `training.*`.
        model: default model; None to choose it by the data.

    Raises:
        UsageError: A value is invalid.
    """
    merged: dict[str, Any] = {"pred_len": "auto", "seq_len": "auto"}
    settings: dict[str, Any] = {}
    if options.config is not None:
        top, settings = _read_config(options.config)
        merged |= top
    merged |= {name: value for name, value in given(options).items() if name in _KEYS}
    flags = {f"training.{name}": value for name, value in given(training).items()}
    for more in (each_once(map(parse_assignment, options.assignments or []), "--set"), flags):
        if _BUDGETS & more.keys():  # the later budget replaces one of the other kind
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
    """Parse `96`, `96,192`, `[96, 192]` or `all` as a tuple of distinct horizons, in the given order."""
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
    """Split `section.name=value`, given to `option`, into key and value."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{option} '{quote(text)}' has no value; write it as '{quote(text) or 'training.lr'}=VALUE'.")
    section, dot, name = key.strip().partition(".")
    if section not in SECTIONS or not dot or not name:
        raise UsageError(f"Unknown setting '{quote(key)}'{_suggestion(key.strip())}")
    return key.strip(), value.strip()


def _suggestion(key: str) -> str:
    """End of a message about `key`, which is no setting: the closest one of any model, or how to write one."""
    from femts.models.registry import MODELS
    from femts.training.resolve import suggest_setting

    said = suggest_setting(key, MODELS.names())
    return said if "did you mean" in said else "; write model.NAME=VALUE or training.NAME=VALUE."


def each_once(pairs: Iterable[tuple[str, str]], option: str) -> dict[str, str]:
    """`pairs` as a dict; UsageError if a key is given to `option` twice."""
    values: dict[str, str] = {}
    for key, value in pairs:
        if key in values:
            raise UsageError(
                f"{option} '{quote(key)}' is given twice, as {quote(values[key])} and as {quote(value)}; give it once."
            )
        values[key] = value
    return values


def _read_config(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Top-level values and dotted settings in a YAML file."""
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
    if isinstance(top.get("dataset"), dict):  # config.yaml of a run
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
            f"Configuration {path} has 'training: {quote(training)}'; write indented lines such as 'lr: 1e-4'."
        )
    settings |= {f"training.{key}": value for key, value in training.items()}
    if model is not None:
        top["model"] = model
    for key in ("dataset", "model", "protocol"):
        if not isinstance(top.get(key, ""), str):
            raise UsageError(f"Configuration {path} has '{key}: {quote(top[key])}', which is not a name.")
    return top, settings
