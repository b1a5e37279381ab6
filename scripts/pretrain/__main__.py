"""Pretrain a network on synthetic series and on files of series.

    python -m scripts.pretrain runs/pretrained --hours 1 --files more/*.csv.gz --set network.width=160

A second call with the same folder goes on where the first one stopped. `--from WEIGHTS` starts from weights instead of
random ones, and `--cool runs/pretrained 1000` from the state in another folder: the rate then falls to 0 over 1,000 steps,
and the training ends. The folder holds the state, the averaged weights in half precision and a line of JSON for each
report. The exit status is 2 for a mistake.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import torch

from femts.config.settings import apply_settings
from femts.errors import UsageError
from femts.text import quote
from scripts.pretrain.corpus import Corpus, by_season, read_series, split
from scripts.pretrain.loop import Recipe, Training, load_weights, train
from scripts.pretrain.scores import held_out_pool, held_out_real

EXCLUDED = ("nyc_taxi",)  # part of a table that is scored


def main(argv: Sequence[str] | None = None) -> int:
    """Train as `argv` says; exit status 2 for a mistake."""
    options = _parser().parse_args(argv)
    try:
        run(options)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def run(options: argparse.Namespace) -> None:
    """Train as `options` say and print a line for each report.

    Raises:
        UsageError: A file, a setting or a combination of options cannot be used; nothing is written then.
    """
    torch.set_num_threads(1)
    to_train, held_out = split(read_series(options.files), options.exclude)
    training = _training(options)
    recipe, hours = training.recipe, training.progress.cpu_hours
    if options.hours <= hours:
        raise UsageError(f"--hours {options.hours:g} counts all hours, of which {hours:.2f} are over; give more.")
    r, patch = recipe, recipe.network.patch
    corpus = Corpus(by_season(to_train), r.share, r.gaps, r.lengths, patch, r.size, r.seed, r.grown)
    groups = held_out_pool(patch) | held_out_real(by_season(held_out), patch)
    options.folder.mkdir(parents=True, exist_ok=True)
    with (options.folder / "log.jsonl").open("a") as log:
        weights = sum(parameter.numel() for parameter in training.network.parameters())
        sources = {path.name: len(read_series([path])) for path in options.files}
        limits = options.hours, options.every, options.steps
        for report in train(training, corpus, groups, options.folder, *limits, sources):
            print(json.dumps({"recipe": asdict(recipe), "weights": weights, **report}), file=log, flush=True)
            kinds = {name: value for name, value in report["scores"].items() if " " not in name}
            scores = ", ".join(f"{name} {mase:.4f} / {sql:.4f}" for name, (mase, sql) in kinds.items())
            print(
                f"{report['cpu_hours']:.3f} h, {report['steps']} steps, {report['series']} series: "
                f"loss {report['loss']:.4f} of {report['naive']:.4f}; {scores}",
                flush=True,
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scripts.pretrain", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path, help="where the state and the weights go")
    parser.add_argument("--hours", type=float, default=1.0, help="processor time in all, also before `--from` [1]")
    parser.add_argument("--steps", type=int, help="optimiser steps in all, at most")
    parser.add_argument("--every", type=float, default=5.0, help="minutes between reports [5]")
    parser.add_argument("--files", type=Path, nargs="*", default=[], help="real series, one in a line of CSV")
    parser.add_argument("--exclude", nargs="*", default=EXCLUDED, help="names of series to leave out")
    parser.add_argument("--from", dest="weights", type=Path, help="weights to start from")
    parser.add_argument("--cool", nargs=2, metavar=("FOLDER", "STEPS"), help="end the training in another folder")
    parser.add_argument(
        "--set", dest="settings", action="append", default=[], help="training.NAME or network.NAME=VALUE"
    )
    return parser


def _training(options: argparse.Namespace) -> Training:
    state = options.folder / "state.safetensors"
    if options.cool and not state.exists():
        folder, steps = options.cool
        return _cooled(folder, steps, state.name, options.settings or options.weights)
    if not state.exists():
        recipe, weights, progress = load_weights(options.weights) if options.weights else (Recipe(), None, None)
        return Training(_changed(recipe, options.settings), weights, progress)
    if options.settings or options.weights:
        given = "--set" if options.settings else "--from"
        raise UsageError(f"{options.folder} holds a training, which {given} cannot change; give another folder.")
    return Training.resume(state)


def _cooled(folder: str, steps: str, name: str, further: object) -> Training:
    """The training in `folder`, with a rate that falls to 0 over the next `steps` steps."""
    if further or not steps.isdecimal() or int(steps) < 1 or not (Path(folder) / name).is_file():
        raise UsageError(
            f"--cool takes the folder of a training and a number of steps, not '{quote(folder)}' "
            f"'{quote(steps)}', and neither --set nor --from beside it."
        )
    training = Training.resume(Path(folder) / name)
    training.cool(int(steps))
    return training


def _changed(recipe: Recipe, settings: Sequence[str]) -> Recipe:
    """`recipe` with settings such as `training.lr=1e-3` or `network.width=160`."""
    changes: dict[str, dict[str, str]] = {"training": {}, "network": {}}
    for setting in settings:
        part, _, rest = setting.partition(".")
        name, equals, value = rest.partition("=")
        if part not in changes or not equals or name == "network":
            raise UsageError(f"Setting '{quote(setting)}' is not of the form training.lr=1e-3 or network.width=160.")
        changes[part][name] = value
    network = apply_settings(recipe.network, changes["network"], "network")
    return replace(apply_settings(recipe, changes["training"], "training"), network=network)


if __name__ == "__main__":
    sys.exit(main())
