"""Messages of the library on the command line."""

from __future__ import annotations

import pytest

import femts
from femts.cli import main
from femts.cli.wording import as_options
from femts.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use seq_len=1 or more", "use --seq-len 1 or more"),
        ("a shorter seq_len or pred_len", "a shorter --seq-len or --horizon"),
        ("remove freq='D'.", "remove --freq D."),
        ("as with freq='D', aggregate='sum'.", "as with --freq D --aggregate sum."),
        ("calendar=True, or panel=False and refit=False", "--calendar, or --multivariate and --no-refit"),
        ("with target=['a b', 'c,d', ...]", "with --target 'a b,\"c,d\",...'"),
        ("use columns={'time': NAME, 'series': 'a+b'}", "use --columns time=NAME,series=a+b"),
        ("and columns={'time': \"Date d'entrée\"}", "and --columns 'time=Date d'\"'\"'entrée'"),
        ('with target=["it\'s"] or freq="D"', "with --target 'it'\"'\"'s' or --freq D"),
        ("with settings={'model.download': True}", "with --set model.download=true"),
        ("season=24 or season=[24, 168]", "--season 24 or --season 24,168"),
    ],
)
def test_arguments_become_options(text: str, expected: str) -> None:
    assert as_options(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "paper-seq_len=48/synthetic/naive-12: test MSE",
        "Setting 'model.seq_len' and model.windows=N",
        "Column 'freq=3' has no value",
        "the model reads columns; out of memory",
        "target=['it's']",
        "File seq_len.csv does not exist",
    ],
)
def test_other_text_is_kept(text: str) -> None:
    assert as_options(text) == text


def test_errors_name_what_the_caller_writes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=r"not 'D'; remove freq='D'\.$"):
        femts.load_dataset("ETTh1", freq="D")
    assert main("train --dataset ETTh1 --freq D --model naive --out run".split()) == 2
    assert capsys.readouterr().err.endswith("not 'D'; remove --freq D.\n")
