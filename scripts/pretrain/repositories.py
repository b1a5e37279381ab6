"""Write real series of public repositories as files to train on.

    python -m scripts.pretrain.repositories CLONES FOLDER
    python -m scripts.pretrain runs/pretrained --files FOLDER/*.csv

CLONES has a folder OWNER+NAME with the files of each of the repositories that the end of the help lists, each at the
commit that is listed:

    git clone https://github.com/OWNER/NAME CLONES/OWNER+NAME
    git -C CLONES/OWNER+NAME checkout COMMIT

All data are in the public domain or published under an open licence. No series that a table or task of femts is scored
on is among them, as `scripts.pretrain.overlap` reports, and none of the economy of the United States but energy.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from femts.errors import UsageError
from scripts.pretrain.corpus import SHORTEST
from scripts.pretrain.packages import (
    FEWEST_VALUES,
    FIVE_MINUTES,
    HOUR,
    MOST_OF_A_TABLE,
    QUARTER,
    TEN_MINUTES,
    Kept,
    Source,
    evenly,
    paths_of,
    trimmed,
    write,
)

Options = dict[str, Any]


class Repository(NamedTuple):
    """Where data come from.

    Attributes:
        commit: that is read.
        origin: publishers of the data, and the licence.
    """

    commit: str
    origin: str


REPOSITORIES = {
    "alphagov/datagovuk-data-prototype": Repository("a380446e1067", "DEFRA, OGL"),
    "andrewm4894/random": Repository("42541e890310", "UCI, CC BY 4.0"),
    "bfortuner/machine-learning": Repository("4e53de198f79", "City of Seattle, public domain"),
    "cdcepi/dengue-forecasting-project-2015": Repository("6ab36c9d5166", "CDC, public domain"),
    "ceche1212/MBA_Thesis": Repository("f155fc6db0f6", "EIA, public domain"),
    "cocteau/data_2022": Repository("80100d8e0b34", "TSA, public domain"),
    "codejoncode/congenial-fortnight": Repository("ea4e514ec086", "Federal Reserve, public domain"),
    "coronatrends/coronatrends.github.io": Repository("883d8f0ce67f", "Johns Hopkins CSSE, CC BY 4.0"),
    "dastjerdi/crypto-ml": Repository("1669aa4e8ba9", "Federal Reserve, public domain"),
    "datasets/commodity-prices": Repository("6df9fa442d4c", "IMF, free with attribution"),
    "datasets/exchange-rates": Repository("fa7d949956d1", "Federal Reserve, public domain"),
    "datasets/finance-vix": Repository("6f56e2760520", "Cboe, PDDL says the repository"),
    "datasets/house-prices-global": Repository("dbefb611a77f", "BIS, free with attribution"),
    "datasets/natural-gas": Repository("f7771269b624", "EIA, public domain"),
    "datasets/oil-prices": Repository("2d75ce3a792c", "EIA, public domain"),
    "dstDatenjournalismus/2022-09-energieDashboard": Repository("aef66e7a593e", "European Commission, CC BY 4.0"),
    "ellisp/nz-lead-indicators": Repository("3b1747ee7313", "Stats NZ and OECD, CC BY 4.0"),
    "Emergent-Epidemics/US_influenza_data_1998_09-2019": Repository("fa6cddfb8dda", "CDC, public domain"),
    "FaradayOtieno/wfp_food_price_ke": Repository("011978d06694", "World Food Programme, CC BY IGO"),
    "forestgeo/Climate": Repository("839ec9d3c044", "CRU TS, OGL; NOAA, public domain"),
    "fredbec/uqimf": Repository("d10f9690a71b", "OECD, CC BY 4.0"),
    "GloriaNeo/Climate-and-Air-Quality": Repository("9276741af305", "data.gov.sg, Singapore Open Data Licence"),
    "Jackman99/Hydrology-Class-Project": Repository("00700dfff070", "MOPEX of NOAA, public domain"),
    "JamesFrancisGolden/Irish_weather": Repository("639b794856b2", "Met Éireann, CC BY 4.0"),
    "jenfly/opsd": Repository("e62374961f90", "Open Power System Data, of ENTSO-E"),
    "jkokocinski/multivar-sims": Repository("2b51662ddfdf", "IESO of Ontario, public reports"),
    "jwoLondon/mobv": Repository("95b1e0c7c241", "Basel, CC BY; BASt, CC BY 4.0; New York, Paris, ODbL; Zurich, CC0"),
    "karthiktadepalli1/india-aqi": Repository("6f2b767f3b19", "CPCB of India, open government data"),
    "komalnaseer-ai/steel-industry-energy-analysis": Repository("ce6efee8b044", "UCI, CC BY 4.0"),
    "marina-khi/multiscale_inference": Repository("b93ad2652e8c", "OECD, CC BY 4.0"),
    "microsoft/cloud-monitoring-dataset": Repository("6a07a53c2fac", "Microsoft, MIT"),
    "mvanaltvorst/seminar": Repository("1841357507dd", "ILO, CC BY 4.0"),
    "owid/owid-datasets": Repository("48c9992ae317", "Our World in Data, CC BY 4.0"),
    "pastas/pastas": Repository("f4ee486d6296", "rivers of the Netherlands, MIT"),
    "Peiris94-dev/Beijing-Multi-Site-Air-Quality-Analysis": Repository("0aa46c055fcc", "UCI, CC BY 4.0"),
    "pillarxyz/wind-energy-generation-forecasting": Repository("8c176ddb2145", "Open Power System Data, of ENTSO-E"),
    "rapidsai/cuml": Repository("342457bcb82b", "Stats NZ, CC BY 4.0"),
    "resbaz/pedestriancounts": Repository("9f1faa91460f", "City of Melbourne, CC BY 4.0"),
    "robert-koch-institut/Intensivkapazitaeten_und_COVID-19-Intensivbettenbelegung_in_Deutschland": Repository(
        "c2410350e722", "Robert Koch Institut, CC BY 4.0"
    ),
    "rypoll/Jan21-UK-Historical-Weather-Shiny-App": Repository("64247836a8d0", "Met Office, OGL"),
    "shivanagendrak/CS618": Repository("f0aad5a0ba9b", "Bureau of Meteorology, CC BY 3.0 AU"),
    "skywclouds/Power-load-forecasting-based-on-LSTM": Repository("46d12cea9b5a", "UCI, CC BY 4.0"),
    "stiles/data": Repository("566a35e372b1", "KOSIS of South Korea, KOGL open"),
    "TheEconomist/covid-19-excess-deaths-tracker": Repository("34dbd4e34640", "Human Mortality Database, CC BY 4.0"),
    "tidyverts/tsibbledata": Repository("a9c811a5ca17", "World Bank and OECD, CC BY 4.0"),
    "Tinarj/auflights": Repository("45e83533a0b5", "BITRE of Australia, CC BY"),
    "truggles/EIA_Cleaned_Hourly_Electricity_Demand_Data": Repository("b80145df5f92", "EIA-930, CC BY 4.0"),
}
# Series of which twelve differences in a row are, up to a factor, those of a scored one.
SCORED = {
    "Public coronatrends/coronatrends.github.io data/africa.csv Djibouti value",
    "Public datasets/commodity-prices data/commodity-prices_v2.csv Soft Sawnwood by quarter",
    "Public marina-khi/multiscale_inference Multiple_trends/Code/data/gfcf_OECD.csv GRC P51 Value by quarter",
}
MOST_MISSING, MOST_ZEROS = 1 / 3, 1 / 2  # of the rows of a series
LONG = ("W", "MS", "QS", "YS")  # steps of which few rows are enough
FEWEST_ROWS, MOST_REPEATED = 200, 0.7  # at shorter steps; the second of the rows that have values
MOST_REPEATED_OF_LONG = 1 / 2
# What ends the names of series by step, which says the season or tells them from monthly ones of the same table.
ENDS = {
    "h": f"|{HOUR}s",
    "15min": f"|{QUARTER}s",
    "10min": f"|{TEN_MINUTES}s",
    "5min": f"|{FIVE_MINUTES}s",
    "QS": " by quarter",
}
QUARTERS = "quarters"  # a form of stamps: 1999Q4 or 1999-Q4


def table(
    freq: str,
    file: str,
    columns: str = ".",
    *,
    stamps: str = "",
    form: str | None = None,
    key: str = "",
    rows: str = "",
    dates: str = "",
    cumulative: bool = False,
    part: slice = slice(None),
    most: int = MOST_OF_A_TABLE,
    **options: Any,
) -> Source:
    """Columns of the tables that match `file`, averaged over steps, so that missing ones are empty.

    Args:
        freq: step between rows, as pandas has it.
        file: pattern of paths.
        columns: regular expression of those to keep, among those that hold numbers.
        stamps: column that says the time, or several, joined by `+`; none if the rows are in order, without gaps.
        form: of the stamps, joined by spaces; rows with others, such as notes and totals, are left out. Of a week `%G %V`
            is enough. Without a form, pandas finds it.
        key: column that says which series a row belongs to, or several, joined by `+`.
        rows: which to keep, as `pandas.DataFrame.query` has it.
        dates: regular expression of columns that are dates, of tables that have a series in each row.
        cumulative: whether to take differences, of which those below zero, which correct earlier ones, are missing.
        part: which series to keep.
        most: how many of these, spread evenly.
        **options: of `pandas.read_csv`.
    """

    enough = (SHORTEST, MOST_REPEATED_OF_LONG) if freq in LONG else (FEWEST_ROWS, MOST_REPEATED)
    keys, times = key.split("+") if key else [], stamps.split("+") if stamps else []

    def series(folder: Path) -> Kept:
        found = list[tuple[str, pd.Series]]()
        for path in paths_of(folder, file, "check out its repository there, as --help says"):
            data = pd.read_csv(path, **options)
            if rows:
                data = data.query(rows)
            if dates:
                data = data.melt(keys, list(data.filter(regex=dates)), var_name="date")
            time = _time(data, ["date"] if dates else times, form)
            kept = data.drop(columns=[*keys, *times]).filter(regex=columns).apply(pd.to_numeric, errors="coerce")
            repository, *parts = path.relative_to(folder).parts
            name = f"Public {repository.replace('+', '/', 1)} {'/'.join(parts)}"
            for group, values in kept.groupby([data[column] for column in keys]) if keys else [((), kept)]:
                if time is not None:
                    values = values.set_index(time[values.index]).loc[lambda each: each.index.notna()]
                    values = values.resample(freq).mean()
                if cumulative:
                    values = values.diff().where(lambda each: each >= 0)
                for column, each in values.items():
                    found.append((" ".join([name, *map(str, group), str(column)]) + ENDS.get(freq, ""), trimmed(each)))
        good = [(name, values) for name, values in found if _is_good(values, *enough)]
        if not good:
            raise UsageError(f"No column of {file} in {folder} is a series; check out the commit that --help lists.")
        yield from (each for each in evenly(good[part], most) if each[0] not in SCORED)

    return series


def _time(data: pd.DataFrame, stamps: Sequence[str], form: str | None) -> pd.Series | None:
    """Stamps of rows, missing where they have another form; None without columns of them."""
    if not stamps:
        return None
    text = data[stamps[0]].astype(str).str.strip()
    for name in stamps[1:]:
        text = text + " " + data[name].astype(str)
    if form == QUARTERS:
        text = text.str.replace(r"^(\d{4})-?Q([1-4])$", lambda part: f"{part[1]}-{3 * int(part[2])}", regex=True)
        form = "%Y-%m"
    elif form is not None and "%V" in form:
        text, form = text + " 1", f"{form} %u"  # the Monday
    return pd.to_datetime(text, format=form, errors="coerce", utc=True)


def _is_good(values: pd.Series, fewest: int, repeated: float) -> bool:
    """Whether a series has the `fewest` rows, enough different values, is no line, and few of its values are missing,
    zero or, a share `repeated` at most, the same as the one before."""
    known = values.dropna()
    return (
        len(values) >= fewest
        and known.nunique() >= FEWEST_VALUES
        and values.isna().mean() <= MOST_MISSING
        and (values == 0).mean() <= MOST_ZEROS
        and (known.diff().iloc[1:] == 0).mean() <= repeated
        and (known.diff().diff().abs().iloc[2:] <= 1e-6 * known.abs().max()).mean() <= repeated
    )


EVEN, ODD = slice(0, None, 2), slice(1, None, 2)
ADULTS = "behandlungsgruppe_level_2 == 'ERWACHSENE'"
AUSTRALIA = "shivanagendrak+CS618/weatherAUS.zip"
BANANAS = "alphagov+datagovuk-data-prototype/data/reference/wholesale-banana-prices*.csv"
BASIN = "Jackman99+Hydrology-Class-Project/*_30years.csv"
BEIJING = "Peiris94-dev+Beijing-Multi-Site-Air-Quality-Analysis/PRSA_Data_*.csv"
CLOUD = "microsoft+cloud-monitoring-dataset/data"
COUNTS = "jwoLondon+mobv/data"
CRU = "forestgeo+Climate/Climate_Data/CRU/CRU_v4_06"
DEATHS = "TheEconomist+covid-19-excess-deaths-tracker/source-data/human-mortality-database/[!HKLU]*stmf.csv"
DENGUE = "cdcepi+dengue-forecasting-project-2015/Dengue_data/*_testing_data.csv"
DIESEL = "dstDatenjournalismus+2022-09-energieDashboard/R/output/weekly_fuel_prices/historic/historic_diesel.csv"
ENERGY = "ceche1212+MBA_Thesis/Original_data/Raw_data/MER_T0[1359]_*.csv"
FLIGHTS = "Tinarj+auflights/data-raw"
FLU = "Emergent-Epidemics+US_influenza_data_1998_09-2019/Data"
FOOD = "FaradayOtieno+wfp_food_price_ke/data/wfp_food_prices_ken.csv"
GOODS = "datasets+commodity-prices/data/commodity-prices_v2.csv"
GROWTH = "fredbec+uqimf/oecd_data/oecd_gdp.csv"
HOUSES = "datasets+house-prices-global/data"
INDIA = "karthiktadepalli1+india-aqi/city_day.csv"
INDICATORS = (
    "Vegetable oil yields (FAO); Food supply (FAO, 2020); Agricultural total factor productivity (USDA); "
    "CO2 emissions by source - CDIAC (2016); Armed forces personnel*; Energy imports*; Metal production*; "
    "Cereal yield index*; Land under cereal production index*; Smallpox cases*; Patent*"
)
INTENSIVE = (
    "robert-koch-institut+Intensivkapazitaeten_und_COVID-19-Intensivbettenbelegung_in_Deutschland/"
    "Intensivregister_Bundeslaender_Kapazitaeten.csv"
)
IRELAND = "JamesFrancisGolden+Irish_weather/dly532.csv"
JOBS = "mvanaltvorst+seminar/assets/unemployment-ilo.csv"
KOREA = "stiles+data/south-korea-tourists-by-country/tourists.csv"
LEADS = "ellisp+nz-lead-indicators/data"
LOADS = "truggles+EIA_Cleaned_Hourly_Electricity_Demand_Data/data/release_2019_Oct/balancing_authorities/*.csv"
MELBOURNE = "resbaz+pedestriancounts/pedestriancounts_melbourne_2906.zip"
MONEY = "datasets+exchange-rates/data/monthly.csv"
NOAA = "forestgeo+Climate/Climate_Data/NOAA/Virginia_04_Northern_Virginia/NOAA_Div*.csv"
NZ = "rapidsai+cuml/python/cuml/tests/ts_datasets"
OECD = "tidyverts+tsibbledata/data-raw/oecd_household"
OWID = "owid+owid-datasets/datasets"
SINGAPORE = "GloriaNeo+Climate-and-Air-Quality/data"
STEEL = "komalnaseer-ai+steel-industry-energy-analysis/data/Steel_industry_data.csv"
TETOUAN = "skywclouds+Power-load-forecasting-based-on-LSTM/Tetuan*.csv"
TREND = "marina-khi+multiscale_inference/Multiple_trends/Code/data"
UK = "rypoll+Jan21-UK-Historical-Weather-Shiny-App/data/*data.txt"
WIND = "pillarxyz+wind-energy-generation-forecasting/data/*_filtered.csv"
WORLD = "tidyverts+tsibbledata/data-raw/world_bank/WDIData.csv"
BY_COUNTRY: Options = {"stamps": "date", "key": "country", "rows": "country != 'United States'"}
BY_HOUR: Options = {"stamps": "year+month+day+hour", "form": "%Y %m %d %H"}
BY_MONTH: Options = {"stamps": "year+month", "form": "%Y %m"}
BY_WEEK: Options = {"stamps": "epi_week", "form": "%G-W%V", "key": "disease"}
BY_REGION: Options = {"key": "REGION", "skiprows": 1}
COUNTER: Options = {"stamps": "date", "key": "station"}
FLOWS: Options = {
    "stamps": "year+month+day",
    "form": "%Y %m %d",
    "names": ["year", "month", "day", "P", "Ep", "Q", "Qs", "Qu"],
}
FROM_1970: Options = {
    "stamps": "date",
    "form": "%d-%b-%y",
    "rows": "date.str[-2:] > '69' or date.str[-2:] < '30'",  # pandas takes 30 to 68 for years to come
}
NO_HEADER: Options = {"stamps": "Unnamed: 0", "skiprows": 1}
OF_ENERGY: Options = {"stamps": "YYYYMM", "form": "%Y%m", "key": "Description"}
OF_MONEY: Options = {"stamps": "Date", "key": "Country"}
STATION: Options = {
    **BY_MONTH,
    "names": ["year", "month", "tmax", "tmin", "af", "rain", "sun"],
    "sep": r"\s+",
    "on_bad_lines": "skip",
}
WIDE: Options = {"dates": r"^\d{4}$", "form": "%Y", "key": "Country Name+Indicator Code"}


def cases(region: str) -> Source:
    """New cases a day of countries."""
    file, whole = f"coronatrends+coronatrends.github.io/data/{region}.csv", "`Province/State`.isna() and Lat.notna()"
    reading: Options = {"dates": "^[0-9/]+$", "form": "%m/%d/%y", "key": "Country/Region", "rows": whole}
    return table("D", file, cumulative=True, most=8, **reading)


def climate(variable: str, third: int, freq: str) -> Source:
    """A variable of climate at a third of the sites of forests all over the world."""
    file, since = f"{CRU}/{variable}.1901-2021-ForestGEO_sites.csv", "Yr >= 1960"
    reading: Options = {"stamps": "Yr+Mo", "form": "%Y %m", "key": "sites.sitename+variable", "rows": since}
    return table(freq, file, "Value", part=slice(third, None, 3), most=6, **reading)


def outside(frequency: str, more: str = "", key: str = "LOCATION+SUBJECT") -> Options:
    """Options for indicators of the OECD by `frequency`, without those of the United States."""
    form = {"A": "%Y", "Q": QUARTERS, "M": "%Y-%m"}[frequency]
    rows = f"FREQUENCY == '{frequency}' and LOCATION != 'USA'{more}"
    return {"stamps": "TIME", "form": form, "key": key, "rows": rows}


# By the name of the file to write, which says the season unless the names of the series do.
SOURCES: dict[str, tuple[Source, ...]] = {
    "public_yearly": (
        table("YS", WORLD, rows="`Indicator Code` != 'SP.POP.TOTL'", most=64, **WIDE),
        table("YS", f"{OECD}/HH*.csv", "Value", **outside("A", " and MEASURE != 'MLN_USD'")),
        *(
            table("YS", f"{OWID}/{name}/*.csv", "^(?!area_)", stamps="Year", form="%Y", key="Entity", most=12)
            for name in INDICATORS.split("; ")
        ),
        table("YS", f"{NZ}/deaths_by_region.csv", "Region"),
        table("YS", f"{NZ}/police_recorded_crime.csv", "Recorded"),
    ),
    "public_quarterly": (
        table("QS", f"{HOUSES}/nominal_index.csv", "price", **BY_COUNTRY),
        table("QS", f"{HOUSES}/real_year.csv", "price", part=ODD, most=20, **BY_COUNTRY),
        table("QS", f"{TREND}/gdp_oecd.csv", "Value", **outside("Q")),
        table("QS", f"{TREND}/gfcf_OECD.csv", "Value", **outside("Q")),
        table(
            "QS", GROWTH, "Value", part=EVEN, most=20, **outside("Q", " and MEASURE == 'PC_CHGPP'", "LOCATION+MEASURE")
        ),
        table("QS", f"{OECD}/UNEMP.csv", "Value", **outside("Q", " and SUBJECT != 'TOT'")),
        table("QS", JOBS, stamps="Quarter", form=QUARTERS, rows="Sex == 'Total'", part=EVEN, most=20),
        table("QS", f"{NZ}/alcohol.csv", "Total"),
        table("QS", f"{NZ}/hourly_earnings_by_industry.csv", stamps="Date", form=QUARTERS),
        table("QS", f"{NZ}/passenger_movements.csv", stamps="Date", form=QUARTERS),
        table("QS", f"{LEADS}/SNE*.csv", form=QUARTERS, **NO_HEADER),
        table("QS", f"{LEADS}/TPT*.csv", form=QUARTERS, **NO_HEADER),
        table("QS", GOODS, stamps="Date", part=ODD, index_col=False),
        table("QS", MONEY, "rate", part=ODD, **OF_MONEY),
        table("QS", ENERGY, "Value", part=ODD, **OF_ENERGY),
        table("QS", f"{FLIGHTS}/au_int_airlines.csv", "n_passengers_(in|out)", key="airline", most=20, **BY_MONTH),
        *(climate(variable, third, "QS") for variable, third in (("tmp", 1), ("pre", 2), ("vap", 0))),
    ),
    "public_monthly": (
        table("MS", GOODS, stamps="Date", part=EVEN, index_col=False),
        table("MS", MONEY, "rate", part=EVEN, **OF_MONEY),
        table("MS", f"{NZ}/guest_nights_by_region.csv"),
        table("MS", KOREA, "visitors", key="country", rows="age == 'Total' and country != 'Total'"),
        table("MS", f"{OECD}/UNEMP.csv", "Value", most=24, **outside("M", " and SUBJECT == 'TOT'")),
        table("MS", f"{LEADS}/DP_LIVE*.csv", "Value", most=12, **outside("M")),
        table("MS", f"{LEADS}/EXP*.csv", form="%YM%m", **NO_HEADER),
        table("MS", ENERGY, "Value", part=EVEN, **OF_ENERGY),
        table("MS", f"{FLIGHTS}/au_int_routes.csv", "n_passengers_in", key="origin_city+dest_city", **BY_MONTH),
        table("MS", f"{FLIGHTS}/au_dom_routes.csv", "n_pass", key="origin_city+dest_city", most=24, **BY_MONTH),
        table("MS", FOOD, "^price$", stamps="date", form="%m/%d/%Y", key="market+commodity+unit+pricetype"),
        table("MS", UK, **STATION),
        table("MS", f"{SINGAPORE}/*monthly*.csv", stamps="month", form="%Y-%m"),
        table(
            "MS", NOAA, "PCP|TAVG|P[DHM][DS]I|CDD|HDD|TMIN", stamps="YearMonth", form="%Y%m", na_values=[-99.9, -99.99]
        ),
        *(
            climate(variable, third, "MS")
            for variable, third in (("tmp", 0), ("pre", 1), ("vap", 2), ("dtr", 0), ("frs", 1))
        ),
    ),
    "public_weekly": (
        table("W", f"{FLU}/ILINet.csv", "UNWEIGHTED|TOTAL PATIENTS", **BY_REGION),
        table("W", f"{FLU}/WHO_NREVSS_Clinical_Labs.csv", "PERCENT POSITIVE", most=20, **BY_REGION),
        table("W", DENGUE, "total_cases|denv1|other|addi", stamps="week_start_date"),
        table(
            "W",
            DEATHS,
            "Deaths",
            stamps="Year+Week",
            form="%G %V",
            rows="Sex == 'b' and Age == 'TOT'",
            low_memory=False,
        ),
        table("W", DIESEL, "^[A-ZÖ]", stamps="date"),
        table("W", "datasets+oil-prices/data/*-weekly.csv", stamps="Date"),
        table("W", f"{SINGAPORE}/.ipynb_checkpoints/weekly-infectious-disease-bulletin-cases.csv", **BY_WEEK),
        table("W", f"{SINGAPORE}/.ipynb_checkpoints/average-daily-polyclinic-*.csv", **BY_WEEK),
        table("W", BANANAS, "Price", stamps="Date", form="%d/%m/%Y", key="Origin"),
    ),
    "public_daily": (
        table(
            "D",
            AUSTRALIA,
            "^(M..Temp|Rainfall|Evap|Sunshine|WindGustSpeed|Humidity3|Pressure9)",
            stamps="Date",
            key="Location",
            most=62,
        ),
        table("D", IRELAND, "^(maxtp|mintp|gmin|rain|cbl|wdsp|sun|soil|pe)$", **FROM_1970),
        table("D", BASIN, "^Q$", **FLOWS),
        table("D", BASIN, "^P$", most=10, **FLOWS),
        table("D", f"{COUNTS}/basel/StationDailyTimeSeries-Bicycle.csv", "count", **COUNTER),
        table("D", f"{COUNTS}/basel/StationDailyTimeSeries-Foot.csv", "count", **COUNTER),
        table("D", f"{COUNTS}/germany/StationDailyTimeSeries.csv", "count", **COUNTER),
        table("D", f"{COUNTS}/newyork/StationDailyTimeSeries-Bicycle.csv", "count", **COUNTER),
        table("D", f"{COUNTS}/paris/StationDailyTimeSeries.csv", "count", most=20, **COUNTER),
        table("D", f"{COUNTS}/zurich/StationDailyTimeSeries-Bicycle.csv", "count", **COUNTER),
        table("D", f"{COUNTS}/zurich/StationDailyTimeSeries-Foot.csv", "count", **COUNTER),
        *(cases(region) for region in ("africa", "asia", "europe", "latinAmerica")),
        table(
            "D",
            INTENSIVE,
            "^(faelle_covid_aktuell|intensivbetten_belegt)$",
            rows=ADULTS,
            stamps="datum",
            key="bundesland_name",
        ),
        table("D", "jenfly+opsd/opsd_germany_daily.csv", "^(Consumption|Wind|Solar)$", stamps="Date"),
        table("D", "andrewm4894+random/household_power_consumption_days.csv", stamps="datetime", skiprows=[1]),
        table("D", "pastas+pastas/doc/examples/data/*_riv.csv", stamps="Date"),
        table("D", INDIA, "^(PM2.5|PM10|NO|NO2|CO|SO2|O3|Benzene)$", stamps="Date", key="City"),
        table("D", "cocteau+data_2022/data/tsa.csv", "travelers", stamps="Date"),
    ),
    "public_business": (
        table("B", "datasets+oil-prices/data/*-daily.csv", stamps="Date"),
        table("B", "datasets+natural-gas/data/daily.csv", stamps="Date"),
        table("B", "datasets+finance-vix/data/vix-daily.csv", "CLOSE", stamps="DATE"),
        table("B", "dastjerdi+crypto-ml/data/*.csv", stamps="date"),
        table("B", "codejoncode+congenial-fortnight/data/*.csv", stamps="date"),
    ),
    "public_subdaily": (
        table("h", LOADS, "^cleaned", stamps="date_time"),
        table("h", "jkokocinski+multivar-sims/data/demand/PUB_Demand_201*.csv", "Ontario", most=5, skiprows=3),
        table("h", BEIJING, "^(PM2.5|PM10|SO2|NO2|CO|O3)$", **BY_HOUR),
        table("h", BEIJING, "^(TEMP|PRES|DEWP|WSPM)$", most=11, **BY_HOUR),
        table("h", MELBOURNE, "PedestrianCount", stamps="Date+Hour", form="%d-%b-%Y %H", key="SensorName"),
        table("h", "bfortuner+machine-learning/data/FremontBridge.csv", stamps="Date", form="%m/%d/%Y %I:%M:%S %p"),
        table("10min", TETOUAN, stamps="DateTime", form="%m/%d/%Y %H:%M"),
        table("15min", STEEL, "^(Usage|Lagging|Leading)"),
        table("h", WIND, "generation_actual|temperature", stamps="utc_timestamp"),
        table("h", f"{CLOUD}/application-crash-rate-2/*.csv", stamps="TimeStamp"),
        table("h", f"{CLOUD}/consumer-purchase-rate/*.csv", stamps="TimeStamp"),
        table("h", f"{CLOUD}/ecommerce-api-incoming-rps/*.csv", stamps="TimeStamp"),
        table("h", f"{CLOUD}/middle-tier-api-dependency-latency/*.csv", stamps="TimeStamp", most=18),
        table("5min", f"{CLOUD}/data-ingress-rate/*.csv", stamps="TimeStamp"),
        table("5min", f"{CLOUD}/mongodb-*/*.csv", stamps="TimeStamp"),
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files of `SOURCES` to a folder; exit status 2 for a mistake."""
    parser = argparse.ArgumentParser(prog="python -m scripts.pretrain.repositories", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = "\n".join(f"{name} {commit}: {origin}" for name, (commit, origin) in REPOSITORIES.items())
    parser.add_argument("clones", type=Path, help="folder of checked-out repositories")
    parser.add_argument("folder", type=Path, help="where the files go")
    options = parser.parse_args(argv)
    return write(SOURCES, options.clones, options.folder)


if __name__ == "__main__":
    sys.exit(main())
