"""Libraries imported without what their import leaves on the disk."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_traces() -> Iterator[None]:
    """Around an import of Lightning or of torch's compiler.

    To learn the version of torchmetrics, which femts does not use, Lightning imports it, and with it matplotlib, which then
    writes its list of fonts into the user's cache: seconds and a file for nothing. And torch's compiler makes its folder in
    the temporary one before there is anything to compile.
    """
    unseen, folder = "torchmetrics", "TORCHINDUCTOR_CACHE_DIR"
    hidden, named = unseen not in sys.modules, folder not in os.environ
    if hidden:
        sys.modules[unseen] = None  # type: ignore[assignment]  # how Python marks what cannot be imported
    if named:
        os.environ[folder] = tempfile.gettempdir()
    try:
        yield
    finally:
        if hidden:
            del sys.modules[unseen]
        if named:
            del os.environ[folder]
