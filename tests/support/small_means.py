"""Small forecasters to take the mean of; classics among them where statsforecast is installed."""

from __future__ import annotations

import importlib.util
from typing import Any

import femts
from femts.data.dataset import Dataset

TINY = {"model.d_model": 16, "model.n_layers": 1, "model.n_heads": 2, "training.batch_size": 64}
CLASSICS = importlib.util.find_spec("statsforecast") is not None
MIXED = (*(("auto_theta", "mstl") if CLASSICS else ("naive",)), "ridge", "fem_sm")
LEARNED = ("ridge", "fem_sm")
BACK = {"ridge": 16, "fem_sm": 12, "nhits": 16, "dlinear": 12, "fem_sm_ridge": 16, "naive": 4}


def small_members(data: Dataset, names: tuple[str, ...] = MIXED, steps: int = 6, **more: Any) -> list[Any]:
    """Forecasters by `names` with different look-backs, trained for three steps."""
    made = []
    for name in names:
        settings = TINY if name.startswith("fem") else {} if name in BACK else {"model.windows": 3}
        usual: dict[str, Any] = {"seq_len": BACK.get(name), "max_steps": 3, "device": "cpu", "settings": settings}
        made.append(femts.train(data, name, steps, **(usual | more)))
    return made
