"""Names of months in the languages whose names do not contradict each other."""

from __future__ import annotations

import calendar
import re
import unicodedata
from collections.abc import Iterator

import pandas as pd

_NAMES = (  # from January to December: English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Danish,
    # Norwegian, Indonesian, Turkish, and Polish with the forms that stand behind a day
    "january januar janvier enero gennaio janeiro januari ocak styczen stycznia",
    "february februar fevrier febrero febbraio fevereiro februari subat luty lutego",
    "march marz maerz mrz mars marzo marco maart mrt marts maret marzec marca",
    "april avril abril aprile nisan kwiecien kwietnia",
    "may mai mayo maggio maio mei maj mayis maja",
    "june juni juin junio giugno junho haziran czerwiec czerwca",
    "july juli juillet julio luglio julho temmuz lipiec lipca",
    "august aout agosto augustus augusti agustus agustos sierpien sierpnia",
    "september septembre septiembre setiembre settembre setembro eylul wrzesien wrzesnia",
    "october oktober octobre octubre ottobre outubro ekim pazdziernik pazdziernika",
    "november novembre noviembre novembro kasim listopad listopada",
    "december dezember decembre diciembre dicembre dezembro desember aralik grudzien grudnia",
)
LETTERS = r"[a-z\u00c0-\u017f]"  # of such names, in any case
SAMPLE = 20  # cells that are inspected first
_WITH_MONTH = re.compile(
    rf"\.?(?<!{LETTERS})(\s*)(?:de\s+)?({LETTERS}{{3,12}})(?!{LETTERS})\.?(?:\s+del?\b)?", re.IGNORECASE
)


def _abbreviated() -> Iterator[tuple[str, int]]:
    """Names and their beginnings of three letters or more, with the number of the month."""
    for number, names in enumerate(_NAMES, start=1):
        yield from ((name[:length], number) for name in names.split() for length in range(3, len(name) + 1))


def _unambiguous() -> dict[str, int]:
    numbers = dict[str, set[int]]()
    for name, number in _abbreviated():
        numbers.setdefault(name, set()).add(number)
    return {name: min(each) for name, each in numbers.items() if len(each) == 1}  # not jui


_NUMBERS = _unambiguous()


def month_number(name: str) -> int | None:
    """The number of the month that a name or its abbreviation means, from 1 on; None if it means none or several."""
    bare = name.strip().rstrip(".").lower().replace("\u0131", "i")
    plain = unicodedata.normalize("NFKD", bare).encode("ascii", "ignore").decode()
    return _NUMBERS.get(plain)


def in_english(cells: pd.Series) -> pd.Series:
    """Dates in text with their months as in 3 Mar 2024, for 3. März 2024 or 3 de marzo de 2024."""
    if not cells.head(SAMPLE).str.contains(LETTERS * 3, case=False, regex=True).any():
        return cells
    return cells.str.replace(_WITH_MONTH, _in_english, regex=True)


def _in_english(match: re.Match[str]) -> str:
    number = month_number(match[2])
    return match[0] if number is None else f"{match[1]}{calendar.month_abbr[number]}"
