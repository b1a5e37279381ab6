"""Measure the speed targets on a CUDA machine: replayed training steps, mixers relative to their priors, long sequences,
streams and whole runs.

    python -m scripts.bench.gpu [PART ...] --out DIR [--dry-run]

Runs `python -m scripts.bench` several times, stores each result as JSON in DIR, and prints every target next to the
measured value. `--dry-run` runs everything on the CPU in small sizes, without comparing anything.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

import femts
from femts.config.training import VALIDATIONS, TrainingConfig
from femts.mixers.kernels import OPERATIONS, using
from scripts.bench.__main__ import run

MODELS = "fem_sm fem_gla fem_aft fem_mamba dlinear"
LOOK_BACKS = {96: 1024, 192: 2048, 336: 2048, 720: 4096}  # of the paper, by horizon
DATASETS = ("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather", "Solar")
BLOCK = "mixer --priors softmax gla mamba rnn_softmax --components alone LTG CLTG"
LONG = "mixer --priors linear gla rnn_softmax rnn_decay mamba --components CLTG"
PLAIN = "block-by-torch"  # the same without any faster kernel
Record = Mapping[str, Any]


def commands(dry: bool) -> dict[str, str]:
    """What is measured, by the name of its file."""
    if dry:
        block = f"{BLOCK} --lengths 16 --tokens 32 --repeats 1"
        return {
            "replay": "replay --models dlinear --channels 2 --horizon 24 --seq-len 48 --batch-size 2 --repeats 1",
            "block": block,
            PLAIN: block,
            "long": f"{LONG} --lengths 16 256 --tokens 256 --repeats 1",
            "stream": "stream --seen 2 20 --repeats 1",
            "train24": "train --models dlinear --horizon 24 --seq-len 96 --batch-size 2 --repeats 1",
        }
    block = f"{BLOCK} --lengths 1024 --tokens 8192 --d-model 768 --n-heads 12"
    train = f"train --models {MODELS} --channels 7 21 137 --repeats 3"
    return {
        "replay": f"replay --models {MODELS} --channels 7 --horizon 96 --seq-len 1024 --repeats 3",
        "block": block,
        PLAIN: block,
        "long": f"{LONG} --lengths 4096 65536 --tokens 65536",
        "stream": "stream --seen 10 2000",
        **{f"train{steps}": f"{train} --horizon {steps} --seq-len {rows}" for steps, rows in LOOK_BACKS.items()},
    }


def find(rows: Sequence[Record], **wanted: Any) -> Record:
    """The one row with these values."""
    (row,) = (row for row in rows if all(row[key] == value for key, value in wanted.items()))
    return row


def run_seconds(row: Record, dataset: str) -> float:
    """Projected time of one training by the default recipe: its steps and validations, and all windows scored once."""
    recipe, split = TrainingConfig(), femts.CATALOG[dataset].split
    windows = {part: int(split.windows(part, row["seq_len"], row["pred_len"])[0, 3]) for part in ("val", "test")}
    most = windows["val"] if recipe.val_windows is None else min(recipe.val_windows, windows["val"])
    scored = VALIDATIONS * most + windows["val"] + windows["test"]
    training = recipe.steps(1) * recipe.batch_size / row["windows_per_s"] / (1 - row["outside"])
    return float(training + scored / row["forecasts_per_s"])


def findings(records: Mapping[str, Record]) -> list[tuple[str, float, float]]:
    """What was measured beside the most that it may be."""
    found: list[tuple[str, float, float]] = []
    for row in records["replay"]["rows"] if "replay" in records else ():
        found.append((f"replayed step, {row['model']}, ms", 1e3 * row["step"]["seconds"], 5.0))
        found.append((f"replayed step, {row['model']}, over eager", row["step"]["ratio"], 1.0))
        found.append((f"replayed step, {row['model']}, weights that differ", row["difference"], 0.01))
        found.append((f"replayed step, {row['model']}, share of steps not replayed", 1 - row["replayed"], 0.0))
    if {"block", PLAIN} <= set(records):
        found += of_blocks(records["block"]["rows"], records[PLAIN]["rows"])
    if "long" in records:
        found += of_lengths(records["long"]["rows"])
    for row in records["stream"]["rows"] if "stream" in records else ():
        if row["step"]["ratio"] != 1.0:
            found.append((f"stream, {row['prior']}, after {row['seen']} tokens over few", row["step"]["ratio"], 1.1))
    return found + list(
        of_trainings([row for name, each in records.items() if name.startswith("train") for row in each["rows"]])
    )


def of_blocks(block: Sequence[Record], by_torch: Sequence[Record]) -> Iterator[tuple[str, float, float]]:
    """Mixers relative to their priors and to themselves without faster kernels."""
    for prior, components, most in (
        ("softmax", "LTG", 1.05),
        ("softmax", "CLTG", 1.15),
        ("gla", "CLTG", 1.10),
        ("mamba", "CLTG", 1.25),
    ):
        ratio = find(block, prior=prior, components=components)["step"]["ratio"]
        yield f"training step, {prior} {components} over alone", ratio, most
    peak = find(block, prior="softmax", components="CLTG")["peak_ratio"]
    yield "peak memory, softmax CLTG over alone", peak, 1.25
    for prior in dict.fromkeys(row["prior"] for row in block):
        fast, plain = (find(rows, prior=prior, components="CLTG")["step"]["seconds"] for rows in (block, by_torch))
        yield f"training step, {prior} CLTG, over the same by torch alone", fast / plain, 1.0


def of_lengths(long: Sequence[Record]) -> Iterator[tuple[str, float, float]]:
    """Time per token of long sequences relative to shorter ones."""
    short, far = sorted({row["length"] for row in long})
    for prior in dict.fromkeys(row["prior"] for row in long):
        rows = [find(long, prior=prior, length=length, components="CLTG") for length in (short, far)]
        a_token, of_many = (row["step"]["seconds"] / (row["length"] * row["batch"]) for row in rows)
        yield f"time a token, {prior}, T={far} over T={short}", of_many / a_token, 1.1


def of_trainings(trained: Sequence[Record]) -> Iterator[tuple[str, float, float]]:
    """Training time outside the steps, and projected time of whole runs."""
    for model in dict.fromkeys(row["model"] for row in trained):
        own = [row for row in trained if row["model"] == model]
        sets = [(row, name) for row in own for name in DATASETS if femts.CATALOG[name].channels == row["channels"]]
        minutes = sum(run_seconds(row, name) for row, name in sets) / 60
        yield f"outside the steps, {model}, worst", max(row["outside"] for row in own), 0.05
        yield f"{len(sets)} runs of datasets and horizons, {model}, minutes, projected", minutes, 5.0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(commands(dry=False))}; by default all")
    parser.add_argument("--out", type=Path, required=True, help="folder for the JSON results")
    parser.add_argument("--dry-run", action="store_true", help="small sizes on the CPU")
    options = parser.parse_args(argv)
    unknown = set(options.parts) - set(commands(options.dry_run))
    if unknown:
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}")
    if not options.dry_run and not torch.cuda.is_available():
        print("There is no CUDA device on this machine; run it on one that has, or add --dry-run.", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    records: dict[str, Record] = {}
    for name, command in commands(options.dry_run).items():
        if options.parts and name not in options.parts:
            continue
        with using(**(dict.fromkeys(OPERATIONS, "torch") if name == PLAIN else {})):
            records[name] = run([*command.split(), "--device", "cpu" if options.dry_run else "cuda"])
        answer = {"command": f"python -m scripts.bench {command}", **records[name]}
        (options.out / f"{name}.json").write_text(json.dumps(answer) + "\n")
        print(f"done: {answer['command']} ({name}; kernels {answer['kernels']})", flush=True)
    for machine in {str(record["machine"]): record["machine"] for record in records.values()}.values():
        print(f"\n{machine['name']}, torch {machine['torch']}, {machine['precision']}")
    for what, measured, target in findings(records):
        verdict = "" if options.dry_run else "  met" if measured <= target else "  NOT MET"
        print(f"{what:<66}{measured:>8.3f}  at most {target:g}{verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
