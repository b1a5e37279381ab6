"""Threads that share a forecaster, as docs/how-to/serving.md lets them: an explanation is of its own look-back."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
from small_runs import small_run

from femts.data.synthetic import synthetic_frame


def test_forecasts_of_other_threads_do_not_enter_an_explanation() -> None:
    forecaster, frame = small_run("fem_sm", max_epochs=1), synthetic_frame(200)
    pasts = [frame, frame.iloc[:-20]] * 2
    alone, all_started = [forecaster.explain(past) for past in pasts], threading.Barrier(4)

    def work(number: int) -> list[pd.DataFrame]:
        all_started.wait()
        say = forecaster.explain if number < 3 else forecaster.predict
        return [say(pasts[number]) for _ in range(10)]

    with ThreadPoolExecutor(4) as pool:
        tables = list(pool.map(work, range(4)))
    for number in range(3):
        for table in tables[number]:
            pd.testing.assert_frame_equal(table, alone[number])
