"""Docstrings begin with a verb or a noun of the field, never with a question word."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUESTION = re.compile(r"\s*(What|Whether|How|Where|When|Why|Which|Who)\b")
WITH_DOCSTRING = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _questions(source: str) -> list[int]:
    """Lines of the docstrings in `source` that begin with a question word."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, WITH_DOCSTRING)]
    return [node.body[0].lineno for node in nodes if QUESTION.match(ast.get_docstring(node) or "")]


def test_question_words_are_seen_wherever_a_docstring_may_stand() -> None:
    lines = [
        '"""What."""',
        "class A:",
        "  'Whether it is.'",
        "  async def f():",
        "    r'''",
        "    How.'''",
        "def g(): 'Whatever.'",
    ]
    assert _questions("\n".join(lines)) == [1, 3, 5]


def test_no_docstring_begins_with_a_question_word() -> None:
    files = sorted(path for folder in ("femts", "scripts") for path in (ROOT / folder).rglob("*.py"))
    assert files
    offenders = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in files
        for line in sorted(_questions(path.read_text(encoding="utf-8")))
    ]
    assert not offenders, "\n".join(offenders)
