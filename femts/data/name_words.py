"""What the name of a column says about its cells, in several languages: a second sign beside the cells themselves."""

from __future__ import annotations

import re
import unicodedata

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_YEAR = "year yr yyyy jahr annee anno ano rok god jaar vuosi yil yillar"
_QUARTER = "quarter qtr quartal trimestre kwartaal"
_MONTH = "month mnth monat mois mes mese maand miesiac kuukausi ay"
_WEEK = "week wk woche kw semaine semana settimana tydzien uge vecka viikko isoweek"
_DAY = "day dd tag jour dia giorno dag dzien gun mday"
_WEEKDAY = "weekday dow wday wochentag dayofweek weekend wochenende workday werktag"
_HOUR = "hour hr hh stunde heure hora ora uur godzina"
_CLOCK = "minute"
_SEASON = "season jahreszeit saison stagione temporada"
CALENDAR = {
    word: field
    for field, words in {
        **{"year": _YEAR, "quarter": _QUARTER, "month": _MONTH, "week": _WEEK, "day": _DAY, "weekday": _WEEKDAY},
        **{"hour": _HOUR, "minute": _CLOCK, "season": _SEASON, "day of year": "doy yday dayofyear julian"},
        **{"day of month": "dom dayofmonth"},
    }.items()
    for word in words.split()
}
_AROUND = frozenset(  # words that may stand beside those of the calendar, as in day_of_the_week or hour_sin
    "of the in is num number no nr name names short long abbr sin cos utc local date iso id idx index nth "
    "de la du del da do di der im des la".split()
)
_IDS = frozenset(
    "id ids uuid guid nr nbr code codes key idx ref reference sku ean isbn zip zipcode postcode postal plz fips fid "
    "serial url uri link imei objectid rowid rownum oid pid uid kennung nummer codigo codice cod".split()
)
_ENTITIES = frozenset(  # things that are numbered
    "store shop item product station sensor zone region site meter building customer client user dept department branch "
    "outlet plant route device machine vendor supplier category cat class type group cluster channel subject household "
    "cell segment unit family brand country state county city warehouse lane series location district ward area "
    "filiale artikel laden kunde standort geraet zaehler magasin article capteur tienda producto estacion negozio "
    "stazione loja produto".split()
)
_COORDINATES = frozenset(
    "lat latitude lon lng longitude latitud longitud coordinate coordinates easting northing geom".split()
)
_AMOUNTS = frozenset(  # of which a sum makes sense
    "sales sale sold revenue turnover demand count counts cnt amount amt qty quantity volume visits visitors users "
    "passengers trips rides ridership riders consumption usage energy generation production total totals cases births "
    "deaths orders units rentals traffic people number num admissions arrivals departures calls clicks views downloads "
    "sessions hits tickets transactions spend spent cost costs expenses income profit fare tip tips tolls rain rainfall "
    "precip precipitation kwh mwh umsatz absatz menge anzahl verbrauch betrag besucher ventes montant nombre quantite "
    "consommation ventas cantidad importe consumo vendite importo quantita vendas quantidade casos".split()
)
_WEATHER = frozenset("rain rainfall precip precipitation".split())  # amounts, but seldom what people forecast
_LEVELS = frozenset(  # of which a mean makes sense
    "temp temperature tmp humidity hum pressure speed wind co2 co no2 o3 so2 pm pm25 pm10 voltage volt level rate ratio "
    "percent pct percentage share index mean avg average median price prices close open high low level load power "
    "current frequency density intensity latency duration utilization occupancy preis prix precio prezzo preco "
    "temperatur feuchte druck dewpoint visibility radiation degrees approve disapprove".split()
)
_LEVEL_ENDS = ("temp", "temperature", "speed", "pressure", "price", "rate")
_ATTRIBUTES = frozenset(  # of one event or person: neither a sum nor a mean is worth a forecast
    "age alter rating score rank ranking stars magnitude mag depth height weight size latitude longitude distance grade "
    "quality version priority severity sample samplesize".split()
)
_VALUES = frozenset("value values y target obs observation wert valeur valor valore measurement close".split())
_BOUNDS = frozenset("lo hi low high lower upper min max std stdev se err error ci margin uncertainty var".split())
_CUMULATED = frozenset("cum cumulative cumulated cumul kumuliert cumule cumulee acumulado acumulada cumulato".split())


