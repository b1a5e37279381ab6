"""Published test MSE to lay beside ours: means over the horizons 96, 192, 336 and 720, and single horizons where known.

`fem_*`, `gla`, `aft`: Table 4 of the paper; its cells of Weather and ETTh2 are likely, not certain
(columns of the copy at hand were lost). `lintrans` and the baselines: Table 1 of "Linear
Transformers as VAR Models" (arXiv 2502.07244). PatchTST's horizons on ETTh1 are from its paper.
"""

from __future__ import annotations

DATASETS = ("Weather", "Solar", "ETTh1", "ETTh2", "ETTm1", "ETTm2")
MEANS: dict[str, tuple[float | None, ...]] = {
    "fem_sm": (0.222, 0.189, 0.419, 0.340, 0.341, 0.242),
    "fem_gla": (0.223, 0.188, 0.418, 0.344, 0.345, 0.247),
    "fem_mamba": (0.218, 0.193, 0.421, 0.340, 0.346, 0.246),
    "fem_aft": (0.223, 0.186, 0.414, 0.339, 0.344, 0.241),
    "gla": (None, 0.204, 0.418, None, 0.357, 0.250),
    "aft": (None, 0.198, 0.421, None, 0.351, 0.245),
    "lintrans": (0.217, 0.189, 0.419, 0.346, 0.346, 0.243),
    "itransformer": (0.232, 0.219, 0.454, 0.374, 0.373, 0.265),
    "patchtst": (0.221, 0.202, 0.413, 0.330, 0.346, 0.247),
    "dlinear": (0.233, 0.216, 0.422, 0.426, 0.347, 0.252),
}
SINGLE = {("ETTh1", "patchtst"): {96: 0.370, 192: 0.413, 336: 0.422, 720: 0.447}}


def published(dataset: str, model: str, pred_len: int | None) -> float | None:
    """The published MSE at a horizon, or with None that of the mean over all four; None where there is none."""
    if pred_len is not None:
        return SINGLE.get((dataset, model), {}).get(pred_len)
    if dataset not in DATASETS or model not in MEANS:
        return None
    return MEANS[model][DATASETS.index(dataset)]
