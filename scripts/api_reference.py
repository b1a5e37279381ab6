"""Write the reference of the Python names and of the commands, made from their docstrings and options.

    python scripts/api_reference.py            # docs/reference, a page a command and a module
    python scripts/api_reference.py --check    # writes nothing; status 1 where a page is not what the sources say

It takes an environment with `pip install '.[dev]'`.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # this checkout, also where another one is installed

REFERENCE = ROOT / "docs" / "reference"
# The public names, and what one meets when adding a model, a prior or a data set.
MODULES = (
    "femts",
    "femts.errors",
    "femts.forecaster.scoring",
    "femts.data.dataset",
    "femts.data.catalog",
    "femts.evaluation.intervals",
    "femts.config.training",
    "femts.models.base",
    "femts.models.registry",
    "femts.mixers.priors.base",
)
HOMES = {"femts.models": "models.listing.models"}  # the package of that name can be called
WIDTH = 100
MADE = "<!-- Made by scripts/api_reference.py; change the docstring or the option instead. -->"


@functools.cache
def pages() -> dict[Path, str]:
    """The pages of the reference by their paths within its folder."""
    package = griffe.load("femts", search_paths=[ROOT], allow_inspection=False)
    assert isinstance(package, griffe.Module)
    modules = {name: _object(package, name) for name in MODULES}
    of_modules = {page: text for name, module in modules.items() for page, text in _module(name, module).items()}
    texts = {Path("python") / f"{page}.md": text for page, text in of_modules.items()}
    commands = _commands()
    texts |= {Path("commands") / f"{name}.md": text for name, text in commands.items()}
    rows = [f"| [`femts {name}`](commands/{name}.md) | {_first_line(text)} |" for name, text in commands.items()]
    listed = [f"| [`{name}`](python/{name}.md) | {_summary(module)} |" for name, module in modules.items()]
    head = "# Reference\n\nMade from the sources: every command with its options, and every public name of Python."
    tables = ("## Commands\n\n| | |\n|---|---|", *rows, "\n## Python\n\n| | |\n|---|---|", *listed)
    texts[Path("index.md")] = f"{MADE}\n\n{head}\n\n" + "\n".join(tables)
    return {path: f"{text.rstrip()}\n" for path, text in texts.items()}


def _object(package: griffe.Object, name: str) -> griffe.Object:
    """The object of a dotted name; of an imported one, that which it stands for."""
    item = package[name.removeprefix("femts.")] if name != "femts" else package
    return item.final_target if isinstance(item, griffe.Alias) else item


def _module(name: str, module: griffe.Object) -> dict[str, str]:
    """Pages by name on the public names of a module: one, and of femts itself one more for each class with methods."""
    pages, parts, rows = {}, [], ["| | |\n|---|---|"]
    for key in sorted(_public(name, module), key=str.lower):
        thing = _object(module, HOMES.get(f"{name}.{key}", key))
        members = dict(_members(thing)) if isinstance(thing, griffe.Class) else {}
        alone = name == "femts" and bool(members)
        own = [*_thing(thing, key, "##")]
        for each, member in members.items():
            own += _thing(member, f"{key}.{each}", "##" if alone else "###")
        rows.append(f"| [`{key}`]({f'{name}.{key}.md' if alone else f'#{key.lower()}'}) | {_summary(thing)} |")
        if alone:
            pages[f"{name}.{key}"] = "\n\n".join([MADE, f"# {name}.{key}", *own[1:]])
        else:
            parts += own
    index = ["\n".join(rows)] if pages else []
    return {name: "\n\n".join([MADE, f"# {name}", *_docstring(module), *index, *parts]), **pages}


def _public(name: str, module: griffe.Object) -> list[str]:
    if name == "femts":
        import femts

        return [key for key in femts.__all__ if key != "__version__"]
    if module.exports is not None:
        return [str(key) for key in module.exports if not module[str(key)].is_module]
    own = (key for key, member in module.members.items() if not isinstance(member, griffe.Alias))
    return [key for key in own if key[0] != "_" and module[key].has_docstring]


def _members(of: griffe.Class) -> Iterator[tuple[str, griffe.Object]]:
    """Methods and properties of a class by name, its own and those of bases that have no page of their own."""
    import femts

    inherited = [base for base in of.mro() if base.path.startswith("femts.") and base.name not in femts.__all__]
    members = {key: member for base in (*reversed(inherited), of) for key, member in base.members.items()}
    for key, member in sorted(members.items()):
        if key[0] == "_" or isinstance(member, griffe.Alias):
            continue
        above = next(
            (base.members[key] for base in of.mro() if getattr(base.members.get(key), "docstring", None)), None
        )
        if member.is_function and above is not None and not member.has_docstring:
            member.docstring = above.docstring
        if member.has_docstring:
            yield key, member


def _thing(thing: griffe.Object, name: str, level: str) -> Iterator[str]:
    yield f"{level} {name}"
    if isinstance(thing, griffe.Class) and (bases := [str(base) for base in thing.bases]):
        yield f"Bases: `{'`, `'.join(bases)}`."
    if isinstance(thing, griffe.Function | griffe.Class) and (signature := _signature(thing)):
        yield f"```python\n{name.rpartition('.')[2]}{signature}\n```"
    elif isinstance(thing, griffe.Attribute) and thing.annotation is not None:
        yield f"`{thing.annotation}`"
    yield from _docstring(thing)


def _signature(thing: griffe.Function | griffe.Class) -> str:
    """Parameters and what is returned, on lines of their own where they are long; empty for a class without any."""
    shown, star = [], False
    for each in thing.parameters:
        if each.name in ("self", "cls"):
            continue
        if each.kind is griffe.ParameterKind.keyword_only and not star:
            shown.append("*")
        star = star or each.kind in (griffe.ParameterKind.keyword_only, griffe.ParameterKind.var_positional)
        prefix = {"variadic positional": "*", "variadic keyword": "**"}.get(each.kind.value if each.kind else "", "")
        default = f" = {each.default}" if each.default is not None and not prefix else ""
        shown.append(f"{prefix}{each.name}{f': {each.annotation}' if each.annotation else ''}{default}")
    if isinstance(thing, griffe.Class) and not shown:
        return ""
    returned = f" -> {thing.returns}" if isinstance(thing, griffe.Function) and thing.returns is not None else ""
    line = f"({', '.join(shown)}){returned}"
    if len(line) + len(thing.name) <= WIDTH:
        return line
    return "(\n" + "".join(f"    {each},\n" for each in shown) + f"){returned}"


def _docstring(thing: griffe.Object) -> Iterator[str]:
    """Paragraphs of a docstring; a list for each of its sections."""
    options = {"warnings": False, "returns_multiple_items": False, "returns_named_value": False}
    for section in thing.docstring.parse("google", **options) if thing.docstring else ():  # type: ignore[call-overload]
        if section.kind is griffe.DocstringSectionKind.text:
            yield section.value
        elif section.kind is griffe.DocstringSectionKind.examples:
            for kind, text in section.value:
                yield text if kind is griffe.DocstringSectionKind.text else f"```pycon\n{text}\n```"
        elif section.kind is griffe.DocstringSectionKind.admonition:
            yield f"**{section.title}** {section.value.description}"
        else:
            title = {"parameters": "Args"}.get(section.kind.value, section.kind.value.capitalize())
            yield f"**{title}**"
            yield "\n".join(_item(title, each) for each in section.value)


def _item(title: str, each: griffe.DocstringElement) -> str:
    text, before = re.sub(r"\n\s*", "\n  ", each.description.strip()), each.annotation
    if title == "Returns":  # griffe takes the words before a colon for a type
        return f"- {before}: {text}" if isinstance(before, str) and before else f"- {text}"
    return f"- `{before if title == 'Raises' else getattr(each, 'name', '')}`: {text}"


def _summary(thing: griffe.Object) -> str:
    return (thing.docstring.value if thing.docstring else "").split("\n\n")[0].replace("\n", " ").rstrip(".")


def _commands() -> dict[str, str]:
    """A page for each command by its name, made by typer."""
    words = [sys.executable, "-m", "typer", "femts.cli", "utils", "docs", "--name", "femts"]
    text = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    parts = re.split(r"^## `femts (\w+)`$", text, flags=re.MULTILINE)
    named = zip(parts[1::2], parts[2::2], strict=True)
    return {name: f"{MADE}\n\n# femts {name}{_headings(body)}" for name, body in named}


def _headings(body: str) -> str:
    return re.sub(r"^##(#+) `(.*)`$", r"#\1 \2", body, flags=re.MULTILINE)


def _first_line(page: str) -> str:
    return page.split("\n\n")[2].replace("\n", " ").rstrip(".")


def stale(folder: Path = REFERENCE) -> list[Path]:
    """Paths in `folder` of pages that are missing, are not what the sources say, or are of nothing any more."""
    texts = pages()
    on_disk = {path.relative_to(folder): path.read_text(encoding="utf-8") for path in folder.rglob("*.md")}
    return sorted(path for path in texts.keys() | on_disk.keys() if texts.get(path) != on_disk.get(path))


def write_reference(folder: Path = REFERENCE) -> None:
    """Write the pages into `folder`, in place of those that it holds."""
    for path in folder.rglob("*.md"):
        path.unlink()
    for path, text in pages().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if "--check" not in sys.argv[1:]:
        write_reference()
    elif old := stale():
        sys.exit(f"{REFERENCE / old[0]} is not what the sources say; run scripts/api_reference.py.")
