"""Contents of the source archive and the wheel."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from shutil import copy2, copytree, ignore_patterns

import pytest
from pages import ROOT

import femts

BUILD = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
BESIDE = ("pyproject.toml", "setup.cfg", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md")
FOLDERS = ("femts", "tests", "results", "scripts", "docs", "configs", "datasets")
WRITTEN = {".py", ".html", ".js", ".css", ".typed", ".csv", ".safetensors"}

pytestmark = pytest.mark.slow


def _build(kind: str, source: Path, folder: Path) -> Path:
    """Build with the installed setuptools, without network."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", BUILD, kind, str(folder)], cwd=source, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    (made,) = folder.iterdir()
    return made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source archive of a copy of the checkout, and the wheel built from it."""
    pytest.importorskip("setuptools", "70.1", reason="without setuptools 70.1, building a wheel takes the network")
    place = tmp_path_factory.mktemp("packages")
    source = place / "checkout"
    source.mkdir()
    for name in BESIDE:
        copy2(ROOT / name, source)
    for name in FOLDERS:
        copytree(ROOT / name, source / name, ignore=ignore_patterns("__pycache__", ".*"))
    archive = _build("build_sdist", source, place / "sdist")
    with tarfile.open(archive) as opened:
        opened.extractall(place / "unpacked", filter="data")
    (unpacked,) = (place / "unpacked").iterdir()
    return archive, _build("build_wheel", unpacked, place / "wheel")


def _files(package: Path) -> dict[str, bytes]:
    """Content of each file of an archive or a wheel."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(package) as archive:
        members = {each.name: archive.extractfile(each) for each in archive if each.isfile()}
        return {name.partition("/")[2]: content.read() for name, content in members.items() if content}


def test_packages_contain_all_sources(built: tuple[Path, Path]) -> None:
    code = {str(path.relative_to(ROOT)) for path in (ROOT / "femts").rglob("*") if path.suffix in WRITTEN}
    assert "femts/analysis/report/templates/sections/scores.html" in code
    for package in built:
        assert {name for name in _files(package) if name.startswith("femts/")} == code


def test_packages_contain_nothing_else(built: tuple[Path, Path]) -> None:
    archive, wheel = map(_files, built)
    information = f"femts-{femts.__version__}.dist-info/"
    assert {name for name in wheel if not name.startswith(("femts/", information))} == set()
    rest = {name for name in archive if not name.startswith(("femts/", "femts.egg-info/"))}
    assert rest == {*BESIDE, "PKG-INFO"}


def test_packages_contain_no_local_paths(built: tuple[Path, Path]) -> None:
    place = re.compile(rb"(?<![\w.])/(?:work|tmp|root|Users)/|" + re.escape(os.fsencode(ROOT)) + rb"/")
    for package in built:
        assert [name for name, content in _files(package).items() if place.search(content)] == []


def test_wheel_metadata_is_complete(built: tuple[Path, Path]) -> None:
    files = _files(built[1])
    information = f"femts-{femts.__version__}.dist-info"
    assert re.fullmatch(r"\d+\.\d+\.\d+", femts.__version__)
    assert f"\n## {femts.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    metadata = files[f"{information}/METADATA"].decode()
    assert f"\nVersion: {femts.__version__}\n" in metadata and "\nRequires-Python: >=3.11\n" in metadata
    assert b"femts = femts.cli:main" in files[f"{information}/entry_points.txt"]
