"""Docstrings list arguments, return values and exceptions; commands describe their options."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
from collections.abc import Callable
from dataclasses import fields

import pytest
import typer
from commands import COMMANDS

import femts
from femts.cli import app
from femts.config.training import TrainingConfig

SECTION = re.compile(r"^(Args|Returns|Raises):\n((?:    .*\n|\n)+)", re.MULTILINE)


def _public() -> dict[str, Callable[..., object]]:
    """Public functions and methods by dotted name."""
    found: dict[str, Callable[..., object]] = {}
    for name in femts.__all__:
        thing = getattr(femts, name)
        if inspect.isclass(thing):
            for key in dir(thing):
                base = next(base for base in thing.__mro__ if key in vars(base))
                if (
                    key[0] != "_"
                    and base.__module__.startswith("femts.")
                    and inspect.isfunction(
                        inspect.unwrap(getattr(getattr(thing, key), "__func__", getattr(thing, key)))
                    )
                ):
                    owner = base.__name__ if base.__name__ in femts.__all__ else name
                    found[f"{owner}.{key}"] = getattr(thing, key)
        elif callable(thing):
            found[name] = thing
    return found


PUBLIC = _public()


def _sections(docstring: str) -> dict[str, str]:
    return dict(SECTION.findall(docstring + "\n"))


def _listed(section: str) -> set[str]:
    """Names that start the lines of a section; `x, y: ...` has two."""
    return {name for line in re.findall(r"^    ([\w, ]+):", section, flags=re.MULTILINE) for name in line.split(", ")}


def test_docstrings_list_arguments_returns_and_raises() -> None:
    for name, thing in PUBLIC.items():
        text, signature = inspect.getdoc(thing), inspect.signature(thing, eval_str=False)
        assert text, name
        taken = {key for key in signature.parameters if key not in ("self", "cls")}
        raises = re.search(r"^\s+raise \w+", inspect.getsource(thing), flags=re.MULTILINE)
        if "\n" not in text:  # one line names what it takes
            assert taken <= set(re.findall(r"`(\w+)`", text)), name
            assert not raises, name
            continue
        sections = _sections(text)
        assert _listed(sections.get("Args", "")) == taken, name
        assert ("Returns" in sections) == (signature.return_annotation != "None"), name
        assert "Raises" in sections or not raises, name


@pytest.mark.parametrize("thing", [femts.Dataset, femts.FreeEnergyMixerConfig, TrainingConfig])
def test_dataclass_docstrings_list_every_field(thing: type) -> None:
    described = re.search(r"^Attributes:\n((?:    .*\n)+)", (inspect.getdoc(thing) or "") + "\n", flags=re.MULTILINE)
    assert described
    assert _listed(described[1]) == {field.name for field in fields(thing) if not field.name.startswith("_")}


@pytest.mark.parametrize("module", ["femts.data.loading", "femts.mixers.layer"])
def test_docstring_examples_run(module: str) -> None:
    done = doctest.testmod(importlib.import_module(module))
    assert (done.failed, done.attempted > 1) == (0, True)


def test_every_command_and_option_has_help() -> None:
    def check(command: object, path: str) -> list[str]:
        assert command.help, path  # type: ignore[attr-defined]
        for parameter in command.params:  # type: ignore[attr-defined]
            assert parameter.help, f"{path} {parameter.name}"
        inner = getattr(command, "commands", {})
        return [path, *(found for name, each in inner.items() for found in check(each, f"{path} {name}".strip()))]

    assert {"", *COMMANDS} == set(check(typer.main.get_command(app), ""))
