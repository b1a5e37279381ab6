"""What the processes of `forks` have imported when they start."""

from __future__ import annotations

import contextlib

import scipy.optimize
import scipy.special

import femts.cli
import femts.training.train
from femts.environment import without_traces

with without_traces():
    import lightning_fabric.loggers
    import lightning_fabric.strategies

with contextlib.suppress(ImportError):
    import statsforecast.models

__all__ = ["femts", "lightning_fabric", "scipy", "statsforecast"]
