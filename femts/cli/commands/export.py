"""`femts export`: export of a run to ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from femts.cli.command import command
from femts.cli.options import option
from femts.cli.run_options import Run, check_single, one_series, parse_steps
from femts.cli.streams import say
from femts.cli.targets import check_targets


@command(60)
def export(
    run: Run,
    out: Annotated[Path | None, option("Output file.", "MODEL.onnx", "--out", "-o", default="RUN/model.onnx")] = None,
    horizon: Annotated[str | None, option("Forecast horizon in steps.", "N", default="as trained")] = None,
    series: Annotated[str | None, option("Series of a panel to export.", "NAME")] = None,
) -> None:
    """Export a run to ONNX.

    Inputs (B, look-back, columns) and outputs (B, steps, columns) are in raw units. The file is written only if
    onnxruntime and torch agree.
    """
    steps = None if horizon is None else parse_steps(horizon)
    path = run / "model.onnx" if out is None else out
    check_single(run)
    from femts.forecaster.forecaster import load

    forecaster = one_series(load(run), series)
    check_targets({"--out": path}, run=run)
    made = forecaster.export(path, steps)
    columns, past = len(forecaster.columns), forecaster.config.seq_len
    say(
        f"{made.path}: (B, {past}, {columns}) to (B, {made.steps}, {len(forecaster.targets)}), {made.size / 2**20:.1f} "
        f"MiB; onnxruntime and torch differ by at most {made.difference:.1e} in scaled units"
    )
