"""Hooks of mkdocs that resolve links from docs/ to files outside it and generate the page of commands.

Linked pages and pictures outside docs/ become part of the site, under their path in the repository. Links to other
files and folders are replaced by their path as plain text.
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
    """Add the files in `OUTSIDE` to those of docs/."""
    for path in OUTSIDE:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def _commands() -> str:
    """Markdown of all commands and their options."""
    docs = [sys.executable, "-m", "typer", "femts.cli", "utils", "docs", "--name", "femts"]
    made = subprocess.run(docs, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return "\n" + "\n".join(line.rstrip() for line in made.splitlines()[1:])  # without the title


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links of a page to those of the site, wherever the pages are in the repository."""
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
