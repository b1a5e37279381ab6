"""Names used in the guides are public, and `import femts` is lazy."""

from __future__ import annotations

import re
import subprocess
import sys

from pages import ROOT

import femts

IMPORT = re.compile(r"^from femts import (.+)$", re.MULTILINE)  # files that a guide puts into femts reach deeper
USED = re.compile(r"\bfemts\.(\w+)\(")


def test_pages_import_only_public_names() -> None:
    for page in [*ROOT.glob("docs/**/*.md"), ROOT / "README.md"]:
        text = page.read_text(encoding="utf-8")
        names = {name.strip() for line in IMPORT.findall(text) for name in line.split(",")} | set(USED.findall(text))
        assert names <= {*femts.__all__, *dir(femts)}, page


def test_import_femts_is_lazy_and_complete() -> None:
    heavy = {"torch", "lightning_fabric", "pandas", "numpy", "matplotlib", "sklearn", "mlflow"}
    code = f"import sys, femts; print(sorted({heavy} & set(sys.modules)), dir(femts) == sorted(femts.__all__))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] True"
    for name in femts.__all__:
        assert getattr(femts, name) is not None


def test_models_module_is_callable() -> None:
    from femts.models.registry import model_names

    assert sorted(femts.models()["name"]) == model_names()
    assert femts.models("dlinear")["setting"].tolist()[0] == "model.kernel_size"
    assert set(femts.datasets()["here"]) <= {"yes", "no", "built-in"}
