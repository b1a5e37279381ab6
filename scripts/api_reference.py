"""Write the reference of the Python names and of the commands, made from their docstrings and options, as HTML.

    python scripts/api_reference.py [DIR]      # docs/api unless given; then open DIR/index.html

It takes an environment with `pip install '.[dev]'`. What pdoc warns of, such as a name that does
not resolve, is an error.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pdoc

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, also where another one is installed

import femts  # noqa: E402
import femts.cli  # noqa: E402
from femts.models import listing  # noqa: E402

# The public names, the commands, and what one meets when adding a model, a prior or a data set.
MODULES = (
    "femts",
    r"!femts\..*",
    "femts.cli",
    r"!femts\.cli\..*",
    "femts.errors",
    "femts.forecaster.scoring",
    "femts.data.dataset",
    "femts.data.catalog",
    r"!femts\.data\.catalog\..*",
    "femts.evaluation.intervals",
    "femts.config.training",
    "femts.models.base",
    "femts.models.registry",
    "femts.mixers.priors.base",
)


def write_reference(folder: Path) -> None:
    """Write the pages into `folder`.

    Args:
        folder: made where it is missing; pages of the same name are replaced.

    Raises:
        UserWarning, RuntimeWarning: pdoc found something that it cannot document.
    """
    vars(femts).update({name: getattr(femts, name) for name in femts.__all__})  # pdoc wants them loaded
    vars(femts)["models"] = listing.models  # what the package does when it is called
    command = [sys.executable, "-m", "typer", "femts.cli", "utils", "docs", "--name", "femts"]
    commands = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    plain, femts.cli.__doc__ = femts.cli.__doc__, commands.replace("# `femts`", f"{femts.cli.__doc__}", 1)
    pdoc.render.configure(docformat="google", show_source=False, footer_text=f"femts {femts.__version__}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            warnings.simplefilter("error", RuntimeWarning)
            pdoc.pdoc(*MODULES, output_directory=folder)
    finally:
        femts.cli.__doc__ = plain


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "api"
    write_reference(target)
    print(f"{target}: {len(list(target.rglob('*.html')))} pages; begin with {target / 'index.html'}")