def words_in(name: str) -> list[str]:
    """Words of a name such as `storeNbr` or `día_del_mes`, in lower case and without accents."""
    plain = (
        unicodedata.normalize("NFKD", name.replace("ß", "ss").replace("\u0131", "i")).encode("ascii", "ignore").decode()
    )
    return [word.lower() for word in _PARTS.findall(plain)]


def calendar_field(name: str) -> str | None:
    """The part of a date that a name means, such as `month`; None if it means something else."""
    words = words_in(name)
    fields = {CALENDAR[word] for word in words if word in CALENDAR}
    if words and CALENDAR.get(words[-1]) == "year" and words[0] not in ("per", "by"):
        fields, words = ({"year"}, words[-1:]) if len(fields) == 1 else (fields, words)
    if not fields or not all(word in CALENDAR or word in _AROUND for word in words):
        return None
    if len(fields) == 1:
        (field,) = fields
        return "day of month" if field == "month" and "date" in words and "of" in words else field
    if "day" in fields or "day of month" in fields:
        return next((new for old, new in _OF.items() if old in fields), "day of month")
    if "weekday" in fields:
        return "weekday"
    return "code" if fields <= {"year", "month", "week", "quarter"} and len(words) == 2 else min(fields, key=len)


_OF = {"week": "weekday", "weekday": "weekday", "year": "day of year", "month": "day of month"}


def is_id(name: str) -> bool:
    """Whether a name is that of a code, such as `zone_id`, `InvoiceNo` or `zip code`."""
    words = words_in(name)
    return bool(words) and (
        not _IDS.isdisjoint(words)
        or words[-1].endswith(("num", "nbr", "code"))
        or (words[-1].endswith("id") and words[-1][:-2] in _ENTITIES)
        or (len(words) > 1 and words[-1] in ("no", "number", "num") and words[0] != "total")
    )


def is_entity(name: str) -> bool:
    """Whether a name is that of something that is numbered, such as `store` or `target zone`; `store 1` is one of them."""
    words = words_in(name)
    return bool(words) and len(words) <= 2 and words[-1] in _ENTITIES


def is_coordinate(name: str) -> bool:
    """Whether a name is that of a geographic coordinate."""
    words = words_in(name)
    return not _COORDINATES.isdisjoint(words) or words == ["long"]


def is_value(name: str) -> bool:
    """Whether a name is a usual one for what people forecast."""
    words = words_in(name)
    named = not (_VALUES | _AMOUNTS - _WEATHER).isdisjoint(words)
    return named and _ATTRIBUTES.isdisjoint(words) and words[-1] not in ("id", "ids", "uuid", "guid")


def is_bound(name: str) -> bool:
    """Whether a name is that of a bound, an error, or an extreme beside a value."""
    words = words_in(name)
    return any(word in _BOUNDS and not before.isdigit() for before, word in zip(["", *words], words, strict=False))


def is_amount(name: str) -> bool:
    """Whether a sum of such cells makes sense."""
    words = words_in(name)
    return not _AMOUNTS.isdisjoint(words) and not is_level(name)


def is_level(name: str) -> bool:
    """Whether only a mean of such cells makes sense, as of temperatures or prices."""
    words = words_in(name)
    return not _LEVELS.isdisjoint(words) or any(word.endswith(_LEVEL_ENDS) for word in words)


def is_attribute(name: str) -> bool:
    """Whether cells describe single events, such as an age or a rating."""
    return not _ATTRIBUTES.isdisjoint(words_in(name))


def is_cumulated(name: str) -> bool:
    """Whether a name says that the cells are running totals."""
    return not _CUMULATED.isdisjoint(words_in(name))
