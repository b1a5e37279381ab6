#!/usr/bin/env python3
"""Measure the speed targets on a CUDA machine: what a mixer costs over its prior, long sequences, streams, whole runs.

    scripts/gpu_bench --out DIR [--dry-run]

Runs `femts bench` several times, keeps each answer as JSON in DIR, and prints every target beside what was measured.
`--dry-run` goes through all of it on the CPU in small sizes, without comparing anything.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

DATASETS = ("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather", "Solar")
MODELS = "fem_sm,fem_gla,fem_aft,fem_mamba,dlinear"
HORIZONS = (96, 192, 336, 720)
BLOCK = "mixer --priors softmax,gla,mamba,rnn_softmax --components alone,LTG,CLTG"
LARGE = f"{BLOCK} --lengths 1024 --tokens 8192 --d-model 768 --n-heads 12"
PLAIN = "block-by-torch"  # the same without any faster kernel
COMMANDS = {
    "block": LARGE,
    PLAIN: LARGE,
    "long": "mixer --priors linear,gla,rnn_softmax,rnn_decay,mamba --lengths 4096,65536 --tokens 65536 --components CLTG",
    "stream": "stream --seen 10,10000",
    **{f"train{steps}": f"train --datasets {','.join(DATASETS)} --models {MODELS} --pred-len {steps}" for steps in HORIZONS},
}
SMALL = {
    "block": f"{BLOCK} --lengths 16 --tokens 32 --d-model 64",
    PLAIN: f"{BLOCK} --lengths 16 --tokens 32 --d-model 64",
    "long": "mixer --priors linear,gla,rnn_softmax,rnn_decay,mamba --lengths 16,256 --tokens 256 --components CLTG",
    "stream": "stream --seen 2,20",
    **{f"train{steps}": f"train --datasets ETTh1 --models {MODELS} --pred-len {steps} --batch-size 2" for steps in HORIZONS},
}


def bench(command: str, device: str, plain: bool) -> dict[str, Any]:
    """The JSON answer of one `femts bench` command; `plain` computes everything by torch."""
    from femts.cli import main as femts
    from femts.mixers.kernels import OPERATIONS, using

    answer, asked = io.StringIO(), dict.fromkeys(OPERATIONS, "torch") if plain else {}
    with contextlib.redirect_stdout(answer), using(**asked):
        status = femts(["bench", *command.split(), "--device", device, "--json"])
    if status:
        sys.exit(status)
    record: dict[str, Any] = json.loads(answer.getvalue())
    return record


def find(rows: list[dict[str, Any]], **wanted: Any) -> dict[str, Any]:
    """The one row with these values."""
    (row,) = (row for row in rows if all(row[key] == value for key, value in wanted.items()))
    return row


def token_seconds(row: dict[str, Any]) -> float:
    """Seconds of a training step for each token."""
    return float(row["step"]["seconds"] / (row["length"] * row["batch"]))


def run_seconds(row: dict[str, Any]) -> float:
    """Projected time of one training run by the default recipe: its steps and validations, and all windows scored once."""
    from femts.data.catalog import card
    from femts.config.training import VALIDATIONS, TrainingConfig

    recipe = TrainingConfig()
    split = card(row["dataset"]).split
    windows = {part: split.windows(part, row["seq_len"], row["pred_len"]) for part in ("val", "test")}
    scored = VALIDATIONS * min(recipe.val_windows, windows["val"]) + windows["val"] + windows["test"]
    training = recipe.steps(1) * recipe.batch_size / row["windows_per_s"] / (1 - row["outside"])
    return float(training + scored / row["scoring_windows_per_s"])


def findings(records: dict[str, dict[str, Any]]) -> list[tuple[str, float, float]]:
    """What was measured beside the most that it may be."""
    block, long = records["block"]["rows"], records["long"]["rows"]
    trained = [row for steps in HORIZONS for row in records[f"train{steps}"]["rows"]]

    def ratio(prior: str, case: str, of: Callable[[dict[str, Any]], float] = lambda row: row["step"]["ratio"]) -> float:
        return of(find(block, prior=prior, case=case))

    found = [
        ("training step, softmax LTG over alone", ratio("softmax", "LTG"), 1.05),
        ("training step, softmax CLTG over alone", ratio("softmax", "CLTG"), 1.15),
        ("training step, gla CLTG over alone", ratio("gla", "CLTG"), 1.10),
        ("training step, mamba CLTG over alone", ratio("mamba", "CLTG"), 1.25),
        ("peak memory, softmax CLTG over alone", ratio("softmax", "CLTG", lambda row: row["peak_ratio"]), 1.25),
    ]
    for prior in dict.fromkeys(row["prior"] for row in block):
        fast, plain = (find(records[name]["rows"], prior=prior, case="CLTG")["step"]["seconds"] for name in ("block", PLAIN))
        found.append((f"training step, {prior} CLTG, over the same by torch alone", fast / plain, 1.0))
    lengths = sorted({row["length"] for row in long})
    for prior in dict.fromkeys(row["prior"] for row in long):
        short, far = (token_seconds(find(long, prior=prior, length=length, case="CLTG")) for length in lengths)
        found.append((f"time a token, {prior}, T={lengths[1]} over T={lengths[0]}", far / short, 1.1))
    for row in records["stream"]["rows"]:
        if row["step"]["ratio"] != 1.0:
            found.append((f"stream, {row['prior']}, after {row['seen']} tokens over few", row["step"]["ratio"], 1.1))
    for model in MODELS.split(","):
        own = [row for row in trained if row["model"] == model]
        found.append((f"outside the steps, {model}, worst", max(row["outside"] for row in own), 0.05))
        found.append((f"all data sets and horizons, {model}, minutes, projected", sum(map(run_seconds, own)) / 60, 5.0))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for the JSON answers")
    parser.add_argument("--dry-run", action="store_true", help="small sizes on the CPU")
    options = parser.parse_args()
    import torch

    if not options.dry_run and not torch.cuda.is_available():
        print("gpu_bench: there is no CUDA device on this machine; run it on one that has, or add --dry-run.", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    records = {}
    for name, command in (SMALL if options.dry_run else COMMANDS).items():
        command += " --repeats 1" if options.dry_run else ""
        records[name] = bench(command, "cpu" if options.dry_run else "cuda", name == PLAIN)
        (options.out / f"{name}.json").write_text(json.dumps({"command": f"femts bench {command}", **records[name]}) + "\n")
        print(f"done: femts bench {command} ({name}; kernels {records[name]['kernels']})", flush=True)
    machine = records["block"]["machine"]
    print(f"\n{machine['name']}, torch {machine['torch']}, {machine['precision']}")
    for what, measured, target in findings(records):
        verdict = "" if options.dry_run else "  met" if measured <= target else "  NOT MET"
        print(f"{what:<66}{measured:>8.3f}  at most {target:g}{verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
