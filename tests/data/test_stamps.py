"""Parsing of time stamps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import femts
from femts.data.frequency import future_dates, step_of
from femts.data.recent import read_recent
from femts.data.stamps import read_dates, read_stamps
from femts.errors import UsageError

HOURS = pd.date_range("2024-01-30", periods=400, freq="h")
QUARTER_HOURS = pd.date_range("2024-01-02", periods=960, freq="15min")
DAYS = pd.date_range("2021-10-01", periods=500, freq="D")
WEEKS = pd.date_range("2018-01-01", periods=262, freq="W-MON")
QUARTERS = pd.date_range("2000-01-01", periods=60, freq="QS")
MONTHS = pd.date_range("2018-01-01", periods=60, freq="MS")
SECONDS = HOURS.as_unit("s").asi8
NUMBERS: dict[str, tuple[pd.DatetimeIndex, Any, str]] = {
    "weeks": (WEEKS, [year * 100 + week for year, week, _ in map(pd.Timestamp.isocalendar, WEEKS)], "ISO weeks"),
    "quarters": (QUARTERS, QUARTERS.year * 10 + QUARTERS.quarter, "quarters"),
    "days of a year": (DAYS, DAYS.strftime("%Y%j").astype(int), "days of a year"),
    "seconds": (HOURS, SECONDS, "Unix seconds in UTC"),
    "half seconds": (HOURS + pd.Timedelta("500ms"), SECONDS + 0.5, "Unix seconds in UTC"),
    "milliseconds": (HOURS, SECONDS * 10**3, "Unix milliseconds in UTC"),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.filterwarnings("ignore::femts.errors.AgeWarning")
def test_numeric_stamps_are_decoded(name: str, tmp_path: Path) -> None:
    times, numbers, kind = NUMBERS[name]
    time = {"weeks": "week", "quarters": "year_quarter", "days of a year": "day"}.get(name, "date")
    table, path = pd.DataFrame({time: list(numbers), "x": np.sin(np.arange(len(times)))}), tmp_path / "mine.csv"
    table.to_csv(path, index=False)
    for source in (table, path, table.astype({time: str})):
        data = femts.load_dataset(source)
        assert data.stamps is not None and data.stamps.equals(times) and data.freq == step_of(times)
        assert sum(f"its stamps are read as {kind} (" in note for note in data.notes) == 1
    long = pd.concat([table.assign(shop=shop) for shop in ("a", "b")])
    many = femts.load_dataset(long, columns={"time": time, "series": "shop", "value": "x"})
    assert many["b"].freq == data.freq and any(kind in note for note in many.notes)
    made = femts.train(table, "naive", 4, seq_len=8)
    following = pd.date_range(times[-1], periods=5, freq=times.inferred_freq)[1:]
    for history in (
        table,
        table.tail(8),
        read_recent(path, 8, made.config.schema, made.columns, made.freq),
    ):  # eight weeks of a year could be months
        assert pd.DatetimeIndex(made.predict(history)[time]).equals(following)


CODES: dict[str, Any] = {
    "weeks": list(NUMBERS["weeks"][1]),
    "quarters": list(NUMBERS["quarters"][1]),
    "half-years": [year * 10 + half for year in range(2000, 2020) for half in (1, 2)],
    "thirds of a year": [year * 10 + third for year in range(2000, 2020) for third in (1, 2, 3)],
    "days of short years": DAYS.strftime("%y%j").astype(int),
    "days of two short years": pd.date_range("2021-01-01", "2022-12-31").strftime("%y%j").astype(int),
    "weeks of short years": [year * 100 + week for year in (18, 19, 20) for week in range(1, 53)],
    "months of short years": MONTHS.strftime("%y%m").astype(int),
    "short dates": DAYS.strftime("%y%m%d").astype(int),
    "day first": DAYS.strftime("%d%m%Y").astype(int),
    "clocks": QUARTER_HOURS.strftime("%H%M").astype(int)[:96],
    "clocks of many days": QUARTER_HOURS.strftime("%H%M").astype(int),
    "clocks with seconds": pd.date_range("2024-01-30", periods=500, freq="10s").strftime("%H%M%S").astype(int),
    "day and hour": QUARTER_HOURS[::4].strftime("%d%H").astype(int),
    "short dates with a clock": HOURS.strftime("%y%m%d%H%M").astype(int),
}


def test_date_codes_are_refused_as_counts() -> None:
    for name in CODES:
        with pytest.raises(UsageError, match=r"repeatedly jump past a round number, .* number the steps from 0"):
            read_dates(pd.Series(list(CODES[name])))


def test_integer_counts_are_kept() -> None:
    for numbers in [
        range(300),
        range(0, 4500, 15),
        range(-100, 200),
        range(60000, 60300),
        range(40000, 43000, 10),
        np.flatnonzero(np.random.default_rng(0).random(2000) < 0.7),
        [*range(300), *range(1000, 1300)],
        [day * 24 + hour for day in range(60) for hour in range(7, 23)],
        range(200101, 200132),
        *(range(first, first + 400) for first in (4820010124, 10**11, 30 * 10**9)),
    ]:
        assert read_dates(pd.Series(list(numbers))).tolist() == list(numbers)


def test_numeric_frequency_keeps_numeric_stamps() -> None:
    assert read_dates(pd.Series([2020010100, 2020010101]), freq="1").tolist() == [2020010100, 2020010101]


QUARTER_PERIODS = pd.period_range("1955Q3", periods=40, freq="Q")
OLD_MONTHS = pd.date_range("1955-07-01", periods=40, freq="MS")
OLD_WEEKS = pd.date_range("2009-06-01", periods=60, freq="W-MON")
PERIODS: dict[str, tuple[list[Any], str, int, str]] = {
    **{
        how: ([how.format(y=q.year, q=q.quarter) for q in QUARTER_PERIODS], "QS-JAN", 4, "1965-07-01")
        for how in ("{y} Q{q}", "{y}Q{q}", "{y}-Q{q}", "{y}q{q}", "Q{q} {y}", "Q{q}/{y}")
    },
    **{
        how: ([how.format(*day.isocalendar()) for day in OLD_WEEKS], "W-MON", 52, "2010-07-26")
        for how in ("{}-W{:02d}", "{}W{:02d}", "{}-W{:02d}-1", "{}-W{:02d}-{}")
    },
    **{
        how: (list(OLD_MONTHS.strftime(how)), "MS", 12, "1958-11-01")
        for how in ("%Y-%m", "%b %Y", "%B %Y", "%Y %b", "%m/%Y", "%Y/%m", "%YM%m", "%Y%m", "%b-%Y")
    },
    "numbers of months": ([int(text) for text in OLD_MONTHS.strftime("%Y%m")], "MS", 12, "1958-11-01"),
    **{
        f"years as {kind.__name__}": ([kind(year) for year in range(1950, 1990)], "YS-JAN", 1, "1990-01-01")
        for kind in (int, str, float)
    },
    "years as text of fractions": ([f"{year}.0" for year in range(1950, 1990)], "YS-JAN", 1, "1990-01-01"),
    "years of long ago": (list(range(1700, 1990)), "YS-JAN", 1, "1990-01-01"),
    "quarters as in Norway": ([f"{p.year}K{p.quarter}" for p in QUARTER_PERIODS], "QS-JAN", 4, "1965-07-01"),
    "periods": (list(QUARTER_PERIODS), "QS-JAN", 4, "1965-07-01"),
}


def test_periods_are_parsed_and_continued() -> None:
    for name in PERIODS:
        stamps, freq, season, following = PERIODS[name]
        data = femts.load_dataset(pd.DataFrame({"When": stamps, "x": np.arange(len(stamps)) * 1.5}))
        assert (data.freq, data.season, data.columns, data.schema.form.time) == (freq, season, ("x",), "When")
        assert data.notes[0] == "column 'When' contains dates and is used as time stamps"
        assert data.stamps is not None and str(future_dates(data.stamps[-1], freq, 1)[0].date()) == following


LANGUAGES = {
    "Spanish": "ene feb mar abr may jun jul ago sept oct nov dic",
    "Portuguese": "Janeiro Fevereiro Março Abril Maio Junho Julho Agosto Setembro Outubro Novembro Dezembro",
    "French": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
    "German": "Jan Feb Mrz Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "Italian": "GENNAIO FEBBRAIO MARZO APRILE MAGGIO GIUGNO LUGLIO AGOSTO SETTEMBRE OTTOBRE NOVEMBRE DICEMBRE",
    "Dutch": "jan feb mrt apr mei jun jul aug sep okt nov dec",
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("how", ["{month} {day.year}", "{day.day}. {month} {day.year}", "{day:%d}-{month}-{day.year}"])
def test_months_have_names_in_several_languages(language: str, how: str) -> None:
    months, days = LANGUAGES[language].split(), pd.date_range("2023-01-01", periods=24, freq="MS")
    cells = pd.Series([how.format(month=months[day.month - 1], day=day) for day in days])
    data = femts.load_dataset(pd.DataFrame({"fecha": cells, "x": np.arange(24) * 1.5}))
    assert data.freq == "MS" and data.stamps is not None and data.stamps.equals(days.as_unit(data.stamps.unit))


def test_words_that_are_no_months_are_no_dates() -> None:
    for word in ("jui", "Market", "general", "decade"):  # juin or juillet
        with pytest.raises(UsageError, match=r"should have a date|no 'date' column"):
            femts.load_dataset(pd.DataFrame({"when": [f"{word} 2023", f"{word} 2024"], "x": [1.0, 2.0]}))


def test_days_of_the_month_in_spanish() -> None:
    cells = [f"{day.day} de {'marzo' if day.month == 3 else 'abril'} de 2024" for day in DAYS_IN_SPRING]
    assert pd.DatetimeIndex(read_dates(pd.Series(cells))).equals(DAYS_IN_SPRING)


DAYS_IN_SPRING = pd.date_range("2024-03-20", periods=20).as_unit("ns")
DATE_FORMATS = "%d/%m/%y %m/%d/%y %y/%m/%d %y.%m.%d %d.%m.%y %d.%m.%Y %m/%d/%Y %Y%m%d".split()


def test_day_formats_are_parsed() -> None:
    for how in [*DATE_FORMATS, "%d. %m. %Y", "%d %b %Y", "%B %d, %Y"]:
        assert pd.DatetimeIndex(read_dates(pd.Series(DAYS[:90].strftime(how)))).equals(DAYS[:90])


def test_hour_formats_are_parsed() -> None:
    for how in ["%d-%m-%y %H:%M", "%d.%m.%Y %H:%M", "%m/%d/%Y %I:%M %p", "%Y%m%d%H", "%Y%m%d%H%M", "%Y/%m/%d %I:%M%p"]:
        stamps = pd.Series(HOURS.strftime(how))
        data = femts.load_dataset(pd.DataFrame({"date": stamps, "x": np.arange(400.0)}))
        assert data.freq == "h" and data.stamps is not None and (data.stamps == HOURS).all()


def test_words_between_date_and_time_are_read_past() -> None:
    for how in ("%b %d, %Y at %I:%M %p", "%a %b %d %Y at %I:%M\u202f%p", "%d.%m.%Y um %H:%M", "%d %B %Y \u00e0 %H:%M"):
        data = femts.load_dataset(pd.DataFrame({"when": HOURS.strftime(how), "x": np.arange(400.0)}))
        assert data.freq == "h" and data.stamps is not None and (data.stamps == HOURS).all()


def test_dates_with_several_marks_keep_one_order() -> None:
    cells = DAYS[:90].strftime("%d/%m/%Y")
    mixed = pd.Series([cell if int(cell[:2]) > 12 else cell.replace("/", "-") for cell in cells])
    stamps, notes = read_stamps(mixed)
    assert pd.DatetimeIndex(stamps).equals(DAYS[:90])
    assert notes[-1] == f"its dates, such as '{mixed[0]}' and '{cells[12]}', are read in one order"


def test_hour_24_is_the_next_midnight() -> None:
    ends = HOURS + pd.Timedelta("1h")
    for day in ("%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%Y-%m-%dT"):
        for clock in (":00", ":00:00"):
            cells = [f"{hour:{day}}{'' if day[-1] == 'T' else ' '}{hour.hour + 1:02d}{clock}" for hour in HOURS]
            assert pd.DatetimeIndex(read_dates(pd.Series(cells))).equals(ends)
    for cell in ("2024-01-31 25:00", "2024-01-31 24:30"):
        with pytest.raises(UsageError, match=f"has '{cell}' where data row 2 should have a date"):
            read_dates(pd.Series(["2024-01-31 23:00", cell]))


def test_periods_of_time_are_read_as_their_starts() -> None:
    ends = HOURS + pd.Timedelta("1h")
    for how in ("%d.%m.%Y %H:%M", "%Y-%m-%d %H:%M:%S", "%m/%d/%Y %H:%M"):
        for dash in (" - ", " \u2013 "):
            spans = HOURS.strftime(how) + dash + ends.strftime(how)
            data = femts.load_dataset(pd.DataFrame({"MTU (CET)": spans, "x": np.arange(400.0) ** 2}))
            assert data.columns == ("x",) and list(data.stamps) == list(HOURS)  # type: ignore[arg-type]
    west = HOURS.strftime("%Y-%m-%d %H:%M-05:00")
    assert list(read_dates(pd.Series(west))) == list(HOURS.tz_localize("-05:00"))


def test_unambiguous_stamps_are_parsed() -> None:
    for cells, first in [
        (["2024-02-01", "2024-02-01 01:00"], "2024-02-01"),
        (["2/1/2024", "2/13/2024"], "2024-02-01"),
        (["1/2/24", "13/2/24"], "2024-02-01"),
        ([202402010000.0, 202402010010.0], "2024-02-01"),
        ([20240201000000, 20240201000030], "2024-02-01"),
        (["01/02/2024 12:00:05 am", "13/02/2024 12:00:05 am"], "2024-02-01 00:00:05"),
        (["2/1/2024 12 p.m.", "2/13/2024 12 p.m."], "2024-02-01 12:00"),
        (["2024-01-02 12:00 AM", "2024-01-02 1:00 AM"], "2024-01-02"),
        (["Jan-98", "Mar-98"], "1998-01"),  # no day 98
        (["Dec 99", "Jan 00", "Feb 00"], "1999-12"),
        (["Nov-08", "Dec-08", "Jan-09"], "2008-11"),  # steps of a month
        (["Jan-60", "Feb-60", "Mar-72"], "1960-01"),
    ]:
        assert read_dates(pd.Series(cells))[0] == pd.Timestamp(first)


WRONG_HOUR = [*HOURS[:40].strftime("%Y%m%d%H"), "2020013207"]


def test_invalid_or_ambiguous_stamps_are_refused() -> None:
    for cells, words in [
        (["01/02/2020 3:00 PM", "01/03/2020 3:00 PM"], "such as '01/02/2020 3:00 PM', whose day could be the month;"),
        (["01/07/20", "02/07/20", "03/07/20"], "'01/07/20', whose day could be the month or the year"),
        (WRONG_HOUR, "has '2020013207' where data row 41 should have a date"),
        (["2009-W53", "2010-W53"], "'2010-W53' where data row 2"),
        (["Jan-01", "Jan-02", "Jan-03"], "'Jan-01' at data row 1, a date without its year"),
        (["Jan-31", "Feb-28", "Mar-31"], "'Jan-31' at data row 1, a date without its year"),
        (pd.Series(range(201801, 201854), name="week"), "has '201853' at data row 53 .* write the first day"),
        (
            pd.Series([*range(2022001, 2022366), 2022366, *range(2023001, 2023100)], name="day"),
            "has '2022366' at data row 366",
        ),
        (
            ["2024-03-30T00:00+01:00", "2024-03-31T00:00+02:00", "2024-04-01T00:00"],
            "several time zones; write them all",
        ),
        (pd.Series([10**5000] * 3, dtype=object), "a number of about 5001 digits"),
    ]:
        with pytest.raises(UsageError, match=words):
            read_dates(cells if isinstance(cells, pd.Series) else pd.Series(list(cells)))


def test_mixed_offsets_become_utc_or_days() -> None:
    hours = pd.date_range("2024-03-30", periods=48, freq="h", tz="Europe/Berlin")
    stamps, notes = read_stamps(pd.Series([when.isoformat() for when in hours]))
    assert step_of(stamps) == "h" and str(stamps[0]) == "2024-03-29 23:00:00+00:00"
    assert notes[0].startswith("its stamps have several UTC offsets and were converted to UTC, so calendar")
    days = pd.date_range("2024-03-20", periods=30, tz="Europe/Berlin")
    stamps, notes = read_stamps(pd.Series([when.isoformat() for when in days]))
    assert step_of(stamps) == "D" and str(stamps[0]) == "2024-03-20 00:00:00" and "midnights" in notes[0]


def test_time_zone_is_kept() -> None:
    dates = read_dates(pd.Series([f"2024-01-01T0{h}:00:00+00:00" for h in range(4)]))
    assert step_of(dates) == "h" and str(future_dates(dates[-1], "h", 1)[0]) == "2024-01-01 04:00:00+00:00"
    zoned = pd.DataFrame({"date": HOURS[:60].tz_localize("UTC").tz_convert("Europe/Berlin"), "x": np.arange(60.0)})
    forecast = femts.train(zoned, "naive", seq_len=6, pred_len=3).predict(zoned)
    assert str(forecast["date"].iloc[0]) == "2024-02-01 13:00:00+01:00"


DOTTED = ("%d/%m/%Y %H.%M.%S", "%Y-%m-%d %H.%M", "%d.%m.%Y %H.%M.%S", "%d %b %Y %H.%M", "%Y-%m-%dT%H.%M.%S")


@pytest.mark.parametrize("how", DOTTED)
def test_times_of_day_with_dots_are_parsed(how: str) -> None:
    hours = pd.date_range("2004-03-10 18:00", periods=400, freq="h")
    data = femts.load_dataset(pd.DataFrame({"when": hours.strftime(how), "x": np.arange(400.0) ** 2}))
    assert data.freq == "h" and list(data.stamps) == list(hours)  # type: ignore[arg-type]


TICKS = {"ticks of .NET": 621_355_968_000_000_000, "file times of Windows": 116_444_736_000_000_000}


@pytest.mark.parametrize("kind", TICKS)
@pytest.mark.parametrize("freq", ["D", "h", "15min", "s", "W-MON", "MS"])
def test_numbers_of_100_ns_are_decoded(kind: str, freq: str) -> None:
    times = pd.date_range("2023-11-15", periods=60, freq=freq).as_unit("ns")
    for cells in (times.asi8 // 100 + TICKS[kind], [str(each) for each in times.asi8 // 100 + TICKS[kind]]):
        stamps, notes = read_stamps(pd.Series(cells))
        assert list(stamps) == list(times) and f"read as {kind} (" in notes[0]


@pytest.mark.parametrize("freq", ["D", "h", "min", "s"])
def test_nanoseconds_of_1990_are_no_ticks(freq: str) -> None:
    times = pd.date_range("1990-03-15", periods=60, freq=freq).as_unit("ns")
    assert list(read_dates(pd.Series(times.asi8))) == list(times)


YEARS_OF_R = {  # first stamp, steps a year, digits that are written, and the step that is read
    "months": (1949, 12, 12, "MS"),
    "months, three digits": (1949, 12, 3, "MS"),
    "months, two digits": (1949, 12, 2, "MS"),
    "middles of months": (1958 + 1 / 24, 12, 3, "MS"),
    "quarters": (1959.25, 4, 2, "QS-JAN"),
    "half years": (1959.5, 2, 1, None),
}


@pytest.mark.parametrize("name", YEARS_OF_R)
@pytest.mark.parametrize("first", ["time", "rownames", "when"])
def test_years_with_a_fraction(name: str, first: str, tmp_path: Path) -> None:
    begin, steps, digits, freq = YEARS_OF_R[name]
    years = np.round(begin + np.full(84, 1 / steps).cumsum() - 1 / steps + 2e-12, digits)
    table = pd.DataFrame({"time": years, "value": 100 + np.arange(84) % 7})
    if first == "rownames":
        table.insert(0, "rownames", np.arange(1, 85))
    table = table.rename(columns={"time": first} if first == "when" else {})
    table.to_csv(tmp_path / "table.csv", index=False)
    data = femts.load_dataset(tmp_path / "table.csv")
    begins = {1949: "1949-01", 1958 + 1 / 24: "1958-01", 1959.25: "1959-04", 1959.5: "1959-07"}[begin]
    expected = pd.date_range(begins, periods=84, freq=pd.DateOffset(months=12 // steps))
    assert data.columns == ("value",)
    assert pd.DatetimeIndex(data.stamps).tolist() == expected.tolist()
    assert freq is None or data.freq == freq
    assert any("its stamps are read as years with a fraction" in note for note in data.notes)
    if name == "quarters":
        made = femts.train(data, "seasonal_naive", 4).predict(table.tail(24))
        assert made.iloc[0, 0] == expected[-1] + pd.DateOffset(months=3)


def test_years_and_months_and_days_of_years() -> None:
    months = [float(f"{year}.{month:02d}") for year in range(1871, 1878) for month in range(1, 13)]
    data = femts.load_dataset(pd.DataFrame({"Date": months, "price": np.arange(84.0) % 11}))
    assert data.freq == "MS" and str(pd.DatetimeIndex(data.stamps)[9]) == "1871-10-01 00:00:00"
    days = pd.date_range("2019-06-01", periods=400)
    years = days.year + (days.dayofyear - 1) / np.where(days.is_leap_year, 366, 365)
    data = femts.load_dataset(pd.DataFrame({"decimal_date": years.to_numpy().round(5), "y": np.arange(400.0) % 11}))
    assert data.freq == "D" and pd.DatetimeIndex(data.stamps).tolist() == days.tolist()


def test_fractions_of_years_whose_days_are_unknown_are_no_stamps() -> None:
    for step in (1 / 52, 1 / 260, 1 / 365):
        values = np.random.default_rng(0).normal(size=400)
        table = pd.DataFrame({"time": 1991.5 + np.arange(400) * step, "y": values})
        data = femts.load_dataset(table)
        assert data.columns == ("y",) and data.freq == "1"
        assert any("'time' (contains dates)" in note for note in data.notes)
    rising = np.random.default_rng(0).integers(1, 9, 100).cumsum() / 4
    prices = pd.DataFrame({"price": 1950.25 + rising, "y": np.random.default_rng(1).normal(size=100)})
    assert femts.load_dataset(prices).columns == ("price", "y")
