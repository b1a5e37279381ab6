"""The catalogue of datasets."""

from __future__ import annotations

import subprocess
import sys

from femts.data.catalog import CATALOG, card

TEST_WINDOWS = {
    "ETTh1": (2785, 2689, 2545, 2161),
    "ETTh2": (2785, 2689, 2545, 2161),
    "ETTm1": (11425, 11329, 11185, 10801),
    "ETTm2": (11425, 11329, 11185, 10801),
    "Weather": (10444, 10348, 10204, 9820),
    "Solar": (10417, 10321, 10177, 9793),
}


def test_published_number_of_test_windows() -> None:
    for name in TEST_WINDOWS:
        split = CATALOG[name].split
        assert (
            tuple(split.windows("test", 1024, pred_len)[0, 3] for pred_len in (96, 192, 336, 720)) == TEST_WINDOWS[name]
        )


def test_cards_are_complete() -> None:
    for known in CATALOG.values():
        assert known.name == CATALOG[known.name].name and known.description.endswith(".")
        assert known.split.test[0, 1] <= known.rows
        if known.filename:
            assert known.url is not None and known.url.startswith("https://")
            assert (known.sha256 is not None and len(known.sha256) == 64) != (
                known.git_blob is not None and len(known.git_blob) == 40
            )


def test_names_are_case_insensitive() -> None:
    for name in ["etth1", "ETTH1", "ETTh1"]:
        assert card(name) is CATALOG["ETTh1"]


def test_catalogue_import_is_light() -> None:
    code = (
        "import sys; from femts.data.catalog import card; card('ETTh1'); print({'torch', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
