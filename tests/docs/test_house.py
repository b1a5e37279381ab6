"""Rules of the house that can be read off the source: few parameters, short files, names that say what they hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "femts").rglob("*.py"))

MOST_PARAMETERS = 6
MORE_PARAMETERS = {
    # What users call: each argument has its name, and all but the first are given by it.
    "femts/analysis/tune/run.py: tune",
    "femts/training/train.py: train",
    # Functions of an equation, whose parameters are its symbols.
    "femts/mixers/read.py: free_energy_read",
    "femts/mixers/projection.py: project",
    "femts/mixers/priors/linear.py: BoundLinear.__init__",
    # The same read as a launcher of kernels. The kernels themselves (`triton.jit`) take pointers
    # and sizes, and do not count.
    "femts/mixers/kernels/read_triton.py: _launch_after",
    "femts/mixers/kernels/read_triton.py: gated_read_triton",
}

MOST_LINES = 300
WRITTEN = {".py", ".html", ".js", ".css"}

EMPTY_NAMES = {"found", "known", "kept", "there", "wanted", "apart"}

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def _parameters(function: _Function) -> list[str]:
    """Names of the parameters, `*args` and `**kwargs` among them."""
    given = function.args
    every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    return [each.arg for each in every if each is not None]


def _too_many(tree: ast.AST, prefix: str = "") -> Iterator[str]:
    """Functions of a module with more than `MOST_PARAMETERS`, besides `self` and `cls`; kernels aside."""
    for node in ast.iter_child_nodes(tree):
        name = prefix
        if isinstance(node, ast.ClassDef | _Function):
            name = f"{prefix}{getattr(node, 'name', '<lambda>')}."
        if isinstance(node, _Function):
            count = len([each for each in _parameters(node) if each not in ("self", "cls")])
            kernel = any(ast.unparse(each).startswith("triton.jit") for each in getattr(node, "decorator_list", []))
            if count > MOST_PARAMETERS and not kernel:
                yield name.removesuffix(".")
        yield from _too_many(node, name)


def _empty_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines at which a name of `EMPTY_NAMES`, or the same with `_` before it, is given to a value."""
    for node in ast.walk(tree):
        names: list[str | None] = []
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names = [node.id if isinstance(node, ast.Name) else node.attr]
        elif isinstance(node, _Function):
            names = [*_parameters(node)]
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
            names = [node.name]
        elif isinstance(node, ast.alias):
            names = [node.asname]
        yield from ((getattr(node, "lineno", 0), name) for name in names if name and name.lstrip("_") in EMPTY_NAMES)


def _too_long(folder: Path) -> list[str]:
    """Files under `folder` that are written by hand and have more than `MOST_LINES`."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in WRITTEN)
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    return [f"{path.relative_to(folder)}: {count} lines" for path, count in lines.items() if count > MOST_LINES]


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in SOURCES:
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text(encoding="utf-8"))


MANY = """
def six(a, b, c, d, e, f): ...
def seven(a, b, /, c, *, d, e, f, g): ...
def starred(a, b, c, d, e, *f, **g): ...
class Host:
    a: int; b: int; c: int; d: int; e: int; f: int; g: int
    def method(self, a, b, c, d, e, f): ...
    async def long(self, a, b, c, d, e, f, g):
        return lambda a, b, c, d, e, f, g: 0
@triton.jit
def kernel(a, b, c, d, e, f, g): ...
@triton.jit(debug=True)
def other_kernel(a, b, c, d, e, f, g):
    def inner(a, b, c, d, e, f, g): ...
"""


def test_many_parameters_are_seen_in_any_function() -> None:
    seen = list(_too_many(ast.parse(MANY)))
    assert seen == ["seven", "starred", "Host.long", "Host.long.<lambda>", "other_kernel.inner"]


def test_functions_have_few_parameters() -> None:
    many = {f"{path}: {name}" for path, tree in _trees() for name in _too_many(tree)}
    offenders = sorted(many - MORE_PARAMETERS)
    assert not offenders, f"more than {MOST_PARAMETERS} parameters; make a dataclass of some: {offenders}"
    assert many >= MORE_PARAMETERS, "a function on the list of exceptions has few parameters now; take it off"


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "known: int = 1",
        "a, (kept, b) = c",
        "[there for there in c]",
        "if (wanted := c): pass",
        "apart += 1",
        "for found in c: pass",
        "with c as known: pass",
        "try: pass\nexcept E as kept: pass",
        "import there_is as there",
        "def f(*, wanted=1): pass",
        "lambda *apart: 0",
        "class A:\n  found: int",
        "self.known = 1",
        "self._kept = 1",
        "match c:\n  case [*there]: pass",
        "match c:\n  case A() as wanted: pass",
    ],
)
def test_an_empty_name_is_seen_wherever_it_is_given(source: str) -> None:
    assert len(list(_empty_names(ast.parse(source)))) == 1


def test_names_that_say_more_and_names_that_are_read_are_let_be() -> None:
    assert not list(_empty_names(ast.parse("known_effects = found_in(data.known, kept, there=wanted)")))


def test_names_say_what_they_hold() -> None:
    given = {(path, name): line for path, tree in _trees() for line, name in _empty_names(tree)}
    offenders = [f"{path}:{line}: {name}" for (path, name), line in given.items()]
    assert not offenders, "\n".join(offenders)


def test_a_long_file_is_seen(tmp_path: Path) -> None:
    (tmp_path / "short.py").write_text("a\n" * MOST_LINES)
    (tmp_path / "data.csv").write_text("a\n" * 999)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "long.js").write_text("a\n" * (MOST_LINES + 1))
    assert _too_long(tmp_path) == ["deep/long.js: 301 lines"]


@pytest.mark.parametrize("folder", ["femts", "tests"])
def test_no_file_is_long(folder: str) -> None:
    assert any((ROOT / folder).rglob("*.py"))
    assert not _too_long(ROOT / folder)
