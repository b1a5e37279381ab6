"""Folder of the trials of `--model auto`, which records the request so that only the same request can resume it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from femts.config.model import AUTO
from femts.config.records import RecordError, read_json
from femts.config.values import left_open
from femts.data.catalog import CATALOG
from femts.data.dataset import Dataset
from femts.data.protocols import default_protocol
from femts.errors import UsageError
from femts.files import write_file
from femts.forecaster.replacing import locked_run
from femts.forecaster.run_folder import (
    CANDIDATES,
    METRICS,
    REQUEST,
    check_new_folder,
    clear_run,
    clear_runs,
    has_begun,
    json_bytes,
)
from femts.forecaster.saved_run import read_config, read_metrics
from femts.text import strict_json
from femts.training.checkpoint import Finished, changed_data, check_resumable, check_same
from femts.training.request import FitRequest


def request_record(request: FitRequest, data: Dataset, pred_len: int) -> dict[str, Any]:
    """Record of everything that a selection depends on, in plain types: `data`, how they are read, lengths and
    recipe."""
    back, protocol = request.lengths.seq_len, request.lengths.protocol
    record = {
        "dataset": {"name": data.name, **data.schema.to_dict()},
        "model": {"name": AUTO, **request.settings},
        "pred_len": pred_len,
        "seq_len": AUTO if left_open(back) else str(back).strip(),
        "protocol": default_protocol(data.source in CATALOG) if protocol is None else protocol,
        "training": asdict(request.training),
        "refit": request.refit,
        "data": data.record,
    }
    plain: dict[str, Any] = json.loads(strict_json(record))
    return plain


@contextmanager
def trials_folder(request: FitRequest, record: Mapping[str, Any]) -> Iterator[Path | None]:
    """The locked folder of the trials within the run folder; None writes nothing.

    Args:
        request: request with the run folder `out`; with `resume`, trials in it are continued.
        record: record of this request, written to a new folder and compared with that of an existing one.

    Raises:
        UsageError: The folder is not new, or with `resume` but without `anew` it holds something else, or another
            request's selection.
        Finished: The selection to resume is already finished.
    """
    out = request.out
    check_resumable(out, request.resume)
    if out is None:
        yield None
        return
    with locked_run(out):
        begun = request.resume and has_begun(out)
        if begun:
            try:
                _check_same_request(out, record)
            except UsageError:
                if not request.anew:
                    raise
                begun = False
        elif not request.anew:
            check_new_folder(out)
        if not begun:
            # runs of another request, or trials without one
            (clear_runs if request.anew else clear_run)(out)
            write_file(out / REQUEST, json_bytes(record))
        try:
            yield out / CANDIDATES
        except UsageError:
            if not begun:  # keep what was there before this call
                shutil.rmtree(out / CANDIDATES, ignore_errors=True)
            raise


def _check_same_request(out: Path, record: Mapping[str, Any]) -> None:
    finished, chosen = (out / METRICS).is_file(), (out / REQUEST).is_file()
    before = _finished_request(out) if finished else _begun_request(out) if chosen else read_config(out).to_dict()
    check_same({**before, "data": record["data"]}, record, out)
    if before.get("data") != record["data"]:
        raise changed_data(record["dataset"]["name"], out)
    if finished:
        shutil.rmtree(out / CANDIDATES, ignore_errors=True)  # the process may have been killed after its last line
        raise Finished


def _begun_request(out: Path) -> Mapping[str, Any]:
    try:
        before: Mapping[str, Any] = dict(read_json(out / REQUEST))
        return before
    except (OSError, RecordError, ValueError, TypeError) as error:
        raise UsageError(
            f"File {out / REQUEST} was changed and cannot be resumed; train again in a new folder."
        ) from error


def _finished_request(out: Path) -> Mapping[str, Any]:
    """Request of a finished run; its model if that was named."""
    chosen = read_metrics(out).get("auto")
    return {"model": {"name": read_config(out).model}} if chosen is None else chosen.get("request", {})
