"""Place that `femts bench` measures in, and tables that it prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from femts.errors import UsageError
from femts.text import strict_json, table

if TYPE_CHECKING:
    from femts.bench.data import DataRow
    from femts.bench.measure import Measured
    from femts.bench.mixer import MixerRow
    from femts.bench.stream import StreamRow
    from femts.bench.train import TrainRow
    from femts.training.device import Place


@dataclass(frozen=True)
class TableForm:
    """Form of the tables that a measurement prints.

    Attributes:
        columns: their heads.
        cells: the texts of one row, as many as columns.
        together: all rows make one table; otherwise those with the same first cell make one.
    """

    columns: tuple[str, ...]
    cells: Callable[[Any], list[str]]
    together: bool = False


def place_of(device: str, precision: str, compiled: bool = False) -> Place:
    """The device and precision asked for; UsageError when they, or `torch.compile`, are not there
    or cannot be measured."""
    from femts.config.settings import apply_settings
    from femts.config.training import TrainingConfig
    from femts.training.device import resolve_place

    asked = apply_settings(
        TrainingConfig(), {"device": device, "precision": precision, "compile": compiled}, where="training"
    )
    if device == "mps":
        raise UsageError(
            "Device 'mps' does not tell its peak memory and cannot be measured; take --device cpu or cuda."
        )
    return resolve_place(asked)


def report(plan: Any, place: Place, rows: Iterable[Any], form: TableForm, as_json: bool) -> None:
    """Print one JSON object, or a line on the machine, tables as soon as they are complete, and a
    line on the kernels."""
    from femts.environment import machine
    from femts.mixers.kernels import recorded

    facts = {**machine(place.device), "precision": place.precision}
    with recorded() as kernels:
        if as_json:
            answer = [asdict(row) for row in rows]
            print(strict_json({"machine": facts, "kernels": kernels, "settings": asdict(plan), "rows": answer}))
            return
        print(
            "{name} ({device}, {precision}), threads {threads}, torch {torch}, femts {femts}".format(**facts),
            flush=True,
        )
        for _, group in groupby(map(form.cells, rows), key=lambda row: form.together or row[0]):
            print(f"\n{table(form.columns, group)}", flush=True)
    if kernels:
        print(f"\nkernels: {', '.join(f'{operation} {name}' for operation, name in sorted(kernels.items()))}")


def _mixer_cells(row: MixerRow) -> list[str]:
    first = [row.prior, str(row.length), str(row.batch), row.case]
    if row.forward is None or row.step is None or row.peak_bytes is None:
        return first + ["-"] * (len(MIXER.columns) - len(first))
    return [*first, *_times(row.forward), *_times(row.step), _mib(row.peak_bytes), f"{row.peak_ratio:.2f}"]


def _train_cells(row: TrainRow) -> list[str]:
    return [
        *(row.dataset, str(row.channels), str(row.seq_len), row.model, *_times(row.step), f"{row.windows_per_s:.0f}"),
        *(f"{1e3 * row.floor_seconds:.2f}", f"{row.step.seconds / row.floor_seconds:.2f}"),
        *(f"{row.scoring_windows_per_s:.0f}", _mib(row.peak_bytes), _part(row.outside), _part(row.outside_spread)),
    ]


def _stream_cells(row: StreamRow) -> list[str]:
    return [row.prior, str(row.seen), *_times(row.step), f"{row.state_bytes / 2**10:.1f}"]


def _data_cells(row: DataRow) -> list[str]:
    gather, loop = _times(row.gather), _times(row.loop)
    return [
        *(row.dataset, str(row.channels), str(row.seq_len), str(row.batch_size), *gather[:2], *loop[:2], *gather[2:]),
        *(f"{row.gather_windows_per_s:.0f}", f"{row.loop_windows_per_s:.0f}"),
    ]


def _times(measured: Measured) -> list[str]:
    return [
        *(f"{1e3 * measured.seconds:.2f}", _part(measured.spread)),
        *(f"{measured.ratio:.2f}", _part(measured.ratio_spread)),
    ]


def _part(value: float) -> str:
    return f"{100 * value:.1f}%"


def _mib(count: int) -> str:
    return f"{count / 2**20:.1f}"


# Each time, ratio and part is followed by the interquartile range of its turns: of times and ratios
# as a part of the median.
_AFTER = ("+-", "ratio", "+-")
MIXER = TableForm(
    ("prior", "T", "batch", "case", "forward ms", *_AFTER, "step ms", *_AFTER, "MiB", "ratio"),
    _mixer_cells,
)
TRAIN = TableForm(
    (
        *("dataset", "C", "L", "model", "step ms", *_AFTER, "windows/s"),
        *("floor ms", "of floor", "scoring/s", "MiB", "outside", "+-"),
    ),
    _train_cells,
)
STREAM = TableForm(("prior", "seen", "token ms", *_AFTER, "state KiB"), _stream_cells, together=True)
DATA = TableForm(
    ("dataset", "C", "L", "batch", "gather ms", "+-", "loop ms", "+-", "ratio", "+-", "windows/s", "loop/s"),
    _data_cells,
    together=True,
)
