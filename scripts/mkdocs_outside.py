"""Hooks of mkdocs: pages of docs/ link to files outside it, as they do in the repository, and the page of the commands
is made of their options.

A page or picture outside docs/ becomes one of the site, under its path in the repository; for any other file or folder,
the link becomes its path in plain text.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
FORMS = ("C*.md", "SECURITY.md", "datasets/*.md", "results/*.md", "results/**/*.png", "results/**/*.svg")
OUTSIDE = [path.relative_to(ROOT).as_posix() for form in FORMS for path in ROOT.glob(form)]
FENCED = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is in `OUTSIDE` to the files of docs/."""
    for path in OUTSIDE:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def _commands() -> str:
    """Markdown of all commands with their options."""
    docs = [sys.executable, "-m", "typer", "femts.cli", "utils", "docs", "--name", "femts"]
    made = subprocess.run(docs, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return "\n" + "\n".join(line.rstrip() for line in made.splitlines()[1:])  # without its title


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Text of a page whose links lead to the pages of the site, wherever they lie in the repository."""
    path = page.file.src_uri
    if path == "reference/commands.md":
        markdown += _commands()
    source = Path(path if path in OUTSIDE else f"docs/{path}").parent

    def within(link: re.Match[str]) -> str:
        text, target, heading = link[1], link[2], link[3] or ""
        if "://" in target:
            return link[0]
        aim = os.path.normpath(source / target)
        inside = aim.removeprefix("docs/")
        if files.get_file_from_path(inside) is None:
            return f"{text} (`{aim}`)"
        return f"[{text}]({os.path.relpath(inside, Path(path).parent)}{heading})"

    parts = FENCED.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(within, part) for part in parts)
