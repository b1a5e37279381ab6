"""Pretrain a network on synthetic series and on files of series.

    python -m scripts.pretrain runs/pretrained --hours 1 --files more/*.csv.gz --set network.width=160

A second call with the same folder goes on where the first one stopped. `--from WEIGHTS` starts from weights instead of
random ones. The folder holds the state, the averaged weights in half precision and a line of JSON for each report.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import torch
import yaml

from scripts.pretrain.corpus import Corpus, by_season, read_series, split
from scripts.pretrain.loop import Recipe, Training, load_weights, recipe_of, train
from scripts.pretrain.scores import held_out_pool, held_out_real

EXCLUDED = ("nyc_taxi",)  # part of a table that is scored


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m scripts.pretrain", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path, help="where the state and the weights go")
    parser.add_argument("--hours", type=float, default=1.0, help="processor time in all [1]")
    parser.add_argument("--steps", type=int, help="optimiser steps in all, at most")
    parser.add_argument("--every", type=float, default=5.0, help="minutes between reports [5]")
    parser.add_argument("--files", type=Path, nargs="*", default=[], help="real series, one in a line of CSV")
    parser.add_argument("--exclude", nargs="*", default=EXCLUDED, help="names of series to leave out")
    parser.add_argument("--from", dest="weights", type=Path, help="weights to start from")
    parser.add_argument("--set", dest="settings", action="append", default=[], help="NAME=VALUE of the recipe")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    options.folder.mkdir(parents=True, exist_ok=True)
    state = options.folder / "state.safetensors"
    if state.exists():
        training = Training.resume(state)
    elif options.weights:
        recipe, weights, progress = load_weights(options.weights)
        training = Training(changed(recipe, options.settings), weights, progress)
    else:
        training = Training(changed(Recipe(), options.settings))
    recipe = training.recipe
    to_train, held_out = split(read_series(options.files), options.exclude)
    patch = recipe.network.patch
    corpus = Corpus(
        by_season(to_train), recipe.share, recipe.gaps, recipe.lengths, patch, size=recipe.size, seed=recipe.seed
    )
    groups = held_out_pool(patch) | held_out_real(by_season(held_out), patch)
    with (options.folder / "log.jsonl").open("a") as log:
        for report in train(training, corpus, groups, options.folder, options.hours, options.every, options.steps):
            print(json.dumps({"recipe": asdict(recipe), **report}), file=log, flush=True)
            kinds = {name: value for name, value in report["scores"].items() if " " not in name}
            scores = ", ".join(f"{name} {mase:.4f} / {sql:.4f}" for name, (mase, sql) in kinds.items())
            print(
                f"{report['cpu_hours']:.3f} h, {report['steps']} steps, {report['series']} series: "
                f"loss {report['loss']:.4f} of {report['naive']:.4f}; {scores}",
                flush=True,
            )


def changed(recipe: Recipe, settings: list[str]) -> Recipe:
    """`recipe` with settings such as `lr=1e-3` or `network.width=160`."""
    values = asdict(recipe)
    for setting in settings:
        name, _, text = setting.partition("=")
        part, _, field = name.rpartition(".")
        target = values[part] if part else values
        if field not in target:
            raise SystemExit(f"Unknown setting '{name}'; the settings are {', '.join(values)}.")
        kind = type(target[field])
        value = yaml.safe_load(text)
        target[field] = tuple(value) if kind is tuple else kind(value)
    return recipe_of(values)


if __name__ == "__main__":
    main()
