"""The Dockerfile of the guide to serving builds and serves, without Docker: its instructions are carried out in a
folder that stands for the root of the image.

What differs from Docker, and why:

- FROM: the packages of this environment, without femts, are linked into a new one instead of downloading an image.
- RUN pip: without an index and dependencies, since downloading torch takes minutes; what is installed already satisfies
  it, and femts is installed from its wheel. `pip` and `uvicorn` start with the Python of the new environment.
- RUN useradd, USER: only root can add users, so a folder is made, and the service runs as whoever runs the test.
- CMD, HEALTHCHECK: a free port of 127.0.0.1 instead of port 8000 of all addresses.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from pages import ROOT, blocks
from small_tables import small_table

import femts

pytestmark = pytest.mark.slow

GUIDE = ROOT / "docs" / "how-to" / "serving.md"
ABSOLUTE = re.compile(r"(?<![\w.:/])/(?=(?:home|srv|tmp)\b)")  # the folders of the image that the file names
OWN = re.compile(r"femts|__editable__|.*\.pth$|__pycache__")  # in a folder of packages, femts and what points to it
SOURCES = ("pyproject.toml", "setup.cfg", "MANIFEST.in", "README.md", "LICENSE")


def _named(name: str) -> str:
    """The block of the guide that is the file `name`."""
    (found,) = (text for _, text in blocks(GUIDE) if text.startswith(f"# {name}\n"))
    return found


def _instructions(text: str) -> list[tuple[str, str]]:
    """Keyword and rest of each instruction of a Dockerfile."""
    lines = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.strip().partition(" ") for line in lines) if word]


@dataclass
class Image:
    """An image that is being built: `root` stands for its /, and `context` is the folder of the Dockerfile."""

    root: Path
    context: Path
    port: int
    place: Path = field(init=False)
    env: dict[str, str] = field(init=False)
    user: str = "root"
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
        environment = self.root / "usr"
        path = os.pathsep.join([str(environment / "bin"), os.environ["PATH"]])
        without = {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        self.env, self.place = {**kept, **without, "PATH": path, "HOME": str(self.root / "home")}, self.root

    def build(self, text: str) -> None:
        """Carry out the instructions of a Dockerfile; AssertionError for one that this class does not know."""
        for word, rest in _instructions(text.replace("8000", str(self.port)).replace("0.0.0.0", "127.0.0.1")):
            getattr(self, f"do_{word.lower()}")(ABSOLUTE.sub(f"{self.root}/", rest))

    def do_from(self, base: str) -> None:
        assert re.fullmatch(r"python:3\.1[1-9]-slim", base)
        environment = self.root / "usr"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
        (packages,) = environment.glob("lib/python3*/site-packages")
        for number, path in enumerate(path for path in sys.path if path.endswith("-packages")):
            linked = environment / f"packages-{number}"
            linked.mkdir()
            for source in Path(path).iterdir():
                if not OWN.match(source.name):
                    (linked / source.name).symlink_to(source)
            (packages / f"packages-{number}.pth").write_text(f"{linked}\n")
        for name, line in (("pip", 'exec python -m pip "$@"'), ("uvicorn", 'exec python -m uvicorn "$@"')):
            self._program(name, line)
        self._program("useradd", f'for name; do :; done; mkdir -p "{self.root}/home/$name"')
        (self.root / "tmp").mkdir()

    def _program(self, name: str, line: str) -> None:
        path = self.root / "usr" / "bin" / name
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def do_run(self, line: str) -> None:
        assert self.user == "root", "the user of the service cannot install anything"
        done = self.run(["sh", "-c", line])
        assert done.returncode == 0 and "does not provide the extra" not in done.stdout, done.stdout

    def do_copy(self, line: str) -> None:
        *sources, target = line.split()
        for source in [path for pattern in sources for path in self.context.glob(pattern)]:
            to = self.place / target
            if source.is_dir():
                shutil.copytree(source, to)
            else:
                assert target.endswith("/") and to.is_dir(), f"{target} is no folder"
                shutil.copy2(source, to)

    def do_user(self, name: str) -> None:
        assert (self.root / "home" / name).is_dir(), f"{name} is not a user"
        self.user, self.env["HOME"] = name, str(self.root / "home" / name)

    def do_workdir(self, folder: str) -> None:
        self.place = Path(folder)
        self.place.mkdir(parents=True)

    def do_env(self, line: str) -> None:
        name, _, value = line.partition("=")
        self.env[name] = value

    def do_expose(self, port: str) -> None:
        assert int(port) == self.port

    def do_healthcheck(self, line: str) -> None:
        self.health = json.loads(line.partition("CMD ")[2])

    def do_cmd(self, line: str) -> None:
        self.command = json.loads(line)

    def run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in the image; its output has stderr within it."""
        return subprocess.run(
            words,
            cwd=self.place,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )

    def healthy(self) -> bool:
        return self.run(self.health).returncode == 0


def _wheel(folder: Path, made: Path) -> None:
    """Build the wheel as the guide does, without network and from a copy, since a build leaves files behind."""
    for name in SOURCES:
        shutil.copy2(ROOT / name, folder)
    shutil.copytree(ROOT / "femts", folder / "femts", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "--wheel-dir", made, folder], check=True, capture_output=True, timeout=120)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def test_dockerfile_of_the_guide_serves(tmp_path: Path, own: Path) -> None:
    pytest.importorskip("fastapi", reason="the service needs fastapi and uvicorn: pip install '.[serve]'")
    pytest.importorskip("uvicorn", reason="the service needs fastapi and uvicorn: pip install '.[serve]'")
    pytest.importorskip("setuptools", "70.1", reason="without setuptools 70.1, building a wheel takes the network")
    root, context, source = (tmp_path / name for name in ("image", "context", "source"))
    for folder in (root, context, source):
        folder.mkdir()
    _wheel(source, context)
    (context / "serve.py").write_text(_named("serve.py"))
    shutil.copytree(own / "run", context / "runs" / "mine")

    text = _named("Dockerfile")
    assert "[serve]" in text  # without dependencies, nothing fails if it is not installed
    image = Image(root, context, _free_port())
    image.build(text)
    assert image.user != "root" and not image.healthy()
    needs = image.run(
        ["python", "-c", "from importlib.metadata import requires; print(*requires('femts'), sep='\\n')"]
    ).stdout
    assert {"fastapi", "uvicorn"} <= set(re.findall(r"^(\w+).*; extra == .serve.$", needs, re.MULTILINE)), needs
    where = image.run(["python", "-c", "import femts; print(femts.__file__)"]).stdout
    assert where.startswith(str(root / "usr")), where  # the wheel, not this checkout

    with open(tmp_path / "said", "w") as said:
        server = subprocess.Popen(
            image.command,
            cwd=image.place,
            env=image.env,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + 120
        while not image.healthy():
            assert server.poll() is None and time.monotonic() < deadline, (tmp_path / "said").read_text()
            time.sleep(0.5)
        table = small_table().to_csv(index=False).encode()
        request = Request(f"http://127.0.0.1:{image.port}/forecast", table, {"content-type": "text/csv"})
        with urlopen(request, timeout=30) as answer:
            assert len(json.load(answer)) == 12
        with urlopen(f"http://127.0.0.1:{image.port}/health", timeout=30) as answer:
            assert json.load(answer)["version"] == femts.__version__
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=30)
