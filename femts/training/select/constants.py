"""Constants of the selection by `--model auto`, each with the measurement that set it, or none if it was set by judgement.

A unit of work is what one core of the machine of these measurements does in a second: an AMD EPYC shared with other
processes, one thread, processor time, torch 2.13 and statsforecast 2.1, 28 November 2026. Work is computed from the
sizes of a table and never timed, so that without a time limit a selection depends on nothing but data and seed.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Fit(NamedTuple):
    """Work of a fit to n rows with a season of m steps: `base + row n + square n^2 + season n m`."""

    base: float
    row: float
    square: float = 0.0
    season: float = 0.0


class Step(NamedTuple):
    """Work of a training step on a batch of v values, look-backs and targets together: `base + value v`, of which a
    value takes more in proportion from `wide` columns on, for models that mix columns. A step reads at most `drawn`
    columns of a window."""

    base: float
    value: float
    wide: float = math.inf
    drawn: float = math.inf


class Allowance(NamedTuple):
    """Work that a selection may do without a time limit.

    Attributes:
        fits: trials and final scores of classical and pretrained models.
        beside: the same if trees and networks are trained as well.
        training: each training of trees or a network.
    """

    fits: float
    beside: float
    training: float


# Candidates

NAIVE_NAMES = ("seasonal_naive", "naive")  # always the first
# Training rows per series from which on classical models are not tried if trees and networks are: on 15 such tables the
# MASE changed by -1.3 % (-4.3 to +.5) without them, and they took a fifth to a third of the time ("Classical
# models of long series", results/trials.md).
LONG = 2000
# Training windows, over all series and columns, that trees and networks need. On 38 tables with fewer, the MASE changed by
# +3.8 % (+.4 to +7.9) with `boost` and by +1.1 % (+.3 to +2.0) with `nhits` ("Trees and networks on short tables",
# results/trials.md).
FEWEST = 1000
# Training windows that panels below FEW_SERIES need: with 10 series networks lost to `ridge` for up to 2,802 windows,
# with 30 they won (docs/measured/short-series.md).
FEW_SERIES, FEWEST_OF_FEW = 30, 3000
# Validation rows of short tables below which only pretrained models and the seasonal naive one are compared: on 5 rows
# and fewer, all models together had 4 to 27 % larger errors (docs/measured/short-tables.md).
FEWEST_COMPARED = 6
# Models that the ensemble of classical models needs; set by judgement.
FEWEST_MEMBERS = 3
# Share of zeros from which on demand counts as intermittent; set by judgement.
SPARSE = 0.3

# Windows and origins

# Origins of a table of up to FEW rows; set by judgement.
ORIGINS, FEW = 3, 2000
# Windows per origin if some forecasts are fits, for several origins and for a single one. There, 8 windows ranked
# `ridge` behind the seasonal naive forecast on ETTm1 and level with it on ETTh1, although its error is 10 % lower over
# 256 windows; 16 did not.
WINDOWS, WINDOWS_OF_ONE = 8, 32
# Windows per origin if the only slow forecasts are those of `fem_zero`: by 16 windows of ETTm1, it was level with
# `fem_zero_tuned`, whose error is 3 % lower.
WINDOWS_WITHOUT_FITS = 64
# Windows per origin if no forecast is a fit; set by judgement.
MANY_WINDOWS = 256
# Windows per split on which fits are finally scored, at most and at least; set by judgement.
SCORED, FEWEST_SCORED = 24, 4

# Means

# The weighted mean ("A mean weighted by errors", results/trials.md): the geometric mean of the MASE of 168 tables over
# that of the seasonal naive forecast was .761 and .775 by the two greedy rules used before, .739 by this one, and .748 by
# `fem_zero` alone. Powers of 8 to 16, halves of 50 to 400, priors of 2 to 8, bounds of 1.1 to 3 and 3 to 6 members
# changed it by .006 at most.
MOST, LEAST, WORST = 4, 0.1, 1.25
STEEPEST, HALF = 8.0, 100.0
PRIOR, FAVOURED = 4.0, ("fem_zero", "fem_zero_tuned", "chronos2", "chronos_bolt")
# Models of which one at most takes part in a mean.
ALIKE = ("fem_zero", "fem_zero_tuned")
# Prior of the median of classical models, which fades with the number of compared values ("The median of classical
# models as a candidate", results/trials.md): it lowered the MASE of 111 single series by 3.9 %; 8 to 64, and 100 to 1,000
# values or no fading, lie within 1.6 % of each other.
ROBUST, FADES = 32.0, 300.0

# Work, without a time limit

# Rows of all series below which a table is small, and what a selection may then do, which takes about a minute on two
# cores: the fits, or three trainings, a refit of one and fits beside them.
SMALL, OF_SMALL = 5000, Allowance(fits=40.0, beside=12.0, training=8.0)
# The same for all other tables. 1,000 steps of a network, the usual recipe, are less for most of them; a table of
# thousands of columns gets fewer steps.
OF_LARGE = Allowance(fits=300.0, beside=300.0, training=600.0)
# Fits without and with a season, by class of statsforecast: 40 to 1,000 rows (to 512 for AutoARIMA), seasons of 1 to
# 168 steps, two series each, the slower one. 400 rows with a season of 12 take .030 (DynamicOptimizedTheta), .037
# (MSTL), .2 (AutoCES), .27 to .4 (AutoETS); 300 rows take 1.8 and, with a season of 24, 2.5 to 6.8 (AutoARIMA).
FITS: dict[str, tuple[Fit, Fit]] = {
    "CrostonSBA": (Fit(0.002, 0.0),) * 2,
    "DynamicOptimizedTheta": (Fit(0.003, 5e-5, 2e-7),) * 2,
    "AutoTheta": (Fit(0.012, 2e-4, 8e-7),) * 2,
    "MSTL": (Fit(0.008, 6e-5, season=6e-7),) * 2,
    "AutoCES": (Fit(0.05, 4e-4),) * 2,
    "AutoETS": (Fit(0.005, 1.5e-4), Fit(0.03, 9e-4)),
    "AutoARIMA": (Fit(0.05, 1e-3), Fit(0.4, 1e-3, season=5e-4)),
}
# Training steps of networks, fastest of eight: 32 windows of 1 to 7 columns, look-backs of 63 to 1,008 steps. For 3
# columns, 384 + 24 steps, .090 (`fem_sm`), .080 (`fem_sm_ridge`), .0085 (`tide`); 168 + 24 steps, .018 (`nhits`). For
# 28 columns, of which 8 are drawn, 1008 + 48 steps, 1.4 (`fem_sm`), .026 (`tide`); 168 + 48 steps, .035 (`nhits`).
STEPS = {
    "nhits": Step(0.008, 5e-7),
    "tide": Step(0.005, 8e-8),
    "fem_sm": Step(0.018, 1.7e-6, wide=7),
    "fem_sm_ridge": Step(0.018, 1.7e-6, wide=7),
    # 16 windows of 64 + 12, 256 + 24, 512 + 24 and 2,048 + 96 steps take .071, .119, .211 and .301.
    "fem_zero_tuned": Step(0.07, 8e-6, drawn=1),
}
OTHER_STEPS = STEPS["fem_sm"]
# Floating-point operations of a pretrained model in a unit of work: a transformer of width 512 does 4.8e10 on 64 tokens,
# but few forecasts have as many.
FLOPS = 2e10
# Work of scoring a window relative to training on it: .18 to .3 in the same measurements.
SCORING = 0.3
# Steps below which a training is not worth its work: the fewest measured in "Steps and learning rate in a limited time"
# (results/trials.md) are 60.
FEWEST_STEPS = 60

# Seconds, with a time limit

# Shares of a limit for classical and pretrained models, and of the trial time if networks are trained as well.
FITTING, FITTING_BESIDE = 0.7, 0.4
# The largest multiple by which an estimate by work may exceed the time that is left, for a forecast to be timed or a
# network to be trained at all, is 1 / HOPELESS; set by judgement.
HOPELESS = 0.5
# Share of the trial time for fits in closed form, those with short look-backs first; set by judgement.
CLOSED = 0.5
# Values of an origin on which candidates are compared at most, columns and steps together; set by judgement.
COMPARED = 1_000_000
# Duration of a refit relative to its training, at most.
REFIT_RATIO = 1.2
# Seconds that a trial of a slower model needs.
TRIAL_SECONDS = 3.0
# Seconds per training when time is divided, even if later ones get none: "Steps and learning rate in a limited time".
TRAINING_SECONDS = 12.0
# Shares of the training time, relative to 1 for the other models that are trained; set by judgement.
SHARES = {"fem_zero_tuned": 3.0}
# Largest number of series on which candidates are trained and compared, evenly spaced: with 100,000 series of 12 rows,
# preprocessing takes 12 s and a trial of the seasonal naive forecast 27.
MOST_SERIES = 5000
