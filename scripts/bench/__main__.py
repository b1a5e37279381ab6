"""Measure the cost of a layer, a stream, a training step and a batch on this machine.

Cases take turns, so that ratios are reliable even on a busy machine. Each time and each ratio is a median over the turns,
followed by its interquartile range relative to it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

import pandas as pd
import torch

from femts.environment import machine
from femts.errors import UsageError
from femts.mixers.kernels import recorded
from femts.mixers.priors.registry import prior_names
from scripts.bench.data import bench_data
from scripts.bench.mixer import bench_mixer, bench_stream
from scripts.bench.operators import bench_operators
from scripts.bench.replay import bench_replay
from scripts.bench.train import bench_train


def count(text: str) -> int:
    """A whole number of at least 1."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def run(argv: Sequence[str]) -> dict[str, Any]:
    """Run the command `argv`; its machine, kernels, settings and rows.

    Raises:
        UsageError: a layer or a model that cannot be made.
    """
    options = _parser().parse_args(argv)
    if "precision" not in options:
        options.precision = "32"
    elif options.precision == "auto":
        native = options.device == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        options.precision = "bf16" if native else "32"
    if "settings" in options:
        options.settings = dict(text.partition("=")[::2] for text in options.settings)
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    facts = {**machine(options.device), "precision": options.precision}
    asked = {name: value for name, value in vars(options).items() if name not in ("bench", "json")}
    with recorded() as kernels:
        return {"machine": facts, "kernels": kernels, "settings": asked, "rows": list(options.bench(options))}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="mixer|operators|stream|train|replay|data")
    devices = ["cpu", *["cuda"] * torch.cuda.is_available()]

    def add(name: str, bench: Any, precision: bool = False, turns: bool = True) -> argparse.ArgumentParser:
        words = bench.__doc__.partition("\n\n")[0]
        command = commands.add_parser(name, help=words, description=words, allow_abbrev=False)
        command.set_defaults(bench=bench)
        if turns:
            command.add_argument("--repeats", type=count, default=7, help="number of turns")
        command.add_argument("--threads", type=count, help="CPU threads; by default torch's")
        command.add_argument("--device", choices=devices, default=devices[-1])
        if precision:
            command.add_argument("--precision", choices=("auto", "32", "bf16"), default="auto")
        command.add_argument("--json", action="store_true", help="print one JSON object")
        return command

    mixer, stream = add("mixer", bench_mixer, precision=True), add("stream", bench_stream)
    mixer.add_argument("--components", nargs="+", default=("alone", "L", "LT", "LTG", "CLTG", "naive"))
    mixer.add_argument("--tokens", type=count, default=4928, help="tokens per batch")
    stream.add_argument("--priors", nargs="+", default=("linear", "gla", "rnn_softmax", "rnn_decay", "mamba"))
    stream.add_argument(
        "--seen", nargs="+", type=count, default=(10, 1000, 10000), help="tokens read before the timed ones"
    )
    counted = add("operators", bench_operators, turns=False)
    counted.add_argument("--most", type=count, default=5, help="number of operators to name")
    for command in (mixer, counted):
        command.add_argument("--priors", nargs="+", default=prior_names())
        command.add_argument("--lengths", nargs="+", type=count, default=(22, 256, 1024), help="tokens per sequence")
    counted.add_argument("--components", nargs="+", default=("alone", "L", "LT", "LTG", "CLTG"))
    for command in (mixer, counted, stream):
        command.add_argument("--d-model", type=count, default=64, help="width of a token")
        command.add_argument("--n-heads", type=count, default=8, help="heads of the prior")

    train, data = add("train", bench_train, precision=True), add("data", bench_data)
    replay = add("replay", bench_replay, precision=True)
    for command in (train, replay, data):
        command.add_argument("--channels", nargs="+", type=count, default=(7,), help="channels of the random data")
        command.add_argument("--seq-len", type=count, default=1024, help="steps of look-back")
        command.add_argument("--horizon", dest="pred_len", type=count, default=96, help="steps to forecast")
    for command in (train, replay):
        command.add_argument("--models", nargs="+", default=("sm", "fem_sm", "fem_gla", "fem_aft", "fem_mamba"))
        command.add_argument("--batch-size", type=count, default=32, help="windows per step")
    train.add_argument("--set", dest="settings", nargs="+", default=(), metavar="model.NAME=VALUE")
    train.add_argument("--compile", dest="compiled", action="store_true", help="use torch.compile")
    data.add_argument("--batch-sizes", nargs="+", type=count, default=(32, 256))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Print what `argv` measures as a table, or as JSON; exit status 2 for a mistake."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        answer = run(argv)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    if "--json" in argv:
        print(json.dumps(answer))
        return 0
    print(", ".join(f"{name} {value}" for name, value in {**answer["machine"], **answer["kernels"]}.items()))
    print(pd.json_normalize(answer["rows"]).to_string(index=False, float_format="{:.4g}".format, na_rep="-"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
