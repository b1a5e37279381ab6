"""Public holidays as features."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.cli import main
from femts.data.effects import in_zone
from femts.data.holidays import AROUND, holiday_terms, with_countries
from femts.data.known import KnownInputs, Reads, calendar_marks
from femts.errors import UsageError

pytest.importorskip("holidays", reason="needs the extra holidays")

DAYS = pd.date_range("2018-01-01", "2023-12-31")
SETTINGS = {"boost": {"model.rows": 2000, "model.rounds": 20}, "tide": {"training.max_steps": 100}}


def shop(days: pd.DatetimeIndex = DAYS, country: str = "DE") -> pd.DataFrame:
    """Sales with a weekly season, that fall on the holidays of a country and on the days before."""
    rng = np.random.default_rng(0)
    today, before, *_ = holiday_terms(days, country)
    y = 100 + 10 * np.sin(2 * np.pi * np.arange(len(days)) / 7) + rng.normal(size=len(days)) - 40 * today - 15 * before
    return pd.DataFrame({"date": days, "y": y})


def test_terms_are_holidays_and_days_around_them() -> None:
    days = pd.date_range("2024-12-23", "2025-01-03")
    terms = dict(zip(AROUND, holiday_terms(days, "DE"), strict=True))
    assert days[terms[0] == 1].strftime("%m-%d").tolist() == ["12-25", "12-26", "01-01"]
    assert days[terms[1] == 1].strftime("%m-%d").tolist() == ["12-24", "12-25", "12-31"]
    assert days[terms[-1] == 1].strftime("%m-%d").tolist() == ["12-26", "12-27", "01-02"]
    hours = pd.date_range("2024-05-01", periods=48, freq="h", tz="Europe/Berlin")
    assert holiday_terms(hours, "DE")[0].tolist() == [1.0] * 24 + [0.0] * 24, "of the clock"
    epiphany = pd.DatetimeIndex(["2024-01-06"])
    assert [holiday_terms(epiphany, where)[0].item() for where in ("DE", "DE-BY")] == [0.0, 1.0]


def test_known_inputs_have_holidays_first() -> None:
    marks = calendar_marks("D", "DE")
    assert marks == ("holiday DE", "after holiday DE", "weekday", "monthday", "yearday")
    known = KnownInputs.fit(np.empty((len(DAYS), 0)), DAYS, marks)
    inputs = known.encode(np.empty((len(DAYS), 0)), DAYS)
    np.testing.assert_array_equal(inputs[:, :4], np.stack(holiday_terms(DAYS, "DE"), axis=1).astype(np.float32))
    assert KnownInputs.from_dict(known.to_dict()).marks == marks
    assert Reads(calendar=2).any and known.with_calendar(2).encode(np.empty((3, 0)), DAYS[:3]).shape == (3, 4)


@pytest.mark.parametrize(("model", "features"), [("ridge", 0), ("seasonal_naive", 0), ("boost", 5), ("tide", 2)])
def test_holidays_help_every_family(model: str, features: int, tmp_path: Path) -> None:
    table = shop()
    settings: dict[str, Any] = SETTINGS.get(model, {})
    maes = list[float]()
    for holidays in (None, "DE"):
        given: dict[str, Any] = {} if holidays is None else {"holidays": holidays}
        run = femts.train(table, model, 14, seq_len=28, refit=False, device="cpu", settings=settings, **given)
        maes.append(run.metrics["test"]["mae"])
    assert maes[1] < 0.7 * maes[0] and run.config.reads.calendar == features
    run.save(tmp_path / "run")
    made, again = (each.predict(table) for each in (run, femts.load(tmp_path / "run")))
    pd.testing.assert_frame_equal(made, again)
    assert made["y"][0] < 75 < made["y"][1], "the first of January needs no table of future covariates"


def test_a_series_of_its_own_effect_reads_holidays() -> None:
    other = shop().assign(y=np.random.default_rng(1).normal(size=len(DAYS)))
    panel = pd.concat([each.assign(unique_id=name) for name, each in (("open", other), ("shop", shop()))])
    table = panel.rename(columns={"date": "ds"})[["unique_id", "ds", "y"]]
    run = femts.train(table, "ridge", 14, seq_len=28, refit=False, holidays="DE")
    assert run.preprocess.own_effects and run.metrics["test"]["mase"] < 0.75
    assert femts.train(table, "ridge", 14, seq_len=28, refit=False, calendar=True).preprocess.effects is not None


def shops() -> pd.DataFrame:
    """Sales of shops in three countries, each of which falls on the holidays of its own."""
    made = [
        shop(country=country).assign(unique_id=f"shop {country}", country=country) for country in ("DE", "FR", "US")
    ]
    return pd.concat(made).rename(columns={"date": "ds"})[["unique_id", "ds", "y", "country"]]


def test_terms_are_those_of_each_country() -> None:
    days = pd.DatetimeIndex(["2022-05-01", "2022-07-04", "2022-07-14", "2022-10-03"] * 2)
    dates = with_countries(days, pd.Series(["DE"] * 4 + ["US", "US", "FR", "FR"]))
    assert holiday_terms(dates, "country")[0].tolist() == [1, 0, 0, 1, 0, 1, 1, 0]
    assert holiday_terms(dates[4:6], "country")[0].tolist() == [0, 1]
    zoned = with_countries(pd.DatetimeIndex(["2022-07-04 23:00"]).tz_localize("UTC"), pd.Series(["US"]))
    assert holiday_terms(in_zone(zoned, "Europe/Berlin"), "country")[0].tolist() == [0], "already the 5th in Berlin"


@pytest.mark.parametrize(("model", "features"), [("ridge", 0), ("boost", 5), ("tide", 2)])
def test_series_have_the_holidays_of_their_country(model: str, features: int, tmp_path: Path) -> None:
    table = shops()
    settings: dict[str, Any] = SETTINGS.get(model, {})
    run = femts.train(table, model, 14, seq_len=28, refit=False, device="cpu", settings=settings, holidays="country")
    assert run.config.reads.calendar == features and run.config.schema.roles.static == ()
    history = table[table["ds"] <= "2022-12-30"]
    made = run.predict(history).pivot(index="ds", columns="unique_id", values="y")
    assert (made.loc["2023-01-01"] < 75).all()
    observed = (made.loc["2023-01-02"] < 75).tolist()
    assert observed == [False, False, True], "New Year's Day is observed on Monday in the US alone"
    run.save(tmp_path / "run")
    again = femts.load(tmp_path / "run").predict(history).pivot(index="ds", columns="unique_id", values="y")
    pd.testing.assert_frame_equal(made, again)


def test_new_series_have_the_holidays_of_their_country() -> None:
    run = femts.train(shops(), "ridge", 14, seq_len=28, holidays="country")
    history = shops()[lambda table: table["ds"] <= "2022-12-30"]
    new = pd.DataFrame({"unique_id": ["new FR", "new US"], "country": ["FR", "US"]})
    made = run.predict(history, new=new).pivot(index="ds", columns="unique_id", values="y").loc["2023-01-02"]
    assert made["new FR"] > 75 > made["new US"]
    sums = run.totals(history, by="country")
    assert sorted(sums["country"]) == ["DE", "FR", "US"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"country": ["DE", "FR"] * 3000}, r"^Country 'country' of series 'shop DE' changes from '(DE|FR)' to '(DE|FR)'; use one value, or remove it from holidays\.$"),
        ({"country": "Germany"}, r"^Column 'country' has 'Germany' for series 'shop DE', which is no country that the package holidays knows; enter one such as 'DE', or a part of one such as 'DE-BY', or remove holidays='country'\.$"),
        ({"country": "XX"}, r"^Column 'country' has 'XX' for series 'shop DE', which is no country"),
        ({"country": 7}, r"^Column 'country' has '7(\.0)?' for series 'shop DE', which is no country"),
        ({"country": None}, r"^Series 'shop DE' has no country in the column 'country'; enter one, or remove holidays='country'\.$"),
    ],
)  # fmt: skip
def test_unknown_countries_of_series_are_refused(change: dict[str, Any], says: str) -> None:
    table = shops().iloc[:6000] if isinstance(change["country"], list) else shops()
    with pytest.raises(UsageError, match=says) as refused:
        femts.load_dataset(table.assign(**change), holidays="country")
    assert refused.value.argument == "holidays"


def test_a_column_of_countries_is_needed() -> None:
    table = shops()
    with pytest.raises(UsageError, match=r"has no column 'land' for holidays; give a country such as 'DE'") as refused:
        femts.load_dataset(table.drop(columns="country"), holidays="land")
    assert refused.value.argument == "holidays"
    run = femts.train(table, "ridge", 14, seq_len=28, holidays="country")
    with pytest.raises(
        UsageError, match=r"^The history has no column 'country', which the training data had; add it\.$"
    ):
        run.predict(table.drop(columns="country"))
    with pytest.raises(UsageError, match=r"has different holidays from the training data; use holidays='country'\.$"):
        run.evaluate(dataset=femts.load_dataset(table.drop(columns="country")))


def test_holidays_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shop().to_csv(tmp_path / "shop.csv", index=False)
    arguments = (
        f"train --dataset {tmp_path / 'shop.csv'} --model tide --horizon 14 --seq-len 28 --set training.max_steps=2"
    )
    assert main([*arguments.split(), "--holidays", "DE-BY", "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().err
    assert "note: 'tide' reads the holidays of DE-BY as inputs" in said
    assert "the linear effect of the holidays of DE-BY is removed before 'tide'" in said
    assert main(["predict", str(tmp_path / "run"), str(tmp_path / "shop.csv")]) == 0
    assert femts.load(tmp_path / "run").config.schema.roles.holidays == "DE-BY"


@pytest.mark.parametrize(
    ("holidays", "freq", "says"),
    [
        ("Germany", "D", r"^A single series has the holidays of a country such as 'DE' or of a part of one such as 'DE-BY', not 'Germany'; give one, or read a long table as a panel \(panel=True\)\.$"),
        (["DE"], "D", r"^Holidays are those of a country"),
        ("XX", "D", r"^The package holidays does not know 'XX'; use a country"),
        ("DE-ZZ", "D", r"^The package holidays does not know 'DE-ZZ'; use a country"),
        ("DE", "MS", r"^Holidays need dates whose steps are at most a day; remove holidays='DE'\.$"),
    ],
)  # fmt: skip
def test_unknown_holidays_are_refused(holidays: Any, freq: str, says: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"date": pd.date_range("2001-01-01", periods=200, freq=freq), "y": np.arange(200.0)})
    with pytest.raises(UsageError, match=says) as refused:
        femts.train(table, "ridge", 12, holidays=holidays, out=tmp_path / "run")
    assert refused.value.argument == "holidays" and not (tmp_path / "run").exists()
    numbered = table.assign(date=range(200))
    with pytest.raises(UsageError, match="Holidays need dates"):
        femts.load_dataset(numbered, holidays="DE")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "holidays", None)
    with pytest.raises(
        UsageError, match=r"^Holidays need the package holidays; run pip install 'femts\[holidays\]'\.$"
    ):
        holiday_terms(pd.date_range("1971-01-01", periods=2), "FR")
