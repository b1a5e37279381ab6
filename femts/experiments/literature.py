"""Published test MSE of many models with their protocol: what was scored, at which look-back, read where.

Means over the horizons 96, 192, 336 and 720, in scaled units. Numbers of different protocols stand
side by side in most papers: batches of 2,048 whose last is left out never score 5 to 26 % of ETTh1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DATASETS = ("ETTh1", "ETTh2", "ETTm1", "ETTm2", "Weather", "Solar")
ALL, DROP_LAST, AS_QUOTED, UNKNOWN = "all", "drop_last", "as quoted", "unknown"
SAMOVAR = "arXiv 2502.07244"


@dataclass(frozen=True)
class Publication:
    """Means of a model as somebody published them.

    Attributes:
        model: its name.
        means: test MSE by data set.
        scored: `ALL` windows of the test part, or `DROP_LAST`, without those of the last batch; `AS_QUOTED`, by a
            paper that copied the numbers; `UNKNOWN`, also where nobody looked.
        look_back: steps, or words on their choice.
        source: place of the numbers.
        secondary: data sets whose numbers were not read at their source.
    """

    model: str
    means: Mapping[str, float]
    scored: str
    look_back: str
    source: str
    secondary: tuple[str, ...] = ()


def _row(
    model: str, means: Sequence[float | None], scored: str, look_back: str, source: str, secondary: Sequence[str] = ()
) -> Publication:
    by_name = {name: mean for name, mean in zip(DATASETS, means, strict=True) if mean is not None}
    return Publication(model, by_name, scored, look_back, source, tuple(secondary))


PUBLICATIONS = (
    _row("DUET", (0.398, 0.334, 0.338, 0.248, 0.218, 0.189), ALL, "searched", "its repository's table, means computed"),
    _row("TimeBridge", (0.398, 0.342, 0.345, 0.247, 0.220, 0.181), ALL, "720", "its result log"),
    _row("PMDformer", (0.402, 0.338, 0.346, 0.246, 0.217, 0.181), ALL, "720", "its result log", ("Solar",)),
    _row("TimeBase (linear)", (0.397, None, None, None, None, None), ALL, "720", "its logs"),
    _row("xLSTM-Mixer", (0.397, 0.340, 0.339, 0.248, 0.219, None), UNKNOWN, "searched", "secondary", DATASETS),
    _row("xPatch (fair)", (0.413, 0.341, 0.351, 0.251, 0.219, 0.192), ALL, "512", "its repository"),
    _row("xPatch (search)", (0.391, 0.299, 0.341, 0.242, 0.211, 0.194), DROP_LAST, "searched", "its repository"),
    _row("TimeMixer", (0.411, 0.316, 0.348, 0.256, 0.222, 0.192), AS_QUOTED, "-", "quoted by xPatch's search"),
    _row("Chimera", (0.405, 0.318, 0.345, 0.250, 0.219, None), UNKNOWN, "-", "quoted by xLSTM-Mixer"),
    _row("SAMoVAR", (0.401, 0.324, 0.339, 0.240, 0.214, 0.184), ALL, "1024 to 4096", SAMOVAR),
    _row("CATS", (0.408, 0.320, 0.345, 0.243, 0.216, 0.206), AS_QUOTED, "-", f"quoted by SAMoVAR, {SAMOVAR}"),
    _row("RootPurge (linear)", (0.399, 0.332, 0.353, 0.249, 0.219, None), ALL, "720", "its README"),
    _row("least squares a channel", (0.412, 0.332, 0.355, 0.249, 0.2145, None), ALL, "720", "RootPurge's log of RRR"),
    _row("CycleNet", (0.416, 0.346, 0.355, 0.249, 0.224, 0.189), ALL, "best", "its results"),
    _row("TTM 1M (zero-shot)", (0.394, 0.345, 0.386, 0.281, 0.237, None), UNKNOWN, "to 1536", "granite-tsfm's tables"),
    _row("TTM 5M (zero-shot)", (0.396, 0.338, 0.366, 0.256, 0.226, None), UNKNOWN, "to 1536", "granite-tsfm's tables"),
    _row("Sundial-L (zero-shot)", (0.395, 0.334, 0.331, 0.254, 0.238, None), AS_QUOTED, "-", "its table"),
)
