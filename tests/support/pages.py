"""Pages of Markdown, run as a reader would: the README and the guides share this."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import yaml
from checkout import Checkout
from programs import forked_femts

import femts
from femts.cli import main
from femts.config.model import AUTO, DEFAULT_MODEL
from femts.data.catalog import CATALOG
from femts.experiments import runner
from femts.training.train import refits
from femts.training.zero_shot import ZERO_SHOT

HOME = "/home/me"  # what pages call the folder that they are read in
ROOT = Path(__file__).resolve().parents[2]
FILE = re.compile(r"# ([\w/.-]+\.\w+|Dockerfile)\n")  # the first line of a block that is a file
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
ALONE = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--root-user-action=ignore")
TINY = {"model.n_layers": "1", "model.d_model": "16", "model.n_heads": "2"}


@dataclass(frozen=True)
class Less:
    """What a test takes away from a training: `flags` of `femts train`, `options` of `femts.train`, and of
    one model, unless femts chooses it, its size."""

    flags: tuple[str, ...]
    options: dict[str, Any]

    def typed(self, model: str | None) -> list[str]:
        """Flags for a training of `model`."""
        size = [] if model == AUTO else [part for key, value in TINY.items() for part in ("--set", f"{key}={value}")]
        return [*self.flags, *size]

    def given(self, model: str | None) -> dict[str, Any]:
        """Options for a training of `model`."""
        return {**self.options, **({} if model == AUTO else {"settings": TINY})}


def less(**options: Any) -> Less:
    """Tiny layers and `options`, such as time_limit="5s"."""
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    return Less(tuple(flags), options)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Kind and text of each block of code."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


def commands(text: str) -> list[str]:
    """The lines of a shell block; one that ends in a backslash goes on."""
    return [line for line in text.replace("\\\n", " ").splitlines() if line]


@dataclass
class Reader:
    """Somebody who types what a page says, in `folder`.

    Attributes:
        folder: where it is typed.
        less: what trainings of mixers are cut down to; from the first of them on, figures are not those of the page.
        checkout: commands run the copy of femts that lies in the folder, in processes of their own.
    """

    folder: Path
    less: Less
    checkout: bool = False
    cut: bool = False
    names: dict[str, Any] = field(default_factory=dict)

    def read(self, page: Path) -> None:
        """Do all that the page says, and compare what it shows with what comes out."""
        with patch("femts.training.train.refits", refits):
            self._read(page)

    def _read(self, page: Path) -> None:
        printed, status = None, 0
        for kind, text in blocks(page):
            if kind == "text":
                assert printed is not None, f"{page.name} shows output of nothing:\n{text}"
                assert (status != 0) == text.startswith("femts: "), printed
                compare(text, printed.replace(str(self.folder), HOME), figures=not self.cut)
                printed, status = None, 0
                continue
            assert status == 0, printed
            if named := FILE.match(text):
                (self.folder / named[1]).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / named[1]).write_text(text)
            elif kind == "python":
                printed = self.python(text)
            else:
                assert kind == "bash", f"{page.name} has a block of {kind}"
                printed = ""
                for line in commands(text):
                    assert status == 0, printed
                    status, said = self.type(line)
                    printed += said
        assert status == 0, printed

    def type(self, line: str) -> tuple[int, str]:
        """Exit status and output, stderr included, of one line at the prompt."""
        command, *arguments = shlex.split(line)
        chosen = _option(arguments, "--model") == AUTO  # a page that shows how it chooses says for how long
        trains = "train" in (arguments[:1] if command == "femts" else arguments if command == "torchrun" else [])
        if trains and not chosen and self._cuts(self._model(arguments)):
            arguments += self.less.typed(self._model(arguments))
        if command == "pip":  # into the folder, where commands find it, and not into this environment
            command, arguments = "python", ["-m", "pip", "-q", *arguments, "--target", str(self.folder), *ALONE]
        if command == "femts" and self.checkout:
            return Checkout(self.folder).status_of(*arguments)
        if command != "femts":
            words = [sys.executable, *arguments] if command == "python" else [command, *arguments]
            with forked_femts() as programs:
                # As in an active environment.
                path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
                env = {**os.environ, "PATH": path, "PYTHONPATH": str(self.folder if self.checkout else ROOT)}
                both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
                done = subprocess.run(words, cwd=self.folder, text=True, env=env, check=False, **both)  # type: ignore[call-overload]
            return done.returncode, done.stdout
        with contextlib.chdir(self.folder), _caught() as out:
            status = main(arguments)
        return status, out.getvalue()

    def python(self, code: str) -> str:
        """What a block prints; the blocks of a page are one session."""
        whole = femts.train

        def train(dataset: Any, model: str | None = None, *args: Any, **options: Any) -> femts.Forecaster:
            model = model or _usual(dataset)
            return whole(dataset, model, *args, **{**options, **(self.less.given(model) if self._cuts(model) else {})})

        path = patch.object(sys, "path", [str(self.folder), *sys.path])
        with contextlib.chdir(self.folder), _caught() as out, path, patch.dict(vars(femts), {"train": train}):
            exec(compile(code, "<page>", "exec"), self.names)
        return out.getvalue()

    def _model(self, arguments: list[str]) -> str | None:
        """The model that is named on the command line or in a recipe."""
        recipe = _option(arguments, "--config")
        model = yaml.safe_load((self.folder / recipe).read_text()).get("model") if recipe else None
        named = _option(arguments, "--model") or (model.get("name") if isinstance(model, dict) else model)
        return named or _usual(_option(arguments, "--dataset"))

    def _cuts(self, model: str | None) -> bool:
        """Whether the training of a model is shortened; only mixers are slow."""
        mixer = model is None or model == AUTO or (model.startswith("fem_") and model != ZERO_SHOT)
        self.cut = self.cut or mixer
        return mixer


def _usual(dataset: object) -> str:
    """The default model."""
    source = getattr(dataset, "source", dataset)
    return DEFAULT_MODEL if isinstance(source, str) and source in CATALOG else AUTO


def _option(arguments: list[str], name: str) -> str | None:
    return arguments[arguments.index(name) + 1] if name in arguments else None


@contextlib.contextmanager
def cells_in_this_process() -> Any:
    """Run the cells of a table in this process, which saves importing torch in each."""
    one, threads = threading.Lock(), torch.get_num_threads()

    def run(work: runner.Work, stopped: threading.Event | None = None) -> str:
        with one:
            assert runner._run(work) == 0
        record = work.store.record(work.cell)
        assert record is not None
        return f"{work.cell.path}: {work.cell.summary(record)} after {record['seconds']:.0f} s"

    with patch.object(runner, "run_process", run):
        yield
    torch.set_num_threads(threads)


@contextlib.contextmanager
def _caught() -> Any:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        yield out


def compare(shown: str, printed: str, figures: bool) -> None:
    """Assert that output is as a page shows it: the same words; the same numbers within .1 %, where
    `figures` must be equal.

    A line `...` stands for any lines, and a word `...` for the rest of its line. Where numbers
    may differ, so may a plural. How long something took is never compared.
    """
    wanted, found = shown.splitlines(), printed.splitlines()
    if "..." in wanted:
        at = wanted.index("...")
        after = len(wanted) - at - 1
        wanted, found = wanted[:at] + wanted[at + 1 :], found[:at] + (found[-after:] if after else [])
    why = f"shown:\n{shown}\nprinted:\n{printed}"
    assert len(wanted) == len(found), why
    for one, other in zip(map(_words, wanted), map(_words, found), strict=True):
        if "..." in one:
            one, other = one[: one.index("...")], other[: one.index("...")]
        assert len(one) == len(other), why
        for place, (word, said) in enumerate(zip(one, other, strict=True)):
            value, number = _number(word), _number(said)
            if value is None or number is None:
                assert word == said or (not figures and word.rstrip("s") == said.rstrip("s")), why
            elif figures and one[place + 1 : place + 2] != ["s"]:
                assert abs(value - number) <= 1e-3 * abs(value) + 1e-12, why


def _words(line: str) -> list[str]:
    return re.split(r"[\s,;:()|*]+", line.strip())


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None
